# SPDX-License-Identifier: Apache-2.0
"""A node without an API server answers kubectl: mainstay-api, asked with plain requests."""

import base64
import json
import os
import re
import socket
import ssl
import subprocess

import harness
import node_api
import pytest
import specs
from world import wait

pytestmark = pytest.mark.xdist_group("lone_node")

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}
MANY = """apiVersion: apps/v1
kind: DaemonSet
metadata: {name: every}
spec:
  selector: {matchLabels: {app: every}}
  template:
    metadata: {labels: {app: every}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: "docker.io/library/busybox:1", command: [sleep, "100000"]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {one: two}
"""
PODS = "/api/v1/namespaces/default/pods"


class LoneNode:
    """A node with two pods, mainstay-api, and what `mainstay kubeconfig` printed."""

    def __init__(self, archive):
        self.node = harness.Node(archive)
        self.api = node_api.NodeApi(self.node)
        self.node.launch(specs.pod("web", specs.container(script="echo one; echo two; " + specs.IDLE),
                                   specs.container("second", script=specs.IDLE)))
        self.node.launch(specs.pod("solo", specs.container(script="echo alone; " + specs.IDLE)))
        self.pods = {name: self.node.pod(name)["metadata"]["name"] for name in ("solo", "web")}
        self.admin = os.path.join(self.node.directory, "admin.crt")
        self.authority = os.path.join(self.node.directory, "authority.crt")
        self.save_kubeconfig()

    def kubeconfig(self, *arguments):
        return subprocess.run([harness.program("mainstay"), "--socket", self.node.socket, "kubeconfig", *arguments],
                              env=self.node.environment(), capture_output=True, text=True, check=True, timeout=60).stdout

    def save_kubeconfig(self):
        text = self.kubeconfig()
        for member, path in (("certificate-authority-data", self.authority), ("client-certificate-data", self.admin),
                             ("client-key-data", self.admin.replace(".crt", ".key"))):
            with open(path, "wb") as file:
                file.write(base64.b64decode(re.search(member + ": (.*)", text)[1]))

    def ask(self, path, **options):
        """Status and object."""
        status, body = self.api.request(path, certificate=self.admin, **options)
        return status, json.loads(body)

    def get(self, path, **options):
        status, found = self.ask(path, **options)
        assert status == 200, found
        return found

    def names(self, path):
        return [item["metadata"]["name"] for item in self.get(path)["items"]]

    def finish(self):
        try:
            self.api.stop()
        finally:
            self.node.finish()


@pytest.fixture(scope="module", name="lone")
def fixture_lone(archive):
    found = LoneNode(archive)
    yield found
    found.finish()


# Permissions

def test_a_client_without_certificate_is_unauthorized(lone):
    status, body = lone.api.request(PODS)
    assert status == 401 and json.loads(body)["reason"] == "Unauthorized"


def test_the_server_has_a_certificate_of_the_authority_in_the_kubeconfig(lone):
    lone.get("/version")
    context = ssl.create_default_context(cafile=lone.authority)
    with socket.create_connection(("127.0.0.1", lone.api.port)) as plain:
        with context.wrap_socket(plain, server_hostname="node1") as stream:
            names = [value for _, value in stream.getpeercert()["subjectAltName"]]
    assert names == ["node1", "localhost", "127.0.0.1", "0:0:0:0:0:0:0:1"]


def test_a_kubeconfig_stays_valid_when_the_agent_restarts(lone):
    file = os.path.join(lone.node.state, "pki/node-authority.pem")
    wait(lambda: os.path.exists(file), "the authority is on disk")
    lone.node.restart()
    lone.api.stop()
    lone.api = node_api.NodeApi(lone.node)
    assert len(lone.names(PODS)) == 2


def test_a_kubeconfig_names_the_server_that_was_asked_for(lone):
    text = lone.kubeconfig("--server", "https://edge.example:10250")
    assert "server: https://edge.example:10250\n" in text and "tls-server-name: node1\n" in text


# Objects

def test_discovery_in_one_document_and_in_many(lone):
    groups = lone.get("/apis", headers=AGGREGATED)
    assert groups["kind"] == "APIGroupDiscoveryList"
    assert {item["metadata"]["name"] for item in groups["items"]} >= {"apps", "scheduling.k8s.io"}
    assert {item["name"] for item in lone.get("/apis")["groups"]} >= {"apps", "scheduling.k8s.io"}
    assert {item["name"] for item in lone.get("/api/v1")["resources"]} >= {"pods", "pods/log", "nodes"}
    assert lone.get("/version")["gitVersion"].startswith("v1.")


def test_pods_are_listed_selected_and_cut(lone):
    assert lone.names("/api/v1/pods") == [lone.pods["solo"], lone.pods["web"]]
    assert lone.names(f"{PODS}?fieldSelector=metadata.name%3D{lone.pods['web']}") == [lone.pods["web"]]
    assert lone.names(f"{PODS}?labelSelector=none%3Dx") == []
    assert lone.names("/api/v1/namespaces/other/pods") == []
    first = lone.get(f"{PODS}?limit=1")
    assert [item["metadata"]["name"] for item in first["items"]] == [lone.pods["solo"]]
    assert first["metadata"]["remainingItemCount"] == 1
    assert lone.names(f"{PODS}?limit=1&continue={first['metadata']['continue']}") == [lone.pods["web"]]


