# SPDX-License-Identifier: Apache-2.0
"""A disk that is full from a certain write on, cannot be read at a certain place, or takes seconds to sync: running
pods are not affected, removed pods stop, and when the disk is repaired the node recovers."""

import errno
import gzip
import os
import shutil
import signal
import subprocess

import pytest
import specs
import world
from faulty_disk import NAMES, READS, SYNCS, WRITES, FaultyDisk
from harness import container_status, is_running
from test_survival import starter, starts, wait_starts
from world import wait

WRITES_MAX = 300
TMPFILE = 0o20000000


def start_on(node, *names):
    disk = FaultyDisk(node, *names)
    node.start()
    return disk


def damaged_files(node):
    return [os.path.join(where, name) for where, _, names in os.walk(node.state) for name in names if name.endswith(".damaged")]


# ---- no space ----

class FullFrom:
    """Leaves no space from the k-th write into some directories on, or only for that write."""

    def __init__(self, disk, k, tops, once=False, error=errno.ENOSPC):
        self.disk, self.k, self.tops, self.once, self.error = disk, k, tuple(f"{top}/" for top in tops), once, error
        self.n, self.is_full = 0, False
        disk.rule = self.rule

    def rule(self, call, path):
        if not path.startswith(self.tops) or not call.needs_space(path):
            return None
        self.n += 1
        self.is_full = self.is_full or self.n >= self.k
        return -self.error if self.n == self.k or (self.is_full and not self.once) else None

    def end(self):
        self.disk.mend()


class Full:
    """A node with a pod that runs all the time; another one is removed, and one is added, while there is no space."""

    def __init__(self, node, once=False, error=errno.ENOSPC):
        self.node, self.once, self.error = node, once, error
        self.disk = start_on(node, *WRITES, *NAMES, *SYNCS)
        node.launch(specs.pod("stays"))
        self.stays = node.init("stays")

    def check(self):
        assert self.node.init("stays") == self.stays and self.node.status("stays")["restartCount"] == 0
        assert not damaged_files(self.node)

    def try_from(self, k, tops):
        """Returns False if a start makes fewer writes."""
        node, new, old = self.node, f"new{k}", f"old{k}"
        node.launch(specs.pod(old))
        init = node.init(old)
        full = FullFrom(self.disk, k, tops, self.once, self.error)
        try:
            node.drop(specs.pod(new))
            wait(lambda: full.is_full or is_running(node.pod(new) or {"status": {}}), "the disk is full, or the pod runs")
            node.remove(old)
            wait(lambda: not world.is_alive(init), "a pod is removed from a full disk")
            if k % 2:
                node.restart()
            self.check()
        finally:
            full.end()
        node.wait_running(new)
        node.wait_gone(old)
        node.remove(new)
        node.wait_gone(new)
        self.check()
        return full.is_full

    def try_all(self, tops, ks=range(1, WRITES_MAX)):
        tried = 0
        for k in ks:
            try:
                if not self.try_from(k, tops):
                    break
            except AssertionError as error:
                raise AssertionError(f"from write {k} on: {error}\n{self.disk.failed[-3:]}") from error
            tried += 1
        print(f"{tried} writes, {len(self.disk.failed)} failures")
        return tried


def test_no_pod_stops_if_the_disk_is_full_from_any_write_on(make_node):
    node = make_node(start=False)
    assert Full(node).try_all((node.state, node.run, node.log), (1, 14, 33)) == 3


@pytest.mark.long
@pytest.mark.parametrize("which", ["state run log", "state", "run", "log", "once"])
def test_no_pod_stops_if_file_systems_are_full_from_any_write_on(make_node, which):
    node = make_node(start=False)
    tops = {"state": node.state, "run": node.run, "log": node.log}
    found = [tops[name] for name in which.split() if name in tops] or tops.values()
    assert Full(node, which == "once").try_all(found) >= 3


