# SPDX-License-Identifier: Apache-2.0
"""What the agent and the shims write to a disk that wears out: state and logs lie on a file system of their own, and
the sectors that its device has written are counted."""

import os
import re
import subprocess
import time

import clocked as clocked_nodes
import harness
import pytest
import specs
from clocked import Clocked
from world import wait

DAY = 24 * 3600
STEP = 2 * 3600
SECTOR = 512
ATTEMPT_MAX = 8 << 10
PROBED = 50


class FlashNode(Clocked):
    """State and logs are on a loop device with ext4."""

    def __init__(self, archive, library, **config):
        self.library = library
        self.flash = self.device = None
        super().__init__(archive, config, start=False)
        self.mount()
        self.start()

    def mount(self):
        image, self.flash = os.path.join(self.directory, "flash.img"), os.path.join(self.directory, "flash")
        subprocess.run(["truncate", "--size=256M", image], check=True)
        # What the kernel would write later by itself is written now.
        subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image], check=True)
        os.mkdir(self.flash)
        subprocess.run(["mount", "-o", "loop", image, self.flash], check=True)
        found = subprocess.run(["findmnt", "-n", "-o", "SOURCE", self.flash], check=True, capture_output=True, text=True)
        self.device = os.path.basename(found.stdout.strip())
        for name in "state", "log":
            path = os.path.join(self.flash, name)
            os.mkdir(path)
            setattr(self, name, path)
        self.own_mounts.add(self.flash)
        self.preload(self.archive)

    def written(self):
        """All bytes that were ever written to the device, after what waits to be written."""
        fd = os.open(self.flash, os.O_RDONLY)
        try:
            subprocess.run(["sync", "--file-system", self.flash], check=True)
        finally:
            os.close(fd)
        with open(f"/sys/block/{self.device}/stat", encoding="utf-8") as file:
            return int(file.read().split()[6]) * SECTOR





@pytest.fixture(scope="module", name="library")
def fixture_library(tmp_path_factory):
    return clocked_nodes.build(tmp_path_factory.mktemp("clock"))


@pytest.fixture(name="make_flash")
def fixture_make_flash(archive, library):
    nodes = []

    def make(**config):
        nodes.append(FlashNode(archive, library, **config))
        return nodes[-1]

    yield make
    for node in nodes:
        node.finish()


def wait_settled(node):
    """What follows the start of pods is on the disk."""
    last = [node.written()]

    def has_settled():
        time.sleep(2)
        last.append(node.written())
        return last[-1] == last[-2]
    wait(has_settled, lambda: f"it is quiet: {last}", 120)
    return last[-1]


def changed_files(node, since):
    """What was written since then, for messages."""
    found = []
    for directory, _, files in os.walk(node.flash):
        for path in [directory] + [os.path.join(directory, file) for file in files]:
            status = os.lstat(path)
            if max(status.st_mtime, status.st_ctime) > since:
                found.append(f"{os.path.relpath(path, node.flash)} {status.st_size}")
    return "\n".join(found)


def count_probes(node):
    """Results of probes, all that succeeded."""
    found = re.findall(r'^prober_probe_total\{.*result="(\w+)".*\} (\d+)', node.get("/metrics")[1], re.M)
    assert {result for result, _ in found} <= {"successful"}, found
    return sum(int(count) for _, count in found)


def test_a_quiet_day_writes_nothing(make_flash):
    node = make_flash(maxPods=PROBED + 10)
    probe = {"exec": {"command": ["true"]}, "periodSeconds": STEP, "timeoutSeconds": 100}
    for i in range(PROBED):
        node.drop(specs.pod(f"p{i}", specs.container(readinessProbe=probe)))
    wait(lambda: len([pod for pod in node.pods() if harness.is_running(pod)]) == PROBED, "all run", 400)
    wait(lambda: count_probes(node) >= PROBED, "all are probed", 100)
    before, start = wait_settled(node), time.time()
    for hours in range(STEP, DAY + STEP, STEP):
        count = count_probes(node)
        node.let_pass(hours)
        wait(lambda: count_probes(node) >= count + PROBED, "all are probed", 100)
    written = node.written() - before
    assert written == 0, f"{written} bytes in 24 hours:\n{changed_files(node, start)}"


def test_an_attempt_of_a_crash_loop_writes_little(make_flash):
    node = make_flash()
    node.drop(specs.script_pod("crash", "echo here; exit 1"))
    node.wait_pod("crash", lambda pod: node.status("crash").get("restartCount", 0) >= 3, "has crashed")
    first, before = node.status("crash")["restartCount"], node.written()
    for _ in range(8):
        count, start = node.status("crash")["restartCount"], time.time()
        node.wait_pod("crash", lambda pod: node.status("crash")["restartCount"] > count, "has crashed again")
        after = node.written()
    count = node.status("crash")["restartCount"] - first
    assert after - before <= ATTEMPT_MAX * count, f"{after - before} bytes in {count} attempts:\n{changed_files(node, start)}"
