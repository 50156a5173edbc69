# SPDX-License-Identifier: Apache-2.0
"""A node without an API server answers kubectl: mainstay-api, queried with plain requests."""

import json
import os
import socket
import ssl

import node_api
import pytest
import specs
import world
from lone_node import LoneNode
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


def test_a_kubeconfig_names_the_requested_server(lone):
    text = lone.kubeconfig("--server", "https://edge.example:10250")
    assert "server: https://edge.example:10250\n" in text and "tls-server-name: node1\n" in text


# Objects

def test_discovery_is_served_aggregated_and_by_group(lone):
    groups = lone.get("/apis", headers=AGGREGATED)
    assert groups["kind"] == "APIGroupDiscoveryList"
    assert {item["metadata"]["name"] for item in groups["items"]} >= {"apps", "scheduling.k8s.io"}
    assert {item["name"] for item in lone.get("/apis")["groups"]} >= {"apps", "scheduling.k8s.io"}
    assert {item["name"] for item in lone.get("/api/v1")["resources"]} >= {"pods", "pods/log", "nodes"}
    assert lone.get("/version")["gitVersion"].startswith("v1.")


def test_pods_are_listed_by_selector_and_in_chunks(lone):
    assert lone.names("/api/v1/pods") == [lone.pods["solo"], lone.pods["web"]]
    assert lone.names(f"{PODS}?fieldSelector=metadata.name%3D{lone.pods['web']}") == [lone.pods["web"]]
    assert lone.names(f"{PODS}?labelSelector=none%3Dx") == []
    assert lone.names("/api/v1/namespaces/other/pods") == []
    first = lone.get(f"{PODS}?limit=1")
    assert [item["metadata"]["name"] for item in first["items"]] == [lone.pods["solo"]]
    assert first["metadata"]["remainingItemCount"] == 1
    assert lone.names(f"{PODS}?limit=1&continue={first['metadata']['continue']}") == [lone.pods["web"]]


def test_a_single_pod_is_returned_as_an_object(lone):
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


def test_the_node_reports_its_version(lone):
    cells = lone.get("/api/v1/nodes", headers=TABLE)["rows"][0]["cells"]
    assert cells[:3] == ["node1", "Ready", "<none>"]
    assert cells[4] == lone.get("/version")["gitVersion"]


def test_the_node_has_the_fields_that_kubectl_describe_prints(lone):
    node = lone.get("/api/v1/nodes/node1")
    status = node["status"]
    assert node["metadata"]["creationTimestamp"].endswith("Z")
    assert {address["type"] for address in status["addresses"]} >= {"Hostname"}
    assert {"cpu", "memory", "pods", "ephemeral-storage"} <= set(status["capacity"]) == set(status["allocatable"])
    assert status["nodeInfo"]["kernelVersion"] == os.uname().release
    for condition in status["conditions"]:
        assert condition["lastHeartbeatTime"] and condition["lastTransitionTime"] and condition["reason"]
    assert lone.get("/api/v1/nodes/node1")["metadata"]["resourceVersion"] == node["metadata"]["resourceVersion"]


def test_pods_have_the_fields_that_kubectl_debug_requires(lone):
    assert lone.get(f"{PODS}/{lone.pods['solo']}")["spec"]["securityContext"] == {}


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
        """Waits for an event; returns the types of the events up to it, and its object."""
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


def test_a_watch_without_a_version_starts_with_the_existing_objects(lone, watch):
    events = watch("/api/v1/pods?watch=1&allowWatchBookmarks=true&sendInitialEvents=true"
                   "&resourceVersionMatch=NotOlderThan")
    assert [events.event()["object"]["metadata"]["name"] for _ in range(2)] == [lone.pods["solo"], lone.pods["web"]]
    bookmark = events.event()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_watch_ends_after_its_timeout_with_a_bookmark(lone, watch):
    events = watch(f"{PODS}?watch=1&resourceVersion={version(lone, PODS)}&allowWatchBookmarks=true&timeoutSeconds=10")
    assert events.event()["type"] == "BOOKMARK"
    assert events.event() is None


def test_a_watch_applies_its_selectors(lone, watch):
    events = watch(f"{PODS}?watch=1&fieldSelector=metadata.name%3D{lone.pods['web']}&sendInitialEvents=true")
    assert events.event()["object"]["metadata"]["name"] == lone.pods["web"]
    assert events.event()["type"] == "BOOKMARK"


