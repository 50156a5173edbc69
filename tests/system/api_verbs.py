# SPDX-License-Identifier: Apache-2.0
"""The actions of the test API server for each verb. Handles objects, not HTTP: takes a request and returns an object or
raises a Refusal."""

import base64
import copy
import json
import random
import time
from urllib.parse import parse_qsl, unquote, urlsplit

import api_access as access
from api_merge import matches_fields, matches_labels, merge_patch, strategic_patch
from api_store import KINDS, Store, now

STRATEGIC, MERGE, JSON = ("application/strategic-merge-patch+json", "application/merge-patch+json", "application/json")
GENERATED = "bcdfghjklmnpqrstvwxz2456789"
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
ADMIN = access.User("admin", ["system:masters", "system:authenticated"])
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
KUBERNETES_SERVICE = {
    "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
    "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}]}}
GENERATION = "deprecated.daemonset.template.generation"
SYSTEM_CLASSES = {"system-node-critical": {"value": 2000001000}, "system-cluster-critical": {"value": 2000000000}}
SUBRESOURCES = {"status", "token", "binding", "approval"}


class Request:
    """One request, parsed from its method and path."""

    def __init__(self, method, target, user, body=None, content_type=JSON):
        self.at = time.monotonic()
        self.method, self.target, self.user, self.body, self.content_type = method, target, user, body, content_type
        self.code = None  # status of the answer
        self.changed_labels, self.changed_taints = (), False
        url = urlsplit(target)
        self.path, self.query = url.path, dict(parse_qsl(url.query, keep_blank_values=True))
        self.kind = self.namespace = self.name = self.subresource = None
        self.resolve([unquote(part) for part in self.path.strip("/").split("/")])
        self.verb = self.find_verb()

    def resolve(self, parts):
        group = "" if parts[0] == "api" else parts[1] if parts[0] == "apis" and len(parts) > 1 else None
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        if group is None or not rest:
            return
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in SUBRESOURCES:
            self.namespace, rest = rest[1], rest[2:]
        kind = KINDS.get(rest[0])
        version = parts[1] if parts[0] == "api" else parts[2]
        if kind is None or (kind.group, kind.version) != (group, version) or (self.namespace and not kind.namespaced):
            return
        self.kind = kind
        self.name = rest[1] if len(rest) > 1 else None
        self.subresource = rest[2] if len(rest) > 2 else None

    def find_verb(self):
        if self.method == "GET":
            if self.query.get("watch") in ("true", "1"):
                return "watch"
            return "get" if self.name else "list"
        if self.method == "DELETE" and not self.name:
            return "deletecollection"
        return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(self.method, self.method)

    def field(self, name):
        """The value that the field selector requires, or None."""
        parts = [part.partition("=") for part in self.query.get("fieldSelector", "").split(",")]
        return next((value.lstrip("=") for field, _, value in parts if field == name), None)

    def selects(self, obj):
        return obj is not None and (not self.namespace or obj["metadata"].get("namespace") == self.namespace) and \
            (not self.name or obj["metadata"]["name"] == self.name) and \
            matches_fields(obj, self.query.get("fieldSelector")) and matches_labels(obj, self.query.get("labelSelector"))

    def __repr__(self):
        return f"{self.user.name} {self.method} {self.target} -> {self.code}"


class Api:
    """The verbs over a Store. 'grants' are rules in addition to the Node authorizer's, each (user or group, verb,
    resource)."""

    def __init__(self, authority=None):
        self.store, self.authority = Store(), authority
        self.grants, self.tokens_issued = set(), []
        self.tokens = {}  # the users that reviews return, by token
        self.injects_tokens = self.has_controllers = True
        self.token_life = None  # in seconds; overrides that of the request
        for namespace in NAMESPACES:
            self.create(Request("POST", "/api/v1/namespaces", ADMIN, {"metadata": {"name": namespace}}))
        self.create(Request("POST", "/api/v1/namespaces/default/services", ADMIN, KUBERNETES_SERVICE))

    def grant(self, user, plural, *verbs):
        """The permissions of a ClusterRole and its binding; 'user' is the name of a user or of a group."""
        self.grants.update((user, verb, plural) for verb in verbs)

    def authorize(self, request):
        user, plural = request.user, request.kind.plural
        key = plural + (f"/{request.subresource}" if request.subresource else "")
        names = {user.name} | user.groups
        if "system:masters" in names or any((name, request.verb, key) in self.grants for name in names):
            return
        if user.node:
            access.authorize_node(self.store, user, request)
        elif "system:bootstrappers" in user.groups and plural == "certificatesigningrequests":
            return
        else:
            raise access.forbidden(user, request.verb, request.kind, request.namespace, request.name,
                                   request.subresource)

    def handle(self, request):
        """Returns the status code and the object. Watches are handled elsewhere."""
        if request.method == "POST" and request.path in access.REVIEWS:
            return 201, access.REVIEWS[request.path](self, request)
        if request.kind is None:
            raise access.Refusal(404, "NotFound", "the server could not find the requested resource", {})
        self.authorize(request)
        verb = {"get": self.read, "list": self.list, "create": self.create, "update": self.update, "patch": self.update,
                "delete": self.delete}.get(request.verb)
        if verb is None:
            raise access.Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested "
                                 "resource", access.details(request.kind, request.name))
        with self.store.lock:
            return verb(request)

    def find(self, request):
        obj = self.store.get(request.kind.plural, request.namespace, request.name)
        if obj is None:
            raise access.not_found(request.kind, request.name)
        return obj

    # Reading

    def read(self, request):
        return 200, self.find(request)

    def list(self, request):
        query, store = request.query, self.store
        version, items = store.version, None
        asked = int(query.get("resourceVersion") or 0)
        if query.get("continue"):
            token = json.loads(base64.b64decode(query["continue"]))
            version, items = token["rv"], store.snapshots.get(token["rv"])
            if items is None:
                raise access.expired("The provided continue parameter is too old to display a consistent list result. "
                                     "You can start a new list without the continue parameter.")
            items = items[token["start"]:]
        elif query.get("resourceVersionMatch") == "Exact" and asked < store.version and asked < store.oldest:
            raise access.expired("The resourceVersion for the provided list is too old.")
        elif asked > version:
            raise access.Refusal(504, "Timeout", f"Timeout: Too large resource version: {asked}, current: {version}",
                                 {"causes": [{"reason": "ResourceVersionTooLarge",
                                              "message": "Too large resource version"}], "retryAfterSeconds": 1})
        if items is None:
            items = [obj for obj in store.all(request.kind.plural, request.namespace) if request.selects(obj)]
        metadata = {"resourceVersion": str(version)}
        limit = int(query.get("limit") or 0)
        if limit and len(items) > limit:
            store.snapshots.setdefault(version, items)
            start = len(store.snapshots[version]) - len(items) + limit
            token = {"v": "meta.k8s.io/v1", "rv": version, "start": start}
            metadata["continue"] = base64.b64encode(json.dumps(token).encode()).decode()
            if not query.get("fieldSelector") and not query.get("labelSelector"):
                metadata["remainingItemCount"] = len(items) - limit
            items = items[:limit]
        bare = [{key: value for key, value in obj.items() if key not in ("kind", "apiVersion")} for obj in items]
        return 200, {"kind": request.kind.kind + "List", "apiVersion": request.kind.api_version, "metadata": metadata,
                     "items": bare}

    # Creating

    def create(self, request):
        if request.subresource:
            return {"token": self.create_token, "binding": self.create_binding}[request.subresource](request)
        obj, kind = copy.deepcopy(request.body), request.kind
        metadata = obj.setdefault("metadata", {})
        for field in ("resourceVersion", "managedFields", "selfLink", "deletionTimestamp"):
            metadata.pop(field, None)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + "".join(random.choices(GENERATED, k=5))
        name = metadata.get("name")
        if not name:
            raise access.invalid(kind, None, [("FieldValueRequired", "Required value: name or generateName is required",
                                               "metadata.name")])
        if kind.namespaced:
            metadata["namespace"] = request.namespace or metadata.get("namespace")
            if self.store.get("namespaces", None, metadata["namespace"]) is None:
                raise access.not_found(KINDS["namespaces"], metadata["namespace"])
        if request.user.node:
            access.admit_node(self.store, request.user, request, obj)
        self.complete(request, obj)
        if self.store.get(kind.plural, metadata.get("namespace"), name) is not None:
            raise access.already_exists(kind, name)
        new = self.store.create(kind, obj)
        if kind.plural == "namespaces":
            self.furnish(name)
        return 201, new

    def furnish(self, namespace):
        """The objects that controllers put into every namespace."""
        root = {"ca.crt": open(self.authority.cert, encoding="utf-8").read()} if self.authority else {}
        for plural, name, more in (("configmaps", "kube-root-ca.crt", {"data": root}), ("serviceaccounts", "default", {})):
            self.store.create(KINDS[plural], {"metadata": {"name": name, "namespace": namespace}, **more})

    def complete(self, request, obj):
        """Defaults and admission."""
        kind = request.kind
        if kind.plural == "pods":
            access.validate_pod(kind, obj)
            self.admit_priority(obj)
            self.admit_overhead(obj)
            complete_pod(obj, self.injects_tokens)
        elif kind.plural == "nodes":
            obj.setdefault("spec", {}).setdefault("taints", [])
            if NOT_READY not in obj["spec"]["taints"]:
                obj["spec"]["taints"] = obj["spec"]["taints"] + [dict(NOT_READY)]
        elif kind.plural == "certificatesigningrequests":
            obj["spec"] = {**obj["spec"], "username": request.user.name, "groups": sorted(request.user.groups)}
            obj["status"] = {}
        elif kind.plural == "daemonsets":
            metadata = obj["metadata"]
            metadata["annotations"] = {**(metadata.get("annotations") or {}), GENERATION: "1"}
            obj["status"] = {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0,
                             "numberReady": 0}
        elif kind.plural == "services":
            complete_service(obj)
        elif kind.plural == "namespaces":
            obj["spec"], obj["status"] = {"finalizers": ["kubernetes"]}, {"phase": "Active"}
        elif kind.plural == "secrets":
            texts = obj.pop("stringData", {})
            obj["data"] = {**obj.get("data", {}), **{key: base64.b64encode(text.encode()).decode()
                                                     for key, text in texts.items()}}
            obj.setdefault("type", "Opaque")

    def admit_priority(self, pod):
        """The admission of priorities: each pod has a priority, and the name of its class, the default one included."""
        spec, classes = pod["spec"], self.store.all("priorityclasses")
        default = min((one for one in classes if one.get("globalDefault")), key=lambda one: one["value"], default=None)
        name = spec.get("priorityClassName") or (default["metadata"]["name"] if default else "")
        found = next((one for one in classes if one["metadata"]["name"] == name), SYSTEM_CLASSES.get(name))
        if name and found is None:
            raise access.not_admitted(KINDS["pods"], pod["metadata"]["name"], f"no PriorityClass with name {name} was found")
        value = found["value"] if found else 0
        if spec.get("priority", value) != value:
            raise access.not_admitted(
                KINDS["pods"], pod["metadata"]["name"], f"the integer value of priority ({spec['priority']}) must not be "
                f"provided in pod spec; priority admission controller computed {value} from the given PriorityClass name")
        spec.update({"priority": value, "preemptionPolicy": (found or {}).get("preemptionPolicy", "PreemptLowerPriority")},
                    **({"priorityClassName": name} if name else {}))

    def admit_overhead(self, pod):
        """The admission of runtime classes."""
        found = self.store.get("runtimeclasses", None, pod["spec"].get("runtimeClassName"))
        if found and found.get("overhead"):
            pod["spec"]["overhead"] = found["overhead"]["podFixed"]

    def create_token(self, request):
        account = self.find(request)
        if request.user.node:
            access.admit_node(self.store, request.user, request, request.body)
        seconds = request.body["spec"].get("expirationSeconds") or 3600
        if seconds < 600:
            raise access.Refusal(422, "Invalid", f'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
                                 f'Invalid value: {seconds}: may not specify a duration less than 10 minutes')
        token = f"header.{request.namespace}-{request.name}.{len(self.tokens_issued)}"
        self.tokens_issued.append(token)
        spec = {**request.body["spec"], "expirationSeconds": seconds,
                "audiences": request.body["spec"].get("audiences") or ["https://kubernetes.default.svc"]}
        names = {key: account["metadata"][key] for key in ("name", "namespace", "uid")}
        return 201, {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
                     "metadata": {**names, "creationTimestamp": now()}, "spec": spec,
                     "status": {"token": token, "expirationTimestamp": now(self.token_life or seconds)}}

    def create_binding(self, request):
        pod = self.find(request)
        if pod["spec"].get("nodeName"):
            raise access.conflict(request.kind, request.name, "pod " + request.name + " is already assigned to node "
                                  f'"{pod["spec"]["nodeName"]}"')
        status = {**pod["status"], "conditions": [{"type": "PodScheduled", "status": "True", "lastProbeTime": None,
                                                   "lastTransitionTime": now()}]}
        spec = {**pod["spec"], "nodeName": request.body["target"]["name"]}
        self.store.replace(request.kind, {**pod, "spec": spec, "status": status})
        return 201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    # Changing

    def update(self, request):
        kind, old = request.kind, self.store.get(request.kind.plural, request.namespace, request.name)
        if request.user.node and old is None:
            access.admit_node(self.store, request.user, request, None)
        old = self.find(request)
        new = self.body_applied_to(request, old)
        metadata = new.setdefault("metadata", {})
        if metadata.get("uid") not in (None, old["metadata"]["uid"]):
            raise access.conflict(kind, request.name, f"Precondition failed: UID in precondition: {metadata['uid']}, "
                                  f"UID in object meta: {old['metadata']['uid']}")
        if metadata.get("resourceVersion") not in (None, "", old["metadata"]["resourceVersion"]):
            raise access.conflict(kind, request.name)
        fixed = {key: old["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp",
                                                       "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
                 if key in old["metadata"]}
        new = {**new, "kind": old["kind"], "apiVersion": old["apiVersion"], "metadata": {**metadata, **fixed}}
        new = keep_the_rest(request, old, new)
        if request.user.node:
            note_changes(request, old, new)
            access.admit_node(self.store, request.user, request, new)
        if kind.plural == "pods" and not request.subresource:
            access.validate_pod(kind, new)
        if kind.has_generation and new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
            if kind.plural == "daemonsets" and new["spec"]["template"] != old["spec"]["template"]:
                annotations = old["metadata"]["annotations"]
                new["metadata"]["annotations"] = {**(new["metadata"].get("annotations") or {}),
                                                  GENERATION: str(int(annotations[GENERATION]) + 1)}
        new = self.store.replace(kind, new)
        if kind.plural == "nodes" and self.has_controllers:
            self.control_node(new)
        return 200, new

    @staticmethod
    def body_applied_to(request, old):
        if request.method == "PUT":
            return copy.deepcopy(request.body)
        if request.content_type == STRATEGIC:
            return strategic_patch(old, request.body)
        if request.content_type == MERGE:
            return merge_patch(old, request.body)
        raise access.Refusal(415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted "
                             f"media types include: {JSON}-patch+json, {MERGE}, {STRATEGIC}", {})

    def control_node(self, node):
        """Like the node lifecycle controller: removes the taint when the node is ready."""
        ready = any(item["type"] == "Ready" and item["status"] == "True" for item in
                    node["status"].get("conditions") or [])
        taints = [taint for taint in node["spec"].get("taints") or [] if taint["key"] != NOT_READY["key"]]
        if ready and len(taints) != len(node["spec"].get("taints") or []):
            spec = {key: value for key, value in node["spec"].items() if key != "taints"}
            self.store.replace(KINDS["nodes"], {**node, "spec": {**spec, **({"taints": taints} if taints else {})}})

    # Deleting

    def delete(self, request):
        kind, options = request.kind, request.body or {}
        if request.user.node:
            access.admit_node(self.store, request.user, request, None)
        obj = self.find(request)
        uid, wanted = obj["metadata"]["uid"], (options.get("preconditions") or {}).get("uid")
        if wanted not in (None, uid):
            raise access.conflict(kind, request.name, f"the UID in the precondition ({wanted}) does not match the UID in "
                                  f"record ({uid}). The object might have been deleted and then recreated")
        grace = options.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
        if kind.plural == "pods":
            return 200, self.delete_pod(kind, obj, None if grace is None else int(grace))
        if obj["metadata"].get("finalizers"):
            return 200, self.store.replace(kind, self.marked_for_deletion(obj, 0))
        self.store.remove(kind, obj)
        return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                     "details": access.details(kind, request.name, uid=uid)}

    @staticmethod
    def marked_for_deletion(obj, grace):
        metadata = {**obj["metadata"], "deletionTimestamp": now(grace), "deletionGracePeriodSeconds": grace}
        if "generation" in metadata and "deletionTimestamp" not in obj["metadata"]:
            metadata["generation"] += 1
        return {**obj, "metadata": metadata}

    def delete_pod(self, kind, pod, grace):
        """Marks the pod with its grace period, and removes it if that is 0."""
        if grace is None:
            grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
        if not pod["spec"].get("nodeName") or pod["status"].get("phase") in ("Succeeded", "Failed"):
            grace = 0
        before = pod["metadata"].get("deletionGracePeriodSeconds")
        if before is not None and grace >= before and before:
            return pod
        pod = self.marked_for_deletion(pod, grace)
        if grace == 0 and before is not None and before == 0:
            return self.store.remove(kind, pod) if not pod["metadata"].get("finalizers") else pod
        return self.store.replace(kind, pod)  # this removes it if its grace period is 0


