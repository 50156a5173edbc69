#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Repeats the failed tests of a run once, one after the other, when nothing else is running.

    tests/repeat.py FAILURES RESULT

FAILURES is the file that failures.py wrote. A test that passes alone is flaky: the output ends with a line "flaky: NAME
(first failure: …)" for each of them. RESULT gets two numbers: the changes of the counts of passed and of failed tests.
More than LIMIT failures are not repeated: that many are a failure even if all of them are flaky.
"""

import json
import os
import re
import sys

import programs

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT = 5
DEADLINE = 1500  # seconds for one test; machines of the vm suite boot again
CLOSING = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)


def read_failures(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def run_alone(test):
    """Returns how many tests passed, or None if it failed again. Processes that it leaves running are killed."""
    environment = {key: value for key, value in os.environ.items() if key != "MAINSTAY_FAILURES"}
    environment.update(test["environment"])
    status, text = programs.run_test(test["command"], DEADLINE, cwd=TOP, env=environment)
    counts = [tuple(int(number or 0) for number in match) for match in CLOSING.findall(text)]
    if status == 0 and counts and counts[-1][0] > 0 and counts[-1][1:] == (0, 0):
        return counts[-1][0]
    print(f"{text}FAILED again: {test['name']} (status {status})", flush=True)
    return None


def repeat(tests):
    """Returns the flaky tests, and the changes of the counts of passed and of failed tests."""
    if len(tests) > LIMIT:
        print(f"{len(tests)} tests failed; more than {LIMIT} are not repeated")
        return [], 0, 0
    flaky, more_passed, less_failed = [], 0, 0
    for test in tests:
        print(f"repeat {test['name']}", flush=True)
        passed = run_alone(test)
        if passed is not None:
            flaky.append(test)
            more_passed += passed - test["passed"]
            less_failed += test["failed"]
    return flaky, more_passed, less_failed


def main():
    path, result = sys.argv[1:]
    flaky, more_passed, less_failed = repeat(read_failures(path))
    for test in flaky:
        print(f"flaky: {test['name']} (first failure: {test['message']})")
    with open(result, "w", encoding="utf-8") as file:
        file.write(f"{more_passed} {less_failed}\n")


if __name__ == "__main__":
    main()
