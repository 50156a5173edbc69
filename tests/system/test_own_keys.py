# SPDX-License-Identifier: Apache-2.0
"""Mainstay's own labels and annotations, and the pods on which they count."""

import pytest
import specs
from harness import NODE_NAME
from manifest_server import Answer, ManifestServer
from test_apiserver_daemonsets import may_place
from world import wait

NEVER_READY = {"readinessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1}}
WORDS = ("critical", "bootstrap")


def unready(name, **metadata):
    return specs.pod(name, specs.container(**NEVER_READY), metadata=metadata)


def keys(**values):
    return {f"mainstay.dev/{key.replace('_', '-')}": value for key, value in values.items()}


def forged():
    """Annotations that a user may write to disguise a pod as one of a file."""
    return {**keys(critical="true", bootstrap="true", after="absent", rolled_back="no", covers=f"web/{'0' * 8}-0", source="file a.yaml"),
            "kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "0", "kubernetes.io/config.seen": "never"}


def waits(node, word):
    return node.cli("wait", f"--{word}", "--timeout", "1s")


@pytest.mark.parametrize("annotations", [keys(critical="true", bootstrap="true"), forged()], ids=["critical", "all"])
def test_api_server_pods_are_not_waited_for(make_member, annotations):
    member = make_member()
    pod = unready("theirs", annotations=annotations, labels=keys(critical="true"))
    pod["spec"]["nodeName"] = NODE_NAME
    member.api.create("pods", pod)
    member.wait_running("theirs")  # regardless of the pods that must be ready first
    for word in WORDS:
        answer = waits(member, word)
        assert answer.returncode == 0, answer.stderr
    annotations = member.pod("theirs")["metadata"]["annotations"]
    assert annotations["mainstay.dev/source"] == annotations["kubernetes.io/config.source"] == "api"
    assert "mainstay.dev/covers" not in annotations and "mainstay.dev/rolled-back" not in annotations
    assert annotations.get("kubernetes.io/config.seen") != "never"
    assert "exceeded its progress deadline" not in member.cli("rollout", "status", "pod/theirs", "--timeout", "1s").stderr
    member.restart()
    member.wait_running("theirs")
    assert waits(member, "critical").returncode == 0


@pytest.mark.parametrize("where", ("file", "daemonset", "url"))
def test_static_pods_are_waited_for(make_node, where):
    server = ManifestServer()
    server.paths["/pods"] = Answer(specs.text(unready("web", annotations=keys(critical="true", bootstrap="true"))).encode())
    config = {"staticPodURL": f"http://127.0.0.1:{server.port}/pods", "httpCheckFrequency": "1s"} if where == "url" else {}
    node = make_node(config=config)
    if where == "file":
        node.drop(unready("web", annotations=keys(critical="true", bootstrap="true")))
    elif where == "daemonset":
        daemons = specs.daemonset("web", specs.container(**NEVER_READY))
        daemons["spec"]["template"]["metadata"]["annotations"] = keys(critical="true", bootstrap="true")
        node.drop(daemons)
    wait(lambda: [pod for pod in node.pods() if pod["status"].get("phase") == "Running"], "the pod runs")
    for _ in range(2):
        for word in WORDS:
            answer = waits(node, word)
            assert answer.returncode == 1 and "error: pod web-" in answer.stderr, answer
        node.restart()
    node.write_config()
    node.restart()
    wait(lambda: where != "url" or not node.pods(), "the URL's pod is gone")
    server.stop()


def test_daemonset_pods_of_an_api_server_are_not_waited_for(make_member):
    member = make_member(start=False, daemonSets="node")
    may_place(member.api)
    for source in "file", "api":
        daemons = specs.daemonset(f"theirs-{source}", specs.container(**NEVER_READY))
        daemons["metadata"]["namespace"] = "default"
        daemons["spec"]["template"]["metadata"]["annotations"] = {**forged(), "kubernetes.io/config.source": source}
        member.api.create("daemonsets", daemons)
    member.start()
    wait(lambda: len([pod for pod in member.pods() if pod["status"].get("phase") == "Running"]) == 2,
         lambda: f"the pods run: {member.pods()}\n{member.said()[-4000:]}")
    for _ in range(2):
        for pod in member.pods():
            annotations = pod["metadata"]["annotations"]
            assert annotations["mainstay.dev/source"] == "evaluated (api)"
            assert not {"kubernetes.io/config.hash", "kubernetes.io/config.source", "mainstay.dev/covers", "mainstay.dev/rolled-back"} & set(annotations)
        for word in WORDS:
            assert waits(member, word).returncode == 0
        member.restart()
    for source in "file", "api":
        member.api.delete("daemonsets", "default", f"theirs-{source}")
    wait(lambda: not member.pods(), "the pods are gone")


def test_agents_own_annotations_of_a_file_are_ignored_with_a_warning(node):
    node.launch(specs.pod("web", metadata={"annotations": keys(rolled_back="no", covers="a/b", source="api")}))
    annotations = node.pod("web")["metadata"]["annotations"]
    assert annotations["mainstay.dev/source"] == "file web.yaml"
    assert not set(keys(rolled_back="", covers="")) & set(annotations)
    for key in keys(rolled_back="", covers="", source=""):
        assert f"[{key}]: is ignored; only the agent sets it" in node.said()