def keep_the_rest(request, old, new):
    """A write to the status leaves everything else unchanged, and a write to the object leaves the status unchanged."""
    if not request.kind.has_status:
        return new
    if request.subresource in ("status", "approval"):
        metadata = new["metadata"] if request.kind.plural == "nodes" else old["metadata"]
        return {**old, "metadata": dict(metadata), "status": new.get("status", {})}
    return {**new, "status": old["status"]}


def note_changes(request, old, new):
    before, after = (obj["metadata"].get("labels") or {} for obj in (old, new))
    request.changed_labels = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    request.changed_taints = (old.get("spec") or {}).get("taints") != (new.get("spec") or {}).get("taints")


def complete_pod(pod, injects_tokens):
    spec, mirror = pod["spec"], access.MIRROR in (pod["metadata"].get("annotations") or {})
    pod["status"] = {"phase": "Pending", "qosClass": quality(spec)}
    for name, value in (("restartPolicy", "Always"), ("terminationGracePeriodSeconds", 30), ("dnsPolicy", "ClusterFirst"),
                        ("securityContext", {}), ("schedulerName", "default-scheduler"), ("priority", 0),
                        ("enableServiceLinks", True), ("preemptionPolicy", "PreemptLowerPriority")):
        spec.setdefault(name, value)
    containers = spec["containers"] + (spec.get("initContainers") or [])
    for container in containers:
        tag = container["image"].rpartition("/")[2].partition(":")[2]
        for name, value in (("resources", {}), ("terminationMessagePath", "/dev/termination-log"),
                            ("terminationMessagePolicy", "File"),
                            ("imagePullPolicy", "Always" if tag in ("", "latest") else "IfNotPresent")):
            container.setdefault(name, value)
    if mirror:
        return
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    add_tolerations(spec)
    if injects_tokens and spec.get("automountServiceAccountToken", True):
        inject_token(spec, containers)


