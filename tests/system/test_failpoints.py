# SPDX-License-Identifier: Apache-2.0
"""Agent, shim and mainstay-image die, or fail, at each of their failpoints: no container is lost or runs twice, no
other pod is affected, and nothing is left behind."""

import os
import random
import shutil
import signal

import failing
import pytest
import specs
import world
from harness import is_running
from registry import DockerRegistry
from sampling import some
from test_survival import starter, starts, wait_starts
from world import wait

# Failpoints that the scenario of a node here does not reach.
ELSEWHERE = {
    "mainstayd:alloc": "test_failed_allocations.py",
    "mainstay-shim:alloc": "test_failed_allocations_shims.py",
    "mainstay-shim:shim.encode-event": "test_failed_allocations_shims.py",
    "mainstay-shim:shim.decode-request": "test_failed_allocations_shims.py",
    "mainstay-image:alloc": "test_failed_allocations_images.py",
    "mainstayd:durable.": "what comes from an API server is synced",
    "mainstayd:cgroup.kill": "shims kill",
    "mainstayd:cgroup.remove": "shims remove",
    "mainstayd:tree.": "shims remove",
    "mainstayd:csi.": "no volume is of a driver: test_plugin_storm.py, test_csi_expand.py",
    "mainstayd:devices.": "no plugin has registered: test_plugin_storm.py",
    "mainstay-plugins:": "no plugin has registered: test_plugin_storm.py",
    "mainstayd:rollout.": "no pod has a progress deadline: test_pod_rollouts.py",
    "mainstayd:sync.": "no container has ended permanently: test_removed_state.py",
    "mainstayd:source.": "there is no index: test_index_source.py",
    "mainstay-image:source.": "there is no index: test_index_source.py",
    "mainstay-image:report.": "there is no stick: test_report.py",
    "mainstay-shim:file.": "the agent writes",
    "mainstay-shim:overlay.": "images have few layers: test_many_layers.py",
    "mainstay-image:file.": "only a damaged index is written so",
}

# Enough output to rotate the log.
TALK = "i=0; while [ $i -lt 400 ]; do echo line-$i-of-four-hundred-lines-that-fill-the-log; i=$((i+1)); done; "

TERMS = some(["1*panic", "1*return(EIO)"], 2)
HITS_MAX = 12
PAIRS = 40

POINTS = [name for name in failing.names() if not name.startswith(tuple(ELSEWHERE))]
IMAGE_POINTS = [name for name in POINTS if name.startswith("mainstay-image:")]
POD_POINTS = [name for name in POINTS if name not in IMAGE_POINTS]


@pytest.fixture(scope="module", name="registry")
def fixture_registry(archive, tmp_path_factory):
    """A registry with an image that has one more layer than the node's own."""
    registry = DockerRegistry(str(tmp_path_factory.mktemp("registry")))
    registry.push_larger(archive, "team/larger:1")
    yield registry
    registry.stop()


def container(node, name, words, talk=""):
    return specs.container(name, f": {os.path.basename(node.directory)}/{words}; {talk}{specs.IDLE}")


def changed_pod(node, words):
    """A pod with parts of many kinds, whose main container prints 'words'."""
    return specs.pod("changed", container(node, "main", words, TALK),
                     initContainers=[specs.container("first", "exit 0"),
                                     {**container(node, "side", "side"), "restartPolicy": "Always"}],
                     hostNetwork=False, terminationGracePeriodSeconds=1,
                     volumes=[{"name": "settings", "configMap": {"name": "settings"}}, {"name": "empty", "emptyDir": {}}])


def first_processes(node, words):
    """The containers with these words: their forked children have the same command line until they execute a program.
    One may end, and its successor start, while the others are examined."""
    mark = f": {os.path.basename(node.directory)}/{words}; "
    found = [pid for pid in map(world.Process, world.pids()) if any(word.startswith(mark) for word in world.cmdline(pid))]
    return [pid for pid in world.without_children(found) if world.is_alive(pid)]


def wait_runs(node, name, words):
    """Waits until the pod runs and its container prints the words that were written last. No container may run twice.
    Returns its process."""
    def is_so():
        pod = node.pod(name)
        running = first_processes(node, words)
        assert len(running) <= 1, f"{words} runs {len(running)} times"
        return pod and is_running(pod) and running
    return wait(is_so, lambda: f"{name} runs and prints {words}; it is {node.pod(name)}\n"
                               f"the agent said:\n{node.said()[-4000:]}")[0]


def live(node):
    """The events in the life of pods."""
    node.drop({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}},
              "settings.yaml")
    node.drop(changed_pod(node, "one"))
    wait_runs(node, "changed", "one")
    node.drop(changed_pod(node, "two"))
    wait_runs(node, "changed", "two")
    assert not first_processes(node, "one")
    node.remove("changed")
    node.wait_gone("changed")


def live_with_images(node, registry):
    """The events in the life of images: pulled, removed, pulled again."""
    pod = specs.pod("larger", {**container(node, "main", "larger"), "image": f"{registry.host}/team/larger:1"})
    for _ in range(2):
        node.drop(pod)
        wait_runs(node, "larger", "larger")
        node.remove("larger")
        node.wait_gone("larger")
        node.cli("images", "prune")


