#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the checks of the lint suite, and the checks of the checks; prints a line for each, and the findings.

    tests/lint/run.py default|full BUILD CONFIGURED     a folder with libraries, and one with compile_commands.json
    tests/lint/run.py quick [FILE…]                     layers, words, and the format of these files
"""

import os
import sys
import unittest

import calls
import commits
import english
import gcc_analyzer
import identities
import layers
import names
import pages
import shape
import test_lint
import test_repeat
import tools
import units

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests"))

import changed as changed_tests  # noqa: E402


def checks(build, configured, with_analyzer):
    return [
        ("modules include only modules of lower layers", lambda: layers.check(TOP)),
        ("no files of a module include each other in a circle", lambda: layers.check_circles(TOP)),
        ("no forbidden call, path or reminder is in the tree", lambda: calls.check(TOP)),
        ("types and functions have names of their own", lambda: names.check(TOP)),
        ("objects are told apart with their source", lambda: identities.check(TOP)),
        ("all code names its licence", lambda: shape.check_licences(TOP)),
        ("headers are guarded", lambda: shape.check_guards(TOP)),
        ("file names are unique", lambda: shape.check_file_names(TOP)),
        ("no function is too long", lambda: shape.check_lengths(TOP)),
        ("literals that join have a space between words", lambda: shape.check_literals(TOP)),
        ("a name is defined once", lambda: tools.check_names(TOP, build)),
        ("the code is formatted", lambda: tools.check_format(TOP)),
        ("the fuzz targets are instrumented", lambda: tools.check_fuzzer(TOP)),
        ("scripts are shellcheck-clean", lambda: tools.check_shell(TOP)),
        ("words are spelled right", lambda: tools.check_spelling(TOP)),
        ("documents lead somewhere, and explain every reason", lambda: pages.check(TOP)),
        ("sentences start with their subject, and documents are wrapped", lambda: english.check(TOP)),
        ("services are confined as they were", lambda: units.check(TOP)),
        ("messages of commits say what and why", lambda: commits.check(TOP)),
        ("each module has a row of tests that it affects",
         lambda: changed_tests.find_problems([*layers.LAYERS, *layers.PROGRAMS])),
        ("the code is clang-tidy-clean", lambda: tools.check_tidy(TOP, configured, with_analyzer)),
        *([("cppcheck finds nothing", lambda: tools.check_cppcheck(TOP, configured)),
           ("gcc's analyzer finds nothing", lambda: gcc_analyzer.check(TOP, configured))] if with_analyzer else []),
    ]


def quick_checks(changed):
    return [
        ("modules include only modules of lower layers", lambda: layers.check(TOP)),
        ("no files of a module include each other in a circle", lambda: layers.check_circles(TOP)),
        ("no forbidden call, path or reminder is in the tree", lambda: calls.check(TOP)),
        ("types and functions have names of their own", lambda: names.check(TOP)),
        ("objects are told apart with their source", lambda: identities.check(TOP)),
        ("no function is too long", lambda: shape.check_lengths(TOP)),
        ("documents lead somewhere, and explain every reason", lambda: pages.check(TOP)),
        ("sentences start with their subject, and documents are wrapped", lambda: english.check(TOP)),
        ("what changed is formatted", lambda: tools.check_format(TOP, changed)),
    ]


class Result(unittest.TestResult):
    """Prints a line for each test, in the form of the other suites."""

    def __init__(self):
        super().__init__()
        self.passed = 0

    def addSuccess(self, test):
        self.passed += 1
        print(f"ok {test.id()}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print(f"{self.failures[-1][1]}FAILED {test.id()}")

    def addError(self, test, err):
        super().addError(test, err)
        print(f"{self.errors[-1][1]}FAILED {test.id()}")


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    kind, *paths = sys.argv[1:]
    result = Result()
    if kind == "quick":
        due = quick_checks(paths)
    else:
        for module in (test_lint, test_repeat):
            unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
        due = checks(*(os.path.abspath(path) for path in paths), kind == "full")
    passed, failed = result.passed, len(result.failures) + len(result.errors)
    for name, check in due:
        problems = list(check())
        print("".join(f"{line}\n" for line in problems) + f"{'FAILED' if problems else 'ok'} {name}", flush=True)
        passed, failed = passed + (not problems), failed + bool(problems)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
