# SPDX-License-Identifier: Apache-2.0
"""The source of a pod or a DaemonSet is part of its identity: another one with the same name or UID from a different
source gets none of its data."""

import glob
import itertools
import os
import re

import pytest
import specs
import world
from harness import NODE_NAME
from test_apiserver_objects import inside
from test_object_sources import Sources, config_map
from world import wait

SOURCES = ("file", "url", "index")
DEADLINE = {"annotations": {"mainstay.dev/progress-deadline-seconds": "5"}}


@pytest.fixture(name="sources")
def fixture_sources(make_member, tmp_path):
    sources = Sources(make_member, str(tmp_path))
    yield sources
    sources.end()


def noting(**fields):
    """A container that notes each of its starts in a volume of the pod."""
    return specs.container(script=f"echo start >>/v/starts; {specs.IDLE}", volumeMounts=[specs.mount("v", "/v")], **fields)


def noting_pod(**fields):
    return specs.pod("web", noting(), volumes=[{"name": "v", "emptyDir": {}}], **fields)


def is_from(pod, source):
    return source in re.findall(r"\w+", pod["metadata"]["annotations"]["mainstay.dev/source"])


def wait_from(node, name, source):
    node.wait_pod(name, lambda pod: is_from(pod, source) and pod["status"].get("phase") == "Running", f"runs, from {source}")
    return node.init(name)


def exchange(sources, one, other, objects, restarted):
    """Removes the objects of one source, and lets another one provide them, before or after the agent has died."""
    if restarted:
        sources.node.kill9()
    sources.objects[one] = [config_map("left", "word")] if one == "url" else []  # an empty answer would be an error
    sources.write(one)
    sources.put(other, *objects)
    if restarted:
        sources.node.start()


@pytest.mark.parametrize("restarted", [False, True], ids=["alive", "restarted"])
@pytest.mark.parametrize("one, other", list(itertools.permutations(SOURCES, 2)))
def test_pod_with_the_same_name_from_another_source_gets_neither_sandbox_nor_volumes(sources, one, other, restarted):
    node = sources.make_node()
    sources.put(one, noting_pod())
    node.start()
    pid = wait_from(node, "web", one)
    wait(lambda: inside(node, "web", "/v/starts") == "start\n", "it has recorded its start")
    exchange(sources, one, other, [noting_pod()], restarted)
    assert wait_from(node, "web", other) != pid and not world.is_alive(pid)
    wait(lambda: inside(node, "web", "/v/starts"), "it has recorded its start")
    assert inside(node, "web", "/v/starts") == "start\n", "the volume was not the other pod's"


def history(node):
    """The text of the only rollout history: number, tried, since, good, …, source."""
    found = glob.glob(f"{node.state}/rollouts/*/record")
    return world.read(found[0]).splitlines() if found else [""] * 13


def with_version(version, script=specs.IDLE):
    return specs.pod("web", specs.container(script=script, env=[{"name": "VERSION", "value": version}]), metadata=DEADLINE)


@pytest.mark.parametrize("restarted", [False, True], ids=["alive", "restarted"])
@pytest.mark.parametrize("one, other", [("file", "url"), ("url", "file"), ("index", "file")])
def test_pod_is_not_rolled_back_to_a_revision_of_another_source(sources, one, other, restarted):
    node = sources.make_node()
    sources.put(one, with_version("1"))
    node.start()
    wait_from(node, "web", one)
    wait(lambda: history(node)[4] and history(node)[4] == history(node)[6], lambda: f"the revision counts as good: {history(node)}")
    assert history(node)[11] == one
    exchange(sources, one, other, [with_version("2", "exit 1")], restarted)
    wait(lambda: history(node)[11:12] == [other], lambda: f"the history is that of {other}: {history(node)}")
    assert history(node)[3:4] == ["1"] and history(node)[6:8] == ["", ""], "there is no revision to roll back to"
    node.wait_pod("web", lambda pod: pod["status"].get("containerStatuses", [{}])[0].get("restartCount", 0) > 0, "fails")
    assert is_from(node.pod("web"), other) and "restoring the last ready revision" not in node.said()


