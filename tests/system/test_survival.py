# SPDX-License-Identifier: Apache-2.0
"""Agents and shims that die at any moment: nothing is lost, nothing is started twice."""

import contextlib
import os
import random
import subprocess
import time

import pytest
import specs
import world
from harness import is_running

pytestmark = pytest.mark.cgroup2


def identities(node, names):
    return {name: (pid, world.start_time(pid)) for name in names for pid in [node.init(name)]}


def starter(node, name, script=specs.IDLE, **spec):
    """A pod that writes a line each time that its container starts."""
    return specs.pod(name, specs.container(script=f"echo {name} >> /v/starts; {script}",
                                           volumeMounts=[specs.mount("v", "/v")]),
                     volumes=[specs.host_path("v", node.data)], **spec)


def starts(node):
    return (world.read(f"{node.data}/starts") or "").split()


def wait_starts(node, *names):
    """A running container may not have written its line yet."""
    world.wait(lambda: sorted(starts(node)) == sorted(names), lambda: f"{names} have started; it is {starts(node)}")


@pytest.mark.cgroup2_quick
@pytest.mark.quick
def test_pods_of_a_killed_agent_keep_running_and_its_successor_finds_them(node):
    names = [f"p{i}" for i in range(5)]
    for name in names:
        node.drop(starter(node, name))
    for name in names:
        node.wait_running(name)
    before = identities(node, names)
    pods = {name: node.pod(name) for name in names}
    node.kill9()
    assert all(world.is_alive(pid) for pid, _ in before.values())
    node.start()
    for name in names:
        after = node.wait_running(name)
        assert after["metadata"]["uid"] == pods[name]["metadata"]["uid"]
        assert after["status"]["startTime"] == pods[name]["status"]["startTime"]
        assert after["status"]["containerStatuses"] == pods[name]["status"]["containerStatuses"]
    assert identities(node, names) == before
    wait_starts(node, *names)


def test_a_stopped_agent_leaves_its_pods_running(node):
    node.launch(specs.pod("web"))
    before = identities(node, ["web"])
    assert node.stop() == 0
    assert world.is_alive(before["web"][0])
    node.start()
    node.wait_running("web")
    assert identities(node, ["web"]) == before


@pytest.mark.quick
def test_draining_stops_all_pods_and_keeps_the_manifests(node):
    for name in ("one", "two"):
        node.launch(specs.pod(name))
    pids = [node.init(name) for name in ("one", "two")]
    node.kill9()
    node.drain()
    assert not [pid for pid in pids if world.is_alive(pid)]
    node.start()
    for name in ("one", "two"):
        node.wait_running(name)


@pytest.mark.cgroup2_quick
def test_an_exit_while_the_agent_is_dead_is_reported_with_its_code(node):
    node.launch(specs.pod("quits", specs.container(script="until [ -e /v/go ]; do sleep 0.02; done; exit 42",
                                                   volumeMounts=[specs.mount("v", "/v")]),
                          volumes=[specs.host_path("v", node.data)], restartPolicy="Never"))
    pid = node.init("quits")
    node.kill9()
    with open(f"{node.data}/go", "w", encoding="utf-8"):
        pass
    world.wait(lambda: world.start_time(pid) != pid.started, "the shim knows that the container has ended")
    gone_at = time.time()
    world.wait(lambda: time.time() > gone_at + 3, "three seconds have passed since the shim recorded the time")
    next_agent_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    node.start()
    node.wait_phase("quits", "Failed")
    status = node.status("quits")
    assert status["state"]["terminated"]["exitCode"] == 42
    assert status["state"]["terminated"]["finishedAt"] < next_agent_at
    assert status["restartCount"] == 0


@pytest.mark.quick
def test_an_exit_while_the_agent_is_dead_is_followed_by_a_restart(node):
    node.launch(starter(node, "again"))
    wait_starts(node, "again")
    pid = node.init("again")
    node.kill9()
    world.kill_all([pid])
    world.wait(lambda: not world.is_alive(pid), "the container has ended")
    node.start()
    status = node.wait_restarts("again", 1)
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 137
    wait_starts(node, "again", "again")


