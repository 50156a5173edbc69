# SPDX-License-Identifier: Apache-2.0
"""staticPodURL: pods of a URL run, follow it, and outlive any of its responses."""

import json
import os

import pytest
import specs
from lone_node import LoneApi
from manifest_server import ManifestServer
from world import wait


@pytest.fixture(name="server")
def fixture_server():
    server = ManifestServer()
    yield server
    server.stop()


@pytest.fixture(name="make_fetching")
def fixture_make_fetching(make_node, server):
    """Nodes that fetch from the server; at the end the setting is removed from all of them, so that their pods stop."""
    nodes = []

    def make(start=True, **config):
        node = make_node(start=start, config={"staticPodURL": server.url(), "httpCheckFrequency": "1s", **config})
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.write_config()
        if node.agent and node.agent.poll() is None:
            node.restart()
        for pod in node.pods() if node.agent else []:
            node.wait_gone(pod["metadata"]["name"])


def pod_text(name="fetched", **metadata):
    return specs.text(specs.pod(name, metadata=metadata))


def condition(node):
    return node.node_condition("mainstay.io/StaticPodURLFailed")


def wait_answer(server, after):
    """Waits until two more requests have been answered: then the node has acted on the response to the first of
    them."""
    wait(lambda: len(server.requests) >= after + 2, lambda: f"requests arrive: {server.requests[-3:]}")


def wait_failed(node, words):
    wait(lambda: condition(node)["status"] == "True" and words in condition(node)["message"],
         lambda: f"the condition contains '{words}': {condition(node)}")


def test_a_pod_of_a_url_runs_and_follows_its_changes(make_fetching, server):
    server.serve(pod_text())
    node = make_fetching(staticPodURLHeader={"X-Site": ["shop-7"], "X-Two": ["a", "b"]})
    pod = node.wait_running("fetched")
    headers = server.requests[0]["headers"]
    assert headers["x-site"] == "shop-7" and headers["x-two"]
    assert pod["metadata"]["annotations"]["kubernetes.io/config.source"] == "http"
    assert pod["metadata"]["annotations"]["mainstay.dev/source"] == "url"
    init = node.init("fetched")
    server.serve(pod_text(labels={"edit": "1"}))
    node.wait_pod("fetched", lambda pod: pod["metadata"].get("labels", {}).get("edit") == "1", "has the label")
    assert node.init("fetched") == init
    server.serve(pod_text("other"))
    node.wait_running("other")
    node.wait_gone("fetched")
    assert "staticPodURL no longer contains it" in node.said()
    assert condition(node)["status"] == "False" and condition(node)["reason"] == "SourceInUse"


def test_a_json_pod_list_is_accepted_like_by_the_kubelet(make_fetching, server):
    items = [specs.pod("one"), specs.pod("two")]
    for item in items:
        del item["kind"], item["apiVersion"]
    server.serve(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": items}))
    node = make_fetching()
    node.wait_running("one")
    node.wait_running("two")


def test_unchanged_content_causes_only_one_small_request(make_fetching, server):
    server.serve("# " + "x" * 5000 + "\n" + pod_text())
    node = make_fetching()
    node.wait_running("fetched")
    before = len(server.requests)
    wait_answer(server, before + 1)  # with the third one, the responses to the first two are recorded
    for request in server.requests[before:before + 2]:
        assert request["status"] == 304
        assert request["received"] + request["sent"] <= 1024, request
    lines = [line for line in node.said().splitlines() if "staticPodURL" in line]
    assert len(lines) == 2, f"a response without changes is not logged: {lines}"


# The response of the URL in place of the manifest, and the message of the condition.
def _cut_length(handler):
    body = pod_text().encode()
    handler.raw(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:-40])


def _no_length(handler):
    handler.raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + pod_text("other").encode())


def _cut_chunk(handler):
    body = pod_text("other").encode()
    handler.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n")


def _reset(handler):
    handler.raw(b"")


def _garbage(handler):
    handler.raw(b"220 mail.example.com ESMTP\r\n")


def _redirect_circle(handler):
    handler.raw(b"HTTP/1.1 302 Found\r\nLocation: /pods\r\nContent-Length: 0\r\n\r\n")