def logd(version):
    return specs.daemonset("logd", noting(env=[{"name": "VERSION", "value": version}]), volumes=[{"name": "v", "emptyDir": {}}])


def pod_of(node, name):
    found = [pod for pod in node.pods() if pod["metadata"].get("labels", {}).get("app") == name]
    return found[0] if len(found) == 1 else None


def wait_set_from(node, source, version):
    def find():
        pod = pod_of(node, "logd")
        return pod and is_from(pod, source) and pod["status"].get("phase") == "Running" and \
            pod["spec"]["containers"][0]["env"][0]["value"] == version and pod["metadata"]["name"]
    name = wait(find, lambda: f"logd runs, from {source}: {pod_of(node, 'logd')}\n{node.said()[-3000:]}")
    return name, node.init(name)


@pytest.mark.parametrize("restarted", [False, True], ids=["alive", "restarted"])
@pytest.mark.parametrize("one, other", [("file", "url"), ("url", "file"), ("index", "file")])
@pytest.mark.parametrize("version", ["1", "2"], ids=["same", "edited"])
def test_daemonset_of_another_source_inherits_neither_pods_nor_revisions(sources, one, other, version, restarted):
    node = sources.make_node()
    sources.put(one, logd("1"))
    node.start()
    _, pid = wait_set_from(node, one, "1")
    exchange(sources, one, other, [logd(version)], restarted)
    name, now = wait_set_from(node, other, version)
    wait(lambda: not world.is_alive(pid), "the other pod has stopped")
    wait(lambda: inside(node, name, "/v/starts"), "it has recorded its start")
    assert now != pid and inside(node, name, "/v/starts") == "start\n"
    revisions = node.cli("rollout", "history", "daemonset/logd").stdout
    assert len([line for line in revisions.splitlines() if line[:1].isdigit()]) == 1, revisions
    assert node.cli("rollout", "undo", "daemonset/logd").returncode != 0


# UIDs

def test_api_server_pod_does_not_block_a_static_pod_with_its_uid(make_member):
    """A server never assigns such a UID by itself, but the UID of a pod of a file can be computed."""
    member = make_member()
    member.drop(specs.pod("web"))
    uid = member.wait_running("web")["metadata"]["uid"]
    member.remove("web")
    member.wait_gone("web")
    member.api.store.chosen_uids["pods", "other"] = uid
    member.bind("other", specs.container(script="trap '' TERM; while :; do sleep 1; done"), terminationGracePeriodSeconds=31536000)
    member.wait_reported_phase("other", "Running")
    pid = member.init("other")
    member.drop(specs.pod("web"))
    own = member.wait_running("web")
    assert own["metadata"]["uid"] == uid and not world.is_alive(pid)
    member.wait_reported("other", lambda pod: pod["status"].get("reason") == "UIDConflict", "has failed")
    pid = member.init("web")
    member.restart()
    assert member.init("web") == pid and "UIDConflict" in member.said()
    member.api.delete("pods", "default", "other")
    member.wait_reported_gone("other")
    assert member.init("web") == pid


@pytest.mark.parametrize("name", ["other", f"web-{NODE_NAME}"], ids=["other name", "same name"])
def test_api_server_pod_with_the_uid_of_a_static_pod_takes_nothing_over(make_member, name):
    member = make_member()
    member.drop(noting_pod())
    uid, pid = member.wait_running("web")["metadata"]["uid"], member.init("web")
    member.wait_reported(f"web-{NODE_NAME}", lambda pod: True, "has its mirror pod")
    member.api.store.chosen_uids["pods", name] = uid
    if name != "other":
        member.stop()
        member.api.delete("pods", "default", name, grace=0)
    member.bind(name, noting(), volumes=[{"name": "v", "emptyDir": {}}])
    if name != "other":
        member.start()
    member.wait_reported(name, lambda pod: pod["status"].get("phase") == "Failed", "has failed")
    member.api.delete("pods", "default", name)
    if name == "other":
        member.wait_reported_gone(name)
    assert member.init("web") == pid and member.pod("web")["metadata"]["uid"] == uid
    assert os.path.exists(f"{member.state}/pods/{uid}/record")
    member.restart()
    assert member.init("web") == pid
