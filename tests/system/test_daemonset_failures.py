# SPDX-License-Identifier: Apache-2.0
"""Failures around the pods of DaemonSets: evicted pods, broken manifests, an agent that is killed during an update."""

import calendar
import fcntl
import json
import os
import signal
import threading
import time

import many
import pytest
import specs
import world
from harness import NODE_NAME, condition
from test_daemonsets import init_of, pods_of, wait_daemon, wait_none
from test_rollouts import surge, run_cli
from world import wait

# Holds a lock until the process exits, however that happens. A pod that finds it held was started too early. The
# command is the host's: a static busybox may not have it.
ALONE = "/usr/bin/flock -n 9 || { echo > /v/doubled; exit 1; }; trap 'exit 0' TERM; sleep 100000 & wait"

HOST = {"usr": "/usr", "lib": "/lib", "lib64": "/lib64"}

# Shares a lock: while a pod serves, the lock cannot be taken exclusively. The pod is ready when it has the lock, and
# keeps it for a while after SIGTERM.
READY = {"readinessProbe": {"exec": {"command": ["test", "-e", "/serving"]}, "periodSeconds": 1,
                            "timeoutSeconds": 60}}
SERVES = "/usr/bin/flock -s 9; echo > /serving; trap 'sleep 0.3; exit 0' TERM; sleep 100000 & wait"


def locked(node, version, script, **fields):
    container = specs.container(script=f"exec 9>/v/lock; {script}", env=[{"name": "VERSION", "value": version}],
                                volumeMounts=[specs.mount("v", "/v")] +
                                [specs.mount(name, path, readOnly=True) for name, path in HOST.items()],
                                **(READY if script == SERVES else {}))
    volumes = [specs.host_path(name, os.path.realpath(path)) for name, path in HOST.items()]
    return specs.daemonset("logs", container, volumes=[specs.host_path("v", node.data), *volumes], **fields)


def wait_for(node, version):
    def find_running_pod():
        found = pods_of(node, "logs")
        return len(found) == 1 and found[0]["status"]["phase"] == "Running" and \
            {"name": "VERSION", "value": version} in found[0]["spec"]["containers"][0]["env"] and found[0]
    return wait(find_running_pod, lambda: f"version {version} runs; there is {json.dumps(pods_of(node, 'logs'))[:3000]}\n"
                              f"the log:\n{node.said()[-3000:]}")


def version_of(node, version):
    """The pod of this version; None while there is none."""
    variable = {"name": "VERSION", "value": version}
    return next((pod for pod in pods_of(node, "logs") if variable in pod["spec"]["containers"][0]["env"]), None)


def wait_ready(node):
    wait(lambda: any(condition(pod, "Ready")["status"] == "True" for pod in pods_of(node, "logs")), "it serves")


def pause(chance, most):
    """A random delay, so that the interruption comes at any time."""
    signal.sigtimedwait([], chance.uniform(0, most))


# ---- failed pods ----

def test_evicted_daemon_pod_is_replaced(node):
    script = ("test -e /h/once && { trap 'exit 0' TERM; sleep 100000 & wait; }; echo > /h/once;"
              "dd if=/dev/zero of=/v/file bs=64k count=64; sleep 100000")
    node.drop(specs.daemonset(
        "full", specs.container(script=script, volumeMounts=[specs.mount("v", "/v"), specs.mount("h", "/h")]),
        volumes=[{"name": "v", "emptyDir": {"sizeLimit": "2Mi"}}, specs.host_path("h", node.data)]))
    name = wait_daemon(node, "full")["metadata"]["name"]
    wait(lambda: "Created pod: " + name in run_cli(node, "get", "events"), "its creation is an event")
    wait(lambda: f"Found failed daemon pod default/{name} on node {NODE_NAME}, will try to kill it" in
         run_cli(node, "get", "events"), "it is evicted")
    wait(lambda: f"Deleted pod: {name}" in run_cli(node, "get", "events"), "it is deleted")
    again = wait_daemon(node, "full", lambda pod: pod["status"]["phase"] == "Running")
    assert not os.path.exists(f"{node.state}/pods/{again['metadata']['uid']}/failure")
    assert not os.path.exists(f"/proc/{init_of(node, again)}/root/v/file"), "it starts with empty volumes"
    text = run_cli(node, "describe", "daemonset", "full")
    assert [line.split()[1] for line in text[text.index("Events:"):].splitlines()[3:]][:3] == \
        ["FailedDaemonPod", "SuccessfulDelete", "SuccessfulCreate"], text


@pytest.mark.slow
def test_repeatedly_evicted_daemon_pod_backs_off(node):
    script = "date +%s >> /h/started; dd if=/dev/zero of=/v/file bs=64k count=64; sleep 100000"
    node.drop(specs.daemonset(
        "full", specs.container(script=script, volumeMounts=[specs.mount("v", "/v"), specs.mount("h", "/h")]),
        volumes=[{"name": "v", "emptyDir": {"sizeLimit": "2Mi"}}, specs.host_path("h", node.data)]))
    wait(lambda: len((world.read(f"{node.data}/started") or "").split()) >= 3, "it starts a third time")
    assert "(x" in run_cli(node, "describe", "daemonset", "full"), "repeated events are counted"
    # A new revision does not wait for the back-off of the failed one.
    node.drop(specs.daemonset("full"))
    wait_daemon(node, "full")