def test_restart_counts_and_back_off_survive_the_agent(node):
    node.drop(specs.script_pod("failing", "exit 7"))
    node.wait_pod("failing", lambda pod: pod["status"].get("containerStatuses") and
                  pod["status"]["containerStatuses"][0]["restartCount"] >= 2, "has crashed")
    count = node.status("failing")["restartCount"]
    node.restart()
    node.wait_pod("failing", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] >= count, "keeps its restart count")
    node.wait_waiting("failing", "CrashLoopBackOff")
    assert node.status("failing")["lastState"]["terminated"]["exitCode"] == 7


def test_a_file_removed_while_the_agent_is_dead_ends_its_pod(node):
    node.launch(specs.pod("gone"))
    node.launch(specs.pod("stays"))
    before = identities(node, ["stays"])
    pid = node.init("gone")
    node.kill9()
    node.remove("gone")
    node.start()
    node.wait_gone("gone")
    world.wait(lambda: not world.is_alive(pid), "its process is gone")
    assert identities(node, ["stays"]) == before


def test_a_file_broken_while_the_agent_is_dead_keeps_its_pod(node):
    pod = specs.pod("kept")
    node.launch(pod)
    before = identities(node, ["kept"])
    node.kill9()
    node.drop("this: is: no: yaml", "kept.yaml")
    node.start()
    node.wait_running("kept")
    world.wait(lambda: "kept.yaml:1:" in node.complaints(), "the file is reported")
    assert identities(node, ["kept"]) == before
    node.drop(pod)
    node.launch(specs.pod("later"))
    assert identities(node, ["kept"]) == before


def test_a_file_edited_while_the_agent_is_dead_is_acted_on_by_the_next_one(node):
    uid = node.launch(starter(node, "edited"))["metadata"]["uid"]
    node.kill9()
    node.drop(starter(node, "edited", "echo changed; " + specs.IDLE))
    node.start()
    world.wait(lambda: node.pod("edited") and node.logged("edited", attempt=1) == ["changed"],
               "it runs with the edit applied")
    assert [pod["metadata"]["uid"] for pod in node.pods()] == [uid]


def test_a_restarted_agent_completes_a_termination(node):
    node.launch(specs.pod("deaf", specs.container(script="trap ': > /v/asked' TERM; while :; do sleep 0.1; done",
                                                  volumeMounts=[specs.mount("v", "/v")]),
                          volumes=[specs.host_path("v", node.data)], terminationGracePeriodSeconds=3))
    pid = node.init("deaf")
    node.remove("deaf")
    # The log is not checked: after three seconds it is gone together with the container.
    world.wait(lambda: os.path.exists(f"{node.data}/asked"), "the shim stops it")
    node.kill9()
    world.wait(lambda: not world.is_alive(pid), "the shim enforces the grace period")
    node.start()
    node.wait_gone("deaf")


def test_no_log_line_is_lost_while_the_agent_is_dead(node):
    node.launch(specs.script_pod("counter", "i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); sleep 0.005; done; "
                                 + specs.IDLE))
    for _ in range(3):
        node.restart()
    world.wait(lambda: node.logged("counter")[-1:] == ["199"], "all is written")
    assert node.logged("counter") == [str(i) for i in range(200)]