def test_one_pod_is_an_object(lone):
    pod = lone.get(f"{PODS}/{lone.pods['web']}")
    assert (pod["kind"], pod["apiVersion"], pod["metadata"]["name"]) == ("Pod", "v1", lone.pods["web"])


def test_a_table_has_kubectls_columns(lone):
    table = lone.get(PODS, headers=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]][:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert [row["cells"][:3] for row in table["rows"]] == [[lone.pods["solo"], "1/1", "Running"],
                                                          [lone.pods["web"], "2/2", "Running"]]
    assert table["rows"][0]["object"]["metadata"]["namespace"] == "default"


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/events", "/api/v1/namespaces", "/api/v1/configmaps",
                                  "/api/v1/secrets", "/apis/apps/v1/daemonsets", "/apis/apps/v1/controllerrevisions",
                                  "/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/node.k8s.io/v1/runtimeclasses",
                                  "/apis/coordination.k8s.io/v1/leases"])
def test_every_resource_is_a_list_and_a_table(lone, path):
    assert lone.get(path)["kind"].endswith("List")
    table = lone.get(path, headers=TABLE)
    assert all(len(row["cells"]) == len(table["columnDefinitions"]) for row in table["rows"])


def test_the_node_says_its_version(lone):
    cells = lone.get("/api/v1/nodes", headers=TABLE)["rows"][0]["cells"]
    assert cells[:3] == ["node1", "Ready", "<none>"]
    assert cells[4] == lone.get("/version")["gitVersion"]


# Watches

class Watch:
    """The events of a watch as they arrive."""

    def __init__(self, lone, path, headers=None):
        self.response = lone.api.open(path, certificate=lone.admin, headers=headers)
        assert self.response.status == 200

    def event(self):
        line = self.response.readline()
        return json.loads(line) if line else None

    def until(self, predicate):
        """The types of the events up to the one that is waited for, and its object."""
        types = []
        while True:
            event = self.event()
            assert event, f"the watch ended after {types}"
            types.append(event["type"])
            if predicate(event):
                return types, event["object"]

    def close(self):
        self.response.close()


@pytest.fixture(name="watch")
def fixture_watch(lone):
    watches = []

    def start(path, **options):
        watches.append(Watch(lone, path, **options))
        return watches[-1]
    yield start
    for watch in watches:
        watch.close()


def version(lone, path):
    return lone.get(path)["metadata"]["resourceVersion"]


def name_is(name, kind):
    return lambda event: event["type"] == kind and event["object"]["metadata"]["name"] == name


def is_ready(event):
    conditions = event["object"].get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def test_a_pod_is_watched_from_its_file_to_its_end(lone, watch):
    events = watch(f"{PODS}?watch=1&resourceVersion={version(lone, PODS)}")
    lone.node.launch(specs.pod("brief", specs.container(script=specs.IDLE)))
    name = lone.node.pod("brief")["metadata"]["name"]
    types, pod = events.until(lambda event: event["object"]["metadata"]["name"] == name and is_ready(event))
    assert types[0] == "ADDED" and set(types[1:]) == {"MODIFIED"}
    assert (pod["kind"], pod["apiVersion"]) == ("Pod", "v1")
    lone.node.remove("brief")
    types, gone = events.until(lambda event: event["type"] == "DELETED")
    assert gone["metadata"]["name"] == name
    assert int(gone["metadata"]["resourceVersion"]) > int(pod["metadata"]["resourceVersion"])
    assert int(version(lone, PODS)) >= int(gone["metadata"]["resourceVersion"])


def test_a_watch_without_a_version_starts_with_what_exists(lone, watch):
    events = watch("/api/v1/pods?watch=1&allowWatchBookmarks=true&sendInitialEvents=true"
                   "&resourceVersionMatch=NotOlderThan")
    assert [events.event()["object"]["metadata"]["name"] for _ in range(2)] == [lone.pods["solo"], lone.pods["web"]]
    bookmark = events.event()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_watch_ends_after_its_timeout_with_a_bookmark(lone, watch):
    events = watch(f"{PODS}?watch=1&resourceVersion={version(lone, PODS)}&allowWatchBookmarks=true&timeoutSeconds=1")
    assert events.event()["type"] == "BOOKMARK"
    assert events.event() is None


def test_a_watch_selects(lone, watch):
    events = watch(f"{PODS}?watch=1&fieldSelector=metadata.name%3D{lone.pods['web']}&sendInitialEvents=true")
    assert events.event()["object"]["metadata"]["name"] == lone.pods["web"]
    assert events.event()["type"] == "BOOKMARK"


