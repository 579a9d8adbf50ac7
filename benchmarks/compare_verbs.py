#!/usr/bin/env python3
"""Compares Verbena over an RDMA device with plain libibverbs, Open MPI over UCX and UCX's own test, all in one guest.

Runs in a virtual machine with Soft-RoCE (tests/guests/bed.py --rdma), whose device is rxe0; started by `./dev bench verbs`. Two
ranks, a core each. 'raw' is benchmarks/raw/verbs_raw.cpp; 'ucx' is ucx_perftest on rc_verbs, the transport below UCX's messages, whose 64 KiB
and more are RDMA Writes. The contenders run one after the other in changing order, each with all rows at once, since starting a
program there takes seconds; that is a round. A figure is the median over the rounds, a ratio the median of the rounds' ratios.

Then T = L + S/B is fitted to each contender's latencies: L, the time of a message without bytes; B, what the bytes move with; L x B, the
size that reaches half of B. Least squares of relative errors, for otherwise the largest message alone would decide.

Ends with status 1 if a goal is missed, with status 2 if a figure is missing."""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

RUN_SECONDS = 150
DEVICE = "rxe0:1"
KIB, MIB = 1 << 10, 1 << 20
LATENCIES = {8: 1000, KIB: 500, 64 * KIB: 40, MIB: 6}  # bytes: round trips
WINDOWS = {8: 50, KIB: 20, 64 * KIB: 3}  # bytes: windows of 64 messages


@dataclass
class Row:
    """One line of the table, and how ours must be to raw's figure. A rate or bandwidth is better the more it is."""

    kind: str  # latency, rate, bandwidth
    size: int
    goal: float = None
    judged: bool = True  # False: these guests are too noisy there, or nothing is asked

    @property
    def name(self):
        size = f"{self.size} B" if self.size < KIB else f"{self.size // KIB} KiB" if self.size < MIB else f"{self.size // MIB} MiB"
        return size + {"latency": " one way, us", "rate": " rate, 1000/s", "bandwidth": " bandwidth, MB/s"}[self.kind]

    @property
    def more_is_better(self):
        return self.kind != "latency"

    def good(self, ratio, goal):
        return ratio >= goal if self.more_is_better else ratio <= goal


ROWS = [
    Row("latency", 8, 1.10),
    Row("latency", KIB, 1.10),
    Row("latency", 64 * KIB, 1.20),
    Row("latency", MIB, judged=False),
    Row("rate", 8, 5),  # of raw's single sends
    Row("bandwidth", KIB),
    Row("bandwidth", 64 * KIB, 0.9),
]


def fail(text):
    print(f"compare_verbs: {text}", file=sys.stderr)
    sys.exit(2)


