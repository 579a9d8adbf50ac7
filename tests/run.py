#!/usr/bin/env python3
"""Runs the Catch2 programs that a build registered with meson, and counts their test cases.

A test case that warns "skipped: why" and does nothing else counts as skipped. A program that crashes, hangs or
runs no case at all counts as one failure and is named. Prints a line for each program, and what failed with what
it said. Exit status 0 if nothing failed, 3 if something did."""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOGETHER = {"unit", "contract", "sim"}  # suites whose programs may run beside each other

printing = threading.Lock()


def registered(build, suites):
    """The tests of the build as meson knows them, with 'suite' reduced to one plain word."""
    listing = subprocess.run(["meson", "introspect", "--tests", build], check=True, capture_output=True, text=True)
    for test in json.loads(listing.stdout):
        all_of_it = [suite.split(":")[-1] for suite in test["suite"]] or ["unit"]
        test["suite"] = all_of_it[0]
        if not suites or set(suites) & set(all_of_it):
            yield test


def read_cases(xml):
    """(name, outcome, text) of each test case in Catch2's XML, which is cut short if the program died."""
    cases = []
    for block in re.split(r"(?=<TestCase )", xml)[1:]:
        block = block.split("</TestCase>")[0]
        name = re.search(r'name="([^"]*)"', block).group(1)
        result = re.search(r'<OverallResult success="(true|false)"', block)
        skipped = re.search(r"<Warning>\s*(skipped:[^<]*)", block)
        if result is None:
            outcome = "died"
        elif result.group(1) == "false":
            outcome = "failed"
        else:
            outcome = "skipped" if skipped else "passed"
        cases.append((unescape(name), outcome, skipped.group(1).strip() if skipped else unescape(block)))
    return cases


def unescape(text):
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&")):
        text = text.replace(entity, char)
    return text


def start(command, environment, folder, seconds):
    """Runs a command in a process group of its own; returns (exit status or None if it hung, output)."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as why:
            return 127, str(why)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(process.pid, signal.SIGKILL)  # whatever it left behind, or itself
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        return status, output.read().decode(errors="replace")


def run(test, options):
    """Runs one program; prints its line and its failures; returns (passed, failed, skipped)."""
    seconds = test["timeout"] * options.slower
    with tempfile.TemporaryDirectory(prefix="verbena-test-") as folder:
        report = Path(folder, "report.xml")
        command = shlex.split(options.prefix) + test["cmd"] + ["-r", "xml", "-o", str(report), *options.cases]
        begun = time.monotonic()
        environment = {**os.environ, **test["env"], "VERBENA_TEST_FOLDER": folder}  # guests write the report there
        status, output = start(command, environment, test["workdir"], seconds)
        took = time.monotonic() - begun
        cases = read_cases(report.read_text(errors="replace")) if report.exists() else []

    count = {key: sum(outcome == key for _, outcome, _ in cases) for key in ("passed", "failed", "skipped", "died")}
    failures = [(name, text) for name, outcome, text in cases if outcome in ("failed", "died")]
    ending = f"did not end within {seconds:g} s" if status is None else f"ended with status {status}"
    if count["died"]:
        failures[-1] = (f"{failures[-1][0]} ({test['name']} {ending} in it)", failures[-1][1])
    elif status != 0 and not failures:
        failures.append((f"{test['name']} {ending} although no case failed", shlex.join(command)))
    elif not cases and not options.cases:
        failures.append((f"{test['name']} ran no test case", shlex.join(command)))

    with printing:
        print(f"  {test['suite'] + '/' + test['name']:<32} {count['passed']} passed, {len(failures)} failed"
              + (f", {count['skipped']} skipped" if count["skipped"] else "") + f"  ({took:.1f} s)")
        for name, outcome, text in cases:
            if outcome == "skipped":
                print(f"    {name}: {text}")
        for name, text in failures:
            print(f"\n  FAILED: {name}\n{indented(text)}")
        if failures and output.strip():
            print(f"  It printed:\n{indented(output[-6000:])}")
        sys.stdout.flush()
    return count["passed"], len(failures), count["skipped"]


def indented(text):
    return "\n".join("    " + line for line in text.splitlines() if line.strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="build folder")
    parser.add_argument("--suite", action="append", default=[], help="only this suite (may be repeated)")
    parser.add_argument("--cases", action="append", default=[], help="only the test cases that match, as Catch2 does")
    parser.add_argument("--prefix", default="", help="words before each command")
    parser.add_argument("--slower", type=float, default=1, help="factor on every time limit")
    parser.add_argument("--tally", help="append 'passed failed skipped' to this file")
    options = parser.parse_args()

    tests = list(registered(options.build, options.suite))
    beside = [t for t in tests if t["is_parallel"] and t["suite"] in TOGETHER]
    alone = [t for t in tests if t not in beside]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = list(pool.map(lambda t: run(t, options), beside))
    results += [run(t, options) for t in alone]

    passed, failed, skipped = (sum(column) for column in zip(*results)) if results else (0, 0, 0)
    if passed + failed + skipped == 0:
        print(f"  FAILED: {options.build} has no test case for {' '.join(options.suite + options.cases) or 'any suite'}")
        failed = 1
    if options.tally:
        with open(options.tally, "a", encoding="utf-8") as file:
            print(passed, failed, skipped, file=file)
    return 3 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
