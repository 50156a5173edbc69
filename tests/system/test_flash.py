# SPDX-License-Identifier: Apache-2.0
"""The writes of the agent and the shims to a disk that wears out: state and logs are on a separate file system, and the
sectors that are written to its device are counted."""

import glob
import os
import re
import stat
import subprocess
import time

import harness
import pytest
import specs
import world
from clocked import Clocked
from member import Member
from world import wait

DAY = 24 * 3600
STEP = 2 * 3600
SECTOR = 512
ATTEMPT_MAX = 8 << 10  # bytes of files and directories
DEVICE_MAX = 32 << 10  # with the inodes and bitmaps that the file system writes for them
PROBED = 50
FOR_A_LOOK = os.O_RDONLY | os.O_DIRECTORY | os.O_NOATIME


class FlashNode(Clocked):
    """A node whose state and logs are on a loop device with ext4."""

    def __init__(self, archive, library, **config):
        self.library = library
        self.flash = self.device = None
        super().__init__(archive, config, start=False)
        self.mount()
        self.start()

    def mount(self):
        image, self.flash = os.path.join(self.directory, "flash.img"), os.path.join(self.directory, "flash")
        subprocess.run(["truncate", "--size=256M", image], check=True)
        # Data that the kernel would write later by itself is written now. A journal would double the counted writes.
        subprocess.run(["mkfs.ext4", "-q", "-F", "-b", "1024", "-O", "^has_journal", "-E", "lazy_itable_init=0", image], check=True)
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
        """All bytes that were ever written to the device, after pending data was written."""
        fd = os.open(self.flash, os.O_RDONLY)
        try:
            subprocess.run(["sync", "--file-system", self.flash], check=True)
        finally:
            os.close(fd)
        with open(f"/sys/block/{self.device}/stat", encoding="utf-8") as file:
            return int(file.read().split()[6]) * SECTOR


class JoinedFlashNode(FlashNode, Member):
    """The same for a node that has joined an API server."""

    def __init__(self, archive, library, api, **config):  # pylint: disable=super-init-not-called
        self.library = library
        self.flash = self.device = None
        Member.__init__(self, api, archive, config, start=False)
        self.mount()
        self.start()


@pytest.fixture(name="make_flash")
def fixture_make_flash(archive, library):
    nodes = []

    def make(api=None, **config):
        nodes.append(JoinedFlashNode(archive, library, api, **config) if api else FlashNode(archive, library, **config))
        return nodes[-1]

    yield make
    for node in nodes:
        node.finish()


def wait_settled(node):
    """Waits until the effects of the start of pods are on the disk."""
    last = [node.written()]

    def has_settled():
        time.sleep(2)
        last.append(node.written())
        return last[-1] == last[-2]
    wait(has_settled, lambda: f"it is quiet: {last}")
    return last[-1]


def make_unread(node):
    """Resets the access times of all files: the first read of each then causes a write."""
    for directory, directories, files in os.walk(node.flash):
        for path in [directory] + [os.path.join(directory, name) for name in directories + files]:
            os.utime(path, ns=(0, os.lstat(path).st_mtime_ns), follow_symlinks=False)


def changed_files(node, since):
    """Files that were written since then, or read for the first time, which also causes a write: paths and sizes. This
    check itself reads no file for the first time."""
    found = {}

    def visit(directory, path):
        status = os.stat(directory)
        if max(status.st_mtime, status.st_ctime, status.st_atime) > since:
            found[os.path.relpath(path, node.flash)] = status.st_size
        for name in os.listdir(directory):
            try:
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                inner = os.open(name, FOR_A_LOOK, dir_fd=directory) if stat.S_ISDIR(status.st_mode) else -1
            except FileNotFoundError:  # it has been removed, or renamed
                continue
            inner_path = os.path.join(path, name)
            if inner >= 0:
                visit(inner, inner_path)
            elif max(status.st_mtime, status.st_ctime, status.st_atime) > since:
                found[os.path.relpath(inner_path, node.flash)] = status.st_size
        os.close(directory)
    visit(os.open(node.flash, FOR_A_LOOK), node.flash)
    return found


