#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests in C of suites, as listed by ctest, several at a time. Prints a line for each passed test, and the
full output of failed ones. Ends with the counts.

    tests/programs.py BUILD SUITE[,SUITE…] [NAME…]      a NAME is a test or a prefix of names: unit-model
"""

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import cache
import failures

DEADLINE = 1200  # seconds for all tests of a file: up to 200 were observed on a busy machine
# The programs wait more than they compute.
AT_ONCE = 3 * (os.cpu_count() or 1)
SKIPPED = 77
CLOSING = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)


def find_tests(build, suite, names):
    """The names and the commands of the tests."""
    said = subprocess.run(["ctest", "--test-dir", build, "-L", f"^{suite}$", "--show-only=json-v1"], check=True,
                          stdout=subprocess.PIPE).stdout
    prefixes = tuple(f"{name}-" for name in names)
    return {test["name"]: test["command"] for test in json.loads(said)["tests"]
            if not names or test["name"] in names or test["name"].startswith(prefixes)}


def hand_on_niceness(pid):
    """Applies our niceness to the session: the scheduler treats each session as one task with its own niceness."""
    if os.nice(0) > 0:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as file:
            file.write(str(os.nice(0)))


def run_test(command, deadline=DEADLINE, **options):
    """Runs a test; returns its status and output. Processes that it leaves running do not keep the output open, and are
    ended. Options are those of Popen."""
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                              start_new_session=True, **options) as process:
            hand_on_niceness(process.pid)
            try:
                status = process.wait(deadline)
            except subprocess.TimeoutExpired:
                status = f"none after {deadline} s"
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        output.seek(0)
        return status, output.read().decode(errors="replace")


def report(name, status, output):
    """Prints a result; returns how many tests passed, failed and were skipped."""
    if status == SKIPPED:
        print(f"SKIPPED {name}: {output.strip().splitlines()[-1:]}", flush=True)
        return 0, 0, 1
    counts = CLOSING.findall(output)
    passed, failed = (int(number) for number in counts[-1]) if counts else (0, 0)
    if status == 0 and counts:
        print("".join(f"ok {name}: {line[3:]}\n" for line in output.splitlines() if line.startswith("ok ")),
              end="", flush=True)
        return passed, failed, 0
    print(f"{output}FAILED {name} (status {status})", flush=True)
    return passed, max(failed, 1), 0


def first_failure(status, output):
    """The first expectation that failed, or else how the program ended."""
    found = re.search(r"^(\S+:\d+: .*|.*ERROR: .*|FAILED .*)$", output, re.M)
    return found.group(0) if found else f"status {status}"


def main():
    build, suites, *names = sys.argv[1:]
    # A shell's background job ignores SIGINT, and so would the programs that the tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tests = {}
    for suite in suites.split(","):
        found = find_tests(build, suite, names)
        if not found and not names:
            sys.exit(f"There are no tests of the suite '{suite}' in {build}")
        tests.update(found)
    durations = cache.Durations("programs")

    def run_and_time(name):
        start = time.monotonic()
        result = run_test(tests[name])
        durations.record_duration(name, time.monotonic() - start)
        return name, *result

    total = [0, 0, 0]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for future in concurrent.futures.as_completed([pool.submit(run_and_time, name) for name in durations.sort(tests)]):
            name, status, output = future.result()
            counts = report(name, status, output)
            total = [sum(pair) for pair in zip(total, counts)]
            # The tests of the other suites in C assert on data: they fail again.
            if counts[1] and name.startswith("component-"):
                failures.record(name, tests[name], counts[0], counts[1], first_failure(status, output))
    durations.save()
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 0 if total[1] == 0 and total[2] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
