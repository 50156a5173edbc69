# SPDX-License-Identifier: Apache-2.0
"""The repetition of failed tests: real runs of pytest and of programs fail, and are repeated."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests"))

import failures  # noqa: E402  pylint: disable=wrong-import-position
import programs  # noqa: E402  pylint: disable=wrong-import-position
import repeat  # noqa: E402  pylint: disable=wrong-import-position

CONFTEST = f"""
import sys
sys.path.insert(0, {os.path.join(TOP, "tests")!r})
import failures

def pytest_configure(config):
    failures.add_marker(config)

def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    failures.record_reports(terminalreporter)
    count = {{what: len(stats.get(what, [])) for what in ("passed", "failed", "error")}}
    terminalreporter.write_line(f"{{count['passed']}} passed, {{count['failed'] + count['error']}} failed")
"""

# Passes if its file exists, which the first run creates.
ONCE = """
import os
def failed_before(name):
    path = os.path.join(os.path.dirname(__file__), name)
    before = os.path.exists(path)
    open(path, "w").close()
    return before
"""


class Repeat(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="mainstay-repeat-")
        self.addCleanup(shutil.rmtree, self.root)
        self.recorded = os.path.join(self.root, "failures")
        patch = unittest.mock.patch.dict(os.environ, {"MAINSTAY_FAILURES": self.recorded})
        patch.start()
        self.addCleanup(patch.stop)

    def put(self, name, text):
        path = os.path.join(self.root, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_pytest(self, text):
        """Runs tests of pytest, two at a time as the suites do; returns the output."""
        self.put("conftest.py", CONFTEST)
        path = self.put("test_it.py", ONCE + text)
        return subprocess.run([sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", path],
                              cwd=TOP, check=False, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout

    def repeat(self):
        """Returns the last lines of output, and both changes of the counts."""
        result = os.path.join(self.root, "result")
        output = io.StringIO()
        with contextlib.redirect_stdout(output), unittest.mock.patch.object(sys, "argv", ["repeat", self.recorded, result]):
            repeat.main()
        with open(result, encoding="utf-8") as file:
            return output.getvalue().splitlines(), [int(number) for number in file.read().split()]

    def test_a_test_that_passes_alone_is_flaky(self):
        output = self.run_pytest("""
import pytest
@pytest.mark.xdist_group("a group")
@pytest.mark.parametrize("value", ["a@b", "c"])
def test_value(value):
    assert failed_before("value") or value != "a@b", "the first time"
""")
        self.assertIn("1 passed, 1 failed", output)
        lines, change = self.repeat()
        self.assertRegex(lines[-1], r"^flaky: .*test_it.py::test_value\[a@b\] \(first failure: AssertionError: the first time")
        self.assertEqual(change, [1, 1])

    def test_a_test_that_fails_again_stays_failed(self):
        self.run_pytest("def test_one():\n    assert 1 == 2\n")
        lines, change = self.repeat()
        self.assertIn("FAILED again: ", lines[-1])
        self.assertEqual(change, [0, 0])

    def test_a_failed_teardown_is_repeated_and_counted_once(self):
        output = self.run_pytest("""
import pytest
@pytest.fixture(name="node")
def _node():
    yield
    assert failed_before("node"), "a mount is left"
def test_it(node):
    pass
""")
        self.assertIn("1 passed, 1 failed", output)
        lines, change = self.repeat()
        self.assertIn("a mount is left", lines[-1])
        self.assertEqual(change, [0, 1])

    def test_data_is_not_repeated(self):
        self.run_pytest("import pytest\n@pytest.mark.data\ndef test_golden():\n    assert failed_before('golden')\n")
        self.assertFalse(os.path.exists(self.recorded))

    def test_more_than_five_failures_are_not_repeated(self):
        for i in range(repeat.LIMIT + 1):
            failures.record(f"test {i}", ["/bin/false"], 0, 1, "no")
        lines, change = self.repeat()
        self.assertEqual(lines, ["6 tests failed; more than 5 are not repeated"])
        self.assertEqual(change, [0, 0])

    def test_a_test_that_is_not_found_or_skipped_stays_failed(self):
        for closing in ("0 passed, 0 failed", "1 passed, 0 failed, 1 skipped", "no count"):
            failures.record("test", ["/bin/echo", closing], 0, 1, "no")
        lines, change = self.repeat()
        self.assertNotIn("flaky", "".join(lines))
        self.assertEqual(change, [0, 0])

    def run_programs(self, name, script):
        """Runs one program as a suite in C; returns the status."""
        path = self.put(name, script)
        with contextlib.redirect_stdout(io.StringIO()), \
                unittest.mock.patch.object(programs, "find_tests", lambda *_: {name: ["/bin/sh", path]}), \
                unittest.mock.patch.object(programs.cache, "directory", lambda *_: self.root), \
                unittest.mock.patch.object(sys, "argv", ["programs.py", "build", name.split("-", maxsplit=1)[0]]):
            return programs.main()

    def test_component_programs_are_repeated_and_others_are_not(self):
        script = f"""if [ -e {self.root}/once ]; then echo "3 passed, 0 failed"; exit 0; fi
>{self.root}/once; echo "test-a.c:7: FAILED a == b: 1, 2"; echo "2 passed, 1 failed"; exit 1"""
        self.assertEqual(self.run_programs("unit-a", script), 1)
        self.assertFalse(os.path.exists(self.recorded))
        os.remove(os.path.join(self.root, "once"))
        self.assertEqual(self.run_programs("component-a", script), 1)
        lines, change = self.repeat()
        self.assertEqual(lines[-1], "flaky: component-a (first failure: test-a.c:7: FAILED a == b: 1, 2)")
        self.assertEqual(change, [1, 1])

    def test_a_test_that_failed_in_another_root_directory_is_repeated_there(self):
        with unittest.mock.patch.dict(os.environ, {"MAINSTAY_FAILURES_OF": "trixie", "MAINSTAY_BUILD": "/build"}):
            failures.record("test", ["/build/tests/component", "file"], 0, 1, "no")
        with open(self.recorded, encoding="utf-8") as file:
            entry = json.loads(file.read())
        self.assertEqual(entry["name"], "trixie: test")
        self.assertEqual(entry["command"], ["tests/foreign", "trixie", "run", "/build/tests/component", "file"])
        self.assertEqual(entry["environment"]["MAINSTAY_BUILD"], "/build")

    def test_a_repetition_runs_the_same_build(self):
        with unittest.mock.patch.dict(os.environ, {"MAINSTAY_BUILD": "/a/build"}):
            failures.record("test", ["/bin/true"], 0, 1, "one\ntwo")
        with open(self.recorded, encoding="utf-8") as file:
            entry = json.loads(file.read())
        self.assertEqual(entry["environment"]["MAINSTAY_BUILD"], "/a/build")
        self.assertEqual(entry["message"], "one")
