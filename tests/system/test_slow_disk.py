# SPDX-License-Identifier: Apache-2.0
"""A disk on which each write, or each sync, takes long: no line of a log is lost or torn, and other pods do not wait for it."""

import os

import pytest
import specs
import world
from faulty_disk import SYNCS, WRITES, FaultyDisk
from test_logs import LINE
from test_many_lines import size_of
from test_survival import starter, wait_starts
from world import wait

FILE, FILES = 64 * 1024, 3
LINE_LENGTH = 1000
COUNT = "i=0; while [ $i -lt {lines} ]; do printf '%0999d\\n' $i; i=$((i+1)); done"


@pytest.fixture(name="make_slow")
def fixture_make_slow(make_node):
    """A node, and the disk on which these calls can be slowed down; at first they are fast."""
    disks = []

    def make(names, **options):
        node = make_node(start=False, **options)
        disks.append(FaultyDisk(node, *names))
        node.start()
        return node, disks[-1]
    yield make
    for disk in disks:
        disk.mend()


@pytest.mark.parametrize("delay,lines", [(0.02, 1000), pytest.param(0.1, 20000, marks=pytest.mark.long)], ids=["some", "much"])
def test_output_to_a_slow_disk_is_complete_and_within_the_log_limits(make_slow, delay, lines):
    node, disk = make_slow(WRITES, config={"containerLogMaxSize": "64Ki", "containerLogMaxFiles": FILES})
    slow = []

    def rule(call, path):
        if path.startswith(f"{node.log}/"):
            slow.append(path)
            return delay
        return None
    disk.rule = rule
    node.launch(starter(node, "other"))
    wait_starts(node, "other")
    other = node.init("other")
    node.drop(specs.script_pod("chatty", COUNT.format(lines=lines), restartPolicy="Never"))
    largest = 0

    def has_ended():
        nonlocal largest
        if node.pod("chatty") and os.path.isdir(f"{node.log_directory('chatty')}/main"):
            largest = max(largest, size_of(f"{node.log_directory('chatty')}/main"))
        return (node.pod("chatty") or {"status": {}})["status"].get("phase") == "Succeeded"
    wait(has_ended, lambda: f"it has written everything: {node.pod('chatty')}", 600)
    assert largest <= (FILES + 1) * FILE and slow
    records = [LINE.match(line).groups() for path in log_files(node) for line in world.read(path).splitlines()]
    assert {(record[2], len(record[3])) for record in records} == {("F", LINE_LENGTH - 1)}
    assert [int(record[3]) for record in records] == list(range(lines - len(records), lines))
    assert node.init("other") == other and node.cli("exec", "other", "--", "echo", "hello").stdout == "hello\n"


def log_files(node):
    """The oldest first."""
    directory = f"{node.log_directory('chatty')}/main"
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory), key=lambda name: (name == "0.log", name))]


def test_pods_start_exit_and_are_removed_while_a_sync_hangs(make_slow):
    node, disk = make_slow(SYNCS)
    disk.rule = lambda call, path: 3600
    node.launch(starter(node, "web"))
    wait_starts(node, "web")
    world.kill_all([node.init("web")])
    assert node.wait_restarts("web", 1)["restartCount"] == 1
    wait(lambda: disk.waiting, "a sync is in progress")
    node.launch(starter(node, "new"))
    node.remove("web")
    node.wait_gone("web")
    wait_starts(node, "web", "web", "new")
    node.restart()
    node.wait_running("new")
    wait_starts(node, "web", "web", "new")
