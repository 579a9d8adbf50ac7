#!/usr/bin/env python3
"""Compares Verbena with Open MPI and MPICH on this machine: two ranks, each bound to a core of its own; in the rows that
say so four ranks, which share these cores as each launcher lets them.

Times of one machine move by themselves: its (virtual) cores are near to each other in one minute and far in the
next. So Verbena and one peer run as a pair, one right after the other in changing order, with a cache-line probe
before, between and after; a pair whose probes differ by more than 30 % says nothing and is dropped. The ratio is the
median over the pairs that stay, and the one shown is the worst over the peers: the ratio to the best of them.

Ends with status 1 if a row marked 'gate' is above the limit or could not be measured."""

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

PROBES_AGREE = 1.30
GATE = 1.05
RUN_SECONDS = 120

OPENMPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]
UCX = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
       "-x", "UCX_TLS=posix,sysv,cma,self"]
MPICH = ["mpirun.mpich"]


@dataclass
class Row:
    """One line of the table: which benchmark, with which options, and which of its figures."""

    name: str
    unit: str
    benchmark: str
    options: str
    key: str
    scale: float = 1
    gate: bool = False
    more_is_better: bool = False
    collective: bool = False  # measured only with --collectives
    ranks: int = 2  # on two cores: above that they share them


ROWS = [
    Row("8 B one way", "us", "latency", "-m 8:8 -i 50000 -x 5000", "latency_us", gate=True),
    Row("1 KiB one way", "us", "latency", "-m 1k:1k -i 30000 -x 3000", "latency_us"),
    Row("64 KiB one way", "us", "latency", "-m 64k:64k -i 4000 -x 400", "latency_us", gate=True),
    Row("1 MiB one way", "us", "latency", "-m 1m:1m -i 400 -x 50", "latency_us"),
    Row("message rate, 8 B", "M/s", "bw", "-m 8:8 -f -i 4000 -x 400", "messages_per_s", 1e-6, more_is_better=True),
    Row("bandwidth, 64 KiB", "GB/s", "bw", "-m 64k:64k -i 200 -x 20", "bandwidth_mb_s", 1e-3, more_is_better=True),
    Row("bandwidth, 1 MiB", "GB/s", "bw", "-m 1m:1m -i 20 -x 4", "bandwidth_mb_s", 1e-3, more_is_better=True),
    Row("both ways, 8 B", "M/s", "bibw", "-m 8:8 -f -i 4000 -x 400", "messages_per_s", 1e-6, more_is_better=True),
    Row("both ways, 1 MiB", "GB/s", "bibw", "-m 1m:1m -i 20 -x 4", "bandwidth_mb_s", 1e-3, more_is_better=True),
    Row("put and flush, 8 B", "us", "put_latency", "-m 8:8 -i 50000 -x 5000", "latency_us"),
    Row("get, 8 B", "us", "get_latency", "-m 8:8 -i 50000 -x 5000", "latency_us"),
    Row("puts, 64 KiB", "GB/s", "put_bw", "-m 64k:64k -i 200 -x 20", "bandwidth_mb_s", 1e-3, more_is_better=True),
    Row("gets, 64 KiB", "GB/s", "get_bw", "-m 64k:64k -i 200 -x 20", "bandwidth_mb_s", 1e-3, more_is_better=True),
    Row("4 ranks, one way, 8 B", "us", "multi_lat", "-m 8:8 -i 50000 -x 1000", "latency_us", ranks=4),
    Row("4 ranks, rate, 8 B", "M/s", "mbw_mr", "-m 8:8 -i 500 -x 50", "messages_per_s", 1e-6, more_is_better=True,
        ranks=4),
    Row("allreduce 8 B", "us", "allreduce", "-m 8:8 -i 50000 -x 5000", "avg_us", gate=True),
    Row("allreduce 16 KiB", "us", "allreduce", "-m 16k:16k -i 10000 -x 1000", "avg_us"),
    Row("allreduce 1 MiB", "us", "allreduce", "-m 1m:1m -i 300 -x 50", "avg_us"),
    Row("barrier", "us", "barrier", "-i 50000 -x 5000", "avg_us", collective=True),
    *(Row(f"{name} {size}", "us", name, f"-m {short}:{short} -i {times} -x {times // 10}", "avg_us", collective=True)
      for name in ("bcast", "reduce", "gather", "scatter", "allgather", "alltoall")
      for size, short, times in (("8 B", "8", 50000), ("16 KiB", "16k", 10000), ("1 MiB", "1m", 300))),
]
BENCHMARKS = sorted({row.benchmark for row in ROWS})