def _redirect_file(handler):
    handler.raw(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/shadow\r\nContent-Length: 0\r\n\r\n")


def _huge(handler):
    handler.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n")
    while True:
        handler.raw(b"#" * 65536)


def _head(handler):
    handler.raw(b"HTTP/1.1 200 OK\r\n" + (b"X-Filler: " + b"y" * 1000 + b"\r\n") * 200 + b"\r\n")


BAD = {
    "empty": ({"body": ""}, "the answer is empty"),
    "blank": ({"body": "\n \r\n\t"}, "the answer is empty"),
    "a comment": ({"body": "# nothing\n"}, "holds no object"),
    "an empty list": ({"body": '{"kind":"PodList","apiVersion":"v1","items":[]}'}, "holds no object"),
    "null": ({"body": "null"}, "holds no object"),
    "an error page": ({"body": "<html>no</html>"}, "staticPodURL:1:1: "),
    "a wrong field": ({"body": pod_text().replace("name: main", "name: Main_1")}, "staticPodURL:"),
    "a second pod that is broken": ({"body": pod_text("other") + "---\nkind: Pod\n"}, "staticPodURL:"),
    "NUL bytes": ({"body": b"\0" * 4096}, "staticPodURL"),
    "a service": ({"body": "kind: Service\napiVersion: v1\n"}, "holds no object that a node runs"),
    "a job": ({"body": "kind: Job\napiVersion: batch/v1\n"}, "is Job, which only a controller of a cluster runs"),
    "404": ({"body": "gone", "status": 404}, "the server answered with status 404"),
    "500": ({"body": "oops", "status": 500}, "the server answered with status 500"),
    "cut before its length": (_cut_length, "in the middle of the response"),
    "cut before its last chunk": (_cut_chunk, ""),
    "no end": (_no_length, "does not send the length of its response"),
    "a reset": (_reset, "closed the connection without a response"),
    "not HTTP": (_garbage, "HTTP"),
    "a circle of redirects": (_redirect_circle, "redirects more than 5 times"),
    "a redirect to a file": (_redirect_file, "which is not https"),
    "too much": (_huge, "the response is larger than"),
    "too long a header": (_head, "the header of the response is larger than"),
}


@pytest.mark.slow
def test_an_invalid_response_neither_stops_nor_starts_a_pod(make_fetching, server):
    """The answers come one after the other, between good ones, and once with an agent that starts with each of them."""
    server.serve(pod_text())
    node = make_fetching()
    node.wait_running("fetched")
    init = node.init("fetched")
    for name, (answer, words) in BAD.items():
        if callable(answer):
            server.act(answer)
        else:
            server.serve(**{"etag": False, **answer})
        wait_answer(server, len(server.requests))
        wait_failed(node, words)
        assert node.init("fetched") == init and [pod["metadata"]["name"] for pod in node.pods()] == ["fetched-node1"], name
        if name == "a service":
            assert "SourceRefused" in node.cli("get", "events").stdout
        if name in ("an error page", "500", "empty"):
            node.restart()
            wait_failed(node, words)
            assert node.init("fetched") == init, name
    assert node.status("fetched")["restartCount"] == 0
    assert "StaticPodURLFailed" in node.cli("get", "nodes").stdout
    described = node.cli("describe", "node").stdout
    assert "mainstay.io/StaticPodURLFailed" in described and "SourceFailed" in described
    assert 'mainstay_source_failed{source="staticPodURL"} 1' in node.get("/metrics")[1]
    assert "SourceFailed" in node.cli("get", "events").stdout
    server.serve(pod_text(labels={"edit": "2"}))
    node.wait_pod("fetched", lambda pod: pod["metadata"].get("labels", {}).get("edit") == "2", "has the label")
    assert node.init("fetched") == init
    wait(lambda: condition(node)["status"] == "False", "the condition is over")
    assert 'mainstay_source_failed{source="staticPodURL"} 0' in node.get("/metrics")[1]


def test_a_node_boots_with_its_stored_manifests_without_the_server(make_fetching, server):
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}, "data": {"WORD": "hello"}}
    pod = specs.pod("fetched", specs.container(envFrom=[{"configMapRef": {"name": "words"}}]))
    server.serve(specs.text(config_map, pod))
    node = make_fetching()
    node.wait_running("fetched")
    server.serve("a: [", etag=False)
    wait_failed(node, "staticPodURL:")
    server.stop()
    init = node.init("fetched")
    node.kill9()
    os.kill(init, 9)
    shim = [pid for pid in node.shims()]
    for pid in shim:
        os.kill(pid, 9)
    node.start()
    node.wait_running("fetched")
    assert node.init("fetched") != init
    wait_failed(node, "")