def test_a_table_is_watched_by_rows(lone, watch):
    events = watch(f"{PODS}?watch=1", headers=TABLE)
    first, second = events.event()["object"], events.event()["object"]
    assert [column["name"] for column in first["columnDefinitions"]][:2] == ["Name", "Ready"]
    assert second["columnDefinitions"] == []
    assert [row["cells"][0] for row in first["rows"] + second["rows"]] == [lone.pods["solo"], lone.pods["web"]]


def test_what_changed_between_a_list_and_a_watch_is_sent(lone, watch):
    lone.node.launch(specs.pod("between", specs.container(script=specs.IDLE)))
    name = lone.node.pod("between")["metadata"]["name"]
    before = version(lone, PODS)
    lone.node.remove("between")
    lone.node.wait_gone("between")
    events = watch(f"{PODS}?watch=1&resourceVersion={before}")
    _, gone = events.until(lambda event: event["type"] == "DELETED")
    assert gone["metadata"]["name"] == name


def test_events_and_daemonsets_and_configmaps_are_watched(lone, watch):
    paths = {"events": "/api/v1/events", "sets": "/apis/apps/v1/daemonsets", "maps": "/api/v1/configmaps"}
    watches = {name: watch(f"{path}?watch=1&resourceVersion={version(lone, path)}") for name, path in paths.items()}
    lone.node.drop(MANY, "many.yaml")
    assert watches["events"].event()["type"] == "ADDED"
    assert name_is("every", "ADDED")(watches["sets"].event())
    assert name_is("words", "ADDED")(watches["maps"].event())
    lone.node.remove("many")
    watches["sets"].until(name_is("every", "DELETED"))
    watches["maps"].until(name_is("words", "DELETED"))


def test_labels_of_the_node_are_watched(lone, watch):
    events = watch(f"/api/v1/nodes?watch=1&resourceVersion={version(lone, '/api/v1/nodes')}")
    lone.node.write_config(mainstay={"nodeLabels": {"tests/colour": "blue"}})
    _, node = events.until(lambda event: event["object"]["metadata"]["labels"].get("tests/colour") == "blue")
    assert node["kind"] == "Node"
    lone.node.write_config()
    events.until(lambda event: "tests/colour" not in event["object"]["metadata"]["labels"])


def test_a_version_that_is_not_known_is_gone(lone):
    for number in "17", "99999999999999999":
        status, answer = lone.ask(f"{PODS}?watch=1&resourceVersion={number}")
        assert (status, answer["reason"]) == (410, "Expired")
    assert lone.ask(f"{PODS}?watch=1&resourceVersion=x")[0] == 400


# Subresources of pods

def test_logs_need_no_container_where_there_is_only_one(lone):
    assert lone.api.request(f"{PODS}/{lone.pods['solo']}/log", certificate=lone.admin) == (200, "alone\n")
    assert lone.api.request(f"{PODS}/{lone.pods['web']}/log?container=main&tailLines=1",
                            certificate=lone.admin) == (200, "two\n")
    status, answer = lone.ask(f"{PODS}/{lone.pods['web']}/log")
    assert (status, answer["kind"]) == (400, "Status")
    assert "choose one of: [main second]" in answer["message"]


def test_a_command_runs_over_spdy(lone):
    path = f"{PODS}/{lone.pods['solo']}/exec?command=echo&command=hello&stdout=true"
    stream, _ = lone.api.upgrade(path, node_api.spdy_headers("v4.channel.k8s.io"), method="POST", certificate=lone.admin)
    session = node_api.SpdySession(stream, ("stdout",))
    assert session.result()["status"] == "Success"
    assert session.text("stdout") == "hello\n"


# What is refused

@pytest.mark.parametrize("path,method,status,said", [
    (PODS + "/none", "GET", 404, 'pods "none" not found'),
    ("/apis/apps/v1/namespaces/default/daemonsets/none", "GET", 404, 'daemonsets.apps "none" not found'),
    ("/api/v1/services", "GET", 404, "could not find the requested resource"),
    ("/apis/none/v1", "GET", 404, "could not find the requested resource"),
    (PODS + "/none/log", "GET", 404, 'pods "none" not found'),
    (PODS + "?labelSelector=%3Da", "GET", 400, "is not a label selector"),
    (PODS + "?fieldSelector=spec.x%3Da", "GET", 400, "field label not supported: spec.x"),
    (PODS, "POST", 405, "its objects are files; edit /"),
    ("/api/v1/namespaces/default/configmaps/a", "PUT", 405, "its objects are files; edit /"),
    ("/apis/apps/v1/namespaces/default/daemonsets/a", "PATCH", 405, "its objects are files; edit /"),
])
def test_a_failure_is_a_status(lone, path, method, status, said):
    found, answer = lone.ask(path, method=method)
    assert (found, answer["kind"], answer["code"]) == (status, "Status", status)
    assert said in answer["message"]


def test_the_file_of_a_pod_is_named_where_the_pod_cannot_be_written(lone):
    for method in "DELETE", "PATCH":
        status, answer = lone.ask(f"{PODS}/{lone.pods['solo']}", method=method)
        assert status == 405
        assert answer["message"].endswith(f"edit {lone.node.manifests}/solo.yaml")