def add_tolerations(spec):
    """The admission of tolerations: five minutes for a node that is not ready or not reachable, if a pod has none."""
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(one.get("key") in (key, None) and one.get("effect") in ("NoExecute", None)
                   for one in spec.get("tolerations") or []):
            spec.setdefault("tolerations", []).append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})


def inject_token(spec, containers):
    """The additions of the service account admission to each pod."""
    name = "kube-api-access-" + "".join(random.choices(GENERATED, k=5))
    sources = [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
               {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
               {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1",
                                                                            "fieldPath": "metadata.namespace"}}]}}]
    spec["volumes"] = [*(spec.get("volumes") or []), {"name": name, "projected": {"sources": sources, "defaultMode": 420}}]
    for container in containers:
        mount = {"name": name, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]


def complete_service(service):
    spec = service.setdefault("spec", {})
    address = spec.setdefault("clusterIP", f"10.96.{random.randint(1, 250)}.{random.randint(1, 250)}")
    for name, value in (("clusterIPs", [address]), ("type", "ClusterIP"), ("sessionAffinity", "None"),
                        ("ipFamilies", ["IPv4"]), ("ipFamilyPolicy", "SingleStack"), ("internalTrafficPolicy", "Cluster")):
        spec.setdefault(name, value)
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port["port"])
    service["status"] = {"loadBalancer": {}}


def quality(spec):
    resources = [container.get("resources") or {} for container in spec["containers"]]
    if not any(item.get("requests") or item.get("limits") for item in resources):
        return "BestEffort"
    same = all({"cpu", "memory"} <= set(item.get("limits") or {}) and
               (item.get("requests") or item["limits"]) == item["limits"] for item in resources)
    return "Guaranteed" if same else "Burstable"