def test_a_file_of_the_node_overrides_a_pod_of_the_url(make_fetching, server):
    server.serve(pod_text(labels={"from": "url"}))
    node = make_fetching()
    node.wait_running("fetched")
    init = node.init("fetched")
    node.drop(specs.pod("fetched", metadata={"labels": {"from": "file"}}), "own.yaml")
    node.wait_pod("fetched", lambda pod: pod["metadata"]["labels"]["from"] == "file", "is the file's")
    node.wait_running("fetched")
    own = node.init("fetched")
    assert own != init, "a pod from another source is another pod"
    wait(lambda: "staticPodURL: pod default/fetched-node1 is already defined by own.yaml" in node.said(),
         lambda: f"the conflict is reported: {node.said()[-2000:]}")
    assert node.pod("fetched")["metadata"]["annotations"]["mainstay.dev/source"] == "file own.yaml"
    node.restart()
    node.wait_pod("fetched", lambda pod: pod["metadata"]["labels"]["from"] == "file", "is the file's")
    assert node.init("fetched") == own
    node.remove("own")
    node.wait_pod("fetched", lambda pod: pod["metadata"]["labels"]["from"] == "url", "is the URL's")
    node.wait_running("fetched")
    assert node.init("fetched") != own


def test_pods_of_a_url_stop_when_it_is_removed_from_the_configuration(make_fetching, server):
    server.serve(pod_text())
    node = make_fetching()
    node.wait_running("fetched")
    node.write_config()
    node.restart()
    node.wait_gone("fetched")
    assert "staticPodURL was removed" in node.said()
    assert "StaticPodURL" not in node.cli("get", "node", "-o", "json").stdout


def test_secrets_of_the_url_are_in_no_message(make_fetching, server):
    server.serve("oops", status=500)
    node = make_fetching(staticPodURL=server.url("/pods").replace("http://", "http://user:hidden1@") + "?token=hidden2",
                         staticPodURLHeader={"Authorization": ["Bearer hidden3"]})
    wait_failed(node, "404")
    assert "hidden" not in node.said() + node.cli("describe", "node").stdout + node.cli("get", "events").stdout
    status, configuration = node.get("/configz")
    assert status == 200 and "staticPodURL" in configuration and "hidden" not in configuration
    assert server.requests[0]["headers"]["authorization"] == "Bearer hidden3"


def test_joined_node_has_the_source_condition_too(make_member, server):
    def reported():
        node = member.api.get("nodes", None, "node1")
        found = [one for one in node["status"]["conditions"] if one["type"] == "mainstay.io/StaticPodURLFailed"] if node else []
        return found[0] if found else {"status": "", "reason": "", "message": ""}

    def wait_reported(status, reason, words):
        wait(lambda: (reported()["status"], reported()["reason"]) == (status, reason) and words in reported()["message"],
             lambda: f"the server has {reason}: {reported()}\n{member.said()[-3000:]}")

    server.serve("oops", status=500)
    member = make_member(config={"staticPodURL": server.url(), "httpCheckFrequency": "1s"})
    wait_reported("True", "SourceFailed", "500")
    server.serve(pod_text())
    wait_reported("False", "SourceInUse", "")
    member.wait_running("fetched")
    member.write_config(mainstay={"kubeconfig": member.kubeconfig})
    member.restart()
    member.wait_gone("fetched")
    wait_reported("False", "NotConfigured", "")


def test_a_write_is_refused_with_the_url_of_the_source(make_fetching, server):
    text = specs.text(specs.pod("fetched"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}, "data": {"a": "b"}},
                      specs.daemonset("every"))
    server.serve(text)
    node = make_fetching()
    node.wait_running("fetched")
    lone = LoneApi(node)
    pod = node.pod("fetched")["metadata"]["name"]
    wait(lambda: len(lone.names("/api/v1/pods")) == 2, "the pod of the set exists")
    of_set = next(name for name in lone.names("/api/v1/pods") if name != pod)
    for path in f"pods/{pod}", f"pods/{of_set}", "configmaps/words":
        status, answer = lone.ask(f"/api/v1/namespaces/default/{path}", method="PATCH", body={})
        assert status == 405 and "staticPodURL" in answer["message"] and node.manifests not in answer["message"]
    assert lone.ask("/api/v1/namespaces/default/pods/fetched", method="DELETE", body={})[0] == 405
    lone.api.stop()
