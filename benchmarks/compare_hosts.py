#!/usr/bin/env python3
"""Compares Verbena over TCP with Open MPI, MPICH and bare sockets between two hosts.

The hosts are pretended ones on this machine, h1 and h2 of tests/hosts/bed.py, with a virtual cable between them; run it by
`./dev bench hosts`. Each contender is run in turns, in changing order; a ratio is one of medians. Two ranks are bound to a core
each, alike for all. 'raw' is benchmarks/raw/tcp_raw.cpp: two processes that spin on a socket, or fill it.

With --many, on a bed of many hosts: two ranks on each start, reduce once and end.

Ends with status 1 if a goal was missed."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

RUN_SECONDS = 300
BED = Path(os.environ.get("VERBENA_HOSTS_BED", ""))
MPI_WORDS = ["--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"]


@dataclass
class Row:
    """One line: which benchmark, and the goals: at most so many times (or, of a bandwidth, at least) the others' figure."""

    name: str
    benchmark: str
    options: str
    key: str
    scale: float = 1
    more_is_better: bool = False
    ranks_per_host: int = 1
    of_peers: float = None
    of_raw: float = None
    of_best: float = None  # of peers and raw
    raw: str = ""  # words for tcp_raw


ROWS = [
    Row("8 B one way, us", "latency", "-m 8:8 -i 20000 -x 2000", "latency_us", of_peers=0.75, of_raw=1.15, raw="8 20000"),
    Row("64 KiB one way, us", "latency", "-m 64k:64k -i 2000 -x 200", "latency_us", raw="65536 2000"),
    Row("bandwidth 64 KiB, GB/s", "bw", "-m 64k:64k -i 100 -x 10", "bandwidth_mb_s", 1e-3, True, of_peers=1.15,
        raw="65536 20000 stream"),
    Row("bandwidth 1 MiB, GB/s", "bw", "-m 1m:1m -i 20 -x 2", "bandwidth_mb_s", 1e-3, True, of_best=0.95,
        raw="1048576 1500 stream"),
    Row("bandwidth 4 MiB, GB/s", "bw", "-m 4m:4m -i 8 -x 1", "bandwidth_mb_s", 1e-3, True, of_best=0.95,
        raw="4194304 500 stream"),
    *(Row(f"allreduce {size}, 2 x 4 ranks, us", "allreduce", f"-m {short}:{short} -i {times} -x {times // 10}", "avg_us",
          ranks_per_host=4, of_peers=0.6)
      for size, short, times in (("8 B", "8", 100), ("16 KiB", "16k", 50), ("1 MiB", "1m", 10))),
]


def on(host, *command):
    return [str(BED / "in"), str(host), *command]


def run(command, what):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=RUN_SECONDS)
    if done.returncode != 0:
        sys.exit(f"compare_hosts: {what}: '{' '.join(command)}' ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def bound(variable, program):
    """One rank to each of the first two processors, whatever the launcher thinks of them."""
    return ["sh", "-c", f'exec taskset -c ${variable} "$@"', "sh", *program]


class Contender:
    def __init__(self, name, launch, variable, program):
        self.name, self.launch, self.variable, self.program = name, launch, variable, program

    def measure(self, row):
        program = self.program(row.benchmark) + row.options.split() + ["--json", "-"]
        if row.ranks_per_host == 1:
            program = bound(self.variable, program)
        text = run(on(1, *self.launch(row.ranks_per_host), *program), self.name)
        return json.loads(text)["rows"][0][row.key] * row.scale


class Raw:
    name = "raw"
    port = 20000

    def measure(self, row):
        if not row.raw:
            return None
        size, rounds, *mode = row.raw.split()
        Raw.port += 1
        program = str(Path(options.build, "benchmarks", "tcp_raw").resolve())
        words = [program, size, rounds]
        other = subprocess.Popen(on(2, "taskset", "-c", "1", *words, "listen", str(Raw.port), *mode))
        time.sleep(0.3)
        text = run(on(1, "taskset", "-c", "0", *words, "10.78.91.2", str(Raw.port), *mode), "tcp_raw")
        other.wait()
        figure = float(text.split(":")[1].split()[0])
        return figure * row.scale


def contenders():
    at = Path(options.build, "benchmarks").resolve()
    rdmarun = str(Path(options.build, "launcher", "rdmarun").resolve())
    ours = Contender("Verbena", lambda n: [rdmarun, "-q", "-H", f"h1:{n},h2:{n}"], "VERBENA_RANK",
                     lambda what: [str(at / f"vb_{what}")])
    openmpi = Contender("Open MPI", lambda n: ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe",
                                               "-H", f"h1:{n},h2:{n}", *MPI_WORDS], "OMPI_COMM_WORLD_RANK",
                        lambda what: [str(at / "bench_openmpi"), what])
    mpich = Contender("MPICH", lambda n: ["mpirun.mpich", "-bind-to", "none", "-hosts", f"h1:{n},h2:{n}", "-n", str(2 * n)], "PMI_RANK",
                      lambda what: [str(at / "bench_mpich"), what])
    return [ours, openmpi, mpich, Raw()]