@pytest.mark.parametrize("ks, least", [((14,), 1), pytest.param(range(1, WRITES_MAX), 20, marks=pytest.mark.long)])
def test_no_pod_stops_if_the_quota_is_used_up_from_any_write_on(make_node, ks, least):
    """The error is that of a quota, because not every kernel has quotas."""
    node = make_node(start=False)
    assert Full(node, error=errno.EDQUOT).try_all([node.state], ks) >= least
    assert "Disk quota exceeded" in node.said()


@pytest.mark.parametrize("ks", [(1, 12), pytest.param(range(1, WRITES_MAX), marks=pytest.mark.long)])
def test_an_image_is_unpacked_completely_after_the_disk_was_full(make_node, archive, ks):
    node = make_node(start=False, archive=archive)
    disk = start_on(node, *WRITES, *NAMES, *SYNCS)
    node.launch(specs.pod("web"))
    node.remove("web")
    node.wait_gone("web")
    tried = 0
    for k in ks:
        shutil.rmtree(f"{node.state}/images")
        full = FullFrom(disk, k, [f"{node.state}/images"])
        node.drop(specs.script_pod("web", f"busybox | wc -l; {specs.IDLE}"))
        wait(lambda full=full: full.is_full or is_running(node.pod("web") or {"status": {}}), "the disk is full, or the pod runs")
        full.end()
        node.wait_running("web")
        wait(lambda: node.logged("web"), "it has written something")
        tried += full.is_full
        node.remove("web")
        node.wait_gone("web")
        if not full.is_full:
            break
    print(f"{tried} writes")
    assert tried >= min(2, len(ks))


# ---- unreadable files ----

class Unreadable:
    """Makes the data of the k-th read unreadable until the disk is repaired."""

    def __init__(self, disk, k):
        self.disk, self.k, self.n, self.bad = disk, k, 0, None
        disk.rule = self.rule

    def rule(self, call, path):
        if call.name not in READS and (call.makes_name() or not os.path.lexists(path)):
            return None
        self.n += 1
        if self.n == self.k:
            self.bad = path
        return -errno.EIO if path == self.bad else None

    def end(self):
        self.disk.mend()


def restart_on_bad_disk(node, unreadable):
    """Whether the agent is ready. If it cannot read the directory of its images it exits, and its manager starts it
    again."""
    node.agent.kill()
    node.agent.wait()
    node.start(ready=False)

    def is_decided():
        try:
            return node.is_ready()
        except AssertionError:
            return node.agent.poll() is not None
    wait(is_decided, "the agent is ready, or has ended")
    if node.agent.poll() is None:
        return True
    assert node.agent.returncode == 1 and f"{unreadable.bad}: Input/output error" in node.said(), node.said()[-2000:]
    return False


def try_unreadable(node, disk, k, init):
    """Returns False if a start of the agent and of a pod makes fewer reads."""
    unreadable = Unreadable(disk, k)
    try:
        node.drop(specs.pod(f"new{k}"))
        if restart_on_bad_disk(node, unreadable):
            wait(lambda: unreadable.bad or is_running(node.pod(f"new{k}") or {"status": {}}), "the disk is bad, or the pod runs")
        assert world.is_alive(init), "a pod was stopped"
        is_ready = restart_on_bad_disk(node, unreadable)
    finally:
        unreadable.end()
    if not is_ready:
        node.start()
    node.wait_running(f"new{k}")
    assert node.wait_running("stays") and node.init("stays") == init
    assert node.wait_phase("done", "Succeeded")
    assert sorted(starts(node)) == ["done", "stays"]
    node.remove(f"new{k}")
    node.wait_gone(f"new{k}")
    return bool(unreadable.bad)