def test_a_second_agent_on_the_same_directories_refuses(node):
    node.launch(specs.pod("web"))
    before = identities(node, ["web"])
    result = subprocess.run(node.command(), env=node.environment(), check=False, text=True, timeout=world.DEADLINE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert result.returncode not in (0, 99)
    assert node.run in result.stderr
    assert node.is_ready()
    assert identities(node, ["web"]) == before


def test_a_killed_shim_restarts_its_pod_with_an_unknown_exit_code(node):
    node.launch(starter(node, "orphan"))
    wait_starts(node, "orphan")
    pid, shim = node.init("orphan"), node.shim("orphan")
    world.kill_all([shim])
    world.wait(lambda: not world.is_alive(pid), "its container is stopped")
    status = node.wait_restarts("orphan", 1)
    assert status["restartCount"] == 1
    ended = status["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")
    wait_starts(node, "orphan", "orphan")
    assert node.shim("orphan") != shim


def test_a_shim_killed_while_the_agent_is_dead_is_noticed(node):
    node.launch(starter(node, "orphan"))
    wait_starts(node, "orphan")
    pid, shim = node.init("orphan"), node.shim("orphan")
    node.kill9()
    world.kill_all([shim])
    node.start()
    world.wait(lambda: not world.is_alive(pid), "its container is stopped")
    wait_starts(node, "orphan", "orphan")
    node.wait_running("orphan")
    assert node.find_init("orphan") != pid


def test_a_killed_shim_fails_a_pod_with_policy_never(node):
    node.launch(specs.pod("once", restartPolicy="Never"))
    world.kill_all([node.shim("once")])
    node.wait_phase("once", "Failed")
    ended = node.status("once")["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")


def test_terminated_containers_do_not_run_again_after_all_shims_are_killed(node):
    node.drop(starter(node, "done", "exit 0", restartPolicy="OnFailure"))
    node.drop(starter(node, "failed", "printf 'no\\nway' > /dev/termination-log; exit 3", restartPolicy="Never"))
    half = starter(node, "half", "exit 0", restartPolicy="OnFailure")
    half["spec"]["containers"].append(specs.container("other"))
    node.drop(half)
    node.wait_phase("done", "Succeeded")
    node.wait_phase("failed", "Failed")
    node.wait_pod("half", lambda pod: "terminated" in node.status("half").get("state", {}) and
                  "running" in node.status("half", "other").get("state", {}), "has one that ended, and one that runs")
    before = {name: node.status(name)["state"] for name in ("done", "failed", "half")}
    node.kill9()
    world.kill_all(node.shims())
    for _ in range(2):
        node.start()
        node.wait_phase("done", "Succeeded")
        node.wait_phase("failed", "Failed")
        node.wait_pod("half", lambda pod: "running" in node.status("half", "other").get("state", {}), "still runs")
        assert {name: node.status(name)["state"] for name in before} == before
        assert sorted(starts(node)) == ["done", "failed", "half"]
        node.kill9()
    assert before["failed"]["terminated"]["exitCode"] == 3
    assert before["failed"]["terminated"]["message"] == "no\nway"
    node.start()
    node.drop(starter(node, "done", "exit 7", restartPolicy="Never"))
    node.wait_phase("done", "Failed")
    assert node.status("done")["state"]["terminated"]["exitCode"] == 7


def test_damaged_records_do_not_prevent_the_start_of_the_agent(node):
    node.launch(specs.pod("web"))
    before = identities(node, ["web"])
    node.kill9()
    records = [os.path.join(directory, "record") for directory, _, names in os.walk(f"{node.state}/pods")
               if "record" in names]
    assert len(records) == 1
    os.truncate(records[0], os.path.getsize(records[0]) // 2)
    node.start()
    assert os.listdir(f"{node.state}/corrupt"), "it is set aside"
    node.wait_running("web")
    assert identities(node, ["web"]) == before


class Chaos:
    """Pods that come and go while the agent is killed; remembers the expected final state."""

    def __init__(self, node, seed):
        self.node, self.random = node, random.Random(seed)
        self.steady, self.enders, self.count = [], {}, 0
        self.removed = []

    def add_steady(self):
        self.count += 1
        name = f"steady{self.count}"
        self.node.drop(starter(self.node, name))
        self.steady.append(name)

    def add_ender(self):
        self.count += 1
        name, code = f"ender{self.count}", self.random.randrange(256)
        delay = self.random.random() / 2
        self.node.drop(starter(self.node, name, f"sleep {delay:.3f}; exit {code}", restartPolicy="Never"))
        self.enders[name] = code

    def remove(self):
        """Removes the oldest pod, so that pods are removed in all states."""
        if len(self.steady) > 4:
            name = self.steady.pop(self.random.randrange(len(self.steady)))
            self.node.remove(name)
            self.removed.append(name)

    def step(self):
        self.random.choice([self.add_steady, self.add_ender, self.remove, self.remove, lambda: None])()

    def pause(self):
        """Waits so that some agents die before they are ready, some while pods start and end, some when nothing
        happens."""
        end = time.monotonic() + self.random.random() * self.random.choice([0.05, 0.15, 0.4])
        while time.monotonic() < end:
            time.sleep(0.005)


@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.long)])
def test_kills_of_the_agent_lose_no_pod_while_pods_are_added_and_removed(node, kills):
    seed = int(os.environ.get("MAINSTAY_SEED", random.randrange(2**32)))
    print(f"MAINSTAY_SEED={seed}")
    chaos = Chaos(node, seed)
    for _ in range(kills):
        chaos.step()
        chaos.pause()
        node.kill9()
        chaos.step()
        node.start(ready=False)
    world.wait(node.is_ready, "the last agent is ready")

    for name in chaos.steady:
        node.wait_pod(name, is_running, "runs")
        assert node.status(name)["restartCount"] == 0, name
        assert node.status(name)["lastState"] == {}, name
        assert node.init(name)
    for name, code in chaos.enders.items():
        node.wait_phase(name, "Succeeded" if code == 0 else "Failed")
        ended = node.status(name)["state"]["terminated"]
        assert ended["exitCode"] == code, f"{name} {ended}; the log of the agent:\n{node.said()}"
    for name in chaos.removed:
        node.wait_gone(name)
    world.wait(lambda: set(chaos.steady) <= set(starts(node)), lambda: f"all have started; it is {starts(node)}")
    started = starts(node)
    for name in chaos.steady + list(chaos.enders):
        assert started.count(name) == 1, f"{name} was started {started.count(name)} times"
    for name in chaos.removed:
        assert started.count(name) <= 1, f"{name} was started {started.count(name)} times"


