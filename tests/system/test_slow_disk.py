# SPDX-License-Identifier: Apache-2.0
"""A disk on which each write, or each sync, takes long: no line of a log is lost or torn, and other pods do not wait for it."""

import os
import subprocess

import harness
import pytest
import specs
import world
from test_logs import LINE
from test_many_lines import size_of
from test_survival import starter, wait_starts
from world import wait

FILE, FILES = 64 * 1024, 3
LINE_LENGTH = 1000
COUNT = "i=0; while [ $i -lt {lines} ]; do printf '%0999d\\n' $i; i=$((i+1)); done"


class SlowNode(harness.Node):
    """'slow' is a directory of it."""

    def __init__(self, library, slow, *arguments, **options):
        self.library, self.slow = library, slow
        super().__init__(*arguments, **options)

    def environment(self):
        given = super().environment()
        return {**given, "LD_PRELOAD": self.library, "MAINSTAY_TEST_SLOW": getattr(self, self.slow), "MAINSTAY_TEST_DELAYS": self.delays(),
                "ASAN_OPTIONS": given["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}

    def delays(self):
        return os.path.join(self.directory, "delays")

    def delay(self, write=0, sync=0):
        """Milliseconds of each."""
        with open(self.delays() + ".new", "w", encoding="ascii") as file:
            file.write(f"{write} {sync}")
        os.rename(self.delays() + ".new", self.delays())


@pytest.fixture(name="make_slow")
def fixture_make_slow(archive, image_store, tmp_path):
    library, nodes = str(tmp_path / "slow-disk.so"), []
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slow-disk.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)

    def make(slow, **options):
        nodes.append(SlowNode(library, slow, archive, store=image_store, **options))
        return nodes[-1]
    yield make
    for node in nodes:
        node.delay()
        node.finish()


@pytest.mark.parametrize("delay,lines", [(20, 1000), pytest.param(100, 20000, marks=pytest.mark.long)], ids=["some", "much"])
def test_output_to_a_slow_disk_is_written_whole_within_the_space_of_its_files(make_slow, delay, lines):
    node = make_slow("log", config={"containerLogMaxSize": "64Ki", "containerLogMaxFiles": FILES})
    node.delay(write=delay)
    node.launch(starter(node, "other"))
    wait_starts(node, "other")
    other = node.init("other")
    assert world.environ(node.shim("other"))["LD_PRELOAD"] == node.library
    node.drop(specs.script_pod("chatty", COUNT.format(lines=lines), restartPolicy="Never"))
    largest = 0

    def has_ended():
        nonlocal largest
        if node.pod("chatty") and os.path.isdir(f"{node.log_directory('chatty')}/main"):
            largest = max(largest, size_of(f"{node.log_directory('chatty')}/main"))
        return (node.pod("chatty") or {"status": {}})["status"].get("phase") == "Succeeded"
    wait(has_ended, lambda: f"it has written all: {node.pod('chatty')}", 600)
    assert largest <= (FILES + 1) * FILE
    records = [LINE.match(line).groups() for path in log_files(node) for line in world.read(path).splitlines()]
    assert {(record[2], len(record[3])) for record in records} == {("F", LINE_LENGTH - 1)}
    assert [int(record[3]) for record in records] == list(range(lines - len(records), lines))
    assert node.init("other") == other and node.cli("exec", "other", "--", "echo", "hello").stdout == "hello\n"


def log_files(node):
    """The oldest first."""
    directory = f"{node.log_directory('chatty')}/main"
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory), key=lambda name: (name == "0.log", name))]


def syncing(node):
    """Children of the agent that wait for the disk."""
    return [pid for pid in world.pids() if world.status(pid, "PPid") == str(node.agent.pid) and
            world.cmdline(pid) == world.cmdline(node.agent.pid)]


def test_pods_start_exit_and_go_while_a_sync_takes_longer_than_the_test(make_slow):
    node = make_slow("state")
    node.delay(sync=3600_000)
    node.launch(starter(node, "web"))
    wait_starts(node, "web")
    world.kill_all([node.init("web")])
    assert node.wait_restarts("web", 1)["restartCount"] == 1
    wait(lambda: syncing(node), "a sync is in progress")
    node.launch(starter(node, "new"))
    node.remove("web")
    node.wait_gone("web")
    wait_starts(node, "web", "web", "new")
    node.restart()
    node.wait_running("new")
    wait_starts(node, "web", "web", "new")
