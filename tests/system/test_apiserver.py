# SPDX-License-Identifier: Apache-2.0
"""The test API server compared with the observed responses of a Kubernetes 1.36 server, so that tests of the agent
against it are meaningful. The facts are the requests of a node: its registration, its lease, a mirror pod, a
DaemonSet's pod."""

import http.client
import json
import ssl

import pytest
import world
from api_verbs import STRATEGIC

NODE, IMAGE = "node1", "docker.io/library/busybox:1.36"
POD_PATH = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CONDITIONS = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
ANY = object()


class Client:
    """Sends requests with the credentials of one user."""

    def __init__(self, api, token=None):
        self.api, self.token = api, token

    def send(self, method, path, body=None, content_type="application/json", **headers):
        context = ssl.create_default_context(cafile=self.api.authority.cert)
        connection = http.client.HTTPSConnection("127.0.0.1", self.api.port, context=context, timeout=world.DEADLINE)
        headers = {"Content-Type": content_type, **headers, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection.getresponse()

    def ask(self, method, path, body=None, content_type="application/json"):
        answer = self.send(method, path, body, content_type)
        return answer.status, json.loads(answer.read())

    def patch(self, path, body):
        return self.ask("PATCH", path, body, STRATEGIC)

    def watch(self, path):
        """Events until the server ends it."""
        answer = self.send("GET", path)
        assert answer.status == 200, answer.read()
        return [json.loads(line) for line in answer.read().splitlines()]


@pytest.fixture(name="node")
def fixture_node(api):
    api.node_token("node", NODE)
    return Client(api, "node")


@pytest.fixture(name="admin")
def fixture_admin(api):
    return Client(api, "admin")


def node_object():
    conditions = [{"type": kind, "status": "False", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                   "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R", "message": "m"} for kind in CONDITIONS]
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}},
            "spec": {}, "status": {"capacity": {"cpu": "2"}, "conditions": conditions,
                                   "addresses": [{"type": "InternalIP", "address": "192.0.2.10"}]}}


def mirror(uid, **metadata):
    owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": uid, "controller": True}
    return {"kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "web-node1", "namespace": "default", "uid": "786c37256f1a6244e3eda6beaf03afe5",
                         "annotations": {"kubernetes.io/config.mirror": "786c", "kubernetes.io/config.source": "file"},
                         "ownerReferences": [owner], **metadata},
            "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": IMAGE, "resources": {"requests": {"cpu": "50m"}}}],
                     "terminationGracePeriodSeconds": 2}, "status": {"phase": "Pending"}}


def register(node):
    code, obj = node.ask("POST", "/api/v1/nodes", node_object())
    assert code == 201
    return obj


def without(obj, *keys):
    return {key: value for key, value in obj.items() if key not in keys}


FAILURES = [
    ("node", "GET", f"{LEASES}/node1", None, 404, "NotFound", 'leases.coordination.k8s.io "node1" not found',
     {"name": "node1", "group": "coordination.k8s.io", "kind": "leases"}),
    ("node", "GET", "/api/v1/nodes/node1", None, 404, "NotFound", 'nodes "node1" not found',
     {"name": "node1", "kind": "nodes"}),
    ("node", "GET", f"{POD_PATH}/nope", None, 403, "Forbidden",
     'pods "nope" is forbidden: User "system:node:node1" cannot get resource "pods" in API group "" in the namespace '
     '"default": no relationship found between node \'node1\' and this object', {"name": "nope", "kind": "pods"}),
    ("node", "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {}, 403, "Forbidden",
     'serviceaccounts "default" is forbidden: User "system:node:node1" cannot create resource "serviceaccounts/token" in '
     'API group "" in the namespace "default": no relationship found between node \'node1\' and this object',
     {"name": "default", "kind": "serviceaccounts"}),
    ("node", "GET", "/apis/apps/v1/daemonsets", None, 403, "Forbidden",
     'daemonsets.apps is forbidden: User "system:node:node1" cannot list resource "daemonsets" in API group "apps" at the '
     'cluster scope', {"group": "apps", "kind": "daemonsets"}),
    ("node", "POST", POD_PATH, {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
     403, "Forbidden", 'pods "x" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "node1" can '
     'only create mirror pods', {"name": "x", "kind": "pods"}),
    (None, "GET", "/api/v1/pods", None, 403, "Forbidden",
     'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the cluster scope',
     {"kind": "pods"}),
    ("wrong", "GET", "/api/v1/pods", None, 401, "Unauthorized", "Unauthorized", None),
    ("admin", "GET", "/api/v1/pods?resourceVersion=1&resourceVersionMatch=Exact", None, 410, "Expired",
     "The resourceVersion for the provided list is too old.", None),
]


@pytest.mark.parametrize("user, method, path, body, code, reason, message, details", FAILURES)
def test_a_failure_is_returned_as_a_status(api, node, user, method, path, body, code, reason, message, details):
    got, status = Client(api, user).ask(method, path, body)
    assert got == code
    assert status == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                      "reason": reason, **({"details": details} if details else {}), "code": code}