def verdicts(row, ours, peers, raw):
    """In words, and whether all are met."""
    words, met = [], True
    better = max if row.more_is_better else min
    for goal, of, what in ((row.of_peers, peers, "best peer"), (row.of_raw, [raw], "raw"), (row.of_best, [*peers, raw], "best")):
        if goal is None:
            continue
        ratio = ours / better(of)
        good = ratio >= goal if row.more_is_better else ratio <= goal
        met = met and good
        words.append(f"{ratio:.2f} of the {what} ({'>=' if row.more_is_better else '<='} {goal}: {'met' if good else 'MISSED'})")
    return ", ".join(words), met


def figures():
    all_of_them = contenders()
    missed = 0
    print("| " + "".ljust(32) + " | " + " | ".join(c.name.ljust(9) for c in all_of_them) + " | goals |\n|" + "---|" * 6)
    for row in ROWS:
        seen = {c.name: [] for c in all_of_them}
        for attempt in range(options.rounds):
            for c in all_of_them if attempt % 2 == 0 else reversed(all_of_them):
                seen[c.name].append(c.measure(row))
        middle = {name: statistics.median(values) if values[0] is not None else None for name, values in seen.items()}
        words, met = verdicts(row, middle["Verbena"], [middle["Open MPI"], middle["MPICH"]], middle["raw"])
        missed += not met
        cells = [f"{value:.2f}" if value is not None else "-" for value in middle.values()]
        print("| " + row.name.ljust(32) + " | " + " | ".join(cell.ljust(9) for cell in cells) + f" | {words} |", flush=True)
    return missed


def timed(command, what):
    begin = time.monotonic()
    run(command, what)
    return (time.monotonic() - begin) * 1e3


def starts():
    """Whole jobs, milliseconds."""
    ours, openmpi, mpich, _ = contenders()
    at = Path(options.build, "benchmarks").resolve()
    jobs = {"rdmarun -H h1,h2 hostname": on(1, *ours.launch(1), "hostname"), "ssh h2 hostname": on(1, "ssh", "h2", "hostname"),
            "join, 2 x 8 ranks": on(1, *ours.launch(8), str(at / "join_verbena")),
            "Open MPI, 2 x 8 ranks": on(1, *openmpi.launch(8), str(at / "join_openmpi")),
            "MPICH, 2 x 8 ranks": on(1, *mpich.launch(8), str(at / "join_mpich"))}
    seen = {name: [] for name in jobs}
    for attempt in range(options.rounds):
        for name in list(jobs) if attempt % 2 == 0 else reversed(list(jobs)):
            seen[name].append(timed(jobs[name], name))
    middle = {name: statistics.median(values) for name, values in seen.items()}
    for name, value in middle.items():
        print(f"{name:<28} {value:8.0f} ms")
    extra = middle["rdmarun -H h1,h2 hostname"] - middle["ssh h2 hostname"]
    ratio = middle["join, 2 x 8 ranks"] / middle["Open MPI, 2 x 8 ranks"]
    print(f"hostname: one ssh and {extra:.0f} ms (<= 150: {'met' if extra <= 150 else 'MISSED'}); "
          f"2 x 8 ranks: {ratio:.2f} of Open MPI's (<= 0.5: {'met' if ratio <= 0.5 else 'MISSED'})")
    return (extra > 150) + (ratio > 0.5)


def many():
    rdmarun = str(Path(options.build, "launcher", "rdmarun").resolve())
    program = str(Path(options.build, "benchmarks", "vb_allreduce").resolve())
    count = len(list(BED.glob("pid*")))
    hosts = ",".join(f"h{i}:2" for i in range(1, count + 1))
    took = timed(on(1, rdmarun, "-H", hosts, program, "-m", "8:8", "-i", "1", "-x", "0", "-c"), "many hosts") / 1e3
    print(f"{count} hosts, 2 ranks each: started, reduced (checked) and ended in {took:.1f} s (<= 60: {'met' if took <= 60 else 'MISSED'})")
    return took > 60


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--build", default="build", help="build folder, configured with -Dpeers=true")
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--quick", action="store_true", help="three rounds")
parser.add_argument("--many", action="store_true", help="only the start of a job on all hosts of the bed")
options = parser.parse_args()
if not BED.name:
    parser.error("this runs beside pretend hosts: ./dev bench hosts")
if options.quick:
    options.rounds = 3
sys.exit(1 if (many() if options.many else figures() + starts()) else 0)