def test_a_table_is_watched_by_rows(lone, watch):
    events = watch(f"{PODS}?watch=1", headers=TABLE)
    first, second = events.event()["object"], events.event()["object"]
    assert [column["name"] for column in first["columnDefinitions"]][:2] == ["Name", "Ready"]
    assert second["columnDefinitions"] == []
    assert [row["cells"][0] for row in first["rows"] + second["rows"]] == [lone.pods["solo"], lone.pods["web"]]


def test_changes_between_a_list_and_a_watch_are_sent(lone, watch):
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


def test_namespaces_are_watched(lone, watch):
    path = "/api/v1/namespaces"
    events = watch(f"{path}?watch=1&resourceVersion={version(lone, path)}")
    lone.node.drop(specs.pod("first", specs.container(script=specs.IDLE), metadata={"namespace": "shop"}))
    events.until(name_is("shop", "ADDED"))
    assert "shop" in [one["metadata"]["name"] for one in lone.get(path)["items"]]
    lone.node.remove("first")
    events.until(name_is("shop", "DELETED"))


def test_controller_revisions_are_watched(lone, watch):
    path = "/apis/apps/v1/controllerrevisions"
    events = watch(f"{path}?watch=1&resourceVersion={version(lone, path)}")
    lone.node.drop(specs.daemonset("revised", specs.container(script=specs.IDLE)), "revised.yaml")
    _, first = events.until(lambda event: event["type"] == "ADDED")
    assert first["kind"] == "ControllerRevision" and first["revision"] == 1
    lone.node.drop(specs.daemonset("revised", specs.container(script="true; " + specs.IDLE)), "revised.yaml")
    _, second = events.until(lambda event: event["type"] == "ADDED")
    assert second["revision"] == 2 and second["metadata"]["name"] != first["metadata"]["name"]
    lone.node.remove("revised")
    gone = {events.until(lambda event: event["type"] == "DELETED")[1]["metadata"]["name"] for _ in range(2)}
    assert gone == {first["metadata"]["name"], second["metadata"]["name"]}


@pytest.mark.slow
def test_pod_metrics_are_watched(lone, watch):
    lone.node.launch(specs.pod("measured", specs.container(script=specs.IDLE), metadata={"labels": {"app": "measured"}}))
    events = watch("/apis/metrics.k8s.io/v1beta1/pods?watch=1&labelSelector=app%3Dmeasured")
    types, pod = events.until(lambda event: event["type"] == "MODIFIED")
    assert types[0] == "ADDED" and pod["metadata"]["name"] == lone.node.pod("measured")["metadata"]["name"]
    assert pod["containers"][0]["usage"]["memory"] and pod["metadata"]["labels"]["app"] == "measured"
    lone.node.remove("measured")
    events.until(lambda event: event["type"] == "DELETED")


def test_labels_of_the_node_are_watched(lone, watch):
    events = watch(f"/api/v1/nodes?watch=1&resourceVersion={version(lone, '/api/v1/nodes')}")
    lone.node.write_config(mainstay={"nodeLabels": {"tests/colour": "blue"}})
    _, node = events.until(lambda event: event["object"]["metadata"]["labels"].get("tests/colour") == "blue")
    assert node["kind"] == "Node"
    lone.node.write_config()
    events.until(lambda event: "tests/colour" not in event["object"]["metadata"]["labels"])


def test_a_watch_from_an_unknown_version_gets_410_gone(lone):
    for number in "17", "99999999999999999":
        status, answer = lone.ask(f"{PODS}?watch=1&resourceVersion={number}")
        assert (status, answer["reason"]) == (410, "Expired")
    assert lone.ask(f"{PODS}?watch=1&resourceVersion=x")[0] == 400


# Subresources of pods

def test_logs_need_no_container_name_if_there_is_only_one(lone):
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


# Refused requests