def test_an_invalid_pod_is_refused_with_its_causes(admin):
    spec = {"containers": [{"name": "C"}]}
    code, status = admin.ask("POST", POD_PATH, {"metadata": {"name": "x"}, "spec": spec})
    assert (code, status["reason"]) == (422, "Invalid")
    assert status["message"].startswith('Pod "x" is invalid: [spec.containers[0].name: Invalid value: "C": a lowercase RFC ')
    assert status["message"].endswith(", spec.containers[0].image: Required value]")
    causes = status["details"].pop("causes")
    assert status["details"] == {"name": "x", "kind": "Pod"}
    assert [(cause["reason"], cause["field"]) for cause in causes] == [
        ("FieldValueInvalid", "spec.containers[0].name"), ("FieldValueRequired", "spec.containers[0].image")]


def test_version_and_api_groups_are_served_without_an_object_name(api):
    for path, keys in (("/version", {"major", "minor", "gitVersion", "platform"}), ("/api", {"kind", "versions",
                       "serverAddressByClientCIDRs"}), ("/apis", {"kind", "apiVersion", "groups"})):
        code, obj = Client(api, "admin").ask("GET", path)
        assert code == 200 and set(obj) >= keys
    assert Client(api).send("GET", "/readyz").read() == b"ok"


def test_a_node_that_registers_gets_an_identity_and_a_taint(node):
    sent = node_object()
    obj = register(node)
    assert set(obj["metadata"]) == {"name", "labels", "uid", "resourceVersion", "creationTimestamp"}
    assert obj["spec"] == {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
    assert obj["status"] == sent["status"]
    code, status = node.ask("POST", "/api/v1/nodes", sent)
    assert (code, status["reason"], status["message"]) == (409, "AlreadyExists", 'nodes "node1" already exists')


def test_a_patch_of_conditions_changes_the_fields_that_it_names(node):
    before = register(node)
    patch = {"status": {"$setElementOrder/conditions": [{"type": kind} for kind in CONDITIONS], "conditions": [
        {"type": "PIDPressure", "lastHeartbeatTime": "2026-01-01T00:00:07Z"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:07Z"}]}}
    code, after = node.patch("/api/v1/nodes/node1/status", patch)
    assert code == 200
    got = after["status"]["conditions"]
    assert [condition["type"] for condition in got] == list(CONDITIONS)
    assert got[:2] == before["status"]["conditions"][:2]
    assert got[2] == {**before["status"]["conditions"][2], "lastHeartbeatTime": "2026-01-01T00:00:07Z"}
    assert got[3]["status"] == "True" and got[3]["lastHeartbeatTime"] == "2026-01-01T00:00:00Z"
    assert after["status"]["capacity"] == before["status"]["capacity"]


def test_a_patch_that_changes_nothing_leaves_the_resource_version(node):
    before = register(node)
    code, after = node.patch("/api/v1/nodes/node1/status", {})
    assert code == 200 and after == before


def test_a_lease_is_updated_only_from_its_last_version(node):
    lease = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": NODE},
             "spec": {"holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000001Z"}}
    code, first = node.ask("POST", f"{LEASES}?timeout=10s", lease)
    assert code == 201 and first["metadata"]["namespace"] == "kube-node-lease"
    newer = {**first, "spec": {**first["spec"], "renewTime": "2026-01-01T00:00:10.000001Z"}}
    code, second = node.ask("PUT", f"{LEASES}/node1", newer)
    assert code == 200 and int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    code, status = node.ask("PUT", f"{LEASES}/node1", {**newer, "spec": {**newer["spec"], "leaseDurationSeconds": 41}})
    assert code == 409
    assert without(status, "kind", "apiVersion", "metadata", "status") == {
        "message": 'Operation cannot be fulfilled on leases.coordination.k8s.io "node1": the object has been modified; '
                   'please apply your changes to the latest version and try again',
        "reason": "Conflict", "details": {"name": "node1", "group": "coordination.k8s.io", "kind": "leases"}, "code": 409}


def test_a_mirror_pod_is_created_deleted_and_recreated(node, admin):
    uid = register(node)["metadata"]["uid"]
    code, pod = node.ask("POST", POD_PATH, mirror(uid))
    assert code == 201
    assert pod["metadata"]["uid"] != "786c37256f1a6244e3eda6beaf03afe5", "the server assigns the UID"
    assert pod["metadata"]["generation"] == 1
    assert pod["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    assert pod["spec"]["priority"] == 0 and pod["spec"]["preemptionPolicy"] == "PreemptLowerPriority"
    assert "serviceAccountName" not in pod["spec"] and "volumes" not in pod["spec"]
    # If a user deletes the pod, it is only marked, and removed when the node deletes it.
    code, marked = admin.ask("DELETE", f"{POD_PATH}/web-node1", {"propagationPolicy": "Background"})
    assert code == 200 and marked["metadata"]["deletionGracePeriodSeconds"] == 2
    assert marked["metadata"]["generation"] == 2 and marked["metadata"]["deletionTimestamp"]
    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
    code, gone = node.ask("DELETE", f"{POD_PATH}/web-node1", options)
    assert code == 200 and gone["kind"] == "Pod" and gone["metadata"]["deletionGracePeriodSeconds"] == 0
    code, again = node.ask("POST", POD_PATH, mirror(uid))
    assert code == 201 and again["metadata"]["uid"] != pod["metadata"]["uid"]
    code, status = node.ask("DELETE", f"{POD_PATH}/web-node1", options)
    assert (code, status["reason"]) == (409, "Conflict"), "the UID has changed"


MIRROR_REFUSED = [
    ({"ownerReferences": []}, "single owner reference"),
    ({"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "x", "controller": True}]}, "UID mismatch"),
    ({"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "x"}]}, "owner reference set to"),
]


@pytest.mark.parametrize("metadata, why", MIRROR_REFUSED)
def test_a_mirror_pod_belongs_to_its_node_alone(node, metadata, why):
    pod = mirror(register(node)["metadata"]["uid"], **metadata)
    code, status = node.ask("POST", POD_PATH, pod)
    assert code == 403 and why in status["message"]


@pytest.mark.parametrize("spec, why", [
    ({"serviceAccountName": "default"}, "service account"),
    ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "reference secrets"),
    ({"volumes": [{"name": "v", "configMap": {"name": "s"}}]}, "reference configmaps"),
    ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "s"}}]}, "persistentvolumeclaims"),
    ({"nodeName": "another"}, "spec.nodeName set to itself")])
def test_a_mirror_pod_with_references_is_refused(node, spec, why):
    pod = mirror(register(node)["metadata"]["uid"])
    code, status = node.ask("POST", POD_PATH, {**pod, "spec": {**pod["spec"], **spec}})
    assert code == 403 and why in status["message"]


def test_a_watch_shows_both_steps_of_the_deletion_of_a_bound_pod(api, node):
    start = api.store.version
    pod = api.pod("logd", NODE, IMAGE, terminationGracePeriodSeconds=5)
    assert api.delete("pods", "default", "logd")["metadata"]["generation"] == 2
    path = f"{POD_PATH}/logd"
    uid = pod["metadata"]["uid"]
    assert node.patch(f"{path}/status", {"metadata": {"uid": uid}, "status": {"phase": "Succeeded"}})[0] == 200
    code, _ = node.ask("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
    assert code == 200
    events = node.watch(f"/api/v1/pods?fieldSelector=spec.nodeName%3Dnode1&watch=true&allowWatchBookmarks=true&"
                        f"timeoutSeconds=1&resourceVersion={start}")
    rows = [(event["type"], event["object"]["metadata"].get("deletionGracePeriodSeconds"),
             event["object"]["status"].get("phase")) for event in events]
    assert rows == [("ADDED", None, "Pending"), ("MODIFIED", 5, "Pending"), ("MODIFIED", 5, "Succeeded"),
                    ("MODIFIED", 0, "Succeeded"), ("DELETED", 0, "Succeeded"), ("BOOKMARK", None, None)]
    assert all((event["object"]["kind"], event["object"]["apiVersion"]) == ("Pod", "v1") for event in events)
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions) and versions[-1] == versions[-2]
    assert events[-1]["object"] == {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": str(versions[-1])},
                                    "spec": {"containers": None}, "status": {}}


def test_a_list_has_items_without_kind_and_version(api, node):
    api.pod("logd", NODE, IMAGE)
    api.pod("other", "node2", IMAGE)
    code, found = node.ask("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode1&limit=500&resourceVersion=0")
    assert code == 200 and (found["kind"], found["apiVersion"]) == ("PodList", "v1")
    assert found["metadata"] == {"resourceVersion": str(api.store.version)}
    (item,) = found["items"]
    assert "kind" not in item and "apiVersion" not in item and item["metadata"]["name"] == "logd"


def test_all_chunks_of_a_list_have_one_resource_version(api, admin):
    for i in range(5):
        api.pod(f"pod-{i}", NODE, IMAGE)
    _, first = admin.ask("GET", "/api/v1/pods?limit=2")
    assert len(first["items"]) == 2 and first["metadata"]["remainingItemCount"] == 3
    api.pod("pod-9", NODE, IMAGE)
    names = [item["metadata"]["name"] for item in first["items"]]
    token = first["metadata"]["continue"]
    while token:
        _, more = admin.ask("GET", f"/api/v1/pods?limit=2&continue={token}")
        assert more["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        names += [item["metadata"]["name"] for item in more["items"]]
        token = more["metadata"].get("continue")
    assert names == [f"pod-{i}" for i in range(5)]
    api.store.compact()
    code, status = admin.ask("GET", f"/api/v1/pods?limit=2&continue={first['metadata']['continue']}")
    assert (code, status["reason"]) == (410, "Expired")


def test_a_watch_from_a_compacted_version_gets_an_error_event(api, admin):
    api.store.compact()
    (event,) = admin.watch("/api/v1/pods?watch=true&resourceVersion=1")
    assert event == {"type": "ERROR", "object": {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": f"too old resource version: 1 ({api.store.oldest})", "reason": "Expired", "code": 410}}


def test_a_watch_with_initial_events_gets_an_error_event(admin):
    (event,) = admin.watch("/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
    assert event["type"] == "ERROR" and event["object"]["code"] == 500
    assert event["object"]["reason"] == "InternalError" and "RequestWatchProgress is disabled" in event["object"]["message"]


def test_a_watch_with_a_field_selector_adds_objects_that_start_to_match(api, node):
    start = api.store.version
    api.create("pods", {"metadata": {"name": "late"}, "spec": {"containers": [{"name": "c", "image": IMAGE}]}})
    code, status = Client(api, "admin").ask("POST", f"{POD_PATH}/late/binding", {"target": {"kind": "Node", "name": NODE}})
    assert code == 201 and status == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    events = node.watch(f"/api/v1/pods?fieldSelector=spec.nodeName%3Dnode1&watch=true&timeoutSeconds=1&resourceVersion={start}")
    assert [(event["type"], event["object"]["spec"]["nodeName"]) for event in events] == [("ADDED", NODE)]


def test_the_status_of_another_uid_is_a_conflict(api, node):
    api.pod("logd", NODE, IMAGE)
    code, status = node.patch(f"{POD_PATH}/logd/status", {"metadata": {"uid": "another"}, "status": {"phase": "Running"}})
    assert (code, status["reason"]) == (409, "Conflict") and "UID" in status["message"]
    assert api.get("pods", "default", "logd")["status"]["phase"] == "Pending"


def test_a_pod_status_is_merged_like_kubelet_patches_require(api, node):
    api.pod("logd", NODE, IMAGE)
    path = f"{POD_PATH}/logd/status"
    first = {"conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "m"},
                            {"type": "PodScheduled", "status": "True"}],
             "containerStatuses": [{"name": "c", "ready": False, "state": {"waiting": {"reason": "ContainerCreating"}}}],
             "podIPs": [{"ip": "10.0.0.1"}], "resources": {"limits": {"memory": "1"}, "requests": {"cpu": "1", "memory": "1"}}}
    assert node.patch(path, {"status": first})[0] == 200
    patch = {"$setElementOrder/conditions": [{"type": "PodScheduled"}, {"type": "Ready"}],
             "conditions": [{"type": "Ready", "status": "True", "reason": None, "message": None}],
             "containerStatuses": [{"name": "c", "ready": True, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
             "resources": {"limits": None, "requests": {"cpu": None}}, "phase": "Running"}
    _, pod = node.patch(path, {"status": patch})
    status = pod["status"]
    assert status["conditions"] == [{"type": "PodScheduled", "status": "True", "lastProbeTime": None},
                                    {"type": "Ready", "status": "True", "lastProbeTime": None}]
    assert status["containerStatuses"] == patch["containerStatuses"], "the list is replaced as a whole"
    assert status["resources"] == {"requests": {"memory": "1"}}
    assert status["podIPs"] == [{"ip": "10.0.0.1"}] and status["phase"] == "Running"
    assert pod["metadata"]["generation"] == 1, "a status patch keeps the generation"


def test_a_condition_is_deleted_by_a_directive(api, node):
    api.pod("logd", NODE, IMAGE)
    for conditions in ([{"type": "A", "status": "True"}, {"type": "B", "status": "True"}], [{"type": "A", "$patch": "delete"}]):
        _, pod = node.patch(f"{POD_PATH}/logd/status", {"status": {"conditions": conditions}})
    assert [condition["type"] for condition in pod["status"]["conditions"]] == ["B"]


def test_an_event_is_counted_up_by_a_patch(node):
    event = {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "web.18e9bff0a2c27981", "namespace": "default"},
             "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default", "uid": "u", "apiVersion": "v1"},
             "reason": "BackOff", "message": "m", "source": {"component": "kubelet", "host": NODE}, "type": "Warning",
             "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1}
    code, obj = node.ask("POST", "/api/v1/namespaces/default/events", event)
    assert code == 201 and obj["eventTime"] is None
    code, obj = node.patch("/api/v1/namespaces/default/events/web.18e9bff0a2c27981",
                           {"count": 2, "lastTimestamp": "2026-01-01T00:00:09Z", "message": "m"})
    assert code == 200 and (obj["count"], obj["firstTimestamp"]) == (2, "2026-01-01T00:00:00Z")


def test_a_token_is_issued_only_for_a_pod_of_the_node(api, node):
    pod = api.pod("logd", NODE, IMAGE)
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    ref = {"kind": "Pod", "apiVersion": "v1", "name": "logd", "uid": pod["metadata"]["uid"]}
    body = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {},
            "spec": {"audiences": None, "expirationSeconds": 3607, "boundObjectRef": ref}}
    code, obj = node.ask("POST", path, body)
    assert code == 201 and obj["spec"] == {**body["spec"], "audiences": ["https://kubernetes.default.svc"]}
    assert set(obj["status"]) == {"token", "expirationTimestamp"} and obj["metadata"]["name"] == "default"
    code, _ = node.ask("POST", path, {**body, "spec": {**body["spec"], "boundObjectRef": None}})
    assert code == 403


def test_a_pod_gets_a_token_volume_unless_it_opts_out(api):
    pod = api.pod("with", NODE, IMAGE)
    (volume,) = pod["spec"]["volumes"]
    assert volume["name"].startswith("kube-api-access-") and volume["projected"]["defaultMode"] == 420
    kinds = [next(iter(source)) for source in volume["projected"]["sources"]]
    assert kinds == ["serviceAccountToken", "configMap", "downwardAPI"]
    assert pod["spec"]["containers"][0]["volumeMounts"][-1]["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    assert "volumes" not in api.pod("without", NODE, IMAGE, automountServiceAccountToken=False)["spec"]


def test_a_node_can_read_only_objects_to_which_its_pods_refer(api, node):
    for name in ("mine", "yours"):
        api.create("configmaps", {"metadata": {"name": name}, "data": {"a": "b"}})
    api.pod("logd", NODE, IMAGE, container={"envFrom": [{"configMapRef": {"name": "mine"}}]})
    path = "/api/v1/namespaces/default/configmaps"
    assert node.ask("GET", f"{path}/mine")[0] == 200
    assert node.ask("GET", f"{path}/yours")[0] == 403
    assert node.ask("GET", path)[0] == 403
    assert node.ask("GET", f"{path}?fieldSelector=metadata.name%3Dmine")[0] == 200
    assert node.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager")[0] == 403
    api.api.grant("system:nodes", "daemonsets", "list", "watch")
    assert node.ask("GET", "/apis/apps/v1/daemonsets")[0] == 200


def test_a_deletion_without_a_grace_period_returns_success(api, admin):
    api.create("daemonsets", {"metadata": {"name": "d", "namespace": "kube-system"}, "spec": {"template": {}}})
    uid = api.get("daemonsets", "kube-system", "d")["metadata"]["uid"]
    code, status = admin.ask("DELETE", "/apis/apps/v1/namespaces/kube-system/daemonsets/d")
    assert code == 200 and status == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                                      "details": {"name": "d", "group": "apps", "kind": "daemonsets", "uid": uid}}


def test_a_pod_with_a_finalizer_remains_until_the_finalizer_is_removed(api):
    api.create("pods", {"metadata": {"name": "f", "finalizers": ["test/f"]},
                        "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": IMAGE}]}})
    api.delete("pods", "default", "f", grace=0)
    assert api.get("pods", "default", "f")["metadata"]["deletionGracePeriodSeconds"] == 0
    api.patch("pods", "default", "f", {"metadata": {"finalizers": None}}, strategy=False)
    assert api.get("pods", "default", "f") is None


def test_a_client_certificate_names_the_user(api):
    cert, key = api.authority.node(NODE)
    old = api.authority.node("node2", start=-7200, end=-3600)
    for (one, its_key), code in (((cert, key), 404), (old, 401)):
        context = ssl.create_default_context(cafile=api.authority.cert)
        context.load_cert_chain(one, its_key)
        connection = http.client.HTTPSConnection("127.0.0.1", api.port, context=context, timeout=world.DEADLINE)
        connection.request("GET", "/api/v1/nodes/node1")
        assert connection.getresponse().status == code
    assert api.requests[-2].user.name == "system:node:node1"


def test_a_fault_applies_to_the_requests_that_it_names(api, admin):
    fault = api.misbehave(verb="list", plural="pods", status=429, retry_after=7, times=1)
    answer = admin.send("GET", "/api/v1/pods")
    assert answer.status == 429 and answer.headers["Retry-After"] == "7"
    assert json.loads(answer.read())["details"]["retryAfterSeconds"] == 7
    assert admin.ask("GET", "/api/v1/pods")[0] == 200 and fault.struck == 1
    api.misbehave(verb="list", size=3_000_000)
    code, found = admin.ask("GET", "/api/v1/pods")
    assert code == 200 and len(json.dumps(found)) > 3_000_000
    api.behave()
    api.misbehave(verb="watch", watch_seconds=0.2, piece=1)
    api.pod("logd", NODE, IMAGE)
    assert [event["type"] for event in admin.watch("/api/v1/pods?watch=true")] == ["ADDED"]


def test_a_restored_backup_does_not_contain_later_objects(api, admin):
    backup = api.store.dump()
    api.pod("late", NODE, IMAGE)
    api.store.restore(backup)
    _, found = admin.ask("GET", "/api/v1/pods")
    assert found["items"] == [] and int(found["metadata"]["resourceVersion"]) == backup[0]


# Reviews that a node requests

def review(node, group, kind, spec):
    path = f"/apis/{group}/v1/{kind.lower()}s"
    return node.ask("POST", path, {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec})


def test_a_node_may_create_token_reviews(api, node):
    api.add_token("known", "jane", "readers")
    code, found = review(node, "authentication.k8s.io", "TokenReview", {"token": "known"})
    assert (code, found["status"]["authenticated"], found["status"]["user"]["username"]) == (201, True, "jane")
    assert {"readers", "system:authenticated"} <= set(found["status"]["user"]["groups"])
    code, found = review(node, "authentication.k8s.io", "TokenReview", {"token": "unknown"})
    assert code == 201
    assert "authenticated" not in found["status"] and "invalid bearer token" in found["status"]["error"]


def test_a_node_may_create_access_reviews(api, node):
    api.api.grant("jane", "nodes/proxy", "get")
    attributes = {"verb": "get", "version": "v1", "resource": "nodes", "subresource": "proxy", "name": NODE}
    for user, allowed in (("jane", True), ("joe", False)):
        code, found = review(node, "authorization.k8s.io", "SubjectAccessReview",
                             {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes})
        assert (code, found["status"]["allowed"]) == (201, allowed)