# ---- manifests that break while no agent runs ----

def test_labels_apply_to_a_daemonset_whose_manifest_became_invalid_while_no_agent_ran(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "a"}}})
    node.drop(specs.daemonset("picky", nodeSelector={"role": "a"}))
    node.drop(specs.daemonset("absent", nodeSelector={"role": "b"}))
    pod = wait_daemon(node, "picky")
    pid = init_of(node, pod)
    wait(lambda: len(os.listdir(f"{node.state}/daemonsets")) == 2, "both have checkpoints")
    node.kill9()
    for name in ("picky", "absent"):
        node.write("kind: [", f"{name}.yaml")
    node.start()
    assert world.is_alive(pid)
    assert wait_daemon(node, "picky")["metadata"]["uid"] == pod["metadata"]["uid"]
    assert run_cli(node, "get", "ds", "-o", "name").split() == ["daemonset.apps/absent", "daemonset.apps/picky"]
    node.write_config(mainstay={"nodeLabels": {"role": "b"}})
    wait_none(node, "picky")
    assert not world.is_alive(pid)
    wait_daemon(node, "absent")
    node.write_config(mainstay={"nodeLabels": {"role": "a"}})
    wait_daemon(node, "picky")
    wait_none(node, "absent")
    node.remove("picky")
    wait_none(node, "picky")


def test_unreadable_directory_at_start_stops_no_daemon(node):
    node.drop(specs.daemonset("logs"))
    pid = init_of(node, wait_daemon(node, "logs"))
    node.kill9()
    os.rename(node.manifests, node.manifests + ".away")
    node.start()
    wait_daemon(node, "logs")
    assert world.is_alive(pid)
    os.rename(node.manifests + ".away", node.manifests)
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid)
    node.remove("logs")
    wait_none(node, "logs")


# ---- the agent is killed during an update ----

def test_new_agent_keeps_the_old_pod_of_a_surge_until_the_new_one_is_available(node):
    node.drop(locked(node, "1", SERVES, **surge(15)))
    pid = init_of(node, wait_for(node, "1"))
    wait_ready(node)
    node.drop(locked(node, "2", SERVES, **surge(15)))
    wait(lambda: len(pods_of(node, "logs")) == 2, "both exist")
    node.restart()
    wait(lambda: not world.is_alive(pid), "the old pod is stopped")
    stopped = time.time()
    second = wait_for(node, "2")
    ready = condition(second, "Ready")["lastTransitionTime"]
    assert stopped - calendar.timegm(time.strptime(ready, "%Y-%m-%dT%H:%M:%SZ")) >= 15
    assert second["status"]["containerStatuses"][0]["restartCount"] == 0


def test_new_agent_continues_to_stop_the_same_pod_of_a_daemonset(node):
    """Without the recorded stop, the oldest pod would count as the serving one, and the newer one would stop."""
    lingers = SERVES.replace("sleep 0.3", "while ! test -e /v/end; do sleep 0.1; done")
    for version in ("0", "1"):
        made = locked(node, version, lingers, terminationGracePeriodSeconds=60, **surge())
        made["spec"]["template"]["spec"]["containers"][0].update(READY)
        node.drop(made)
        wait(lambda version=version: version_of(node, version) and
             condition(version_of(node, version), "Ready")["status"] == "True", f"version {version} is ready")
    wait(lambda: "deletionTimestamp" in version_of(node, "0")["metadata"], "the old pod is being stopped")
    pid = init_of(node, version_of(node, "1"))
    node.kill9()
    node.drop(locked(node, "2", "sleep 100000", terminationGracePeriodSeconds=1, **surge(1000)))
    node.start()
    wait(lambda: version_of(node, "2"), "the new pod exists")
    with open(f"{node.data}/end", "w", encoding="utf-8"):
        pass
    wait(lambda: not version_of(node, "0"), "the old pod is gone")
    assert "deletionTimestamp" not in version_of(node, "1")["metadata"], node.said()
    assert world.is_alive(pid)


def test_kills_during_updates_never_start_two_pods(node):
    chance = many.make_random()
    node.drop(locked(node, "0", ALONE))
    wait_for(node, "0")
    for version in range(1, 9):
        node.drop(locked(node, str(version), ALONE))
        pause(chance, 1.0)
        node.kill9()
        node.start(ready=False)
        pause(chance, 0.5)
    wait(node.is_ready, "the last agent is ready")
    last = wait_for(node, "8")
    assert not os.path.exists(f"{node.data}/doubled"), node.said()
    assert last["status"]["containerStatuses"][0]["restartCount"] == 0
    run_cli(node, "rollout", "status", "ds/logs")