@pytest.mark.parametrize("ks", [(1, 9, 30), pytest.param(range(1, WRITES_MAX), marks=pytest.mark.long)])
def test_unreadable_files_stop_no_pod_and_start_no_pod_twice(make_node, ks):
    node = make_node(start=False)
    disk = start_on(node, *READS, "openat", "openat2")
    node.launch(starter(node, "stays", specs.IDLE))
    node.drop(starter(node, "done", "exit 0", restartPolicy="Never"))
    node.wait_phase("done", "Succeeded")
    wait_starts(node, "done", "stays")
    init, tried = node.init("stays"), 0
    for k in ks:
        try:
            if not try_unreadable(node, disk, k, init):
                break
        except AssertionError as error:
            raise AssertionError(f"read {k}: {error}\n{disk.failed[-3:]}") from error
        tried += 1
    print(f"{tried} reads, {len(disk.failed)} failures")
    assert tried >= min(20, len(ks))


@pytest.mark.parametrize("name, spec, phase", [
    ("ends", {"restartPolicy": "Never"}, "Succeeded"),
    ("failure", {"activeDeadlineSeconds": 20}, "Failed"),  # a busy machine takes seconds until the container runs
])
def test_a_terminated_pod_keeps_its_status_when_its_checkpoints_can_be_read_again(make_node, name, spec, phase):
    node = make_node()
    node.drop(starter(node, "done", "exit 0" if phase == "Succeeded" else specs.IDLE, **spec))
    pod = node.wait_pod("done", lambda found: found["status"]["phase"] == phase and "terminated" in
                        container_status(found).get("state", {}), "has ended")
    path = f"{node.state}/pods/{pod['metadata']['uid']}/{name}"
    wait(lambda: os.path.exists(path), "it is written")
    node.agent.kill()
    node.agent.wait()
    disk = FaultyDisk(node, *READS, "openat")
    disk.rule = lambda call, at: -errno.EIO if at == path else None
    node.start()
    wait(lambda: "cannot read the checkpoints of an earlier agent: Input/output error" in node.said(), node.said)
    assert node.pod("done")["status"]["phase"] in ("Pending", phase)  # the agent knows without them that its deadline has passed
    disk.mend()
    ends = [status["state"] for status in pod["status"]["containerStatuses"]]
    node.wait_pod("done", lambda again: again["status"]["phase"] == phase and
                  [status["state"] for status in again["status"]["containerStatuses"]] == ends, "has the same status as before")
    assert starts(node) == ["done"]


def test_exit_codes_that_cannot_be_read_when_the_shim_dies_are_unchanged_later(make_node):
    node = make_node(start=False)
    disk = start_on(node, *READS, "openat")
    node.drop(specs.pod("half", specs.container(script="exit 0"), specs.container("side"), restartPolicy="Never"))

    def state(pod, container):
        return container_status(pod, container).get("state", {})
    pod = node.wait_pod("half", lambda found: "terminated" in state(found, "main") and "running" in state(found, "side"),
                        "has one ended and one running container")
    path = f"{node.state}/pods/{pod['metadata']['uid']}/ends"
    wait(lambda: world.read(path), "it is written")
    shim, = node.shims()
    node.agent.kill()
    node.agent.wait()
    os.kill(shim, signal.SIGSTOP)  # it gives the next agent no information
    disk.rule = lambda call, at: -errno.EIO if at == path else None
    node.start()
    wait(lambda: "state syncing" in node.cli("debug", "dump").stdout, "the agent waits for the shim")
    os.kill(shim, signal.SIGKILL)
    wait(lambda: "cannot read the checkpoints of an earlier agent: Input/output error" in str(node.pod("half")["status"]), node.said)
    disk.mend()
    again = node.wait_phase("half", "Failed")  # only the end of the other container is unknown
    assert state(again, "main") == state(pod, "main")
    assert state(again, "side")["terminated"]["exitCode"] == 137


