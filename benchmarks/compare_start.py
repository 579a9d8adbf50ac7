#!/usr/bin/env python3
"""Compares how fast rdmarun and MPICH's mpiexec start and end jobs on this machine.

Both are run in turns, in changing order, and the medians compared; in between, the same processes are started by
nobody at all: by posix_spawn, one after the other, and by two processes that start one half each, which is what hardly any
launcher can be faster than. Goals: two times
'hostname' in no more than those two processes and 20 ms, and in 0.9 of MPICH's time; 64 times 'true' in 0.5 of MPICH's time.
With a build that has the peers (-Dpeers=true), ranks that join the job are compared, too.

The processor time of all processes together is printed as well: unlike the time that passes it hardly depends on what else
the machine does. Ends with status 1 if a goal was missed."""

import argparse
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

JOB_SECONDS = 20


@dataclass
class Row:
    """One line of the table: how many of which program, and what is asked for."""

    name: str
    ranks: int
    ours: list
    theirs: list
    most_ratio: float = None  # of the medians, ours to MPICH's
    most_extra_ms: float = None  # above the bare processes
    bare: bool = True


@dataclass
class Series:
    """What was measured of one contender."""

    passed_ms: list = field(default_factory=list)
    processor_ms: list = field(default_factory=list)

    def add(self, run):
        before, begin = os.times(), time.monotonic()
        run()
        self.passed_ms.append((time.monotonic() - begin) * 1e3)
        after = os.times()
        self.processor_ms.append((after.children_user + after.children_system - before.children_user
                                  - before.children_system) * 1e3)

    def passed(self):
        return statistics.median(self.passed_ms)

    def processor(self):
        return statistics.mean(self.processor_ms)  # counted in ticks of 10 ms: only the mean says something


def start(command, errors="/dev/null"):
    """By posix_spawn, and waited for without a poll, so that as little as possible of this program is measured."""
    files = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
             (os.POSIX_SPAWN_OPEN, 2, errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    return os.posix_spawn(shutil.which(command[0]), command, os.environ, file_actions=files)


def job(command, errors):
    def run():
        status = os.waitstatus_to_exitcode(os.waitpid(start(command, errors), 0)[1])
        if status != 0:
            sys.exit(f"compare_start: '{' '.join(command)}' ended with status {status}:\n{Path(errors).read_text()}")
    return run


def bare(ranks, program):
    def run():
        for pid in [start(program) for _ in range(ranks)]:
            os.waitpid(pid, 0)
    return run


def bare_by_two(ranks, program):
    def run():
        other = os.fork()
        if other == 0:
            bare(ranks // 2, program)()
            os._exit(0)
        bare(ranks - ranks // 2, program)()
        os.waitpid(other, 0)
    return run


def compare(row, rdmarun, mpiexec, rounds, errors):
    runs = {"ours": job([rdmarun, "-q", "-n", str(row.ranks), *row.ours], errors),
            "theirs": job([mpiexec, "-n", str(row.ranks), *row.theirs], errors)}
    if row.bare:
        runs["bare"] = bare(row.ranks, row.ours)
        runs["by two"] = bare_by_two(row.ranks, row.ours)
    for run in runs.values():
        signal.alarm(JOB_SECONDS * (rounds + 1))  # a launcher that hangs ends the comparison
        run()  # what is read for the first time comes from the disk
    series = {name: Series() for name in runs}
    names = list(runs)
    for turn in range(rounds):
        for i in range(len(names)):
            name = names[(turn + i) % len(names)]
            series[name].add(runs[name])
    return series


def verdicts(row, series):
    """The goals of a row in words, and whether all are met."""
    ours, theirs = series["ours"].passed(), series["theirs"].passed()
    met, words = True, []
    if row.most_ratio is not None:
        here = ours / theirs <= row.most_ratio
        words.append(f"ratio <= {row.most_ratio}: {'met' if here else 'MISSED'}")
        met = met and here
    if row.most_extra_ms is not None:
        here = ours <= series["bare"].passed() + row.most_extra_ms
        words.append(f"bare + {row.most_extra_ms:.0f} ms: {'met' if here else 'MISSED'}")
        met = met and here
    return ", ".join(words), met


def rows(build):
    table = [Row("hostname, 2 ranks", 2, ["hostname"], ["hostname"], most_ratio=0.9, most_extra_ms=20),
             Row("true, 64 ranks", 64, ["true"], ["true"], most_ratio=0.5)]
    ours, theirs = Path(build, "benchmarks", "join_verbena"), Path(build, "benchmarks", "join_mpich")
    if ours.exists() and theirs.exists():
        for ranks in (2, 16):
            table.append(Row(f"join and leave, {ranks} ranks", ranks, [str(ours)], [str(theirs)], bare=False))
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build folder")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="five rounds")
    options = parser.parse_args()
    rdmarun = str(Path(options.build, "launcher", "rdmarun").resolve())
    mpiexec = shutil.which("mpiexec.hydra") or shutil.which("mpiexec.mpich")
    if mpiexec is None:
        sys.exit("compare_start: there is no MPICH (apt-get install mpich)")

    head = ["", "Verbena", "MPICH", "bare", "by two", "ratio", "processor ms: Verbena", "MPICH", "bare", "goals"]
    widths = [24, 8, 8, 8, 8, 5, 21, 8, 8, 0]
    print("| " + " | ".join(cell.ljust(width) for cell, width in zip(head, widths)) + " |\n|" + "---|" * len(head), flush=True)
    missed = 0
    errors = tempfile.NamedTemporaryFile(prefix="compare-start-")
    for row in rows(options.build):
        series = compare(row, rdmarun, mpiexec, 5 if options.quick else options.rounds, errors.name)
        words, met = verdicts(row, series)
        missed += not met
        passed = [f"{series[name].passed():.1f}" if name in series else "-" for name in ("ours", "theirs", "bare", "by two")]
        spent = [f"{series[name].processor():.0f}" if name in series else "-" for name in ("ours", "theirs", "bare")]
        cells = [row.name, *passed, f"{series['ours'].passed() / series['theirs'].passed():.2f}", *spent, words]
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |", flush=True)
    print(f"\nmilliseconds, medians of {5 if options.quick else options.rounds} alternating runs; "
          "bare: the same processes without a launcher; by two: by two processes, one half each")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