@pytest.mark.parametrize("path,method,status,said", [
    (PODS + "/none", "GET", 404, 'pods "none" not found'),
    ("/apis/apps/v1/namespaces/default/daemonsets/none", "GET", 404, 'daemonsets.apps "none" not found'),
    ("/api/v1/serviceaccounts", "GET", 404, "could not find the requested resource"),
    ("/apis/none/v1", "GET", 404, "could not find the requested resource"),
    (PODS + "/none/log", "GET", 404, 'pods "none" not found'),
    (PODS + "?labelSelector=%3Da", "GET", 400, "is not a label selector"),
    (PODS + "?fieldSelector=spec.x%3Da", "GET", 400, "field label not supported: spec.x"),
    (PODS, "POST", 405, "its objects are files; edit /"),
    ("/api/v1/namespaces/default/configmaps/a", "PUT", 405, "its objects are files; edit /"),
    ("/apis/apps/v1/namespaces/default/daemonsets/a", "PATCH", 405, "its objects are files; edit /"),
])
def test_a_failure_is_returned_as_a_status_object(lone, path, method, status, said):
    found, answer = lone.ask(path, method=method)
    assert (found, answer["kind"], answer["code"]) == (status, "Status", status)
    assert said in answer["message"]


def test_the_file_of_a_pod_is_named_if_the_pod_cannot_be_written(lone):
    status, answer = lone.ask(f"{PODS}/{lone.pods['solo']}", method="PATCH", body={})
    assert status == 405
    assert answer["message"].endswith(f"edit {lone.node.manifests}/solo.yaml")


def test_a_pod_cannot_be_evicted_nor_the_node_cordoned(lone):
    status, answer = lone.ask(f"{PODS}/{lone.pods['solo']}/eviction", method="POST", body={"kind": "Eviction"})
    assert status == 405
    assert answer["message"].endswith(f"it would start again, because it is from a file; remove {lone.node.manifests}/solo.yaml")
    status, answer = lone.ask("/api/v1/nodes/node1", method="PATCH", body={"spec": {"unschedulable": True}})
    assert status == 405 and "it cannot be cordoned or drained" in answer["message"]
    resources = {item["name"]: item for item in lone.get("/api/v1")["resources"]}
    assert [resources["pods/eviction"][key] for key in ("group", "version", "kind")] == ["policy", "v1", "Eviction"]
    assert "policy" in {group["name"] for group in lone.get("/apis")["groups"]}


# Possible writes

def test_a_deleted_pod_starts_again(lone):
    before = lone.node.init("solo")
    status, answer = lone.ask(f"{PODS}/{lone.pods['solo']}", method="DELETE", body={"gracePeriodSeconds": 1})
    assert (status, answer["kind"], answer["status"]) == (200, "Status", "Success")
    wait(lambda: not world.is_alive(before), "the container is gone")
    lone.node.wait_running("solo")
    assert lone.node.init("solo") != before


def test_a_deletion_is_refused_if_its_options_are_wrong(lone):
    path = f"{PODS}/{lone.pods['solo']}"
    before = lone.node.init("solo")
    for options, status in (({"preconditions": {"uid": "another"}}, 409), ({"gracePeriodSeconds": -5}, 400), (b"{", 415),
                            ({"dryRun": ["All"]}, 200)):
        assert lone.ask(path, method="DELETE", body=options)[0] == status
    assert lone.ask(f"{PODS}/none", method="DELETE", body={})[0] == 404
    assert lone.ask(path, method="DELETE", body=b" " * 100000)[0] == 413
    assert lone.node.init("solo") == before


def test_options_in_protobuf_are_read(lone):
    before = lone.node.init("solo")
    options = b"\x2a\x03All"  # dryRun
    body = b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12" + bytes([len(options)]) + options
    assert lone.ask(f"{PODS}/{lone.pods['solo']}", method="DELETE", body=body)[0] == 200
    assert lone.ask(f"{PODS}/{lone.pods['solo']}", method="DELETE", body=body[:-1])[0] == 415
    assert lone.node.init("solo") == before