class Watcher(threading.Thread):
    """Checks continuously that a pod serves."""

    def __init__(self, node):
        super().__init__()
        self.path = f"{node.data}/lock"
        self.is_over = threading.Event()
        self.gaps = 0

    def run(self):
        with open(self.path, "w", encoding="utf-8") as lock:
            while not self.is_over.wait(0.002):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                fcntl.flock(lock, fcntl.LOCK_UN)
                self.gaps += 1


@pytest.mark.slow
def test_kills_during_surges_never_interrupt_the_service(node):
    chance = many.make_random()
    node.drop(locked(node, "0", SERVES, **surge(1)))
    wait_for(node, "0")
    watcher = Watcher(node)
    wait_ready(node)
    watcher.start()
    try:
        for version in range(1, 9):
            node.drop(locked(node, str(version), SERVES, **surge(1)))
            pause(chance, 2.5)
            node.kill9()
            pause(chance, 0.3)
            node.start(ready=False)
            pause(chance, 1.5)
            wait(node.is_ready, "the agent is ready")
            assert len([pod for pod in pods_of(node, "logs") if "deletionTimestamp" not in pod["metadata"]]) <= 2
        wait_for(node, "8")
    finally:
        watcher.is_over.set()
        watcher.join()
    assert watcher.gaps == 0, node.said()


def wait_good(node):
    """Waits until the revision of the only DaemonSet is recorded as one to roll back to. The file of the record is
    replaced from time to time."""
    directory = f"{node.state}/daemonsets"
    wait(lambda: any("good" in (world.read(f"{directory}/{name}") or "") for name in os.listdir(directory)),
         "it counts as good")


@pytest.mark.slow
def test_kills_do_not_prevent_a_rollback(node):
    chance = many.make_random()
    deadline = {"metadata": {"annotations": {"mainstay.dev/progress-deadline-seconds": "20"}}}
    node.drop(locked(node, "1", ALONE, **deadline))
    wait_for(node, "1")
    wait_good(node)
    node.drop(locked(node, "2", "exit 1", **deadline))
    for _ in range(3):
        pause(chance, 1.5)
        node.kill9()
        node.start()
    wait(lambda: "Rolled back: revision 2 did not become available within 20s" in node.said(), "it is rolled back")
    wait_for(node, "1")
    assert not os.path.exists(f"{node.data}/doubled")
    answer = node.cli("rollout", "status", "ds/logs")
    assert answer.returncode == 1
    assert 'error: daemon set "logs" exceeded its progress deadline: Rolled back: revision 2' in answer.stderr
    assert "DaemonSetRollback" in run_cli(node, "describe", "ds", "logs")
    node.restart()
    wait_for(node, "1")
    deadline["metadata"]["annotations"]["mainstay.dev/progress-deadline-seconds"] = "600"  # more than 20, for a busy machine
    node.drop(locked(node, "3", ALONE, **deadline))
    wait_for(node, "3")
    assert "successfully rolled out" in run_cli(node, "rollout", "status", "ds/logs")


def test_new_agent_extends_the_deadline_of_a_rollout_before_a_rollback(clocked):
    deadline = {"metadata": {"annotations": {"mainstay.dev/progress-deadline-seconds": "600"}}}
    clocked.drop(locked(clocked, "1", ALONE, **deadline))
    wait_for(clocked, "1")
    wait_good(clocked)
    clocked.drop(locked(clocked, "2", ALONE, **deadline))
    wait(lambda: "Stopping pod " in clocked.said(), "the update is in progress")
    clocked.kill9()
    clocked.write_clock(700, 700)  # the machine is off during this time
    clocked.start()
    wait_for(clocked, "2")
    assert "Rolled back" not in clocked.said()


@pytest.mark.parametrize("order", [("undo",), ("restart",)])
def test_a_confirmed_request_survives_a_kill_of_the_agent(node, order):
    for version in "12":
        node.drop(locked(node, version, ALONE))
        wait_for(node, version)
    name = wait_for(node, "2")["metadata"]["name"]
    run_cli(node, "rollout", *order, "ds/logs")
    node.restart()
    wait_for(node, "1" if order == ("undo",) else "2")
    wait(lambda: any(pod["metadata"]["name"] != name for pod in pods_of(node, "logs")), "the pod is replaced")
    assert not os.path.exists(f"{node.data}/doubled")


def test_kills_during_orphaning_stop_no_pod(node):
    chance = many.make_random()
    node.drop(locked(node, "1", ALONE))
    pod = wait_for(node, "1")
    pid = init_of(node, pod)
    for _ in range(6):
        deleting = threading.Thread(target=node.cli, args=("delete", "daemonset", "logs", "--cascade=orphan"))
        deleting.start()
        pause(chance, 0.15)
        node.kill9()
        deleting.join()
        node.start()
        assert world.is_alive(pid)
        if not os.path.exists(node.path("logs.yaml")):
            node.wait_pod(pod["metadata"]["name"], lambda found: "ownerReferences" not in found["metadata"],
                          "is an orphan")
            node.drop(locked(node, "1", ALONE, update={"type": "OnDelete"}))
        wait(lambda: pods_of(node, "logs"), lambda: f"it is adopted; the log:\n{node.said()[-3000:]}")
        assert world.is_alive(pid)
    assert not os.path.exists(f"{node.data}/doubled")