def check_beside(node, terms, day):
    """Performs an action, and checks that another pod is not affected unless its own shim dies. Returns the hits."""
    node.launch(specs.pod("other", container(node, "main", "other")))
    before, shim = wait_runs(node, "other", "other"), node.shim("other")
    node.arm(terms)
    day()
    hits = node.hits()
    node.arm({})
    after = wait_runs(node, "other", "other")
    assert after == before or not world.is_alive(shim)
    return hits


def check_point(node, point, term, day):
    hits = check_beside(node, {point: term}, day)
    assert hits[point] > 0, f"nothing reaches {point}"


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("point", some(POD_POINTS, 3))
def test_pods_survive_a_death_or_an_error_at_each_failpoint(make_failing, point, term):
    node = make_failing(failing.FailingNetworkNode, plugins=(),
                        config={"containerLogMaxSize": "4Ki", "containerLogMaxFiles": 2})
    check_point(node, point, term, lambda: live(node))


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("point", some(IMAGE_POINTS, 3))
def test_images_survive_a_death_or_an_error_at_each_failpoint(make_failing, registry, point, term):
    node = make_failing(failing.FailingNode, config={"mainstay": {"insecureRegistries": [registry.host]}})
    check_point(node, point, term, lambda: live_with_images(node, registry))
    wait(lambda: node.cli("images", "verify").stdout == "all images are sound\n",
         lambda: f"all images are sound: {node.cli('images', 'verify')}")


@pytest.mark.long
@pytest.mark.parametrize("point", POD_POINTS)
def test_pods_survive_a_death_at_each_pass_of_a_failpoint(make_failing, point):
    node = make_failing(failing.FailingNetworkNode, plugins=(),
                        config={"containerLogMaxSize": "4Ki", "containerLogMaxFiles": 2})
    n = check_beside(node, {point: "off"}, lambda: live(node))[point]
    for k in range(1, min(n, HITS_MAX)):
        node.arm({})
        node.remove("other")
        node.wait_gone("other")
        check_point(node, point, f"{k}*off->1*panic", lambda: live(node))


@pytest.mark.long
@pytest.mark.parametrize("pair", range(PAIRS))
def test_pods_survive_two_deaths_at_different_failpoints(make_failing, pair):
    first, second = random.Random(pair).sample(POD_POINTS, 2)
    node = make_failing(failing.FailingNetworkNode, plugins=(),
                        config={"containerLogMaxSize": "4Ki", "containerLogMaxFiles": 2})
    hits = check_beside(node, {first: "1*panic", second: "1*panic"}, lambda: live(node))
    # After one death the agent may not reach the other point any more.
    assert hits[first] or hits[second], hits


def start_without_the_shim(node, name, terms):
    """Starts another agent after the last one and the pod's shim were killed."""
    shim = node.shim(name)
    node.kill9()
    os.kill(shim, signal.SIGKILL)
    node.arm(terms)
    node.start(ready=False)


def cleanups(node):
    return [pid for pid in world.pids() if node.is_ours(pid) and "cleanup" in world.cmdline(pid)]


def test_a_cleanup_ends_with_the_agent_that_started_it(make_failing):
    """The next agent starts the pod again, in the cgroups that the cleanup empties."""
    node = make_failing(failing.FailingNode)
    node.launch(specs.pod("web"))
    start_without_the_shim(node, "web", {"mainstay-shim:cgroup.kill": "1*sleep(5000)"})
    wait(lambda: node.hits()["mainstay-shim:cgroup.kill"] > 0, "a cleanup has started")
    node.restart()
    node.wait_restarts("web", 1)
    init = node.init("web")
    wait(lambda: not cleanups(node), lambda: f"the cleanups end: {cleanups(node)}")
    assert world.is_alive(init)
    assert node.status("web")["restartCount"] == 1


def test_pod_gets_a_network_when_the_agent_dies_between_two_shims(make_failing):
    """The content of its record belongs to the first shim; the second one has a separate network namespace."""
    node = make_failing(failing.FailingNetworkNode)
    node.launch(specs.pod("web", hostNetwork=False))
    start_without_the_shim(node, "web", {"mainstayd:sandbox.started": "1*panic"})
    wait(lambda: node.agent.poll() is not None, "the agent has died with the new shim started")
    node.start()
    node.wait_restarts("web", 1)
    assert f"{node.address('web')}/" in node.exec("web", "/bin/ip", "address")


def start_slowly(node):
    """Configures a runtime that returns long after it has started a container."""
    path = f"{node.directory}/runtime"
    runc = shutil.which("runc", path="/usr/sbin:/usr/bin")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\n{runc} "$@"\nstatus=$?\ncase " $* " in\n*" run "*)\n\tuntil [ -e {node.data}/go ]; do sleep 0.02; done\nesac\n'
                   "exit $status\n")
    os.chmod(path, 0o755)
    node.write_config(mainstay={"runtime": path})


def test_a_starting_container_of_a_removed_pod_that_exits_is_not_restarted_by_the_next_agent(make_failing):
    node = make_failing(failing.FailingNode, start=False)
    start_slowly(node)
    node.start()
    node.drop(starter(node, "brief", "exit 0"))
    wait_starts(node, "brief")
    node.kill9()
    node.remove("brief")
    node.arm({"mainstayd:sandbox.receive-event": "1*sleep(2000)"})
    node.start(ready=False)
    wait(lambda: node.hits()["mainstayd:sandbox.receive-event"] > 0, "the agent is about to read the event of the shim")
    with open(f"{node.data}/go", "w", encoding="ascii"):
        pass
    node.wait_gone("brief")
    assert starts(node) == ["brief"]
