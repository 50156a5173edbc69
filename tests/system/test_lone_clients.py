# SPDX-License-Identifier: Apache-2.0
"""Requests of clients other than a plain `kubectl get` to a node without an API server, sent as plain requests: the
requests of kubectl before and when it writes, describes and explains, and the first requests of dashboards."""

import base64
import json
import os

import node_api
import pytest
import specs
from lone_node import LoneNode
from world import wait

pytestmark = pytest.mark.xdist_group("lone_clients")

STOCK = """apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {one: two}
---
apiVersion: v1
kind: Secret
metadata:
  name: keys
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"password":"aGVsbG8="}}'}
stringData: {password: hello, empty: ""}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: plain}
handler: runc
"""
CORE = "/api/v1/namespaces/default"
PODS, MAPS, SECRETS = (f"{CORE}/{plural}" for plural in ("pods", "configmaps", "secrets"))
SETS = "/apis/apps/v1/namespaces/default/daemonsets"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


@pytest.fixture(scope="module", name="lone")
def fixture_lone(archive):
    found = LoneNode(archive)
    found.node.write(STOCK, "stock.yaml")
    found.node.drop(specs.daemonset("every"), "every.yaml")
    wait(lambda: "every" in found.names(SETS) and "words" in found.names(MAPS), "the objects exist")
    wait(lambda: len(found.names(PODS)) == 3, "the pod of the set exists")
    yield found
    found.finish()


def pod_of_set(lone):
    return next(name for name in lone.names(PODS) if name.startswith("every-"))


# Writes

