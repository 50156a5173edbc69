# SPDX-License-Identifier: Apache-2.0
"""Manifests that are edited, renamed and removed: the pods that stop, how they stop, and the pods that do not."""

import copy
import os
import signal
import time

import pytest
import specs
import world
from harness import is_running


def identity(node, name, container="main"):
    pid = node.init(name, container)
    return pid, world.start_time(pid)


@pytest.mark.quick
def test_a_removed_file_terminates_its_pod(node):
    node.launch(specs.pod("web"))
    pid, shim = node.init("web"), node.shim("web")
    node.remove("web")
    node.wait_gone("web")
    world.wait(lambda: not world.is_alive(pid) and not world.is_alive(shim), "its processes are gone")


def test_termination_sends_sigterm_and_waits_for_the_exit(node):
    node.launch(specs.pod("polite", specs.container(
        script="trap 'sleep 0.3; echo done > /v/done; exit 0' TERM; sleep 100000 & wait",
        volumeMounts=[specs.mount("v", "/v")]), volumes=[specs.host_path("v", node.data)],
        terminationGracePeriodSeconds=20))
    node.remove("polite")
    node.wait_gone("polite")
    assert world.read(f"{node.data}/done") == "done\n"


def test_a_container_that_ignores_sigterm_is_killed_after_the_grace_period(node):
    node.launch(specs.pod("deaf", specs.container(script="trap '' TERM; while :; do sleep 0.1; done"),
                          terminationGracePeriodSeconds=10))
    pid = node.init("deaf")
    start = time.monotonic()
    node.remove("deaf")
    node.wait_pod("deaf", lambda pod: "deletionTimestamp" in pod["metadata"], "is being stopped")
    assert world.is_alive(pid)
    node.wait_gone("deaf")
    assert not world.is_alive(pid)
    assert time.monotonic() - start >= 9.9, "it had its grace period"