def run(command, environment=None):
    """Standard output; a program that fails or hangs ends it all."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=RUN_SECONDS,
                              env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        fail(f"'{' '.join(command)}' was not through after {RUN_SECONDS} s")
    if done.returncode != 0:
        fail(f"'{' '.join(command)}' ended with status {done.returncode}:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done


def of_list(counts):
    return ["-m", ",".join(map(str, counts)), "-i", ",".join(map(str, counts.values()))]


class Messages:
    """vb_latency and vb_bw, or the same loops over MPI."""

    def __init__(self, name, launch, latency, bandwidth):
        self.name, self.launch, self.programs = name, launch, {"latency": latency, "bandwidth": bandwidth}

    def figures(self):
        def rows(which, *options):
            return json.loads(run([*self.launch, *self.programs[which], *options, "--json", "-"]).stdout)["rows"]

        found = {("latency", row["size"]): row["latency_us"] for row in rows("latency", "-x", "5", *of_list(LATENCIES))}
        for row in rows("bandwidth", "-f", "-x", "1", *of_list(WINDOWS)):
            found["bandwidth", row["size"]] = row["bandwidth_mb_s"]
            found["rate", row["size"]] = row["messages_per_s"] / 1000
        return found


class Raw:
    name = "raw"

    def __init__(self, program):
        jobs = [f"latency:{size}:{rounds}" for size, rounds in LATENCIES.items()]
        jobs += [f"writes:{size}:{windows * (1 if size <= KIB else 4)}" for size, windows in WINDOWS.items()]
        self.command = [program, "-d", DEVICE, *jobs, f"sends:8:{WINDOWS[8]}"]

    def figures(self):
        kinds = {"latency": ("latency", 1), "writes": ("bandwidth", 1), "sends": ("rate", 1e-3)}
        found = {}
        for line in run(self.command).stdout.splitlines():
            what, size, figure, _ = line.split()
            kind, scale = kinds[what]
            found[kind, int(size)] = float(figure) * scale
        return found


class UcxPerftest:
    """A server and a client that do a list of tests. The server takes a moment before it listens."""

    name = "ucx"
    address = "10.0.0.1"
    environment = {"UCX_IB_GID_INDEX": "1"}

    def __init__(self, folder):
        self.list = Path(folder, "tests")
        self.port = 13400
        lines = []
        for size, rounds in LATENCIES.items():
            test, layout = ("am_lat", "short" if size == 8 else "bcopy") if size <= KIB else ("put_lat", "zcopy")
            lines.append(f"latency-{size} -t {test} -D {layout} -s {size} -n {rounds} -w {max(1, rounds // 10)}")
        for size, windows in WINDOWS.items():
            test, layout = ("am_bw", "short" if size == 8 else "bcopy") if size <= KIB else ("put_bw", "zcopy")
            count = min(windows * 64, 192) if size > KIB else windows * 64
            lines.append(f"bandwidth-{size} -t {test} -D {layout} -s {size} -n {count} -w {max(1, count // 20)}")
        self.list.write_text("".join(line + "\n" for line in lines))

    def figures(self):
        self.port += 1
        words = ["-p", str(self.port), "-d", DEVICE, "-x", "rc_verbs", "-b", str(self.list)]
        server = subprocess.Popen(["taskset", "-c", "1", "ucx_perftest", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env={**os.environ, **self.environment})
        try:
            deadline = time.monotonic() + 30
            while not self.listens():
                if time.monotonic() > deadline:
                    fail("the server of ucx_perftest does not listen")
                time.sleep(0.1)
            text = run(["taskset", "-c", "0", "ucx_perftest", self.address, *words, "-f", "-v"], self.environment).stdout
        finally:
            server.kill()
            server.wait()
        found = {}
        for line in text.splitlines():
            # name, count, median and mean latency, of all; MiB/s twice; messages/s twice
            cells = line.split(",")
            at = re.fullmatch(r"(latency|bandwidth)-(\d+)", cells[0])
            if not at or len(cells) != 9:
                continue
            kind, size = at[1], int(at[2])
            if kind == "latency":
                found[kind, size] = float(cells[4])
            else:
                found[kind, size] = float(cells[6]) * 1.048576
                found["rate", size] = float(cells[8]) / 1000
        return found

    def listens(self):
        wanted = f":{self.port:04X}"
        return any(words[1].endswith(wanted) and words[3] == "0A" for words in map(str.split, Path("/proc/net/tcp").read_text().splitlines()))


def contenders(build, folder):
    at = Path(build, "benchmarks").resolve()
    rdmarun = str(Path(build, "launcher", "rdmarun").resolve())
    ours = Messages("Verbena", [rdmarun, "-q", "--fabric", "verbs", "--device", DEVICE, "-n", "2"],
                    [str(at / "vb_latency"), "--pin"], [str(at / "vb_bw"), "--pin"])
    # 'rc' and not 'rc_verbs': only that brings the way by which UCX makes connections. Its check of the address that a datagram went to
    # refuses IPv4 on Soft-RoCE.
    ucx = [word for setting in (f"UCX_NET_DEVICES={DEVICE}", "UCX_TLS=rc,self", "UCX_IB_GID_INDEX=1", "UCX_UD_VERBS_ETH_DGID_CHECK=n")
           for word in ("-x", setting)]
    openmpi = Messages("Open MPI+UCX", ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "core", "--mca", "pml", "ucx", *ucx, "-n", "2"],
                       [str(at / "bench_openmpi"), "latency"], [str(at / "bench_openmpi"), "bw"])
    return Raw(str(at / "verbs_raw")), ours, openmpi, UcxPerftest(folder)


def checked(contender):
    """Its figures, complete."""
    found = contender.figures()
    missing = [row.name for row in ROWS if not found.get((row.kind, row.size), 0) > 0]
    if missing:
        fail(f"{contender.name} has no figure for {', '.join(missing)}")
    return found


def shown(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table_line(row, rounds, names):
    """The row as a line of the table, and how many goals it misses."""
    raw, ours, openmpi = names[:3]
    figures = {name: [one[name][row.kind, row.size] for one in rounds] for name in names}

    def ratio_to(other):
        return statistics.median(a / b for a, b in zip(figures[ours], figures[other]))

    to_raw, to_peer = ratio_to(raw), ratio_to(openmpi)
    goals = []
    if row.goal is not None:
        goals.append((f"{'>=' if row.more_is_better else '<='} {row.goal} of raw", row.good(to_raw, row.goal)))
    if row.judged:
        goals.append(("ahead of Open MPI+UCX", row.good(to_peer, 1)))
    words = ", ".join(f"{text}: {'met' if met else 'MISSED'}" for text, met in goals) or "reported only"
    cells = [row.name.ljust(23), *(shown(statistics.median(figures[name])).ljust(max(7, len(name))) for name in names),
             f"{to_raw:.2f}".ljust(6), f"{to_peer:.2f}".ljust(11), words]
    return "| " + " | ".join(cells) + " |", sum(not met for _, met in goals)


def fit(points):
    """L and B (bytes/us) of T = L + S/B, by least squares of relative errors over pairs (S, T)."""
    weights = [(size, t, 1 / (t * t)) for size, t in points]
    w, ws, wt = (sum(f(*p) for p in weights) for f in (lambda s, t, w: w, lambda s, t, w: w * s, lambda s, t, w: w * t))
    wss, wst = sum(w_ * s * s for s, _, w_ in weights), sum(w_ * s * t for s, t, w_ in weights)
    slope = (w * wst - ws * wt) / (w * wss - ws * ws)
    return (wt - slope * ws) / w, 1 / slope if slope > 0 else math.inf


def print_fits(rounds, names):
    print("\nT = L + S/B, fitted to the latencies:\n")
    print("| program      | L, us | B, MB/s | half of B at, B |\n|---|---|---|---|")
    for name in names:
        points = [(row.size, statistics.median(one[name]["latency", row.size] for one in rounds)) for row in ROWS if row.kind == "latency"]
        latency, bandwidth = fit(points)
        print(f"| {name.ljust(12)} | {shown(latency).ljust(5)} | {shown(bandwidth).ljust(7)} | {latency * bandwidth:<15.0f} |")


def print_work(build):
    """How many work requests and doorbells small messages take, if this build counts them."""
    at = Path(build).resolve()
    done = run([str(at / "launcher/rdmarun"), "-q", "--fabric", "verbs", "--device", DEVICE, "-n", "2", str(at / "benchmarks/vb_bw"),
                "--pin", "-m", "8:8", "-i", "50", "-x", "0"], {"VERBENA_STATS": "1"})
    line = next((line for line in done.stderr.splitlines() if line.startswith("rank 0 counters:")), "")
    counts = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}
    goals = {"work_requests": 1 / 8, "doorbells": 1 / 16}
    if not counts.get("messages_sent") or not all(name in counts for name in goals):
        print("\nWork requests and doorbells are not counted by this build.")
        return 0
    per_message = {name: counts[name] / counts["messages_sent"] for name in goals}
    words = [f"{value:.3f} {name.replace('_', ' ')} (<= {goals[name]}: {'met' if value <= goals[name] else 'MISSED'})"
             for name, value in per_message.items()]
    print(f"\nA message of 8 B in windows of 64 takes {' and '.join(words)}.")
    return sum(per_message[name] > goals[name] for name in goals)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build folder, configured with -Dpeers=true")
    parser.add_argument("--pairs", type=int, default=9, help="rounds")
    options = parser.parse_args()
    if not Path("/sys/class/infiniband/rxe0").exists():
        parser.error("this runs in a guest with rxe0: ./dev bench verbs")
    with tempfile.TemporaryDirectory() as folder:
        all_of_them = contenders(options.build, folder)
        names = [c.name for c in all_of_them]
        rounds = []
        for attempt in range(options.pairs):
            order = all_of_them if attempt % 2 == 0 else tuple(reversed(all_of_them))
            rounds.append({c.name: checked(c) for c in order})
    head = ["two ranks, a core each".ljust(23), *(name.ljust(7) for name in names), "to raw", "to Open MPI", "goals"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    missed = 0
    for row in ROWS:
        line, misses = table_line(row, rounds, names)
        print(line)
        missed += misses
    print(f"\nmedians of {options.pairs} rounds; to raw, to Open MPI: medians of the rounds' ratios; raw's rate is that of single SENDs")
    print_fits(rounds, names)
    missed += print_work(options.build)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