def count_probes(node):
    """The number of probes; all of them must have succeeded."""
    found = re.findall(r'^prober_probe_total\{.*result="(\w+)".*\} (\d+)', node.get("/metrics")[1], re.M)
    assert {result for result, _ in found} <= {"successful"}, found
    return sum(int(count) for _, count in found)


PROBE = {"exec": {"command": ["true"]}, "periodSeconds": STEP, "timeoutSeconds": int(world.DEADLINE)}


def probed():
    return specs.container(readinessProbe=PROBE)


def expect_quiet_day(node, count_renewals=lambda: 0, renewed=0):
    """'renewed' is the number of tokens that are renewed whenever some hours have passed."""
    wait(lambda: len([pod for pod in node.pods() if harness.is_running(pod)]) == PROBED, "all run", 400)
    wait(lambda: count_probes(node) >= PROBED, "all are probed")
    make_unread(node)
    before, start = wait_settled(node), time.time()
    for hours in range(STEP, DAY + STEP, STEP):
        count, renewals = count_probes(node), count_renewals()
        node.let_pass(hours)
        wait(lambda: count_probes(node) >= count + PROBED, "all are probed")
        wait(lambda: count_renewals() >= renewals + renewed, lambda: f"all tokens are renewed: {count_renewals() - renewals}")
    written = node.written() - before
    assert written == 0, f"{written} bytes in 24 hours:\n{changed_files(node, start)}"


@pytest.mark.slow
def test_a_quiet_day_writes_nothing(make_flash):
    node = make_flash(maxPods=PROBED + 10)
    for i in range(PROBED):
        node.drop(specs.pod(f"p{i}", probed()))
    expect_quiet_day(node)


@pytest.mark.slow
def test_a_quiet_day_of_a_node_with_a_server_writes_nothing(make_flash, api):
    """Half of the pods are the server's, with tokens that are renewed many times in that day."""
    node = make_flash(api, maxPods=PROBED + 10)
    token = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]}}
    for i in range(PROBED // 2):
        node.drop(specs.pod(f"p{i}", probed()))
        node.bind(f"bound{i}", {**probed(), "volumeMounts": [specs.mount("t", "/t")]}, volumes=[token])
    expect_quiet_day(node, lambda: len(api.asked("create", "serviceaccounts", subresource="token")), PROBED // 2)


def wait_attempt(node, least):
    """Waits for the end of another attempt, and until its layer is removed; gives the restart count."""
    def has_ended():
        status = node.status("crash")
        uid = node.pod("crash")["metadata"]["uid"]
        layers = glob.glob(os.path.join(node.state, "pods", uid, "containers", "main", "*"))
        ended = status.get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff"
        return status["restartCount"] if ended and not layers and status["restartCount"] >= least else None
    wait(lambda: node.pod("crash") and has_ended() is not None, lambda: f"an attempt has ended: {node.status('crash')}")
    return node.status("crash")["restartCount"]


@pytest.mark.slow
def test_an_attempt_of_a_crash_loop_writes_little(make_flash):
    node = make_flash(crashLoopBackOff={"maxContainerRestartPeriod": "8s"})
    node.drop(specs.script_pod("crash", "echo here; exit 1"))
    ended = first = wait_attempt(node, 2)
    before = node.written()
    for _ in range(5):
        start = time.time()
        last, ended = ended, wait_attempt(node, ended + 1)
        after, changed = node.written(), changed_files(node, start)
        started = node.status("crash")["restartCount"]  # one more, if the check took longer than the back-off
        assert sum(changed.values()) <= ATTEMPT_MAX * (started - last), f"in {started - last} attempts: {changed}"
    print(f"{(after - before) // (started - first)} bytes an attempt")
    assert after - before <= DEVICE_MAX * (started - first), f"{after - before} bytes in {started - first} attempts, last: {changed}"