@dataclass
class Contender:
    name: str
    launch: list
    bind: list  # words of its launcher that give each rank a core of its own
    programs: dict  # benchmark -> command

    def measure(self, row, iterations_by):
        options = row.options.split()
        for at, word in enumerate(options):
            if word in ("-i", "-x"):
                options[at + 1] = str(max(1, int(options[at + 1]) // iterations_by))
        bind = self.bind if row.ranks == 2 else []
        command = self.launch + bind + ["-n", str(row.ranks)] + self.programs[row.benchmark] + options + ["--json", "-"]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=RUN_SECONDS)
        if done.returncode != 0:
            sys.exit(f"compare_node: '{' '.join(command)}' ended with status {done.returncode}:\n{done.stderr}")
        return json.loads(done.stdout)["rows"][0][row.key] * row.scale


@dataclass
class Pairs:
    """What was measured of Verbena against one peer, for one row."""

    ours: list = field(default_factory=list)
    theirs: list = field(default_factory=list)
    probes: list = field(default_factory=list)
    dropped: int = 0

    def ratio(self):
        return statistics.median(a / b for a, b in zip(self.ours, self.theirs)) if self.ours else None


def contenders(build):
    at = Path(build, "benchmarks")

    def peer(name, launch, bind, program):
        return Contender(name, launch, bind, {what: [str(at / program), what] for what in BENCHMARKS})

    ours = Contender("Verbena", [str(Path(build, "launcher", "rdmarun"))], [],
                     {what: [str(at / f"vb_{what}"), "--pin"] for what in BENCHMARKS})
    return ours, [peer("Open MPI", OPENMPI, ["--bind-to", "core"], "bench_openmpi"),
                  peer("Open MPI+UCX", OPENMPI + UCX, ["--bind-to", "core"], "bench_openmpi"),
                  peer("MPICH", MPICH, ["-bind-to", "core"], "bench_mpich")]


def probe(build, milliseconds):
    cpus = sorted(os.sched_getaffinity(0))[:2]
    command = [str(Path(build, "benchmarks", "line_probe")), *map(str, cpus), str(milliseconds)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare(row, ours, peer, options):
    """Pairs in changing order until enough agree, three times as many attempts at most."""
    pairs = Pairs()
    for attempt in range(options.pairs * 3):
        order = (ours, peer) if attempt % 2 == 0 else (peer, ours)
        figures, probes = {}, [probe(options.build, options.probe_ms)]
        for contender in order:
            figures[contender.name] = contender.measure(row, options.iterations_by)
            probes.append(probe(options.build, options.probe_ms))
        if max(probes) > min(probes) * PROBES_AGREE:
            pairs.dropped += 1
            continue
        pairs.ours.append(figures[ours.name])
        pairs.theirs.append(figures[peer.name])
        pairs.probes += probes
        if len(pairs.ours) == options.pairs:
            break
    return pairs


def median(values):
    return statistics.median(values) if values else None


def shown(value):
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def table_line(row, peers, results):
    """The row as a line of the table, and whether its gate is met."""
    ratios = [pairs.ratio() for pairs in results]
    known = [ratio for ratio in ratios if ratio is not None]
    worst = None if len(known) < len(ratios) else min(known) if row.more_is_better else max(known)
    met = not row.gate or (worst is not None and worst <= GATE)
    verdict = "" if not row.gate else f"gate <= {GATE}: " + ("met" if met else "MISSED" if worst else "NOT MEASURED")
    ours = median([figure for pairs in results for figure in pairs.ours])
    probes = [value for pairs in results for value in pairs.probes]
    state = f"{min(probes):.0f}-{max(probes):.0f}" if probes else "-"
    cells = [f"{row.name}, {row.unit}", shown(ours), *(shown(median(pairs.theirs)) for pairs in results),
             shown(worst) if worst is None else f"{worst:.2f}", state, str(sum(pairs.dropped for pairs in results)), verdict]
    widths = [24, 9, *(max(9, len(peer.name)) for peer in peers), 6, 9, 7, 0]
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |", met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build folder, configured with -Dpeers=true")
    parser.add_argument("--pairs", type=int, default=7, help="pairs that must agree, for each row and peer")
    parser.add_argument("--quick", action="store_true", help="two pairs and a fifth of the repetitions")
    parser.add_argument("--gates", action="store_true", help="only the rows with a gate")
    parser.add_argument("--collectives", action="store_true", help="the other collectives, and nothing else")
    options = parser.parse_args()
    options.iterations_by = 5 if options.quick else 1
    options.probe_ms = 40 if options.quick else 100
    if options.quick:
        options.pairs = 2
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("compare_node: needs two CPUs")

    ours, peers = contenders(options.build)
    head = ["two ranks, a core each".ljust(24), ours.name.ljust(9), *(p.name.ljust(9) for p in peers), "ratio ", "line, ns ",
            "dropped", ""]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    missed = 0
    for row in ROWS:
        if (options.gates and not row.gate) or options.collectives != row.collective:
            continue
        line, met = table_line(row, peers, [compare(row, ours, peer, options) for peer in peers])
        missed += not met
        print(line, flush=True)
    print(f"\nratio: ours to the best peer's, median of {options.pairs} pairs; line: one-way time of a cache line in "
          "the pairs used;\ndropped: pairs whose probes differed by more than 30 %")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