@pytest.mark.parametrize("name", ["openat", "getdents64"])
def test_an_agent_that_cannot_list_its_pods_reports_it_and_supervises_those_of_the_manifests(make_node, name):
    node = make_node(start=False)
    disk = start_on(node, *READS, "openat")
    node.launch(starter(node, "stays", specs.IDLE))
    node.launch(starter(node, "goes", specs.IDLE))
    wait_starts(node, "goes", "stays")
    init = node.init("stays")
    node.agent.kill()
    node.agent.wait()
    node.remove("goes")
    disk.rule = lambda call, path: -errno.EIO if path == f"{node.state}/pods" and call.name == name else None
    drained = subprocess.run([*node.command(), "--drain"], env=node.environment(), timeout=120, check=False, text=True,
                             stderr=subprocess.PIPE)
    assert drained.returncode == 1 and f"Cannot list all pods in {node.state}: Input/output error" in drained.stderr
    assert world.is_alive(init), "a drain that does not know all pods stopped one"
    node.start()
    assert f"Cannot list all pods in {node.state}: Input/output error" in node.said()
    assert node.wait_running("stays") and node.init("stays") == init
    disk.mend()
    world.kill_all([init])
    node.wait_restarts("stays", 1)
    wait_starts(node, "goes", "stays", "stays")
    node.restart()
    wait(lambda: len(os.listdir(f"{node.state}/pods")) == 1, "an agent that can list the pods cleans up the removed one")
    node.wait_running("stays")


def test_an_archive_that_could_not_be_read_is_read_again(make_node, archive):
    node = make_node(start=False, archive=archive)
    disk = FaultyDisk(node, *READS)
    disk.rule = lambda call, path: -errno.EIO if path.endswith("/preload/busybox.tar") else None
    node.start()
    wait(lambda: "Cannot use image archive 'busybox.tar'" in node.said(), node.said)
    node.drop(specs.pod("web"))
    node.wait_waiting("web", "ImagePullBackOff")
    disk.mend()
    node.wait_running("web")


def test_an_archive_is_read_again_if_its_store_was_removed_meanwhile(make_node, archive):
    node = make_node(start=False, archive=None)
    disk, removed = FaultyDisk(node, "openat"), []

    def remove(call, path):
        """Removes the directory when the archive is about to be decompressed there."""
        if path == f"{node.state}/images/tmp" and call.arguments[2] & TMPFILE and not removed:
            removed.append(path)
            while os.path.exists(f"{node.state}/images"):  # other processes may write there at this moment
                shutil.rmtree(f"{node.state}/images", ignore_errors=True)
    disk.rule = remove
    with open(archive, "rb") as plain, gzip.open(f"{node.staging}/busybox.tar.gz", "wb") as packed:
        packed.write(plain.read())
    node.preload(f"{node.staging}/busybox.tar.gz")
    node.start()
    wait(lambda: removed and "Cannot use image archive 'busybox.tar.gz'" in node.said(), node.said)
    node.launch(specs.pod("web"))


# ---- a slow disk ----

def test_syncs_that_take_five_seconds_delay_no_container(make_node):
    node = make_node(start=False)
    disk = start_on(node, *SYNCS)
    callers = set()

    def slow(call, path):
        callers.add(int(world.status(call.pid, "Tgid") or 0))
        return 5
    disk.rule = slow
    waited = 0
    for i in range(3):
        node.launch(starter(node, f"pod{i}", specs.IDLE))
        waited += len(disk.waiting)
        wait_starts(node, *["pod0"] * i, *[f"pod{k}" for k in range(i + 1)])
        os.kill(node.init("pod0"), 9)
        node.wait_restarts("pod0", i + 1)
        waited += len(disk.waiting)
    node.remove("pod1")
    node.wait_gone("pod1")
    assert waited >= 3, "containers started while the disk was being waited for"
    assert callers and node.agent.pid not in callers, "the event loop waited for the disk"
    node.restart()
    node.wait_running("pod2")
    wait_starts(node, *["pod0"] * 4, "pod1", "pod2")