@pytest.mark.quick
def test_an_edit_of_the_sandbox_replaces_the_pod(node):
    old = node.launch(specs.script_pod("web", "echo old; " + specs.IDLE))
    pid = node.init("web")
    node.drop(specs.script_pod("web", "echo new; " + specs.IDLE, hostIPC=True))
    new = node.wait_pod("web", lambda pod: pod["metadata"]["uid"] != old["metadata"]["uid"] and
                        pod["status"]["phase"] == "Running", "is the new one")
    world.wait(lambda: not world.is_alive(pid), "the old process is gone")
    world.wait(lambda: node.logged("web") == ["new"], "the new container has written")
    assert len(node.pods()) == 1
    assert new["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_replacement_starts_after_the_old_pod_has_terminated(node):
    def spec(word):
        return specs.pod("turns", specs.container(
            script=f"mkdir /v/held || echo clash >> /v/clash; echo {word} >> /v/order; "
                   "trap 'sleep 0.5; rmdir /v/held; exit 0' TERM; sleep 100000 & wait",
            volumeMounts=[specs.mount("v", "/v")]), volumes=[specs.host_path("v", node.data)],
            terminationGracePeriodSeconds=20, hostIPC=word == "two")
    node.launch(spec("one"))
    world.wait(lambda: world.read(f"{node.data}/order") == "one\n", "the first has started")
    node.wait_trap("turns")
    node.drop(spec("two"))
    world.wait(lambda: world.read(f"{node.data}/order") == "one\ntwo\n", "the second has started")
    assert not os.path.exists(f"{node.data}/clash")


@pytest.mark.quick
def test_labels_and_annotations_change_without_a_restart(node):
    pod = specs.pod("web", metadata={"labels": {"tier": "one"}})
    node.launch(pod)
    before = identity(node, "web")
    pod["metadata"].update(labels={"tier": "two"}, annotations={"note": "new"})
    node.drop(pod)
    changed = node.wait_pod("web", lambda pod: pod["metadata"].get("labels") == {"tier": "two"}, "has the label")
    assert changed["metadata"]["annotations"]["note"] == "new"
    assert identity(node, "web") == before
    assert node.status("web")["restartCount"] == 0


def test_touching_or_reformatting_a_file_does_not_restart_its_pod(node):
    pod = specs.pod("web")
    node.launch(pod)
    before = identity(node, "web")
    uid = node.pod("web")["metadata"]["uid"]
    node.drop("# a comment\n" + specs.text(pod) + "\n\n", "web.yaml")
    os.utime(node.path("web.yaml"))
    node.launch(specs.pod("later"))
    assert identity(node, "web") == before
    assert node.pod("web")["metadata"]["uid"] == uid


def test_renaming_a_file_does_not_restart_its_pod(node):
    node.launch(specs.pod("web"))
    before = identity(node, "web")
    os.rename(node.path("web.yaml"), node.path("renamed.yaml"))
    node.launch(specs.pod("later"))
    assert identity(node, "web") == before
    os.rename(node.path("renamed.yaml"), node.path("web.yaml"))
    node.launch(specs.pod("latest"))
    assert identity(node, "web") == before


def test_a_pod_recreated_during_termination_starts_again(node):
    pod = specs.pod("back", specs.container(
        script="echo up >> /v/log; trap 'until [ -e /v/go ]; do sleep 0.05; done; echo down >> /v/log; exit 0' TERM; "
               "sleep 100000 & wait",
        volumeMounts=[specs.mount("v", "/v")]), volumes=[specs.host_path("v", node.data)],
        terminationGracePeriodSeconds=60)
    node.launch(pod)
    world.wait(lambda: world.read(f"{node.data}/log") == "up\n", "it has started")
    node.wait_trap("back")
    first = identity(node, "back")
    node.remove("back")
    node.wait_pod("back", lambda pod: "deletionTimestamp" in pod["metadata"], "is being stopped")
    node.drop(pod)
    with open(f"{node.data}/go", "w", encoding="ascii"):
        pass
    world.wait(lambda: world.read(f"{node.data}/log") == "up\ndown\nup\n", "it ran, ended and ran again")
    node.wait_running("back")
    node.wait_trap("back")
    assert identity(node, "back") != first


def test_many_pods_start_and_terminate_together(node):
    names = [f"p{i}" for i in range(12)]
    for name in names:
        node.drop(specs.pod(name))
    for name in names:
        node.wait_running(name)
    for name in names[::2]:
        node.remove(name)
    for name in names[::2]:
        node.wait_gone(name)
    for name in names[1::2]:
        assert node.status(name)["restartCount"] == 0
        assert node.init(name)


def test_the_running_pod_keeps_its_name_when_two_files_define_it(node):
    pod = specs.pod("web")
    node.drop(pod, "b.yaml")
    node.wait_running("web")
    before = identity(node, "web")
    other = copy.deepcopy(pod)
    other["spec"]["containers"][0]["command"] = ["/bin/sleep", "1000"]
    node.drop(other, "a.yaml")
    world.wait(lambda: "a.yaml" in node.complaints() and "b.yaml" in node.complaints(), "the other file is named")
    assert identity(node, "web") == before
    assert len(node.pods()) == 1
    node.remove("b.yaml")
    node.wait_pod("web", lambda pod: pod["spec"]["containers"][0]["command"] == ["/bin/sleep", "1000"] and
                  is_running(pod), "is the other file's")
    world.wait(lambda: world.cmdline(node.find_init("web") or 0) == ["/bin/sleep", "1000"], "its command is that of the file")


def test_a_manifest_directory_that_disappears_does_not_stop_pods(node):
    node.launch(specs.pod("web"))
    before = identity(node, "web")
    os.rename(node.manifests, node.manifests + ".away")
    node.wait_running("web")
    os.rename(node.manifests + ".away", node.manifests)
    node.launch(specs.pod("later"))
    assert identity(node, "web") == before


def test_the_last_removed_pod_leaves_no_resources(node):
    mounts = [specs.mount(name, f"/{name}") for name in ("disk", "memory", "host")]
    node.drop(specs.pod(
        "full", specs.container("a", volumeMounts=mounts, resources={"limits": {"cpu": "100m", "memory": "32Mi"}}),
        specs.container("b", "exit 1"), volumes=[
            {"name": "disk", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}},
            specs.host_path("host", node.data)]))
    node.wait_waiting("full", "CrashLoopBackOff", "b")
    assert node.leftovers(), "nothing is found while the pod runs"
    assert node.remove_all() == []