WRITES = [
    ("PATCH", MAPS + "/words", {}, "stock.yaml"), ("PUT", MAPS + "/words", {}, "stock.yaml"), ("DELETE", MAPS + "/words", {}, "stock.yaml"),
    ("PATCH", SECRETS + "/keys", {}, "stock.yaml"), ("DELETE", SECRETS + "/keys", {}, "stock.yaml"),
    ("PATCH", CLASSES + "/high", {}, "stock.yaml"), ("DELETE", CLASSES + "/high", {}, "stock.yaml"),
    ("DELETE", "/apis/node.k8s.io/v1/runtimeclasses/plain", {}, "stock.yaml"),
    ("PATCH", SETS + "/every", {"spec": {"minReadySeconds": 5}}, "every.yaml"), ("DELETE", SETS + "/every", {}, "every.yaml"),
    ("GET", SETS + "/every/scale", None, "every.yaml"), ("PUT", SETS + "/every/scale", {}, "every.yaml"),
    ("PATCH", SETS + "/every/status", {}, "every.yaml"),
    # The object to be created is in the body, and may already exist.
    ("POST", MAPS, {"metadata": {"name": "words"}}, "stock.yaml"), ("POST", SECRETS, {"metadata": {"name": "keys"}}, "stock.yaml"),
    ("POST", CLASSES, {"metadata": {"name": "high"}}, "stock.yaml"), ("POST", SETS, {"metadata": {"name": "every"}}, "every.yaml"),
    ("POST", MAPS, b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x09\x0a\x07\x0a\x05words", "stock.yaml"),
    # A pod by the name in its manifest, which is not that of the pod.
    ("POST", PODS, {"metadata": {"name": "solo"}}, "solo.yaml"), ("PUT", PODS + "/solo", {}, "solo.yaml"),
    ("PATCH", PODS + "/solo", {}, "solo.yaml"), ("DELETE", PODS + "/solo", {}, "solo.yaml"),
    ("PATCH", PODS + "/solo-node1", {}, "solo.yaml"), ("PATCH", PODS + "/solo-node1/resize", {}, "solo.yaml"),
]


@pytest.mark.parametrize("method,path,body,file", WRITES)
def test_a_refusal_names_the_file_of_the_object(lone, method, path, body, file):
    status, answer = lone.ask(path, method=method, body=body)
    assert (status, answer["kind"], answer["reason"]) == (405, "Status", "MethodNotAllowed")
    assert answer["message"].endswith(f"edit {lone.node.manifests}/{file}")
    assert "its objects are files" in answer["message"]


def test_a_refusal_names_the_file_of_the_daemonset_of_a_pod_and_of_a_revision(lone):
    for path in f"{PODS}/{pod_of_set(lone)}", f"{REVISIONS}/{lone.names(REVISIONS)[0]}":
        status, answer = lone.ask(path, method="PATCH", body={})
        assert status == 405 and answer["message"].endswith(f"edit {lone.node.manifests}/every.yaml")


def test_a_refusal_names_the_file_for_a_new_object(lone):
    for path, kind in (PODS, "pod"), (MAPS, "configmap"), (SETS, "daemonset"):
        status, answer = lone.ask(path, method="POST", body={"metadata": {"name": "fresh"}})
        assert status == 405
        assert answer["message"].endswith(f"edit {lone.node.manifests}: save the manifest of {kind} fresh there")


def test_a_write_with_a_body_of_any_size_is_refused(lone):
    body = json.dumps({"metadata": {"name": "fresh"}, "data": {"a": "b" * 3000000}}).encode()
    for method, path, file in ("POST", MAPS, ""), ("PATCH", MAPS + "/words", "/stock.yaml"):
        status, answer = lone.ask(path, method=method, body=body)
        assert status == 405 and f"edit {lone.node.manifests}{file}" in answer["message"]


@pytest.mark.parametrize("path,said", [
    ("/api/v1/namespaces/default", "a namespace exists while a pod is in it"),
    (CLASSES + "/system-node-critical", "this PriorityClass is built in"),
    ("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node1", "the Lease is that of the node itself"),
])
def test_a_refusal_explains_why_an_object_is_in_no_file(lone, path, said):
    for method in "PATCH", "DELETE":
        status, answer = lone.ask(path, method=method, body={})
        assert status == 405 and said in answer["message"]


@pytest.mark.parametrize("path", [PODS + "/none", MAPS + "/none", SETS + "/none", CLASSES + "/none"])
def test_deletion_of_a_missing_object_is_not_found(lone, path):
    status, answer = lone.ask(path, method="DELETE", body={})
    assert (status, answer["reason"]) == (404, "NotFound")


def test_not_found_error_names_the_pod_of_the_manifest(lone):
    status, answer = lone.ask(PODS + "/solo")
    assert (status, answer["message"]) == (404, 'pods "solo" not found; the pod of this manifest is solo-node1')


def test_a_write_to_the_node_is_refused_with_its_configuration_file(lone):
    for body in {"metadata": {"labels": {"a": "b"}}}, {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}:
        status, answer = lone.ask("/api/v1/nodes/node1", method="PATCH", body=body)
        assert status == 405 and answer["message"].endswith(lone.node.config)


def test_the_node_cannot_be_deleted(lone):
    status, answer = lone.ask("/api/v1/nodes/node1", method="DELETE")
    assert status == 405
    assert answer["message"].endswith(f"it is this machine, and cannot be deleted; to stop pods, remove their files from {lone.node.manifests}")


@pytest.mark.parametrize("path", ["/apis/apps/v1/namespaces/default/deployments", "/apis/apps/v1/namespaces/default/replicasets",
                                  "/apis/apps/v1/namespaces/default/statefulsets", "/api/v1/namespaces/default/services",
                                  "/apis/batch/v1/namespaces/default/jobs", "/apis/batch/v1/namespaces/default/cronjobs"])
def test_unsupported_kinds_are_empty_lists_with_a_warning(lone, path):
    assert lone.get(path)["items"] == []
    assert lone.get(path, headers=TABLE)["rows"] == []
    status, answer = lone.ask(path, method="POST", body={"metadata": {"name": "a"}})
    assert status == 405 and "nothing here" in answer["message"]


# Documents by which kubectl validates and explains

def test_openapi_v2_documents_are_empty(lone):
    protobuf = {"Accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}
    assert lone.api.request("/openapi/v2", certificate=lone.admin, headers=protobuf) == (200, "")
    assert lone.get("/openapi/v2")["definitions"] == {}


def test_openapi_v3_documents_have_the_fields_of_manifests(lone):
    paths = lone.get("/openapi/v3")["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/scheduling.k8s.io/v1"} <= set(paths)
    document = lone.get(paths["api/v1"]["serverRelativeURL"])
    schemas = document["components"]["schemas"]
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    assert document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["get"]["x-kubernetes-group-version-kind"] == kind
    pod = next(schema for schema in schemas.values() if kind in schema.get("x-kubernetes-group-version-kind", []))
    spec = schemas[pod["properties"]["spec"]["$ref"].rsplit("/", 1)[1]]
    assert spec["required"] == ["containers"]
    container = schemas[spec["properties"]["containers"]["items"]["$ref"].rsplit("/", 1)[1]]
    assert container["properties"]["imagePullPolicy"]["enum"] == ["Always", "IfNotPresent", "Never"]
    assert lone.ask("/openapi/v3/apis/none/v1")[0] == 404


@pytest.mark.parametrize("version,kind,description", [
    ("api/v1", "Node", "Made by this node, and in no manifest."), ("apis/apps/v1", "Deployment", "This node runs no object of this kind."),
    ("api/v1", "Service", "This node runs no object of this kind.")])
def test_openapi_documents_state_whether_the_node_has_other_kinds(lone, version, kind, description):
    schemas = lone.get(f"/openapi/v3/{version}")["components"]["schemas"].values()
    assert [schema["description"] for schema in schemas
            if any(found["kind"] == kind for found in schema.get("x-kubernetes-group-version-kind", []))] == [description]


# Objects

def test_hidden_secret_values_are_base64_of_the_same_length(lone):
    secret = lone.get(SECRETS + "/keys")
    assert {key: base64.b64decode(value, validate=True) for key, value in secret["data"].items()} == {"password": b"*****", "empty": b""}
    assert secret["metadata"]["annotations"] == {"mainstay.dev/source": "file stock.yaml"}
    assert "aGVsbG8" not in json.dumps(lone.get(SECRETS))


def test_the_lease_of_the_node_is_renewed_in_each_response(lone):
    lease = lone.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node1")
    assert lease["spec"]["holderIdentity"] == "node1" and len(lease["spec"]["renewTime"]) == len("2026-01-02T03:04:05.123456Z")
    later = lone.get("/apis/coordination.k8s.io/v1/leases")["items"][0]
    assert later["spec"]["renewTime"] > lease["spec"]["renewTime"]


def test_every_object_has_a_time_of_creation_and_a_uid(lone):
    created = lone.get("/api/v1/nodes/node1")["metadata"]["creationTimestamp"]
    for path in "/api/v1/namespaces", MAPS, SECRETS, CLASSES, "/apis/node.k8s.io/v1/runtimeclasses", SETS:
        for item in lone.get(path)["items"]:
            assert item["metadata"]["uid"] and item["metadata"]["creationTimestamp"], item
    assert {item["metadata"]["creationTimestamp"] for item in lone.get("/api/v1/namespaces")["items"]} == {created}


def test_the_built_in_priority_classes_exist(lone):
    values = {item["metadata"]["name"]: item["value"] for item in lone.get(CLASSES)["items"]}
    assert values == {"high": 1000, "system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
    assert {item["preemptionPolicy"] for item in lone.get(CLASSES)["items"]} == {"PreemptLowerPriority"}
    response = lone.api.open(f"{CLASSES}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true", certificate=lone.admin)
    events = [json.loads(response.readline()) for _ in range(4)]
    assert {event["object"]["metadata"]["name"] for event in events[:3]} == set(values)
    assert events[3]["type"] == "BOOKMARK"


def test_subresources_that_return_the_object_can_be_read(lone):
    for subresource in "status", "resize", "ephemeralcontainers":
        assert lone.get(f"{PODS}/solo-node1/{subresource}")["kind"] == "Pod"
    assert lone.get(SETS + "/every/status")["kind"] == "DaemonSet"


# Health, the root, and the node's proxy

@pytest.mark.parametrize("name", ["healthz", "livez", "readyz"])
def test_health_endpoints_report_ok(lone, name):
    for path in name, f"{name}/ping":
        assert lone.api.request(f"/{path}", certificate=lone.admin) == (200, "ok")
    status, text = lone.api.request(f"/{name}?verbose", certificate=lone.admin)
    assert status == 200 and text.startswith("[+]ping ok\n") and text.endswith(f"{name} check passed\n")
    assert lone.api.request(f"/{name}/etcd", certificate=lone.admin)[0] == 404
    assert lone.api.request(f"/{name}")[0] == 401


def test_the_root_path_lists_the_available_paths(lone):
    assert {"/api/v1", "/apis/apps/v1", "/readyz"} <= set(lone.get("/")["paths"])


@pytest.mark.parametrize("node", ["node1", "node1:10250", "https:node1:10250"])
def test_the_proxy_of_the_node_serves_the_kubelet_api(lone, node):
    proxy = f"/api/v1/nodes/{node}/proxy"
    assert lone.api.request(proxy + "/healthz", certificate=lone.admin) == (200, "ok")
    assert lone.get(proxy + "/stats/summary")["node"]["nodeName"] == "node1"
    assert lone.get(proxy + "/configz")["kubeletconfig"]
    assert len(lone.get(proxy + "/pods")["items"]) == 3
    assert lone.api.request(proxy + "/api/v1/pods", certificate=lone.admin)[0] == 404
    assert lone.api.request(proxy + "/pods")[0] == 401


@pytest.mark.parametrize("path", ["/api/v1/nodes/node2/proxy/pods", "/api/v1/nodes/node11/proxy/pods", "/api/v1/nodes/node1/proxypods"])
def test_other_paths_are_not_forwarded_to_the_proxy_of_the_node(lone, path):
    status, answer = lone.ask(path)
    assert (status, answer["kind"]) == (404, "Status")


# Ephemeral containers

def test_the_first_client_of_an_ephemeral_container_gets_the_output_from_before(lone):
    container = {"name": "early", "image": specs.IMAGE, "command": ["sh", "-c", "echo early; " + specs.IDLE], "stdin": True}
    status, _ = lone.ask(f"{PODS}/solo-node1/ephemeralcontainers", method="PATCH", body={"spec": {"ephemeralContainers": [container]}})
    assert status == 200
    wait(lambda: lone.node.logged("solo", "early") == ["early"], "it has printed all")
    path = f"{PODS}/solo-node1/attach?container=early&stdin=true&stdout=true&stderr=true"
    stream, _ = lone.api.upgrade(path, node_api.spdy_headers("v4.channel.k8s.io"), method="POST", certificate=lone.admin)
    session = node_api.SpdySession(stream, ("stdin", "stdout", "stderr"))
    session.client.until(lambda: session.text("stdout") == "early\n")
    stream.close()


# The first requests of dashboards, as their sources make them

DISCOVERY = {"Accept": "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"}
REVIEWS = "/apis/authorization.k8s.io/v1"


def access_review(verb, resource, group="", namespace=""):
    return {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
            "spec": {"resourceAttributes": {"namespace": namespace, "verb": verb, "group": group, "resource": resource}}}


K9S = [("GET", "/version?timeout=32s", None, 200), ("GET", "/api?timeout=32s", None, 200), ("GET", "/apis?timeout=32s", None, 200),
       ("GET", "/api/v1?timeout=32s", None, 200), ("GET", "/apis/apps/v1?timeout=32s", None, 200),
       ("GET", "/apis/metrics.k8s.io/v1beta1?timeout=32s", None, 200),
       *[("POST", REVIEWS + "/selfsubjectaccessreviews", access_review(verb, resource, group), 201) for verb in ("list", "watch", "get")
         for resource, group in (("namespaces", ""), ("nodes", ""), ("pods", ""), ("nodes", "metrics.k8s.io"),
                                 ("customresourcedefinitions", "apiextensions.k8s.io"))],
       ("GET", "/api/v1/namespaces", None, 200), ("GET", "/api/v1/nodes", None, 200),
       ("GET", "/api/v1/pods?limit=500&resourceVersion=0", None, 200), ("GET", "/api/v1/namespaces?limit=500&resourceVersion=0", None, 200),
       ("GET", "/apis/metrics.k8s.io/v1beta1/nodes", None, 200), ("GET", "/apis/metrics.k8s.io/v1beta1/pods", None, 200),
       ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit=500&resourceVersion=0", None, 404),
       ("GET", "/apis/policy/v1/poddisruptionbudgets", None, 200), ("GET", "/api/v1/services?limit=500&resourceVersion=0", None, 200)]

HEADLAMP = [("GET", "/version", None, 200), ("GET", "/healthz", None, 200),
            ("POST", REVIEWS + "/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}, 201),
            ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
             {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, 201),
            *[("POST", REVIEWS + "/selfsubjectaccessreviews", access_review(verb, resource), 201)
              for verb in ("create", "list", "get", "patch", "delete") for resource in ("pods", "namespaces", "secrets", "services")],
            *[("GET", f"{path}?limit=2000", None, 200) for path in (
                "/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces", "/api/v1/events", "/api/v1/configmaps", "/api/v1/secrets",
                "/api/v1/services", "/apis/apps/v1/daemonsets", "/apis/apps/v1/deployments", "/apis/apps/v1/replicasets",
                "/apis/apps/v1/statefulsets", "/apis/coordination.k8s.io/v1/leases",
                "/apis/batch/v1/jobs", "/apis/batch/v1/cronjobs",
                "/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/node.k8s.io/v1/runtimeclasses",
                "/apis/policy/v1/poddisruptionbudgets")],
            ("GET", "/apis/metrics.k8s.io/v1beta1/nodes", None, 200), ("GET", "/apis/metrics.k8s.io/v1beta1/pods", None, 200),
            *[("GET", path, None, 404) for path in (
                "/api/v1/serviceaccounts", "/api/v1/persistentvolumeclaims", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                "/apis/storage.k8s.io/v1/storageclasses", "/apis/networking.k8s.io/v1/ingresses", "/apis/rbac.authorization.k8s.io/v1/roles",
                "/apis/gateway.networking.k8s.io/v1/gateways", "/apis/autoscaling/v2/horizontalpodautoscalers")]]


@pytest.mark.parametrize("method,path,body,status", K9S + HEADLAMP, ids=str)
def test_the_first_requests_of_dashboards_are_answered(lone, method, path, body, status):
    headers = {"Content-Type": "application/json"} if body else {}
    if path == "/healthz":
        assert lone.api.request(path, certificate=lone.admin) == (200, "ok")
        return
    found, answer = lone.ask(path, method=method, body=body, headers=headers)
    assert found == status
    if status == 404:
        assert (answer["kind"], answer["status"], answer["reason"], answer["code"]) == ("Status", "Failure", "NotFound", 404)


def test_the_parameters_of_an_accepted_type_may_be_in_any_order(lone):
    for path in "/api", "/apis":
        document = lone.get(path, headers=DISCOVERY)
        assert document["kind"] == "APIGroupDiscoveryList" and document["items"][0]["versions"][0]["resources"]
    assert lone.get("/apis", headers={"Accept": DISCOVERY["Accept"].replace("v2", "v2beta1")})["kind"] == "APIGroupList"
    assert lone.get(PODS, headers={"Accept": "application/json;g=meta.k8s.io;v=v1;as=Table"})["kind"] == "Table"


def test_each_list_can_be_watched(lone):
    for path in "/api/v1/pods", "/api/v1/namespaces", "/api/v1/nodes", "/api/v1/services", "/apis/apps/v1/deployments", \
            "/apis/scheduling.k8s.io/v1/priorityclasses":
        found = lone.get(path)["metadata"]["resourceVersion"]
        response = lone.api.open(f"{path}?watch=1&resourceVersion={found}&allowWatchBookmarks=true&timeoutSeconds=1", certificate=lone.admin)
        assert response.status == 200, path
        assert [json.loads(line)["type"] for line in response.read().splitlines()] == ["BOOKMARK"], path


# Watches over a WebSocket, as dashboards use them

def watch_over_websocket(lone, path, *protocols):
    """Starts a watch; returns the client and the head of the reply."""
    stream, head = lone.api.upgrade(path, node_api.websocket_headers(*protocols), certificate=lone.admin)
    return node_api.WebSocketClient(stream), head


def next_event(client):
    before = len(client.messages)
    while len(client.messages) == before and client.close_code is None:
        client.step()
    return json.loads(client.messages[-1]) if len(client.messages) > before else None


@pytest.mark.parametrize("offered,chosen", [
    ([], None), (["base64.binary.k8s.io"], "base64.binary.k8s.io"),
    (["base64url.bearer.authorization.k8s.io.AAAA", "base64.binary.k8s.io"], "base64.binary.k8s.io")])
def test_each_event_of_a_watch_is_a_message_of_the_websocket(lone, offered, chosen):
    client, head = watch_over_websocket(lone, f"{PODS}?watch=true", *offered)
    assert f"Sec-WebSocket-Protocol: {chosen}" in head if chosen else "Sec-WebSocket-Protocol" not in head
    names = {next_event(client)["object"]["metadata"]["name"] for _ in lone.names(PODS)}
    assert names == set(lone.names(PODS))
    client.send(node_api.TEXT, b"ignored" * 1000)
    client.send(node_api.PING, b"there?")
    lone.node.launch(specs.pod("fresh", specs.container(script=specs.IDLE)))
    kinds = set()
    while "ADDED" not in kinds:
        event = next_event(client)
        kinds |= {event["type"]} if event["object"]["metadata"]["name"] == "fresh-node1" else set()
    assert client.pongs == [b"there?"]
    lone.node.remove("fresh")
    while "DELETED" not in kinds:
        event = next_event(client)
        kinds |= {event["type"]} if event["object"]["metadata"]["name"] == "fresh-node1" else set()
    client.send(node_api.CLOSE, b"\x03\xe8")
    client.until_closed()
    client.stream.close()
    lone.node.wait_gone("fresh")


@pytest.mark.parametrize("path", [MAPS, SECRETS, SETS, CLASSES, "/api/v1/nodes", "/api/v1/events", "/api/v1/namespaces",
                                  "/apis/apps/v1/deployments", f"{CORE}/services"])
def test_every_resource_is_watched_over_a_websocket_and_the_end_is_a_close_frame(lone, path):
    found = [item["metadata"]["name"] for item in lone.get(path)["items"]]
    client, _ = watch_over_websocket(lone, f"{path}?watch=1&timeoutSeconds=1")
    client.until_closed()
    events = [json.loads(message) for message in client.messages]
    assert {event["object"]["metadata"]["name"] for event in events if event["type"] == "ADDED"} >= set(found)
    assert client.close_code == 1000
    client.stream.close()


def test_a_websocket_client_that_does_not_read_delays_no_other_client(lone):
    client, _ = watch_over_websocket(lone, f"{PODS}?watch=true")
    lone.node.launch(specs.pod("seen", specs.container(script=specs.IDLE)))
    assert "seen-node1" in lone.names(PODS)
    client.stream.close()
    lone.node.remove("seen")
    lone.node.wait_gone("seen")


@pytest.mark.parametrize("query,headers,status", [
    ("watch=1", ["Upgrade: SPDY/3.1"], 400), ("watch=1&resourceVersion=x", node_api.websocket_headers(), 400),
    ("watch=1", ["Upgrade: websocket", "Sec-WebSocket-Version: 13"], 400)])
def test_watch_refuses_an_upgrade_without_a_valid_handshake(lone, query, headers, status):
    assert lone.api.upgrade(f"{PODS}?{query}", headers, certificate=lone.admin)[0] == status