# ---- a state directory that cannot be written ----

@contextlib.contextmanager
def read_only(directory):
    """Makes the state directory read-only, like the kernel does after an error of the file system; returns the function
    that makes it writable again."""
    world.run("mount", "--bind", directory, directory)
    try:
        world.run("mount", "-o", "remount,bind,ro", directory)
        yield lambda: world.run("mount", "-o", "remount,bind,rw", directory)
    finally:
        world.run("umount", "--lazy", directory)


def test_a_new_agent_supervises_on_a_read_only_file_system_and_writes_again_when_it_can(node):
    for name in ("stays", "stops", "exits"):
        node.launch(starter(node, name))
    stays, stops = node.init("stays"), node.init("stops")
    node.kill9()
    with read_only(node.state) as make_writable:
        node.start()
        assert node.wait_running("stays")["status"]["containerStatuses"][0]["restartCount"] == 0
        assert node.init("stays") == stays
        world.wait(lambda: "Ready,ReadonlyFilesystem" in node.cli("get", "nodes").stdout, "the condition is shown")
        assert "FilesystemIsReadOnly" in node.cli("describe", "node").stdout
        assert "FilesystemIsReadOnly" in node.cli("get", "events").stdout
        assert "The node has ReadonlyFilesystem" in node.said()

        node.drop(starter(node, "new"))
        world.wait(lambda: "Read-only file system" in node.complaints(), "why a new pod does not start is reported")
        world.kill_all([node.init("exits")])
        node.remove("stops")
        world.wait(lambda: not world.is_alive(stops), "a removed pod stops")
        node.restart()
        assert node.init("stays") == stays

        make_writable()
        node.wait_gone("stops")
        node.wait_restarts("exits", 1)
        node.wait_running("new")
        world.wait(lambda: "ReadonlyFilesystem" not in node.cli("get", "nodes").stdout, "the condition has ended")
        assert "FilesystemIsNotReadOnly" in node.cli("get", "events").stdout
        wait_starts(node, "stays", "stops", "exits", "exits", "new")
        node.restart()
        assert node.init("stays") == stays and node.status("stays")["restartCount"] == 0
