# SPDX-License-Identifier: Apache-2.0
"""The failed tests of a run, which repeat.py runs once more after all suites have ended.

The file that MAINSTAY_FAILURES names has a line of JSON for each of them. Without that variable nothing is recorded.
"""

import json
import os
import sys

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Variables that choose the programs under test; the repetition must run the same ones.
ENVIRONMENT = ("MAINSTAY_BUILD", "MAINSTAY_PACKAGE", "MAINSTAY_KUBERNETES", "MAINSTAY_RUNTIME", "MAINSTAY_VM_RELEASE")


def add_marker(config):
    config.addinivalue_line("markers", "data: asserts on data alone, such as a golden; never repeated after a failure")


def record(name, command, passed, failed, message):
    """Records that a test has failed. `passed` and `failed` are its contributions to the counts of its suite; `command`
    runs the test alone, in the top directory; `message` is the first failure, the first line of which is kept.
    In a root directory of tests/foreign, MAINSTAY_FAILURES_OF names its target, and the test is repeated there."""
    path = os.environ.get("MAINSTAY_FAILURES")
    if not path:
        return
    target = os.environ.get("MAINSTAY_FAILURES_OF")
    if target:
        name, command = f"{target}: {name}", ["tests/foreign", target, "run", *command]
    lines = message.strip().splitlines() or ["no message"]
    entry = {"name": name, "command": command, "passed": passed, "failed": failed, "message": lines[0][:300],
             "environment": {key: os.environ[key] for key in ENVIRONMENT if key in os.environ}}
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def node_id(report):
    """The test's ID without the group that xdist appends."""
    has_group = "]@" in report.nodeid or "]" not in report.nodeid
    return report.nodeid.rsplit("@", 1)[0] if has_group else report.nodeid


def message_of(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else (report.longreprtext.strip().splitlines() or [""])[-1]


def record_reports(terminalreporter):
    """Records the failed tests of a run of pytest, except those with the mark `data`. The processes of xdist leave it to
    the one that collects their reports."""
    if hasattr(terminalreporter.config, "workerinput"):
        return
    stats = terminalreporter.stats
    passed = {node_id(report) for report in stats.get("passed", [])}
    failed = {}
    for report in stats.get("failed", []) + stats.get("error", []):
        if isinstance(report, pytest.TestReport):
            failed.setdefault(node_id(report), []).append(report)
    for name, reports in failed.items():
        if "data" not in reports[0].keywords:
            path = os.path.relpath(terminalreporter.config.rootpath / name, TOP)
            command = [sys.executable, "-u", "-m", "pytest", "-v", "--tb=short", "-p", "no:cacheprovider", path]
            record(path, command, int(name in passed), len(reports), message_of(reports[0]))