def test_two_files_that_swap_their_pods_converge(node):
    def pod(name, word):
        return specs.pod(name, specs.container(script=f": {word}; {specs.IDLE}"))

    node.drop(pod("one", "a"), "a.yaml")
    node.drop(pod("two", "b"), "b.yaml")
    for name in ("one", "two"):
        node.wait_running(name)
    before = {name: node.init(name) for name in ("one", "two")}
    staged = [node.stage(pod("two", "b")), node.stage(pod("one", "a"))]
    os.rename(staged[0], node.path("a.yaml"))
    os.rename(staged[1], node.path("b.yaml"))
    for name, word in (("one", "a"), ("two", "b")):
        node.wait_pod(name, lambda pod: "deletionTimestamp" not in pod["metadata"] and is_running(pod), "runs")
        world.wait(lambda name=name, word=word: any(f": {word};" in text for text in world.cmdline(node.find_init(name) or 0)),
                   "runs the command with its word")
    world.wait(lambda: "is already defined" not in node.cli("get", "pods").stderr, "both files are valid again")
    assert len({node.init(name) for name in before}) == 2


def test_a_configmap_removed_during_pod_start_delays_containers_until_it_returns(node):
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"word": "one"}}
    variable = [{"name": "WORD", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "word"}}}]
    node.drop(settings)
    node.drop(specs.pod("web", specs.container(env=variable, volumeMounts=[specs.mount("c", "/c")]),
                        initContainers=[specs.container("slow", "while [ ! -e /v/go ]; do sleep 0.05; done",
                                                        volumeMounts=[specs.mount("v", "/v")])],
                        volumes=[specs.host_path("v", node.data), {"name": "c", "configMap": {"name": "settings"}}]))
    node.wait_pod("web", lambda pod: "running" in node.status("web", "slow").get("state", {}), "initializes")
    node.remove("settings")
    world.wait(lambda: "No resources" in node.cli("get", "configmaps").stderr, "the agent has noticed it")
    with open(os.path.join(node.data, "go"), "w", encoding="ascii"):
        pass
    assert 'configmap "settings" not found' in node.wait_waiting("web", "CreateContainerConfigError")
    settings["data"]["word"] = "two"
    node.drop(settings)
    node.wait_running("web")
    assert world.environ(node.init("web"))["WORD"] == "two"
    assert world.read(f"/proc/{node.init('web')}/root/c/word") == "two"
    assert node.status("web")["restartCount"] == 0


def overflow_inotify(node):
    """Makes more changes in the directory than the kernel queues for a process that does not read."""
    n_max = int(world.read("/proc/sys/fs/inotify/max_queued_events"))
    names = [node.path(name) for name in ("not-a-manifest.1", "not-a-manifest.2")]
    with open(names[0], "w", encoding="utf-8"):
        pass
    for i in range(n_max // 2 + 1):  # two events for each rename
        os.rename(names[i % 2], names[1 - i % 2])


def test_changes_beyond_the_queue_of_inotify_are_found(node):
    for name in ("kept", "edited", "removed"):
        node.launch(specs.pod(name))
    pid = node.init("kept")
    node.agent.send_signal(signal.SIGSTOP)
    try:
        overflow_inotify(node)
        node.drop(specs.pod("added"))
        node.drop(specs.pod("edited", specs.container(env=[{"name": "NEW", "value": "yes"}])))
        node.remove("removed")
    finally:
        node.agent.send_signal(signal.SIGCONT)
    node.wait_running("added")
    node.wait_gone("removed")
    world.wait(lambda: world.environ(node.init("edited")).get("NEW") == "yes", "the edit is in effect")
    assert (node.init("kept"), node.status("kept")["restartCount"]) == (pid, 0)