def test_an_ephemeral_container_is_added(lone):
    path = f"{PODS}/{lone.pods['web']}/ephemeralcontainers"
    container = {"name": "look", "image": specs.IMAGE, "command": ["sh", "-c", "echo seen"], "targetContainerName": "main"}
    status, pod = lone.ask(path + "?dryRun=All", method="PATCH", body={"spec": {"ephemeralContainers": [container]}})
    assert status == 200 and pod["metadata"]["name"] == lone.pods["web"]
    assert "ephemeralContainers" not in lone.node.pod("web")["spec"]
    status, pod = lone.ask(path, method="PATCH", body={"spec": {"ephemeralContainers": [container]}})
    assert status == 200
    assert [one["name"] for one in pod["spec"]["ephemeralContainers"]] == ["look"]
    wait(lambda: lone.node.status("web", "look").get("state", {}).get("terminated"), "it has ended")
    assert lone.node.logged("web", "look") == ["seen"]
    status, answer = lone.ask(path, method="PATCH", body={"spec": {"ephemeralContainers": [container]}})
    assert status == 422 and "one container must be added" in answer["message"]
    container = {"name": "Bad_Name", "image": specs.IMAGE}
    status, answer = lone.ask(path, method="PATCH", body={"spec": {"ephemeralContainers": [container]}})
    assert status == 400 and "Bad_Name" in answer["message"]


def test_a_rollout_is_restarted_and_undone(lone):
    lone.node.drop(MANY, "many.yaml")
    path, revisions = "/apis/apps/v1/namespaces/default/daemonsets/every", "/apis/apps/v1/controllerrevisions?labelSelector=app%3Devery"
    wait(lambda: lone.ask(path)[0] == 200, "the set exists")
    annotation = {"kubectl.kubernetes.io/restartedAt": "2026-01-02T03:04:05Z"}
    patch = {"spec": {"template": {"metadata": {"annotations": annotation}}}}
    assert lone.ask(path, method="PATCH", body=patch)[0] == 200
    assert sorted(item["revision"] for item in wait(lambda: two_of(lone.get(revisions)["items"]), "two revisions")) == [1, 2]
    first = next(item for item in lone.get(revisions)["items"] if item["revision"] == 1)
    assert first["data"]["spec"]["template"]["$patch"] == "replace"
    assert lone.ask(path, method="PATCH", body=first["data"])[0] == 200
    assert sorted(item["revision"] for item in lone.get(revisions)["items"]) == [2, 3]
    status, answer = lone.ask(path, method="PATCH", body={"spec": {"minReadySeconds": 5}})
    assert status == 405 and answer["message"].endswith("/many.yaml")
    assert lone.ask(path, method="DELETE", body={})[0] == 405
    lone.node.remove("many")


def two_of(items):
    return items if len(items) == 2 else None


# Permissions of oneself

def can_i(lone, **attributes):
    review = {"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}
    status, answer = lone.ask("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", method="POST", body=review)
    assert status == 201
    return answer["status"]


def test_verbs_that_the_node_serves_are_allowed(lone):
    assert can_i(lone, verb="list", resource="pods") == {"allowed": True}
    assert can_i(lone, verb="create", resource="pods", subresource="exec") == {"allowed": True}
    assert can_i(lone, verb="delete", resource="pods") == {"allowed": True}
    refused = can_i(lone, verb="create", group="apps", resource="daemonsets")
    assert refused["allowed"] is False and "files" in refused["reason"]
    status, rules = lone.ask("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", method="POST", body={})
    assert status == 201
    assert {"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]} in rules["status"]["resourceRules"]
    status, user = lone.ask("/apis/authentication.k8s.io/v1/selfsubjectreviews", method="POST", body={})
    assert (status, user["status"]["userInfo"]["username"]) == (201, "mainstay-admin")


# Metrics

METRICS = "/apis/metrics.k8s.io/v1beta1"


def test_metrics_are_those_of_running_containers(lone):
    lone.node.wait_running("web")
    pods = lone.get(f"{METRICS}/namespaces/default/pods/{lone.pods['web']}")
    assert (pods["kind"], pods["apiVersion"]) == ("PodMetrics", "metrics.k8s.io/v1beta1")
    usage = {container["name"]: container["usage"] for container in pods["containers"]}
    assert set(usage) >= {"main", "second"}
    assert usage["main"]["cpu"].endswith("n") and usage["main"]["memory"].endswith("Ki")
    node = lone.get(f"{METRICS}/nodes/node1")
    assert node["kind"] == "NodeMetrics" and int(node["usage"]["memory"].removesuffix("Ki")) > 0
    assert lone.get(f"{METRICS}/pods?labelSelector=app%3Dnone")["items"] == []
    assert [item["metadata"]["name"] for item in lone.get(f"{METRICS}/nodes?labelSelector=kubernetes.io%2Fos%3Dlinux")["items"]] \
        == ["node1"]
