# SPDX-License-Identifier: Apache-2.0
"""Authorization and admission of the test API server: refusals, the Node authorizer, NodeRestriction, validation."""

import re

from api_store import name_of

MIRROR = "kubernetes.io/config.mirror"
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL_SENTENCE = ("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
                  "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
                  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')")


class Refusal(Exception):
    """An error that is returned to the client as a Status."""

    def __init__(self, code, reason, message, details=None, **headers):
        super().__init__(message)
        self.code, self.headers = code, headers
        self.status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                       "reason": reason, **({"details": details} if details else {}), "code": code}


def details(kind, name=None, **more):
    found = {"name": name, "group": kind.group, "kind": kind.plural}
    return {**{key: value for key, value in found.items() if value}, **more}


def unauthorized():
    return Refusal(401, "Unauthorized", "Unauthorized")


def not_found(kind, name):
    return Refusal(404, "NotFound", f'{kind.qualified} "{name}" not found', details(kind, name))


def already_exists(kind, name):
    return Refusal(409, "AlreadyExists", f'{kind.qualified} "{name}" already exists', details(kind, name))


def conflict(kind, name, why="the object has been modified; please apply your changes to the latest version and "
             "try again"):
    return Refusal(409, "Conflict", f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}',
                   details(kind, name))


def invalid(kind, name, causes):
    """The refusal of an invalid object; 'causes' contains the reason, the message and the field of each cause."""
    parts = [f"{place}: {message}" for _, message, place in causes]
    text = parts[0] if len(parts) == 1 else "[" + ", ".join(parts) + "]"
    title = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    rows = [{"reason": reason, "message": message, "field": place} for reason, message, place in causes]
    about = {"name": name, "group": kind.group, "kind": kind.kind, "causes": rows}
    return Refusal(422, "Invalid", f'{title} "{name}" is invalid: {text}',
                   {key: value for key, value in about.items() if value})


def forbidden(user, verb, kind, namespace, name=None, subresource=None, why=None):
    resource = kind.plural + (f"/{subresource}" if subresource else "")
    place = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    about = f'{kind.qualified} "{name}"' if name else kind.qualified
    message = (f'{about} is forbidden: User "{user.name}" cannot {verb} resource "{resource}" in API group '
               f'"{kind.group}" {place}' + (f": {why}" if why else ""))
    return Refusal(403, "Forbidden", message, details(kind, name))


def unrelated(user, verb, kind, namespace, name, subresource=None):
    """The refusal of the Node authorizer if no pod of this node refers to the object."""
    return forbidden(user, verb, kind, namespace, name, subresource,
                     f"no relationship found between node '{user.node}' and this object")


def not_admitted(kind, name, why):
    return Refusal(403, "Forbidden", f'{kind.qualified} "{name}" is forbidden: {why}', details(kind, name))


def expired(message):
    return Refusal(410, "Expired", message)


class User:
    def __init__(self, name, groups=()):
        self.name, self.groups, self.more = name, set(groups), {}  # "uid" and "extra" of TokenReviews

    @property
    def node(self):
        """The name of the node that this user is, or None."""
        prefix = "system:node:"
        return self.name[len(prefix):] if "system:nodes" in self.groups and self.name.startswith(prefix) else None


def check_reviewer(request):
    """Only nodes and administrators may request reviews."""
    if not (request.user.node or "system:masters" in request.user.groups):
        raise Refusal(403, "Forbidden", f'User "{request.user.name}" cannot create reviews')


def review_token(api, request):
    check_reviewer(request)
    user = api.tokens.get(request.body["spec"].get("token"))
    if user is None:
        return {**request.body, "status": {"user": {}, "error": "[invalid bearer token, Token has been invalidated]"}}
    found = {"username": user.name, "groups": sorted(user.groups), **user.more}
    return {**request.body, "status": {"authenticated": True, "user": found}}


def review_access(api, request):
    check_reviewer(request)
    spec = request.body["spec"]
    wanted = spec["resourceAttributes"]
    resource = "/".join(filter(None, [wanted["resource"], wanted.get("subresource")]))
    names = {spec.get("user"), *spec.get("groups", ())}
    allowed = "system:masters" in names or any((name, wanted["verb"], resource) in api.grants for name in names)
    return {**request.body, "status": {"allowed": allowed}}


REVIEWS = {"/apis/authentication.k8s.io/v1/tokenreviews": review_token,
           "/apis/authorization.k8s.io/v1/subjectaccessreviews": review_access}

ANONYMOUS = User("system:anonymous", ["system:unauthenticated"])


# The Node authorizer: the requests that a node may make at all, regardless of the object, by resource and subresource.

READ = {"get", "list", "watch"}
NODE_RULES = {
    "nodes": READ | {"create", "update", "patch"}, "nodes/status": {"update", "patch"},
    "pods": READ | {"create", "delete"}, "pods/status": {"update", "patch"},
    "services": READ, "events": {"create", "update", "patch"},
    "leases": {"get", "create", "update", "patch", "delete"}, "serviceaccounts/token": {"create"},
    "serviceaccounts": {"get"},
    "configmaps": READ, "secrets": READ, "persistentvolumeclaims": {"get"}, "persistentvolumes": {"get"},
    "persistentvolumeclaims/status": {"get", "update", "patch"},
    "csidrivers": READ, "csinodes": {"get", "create", "update", "patch", "delete"}, "volumeattachments": {"get"},
    "runtimeclasses": READ, "certificatesigningrequests": {"create"} | READ,
}


def named_by(pod):
    """The ConfigMaps and Secrets that a pod refers to, as (plural, name)."""
    spec, found = pod.get("spec") or {}, {("configmaps", "kube-root-ca.crt")}
    found.update(("secrets", item["name"]) for item in spec.get("imagePullSecrets") or [])
    for container in (spec.get("containers") or []) + (spec.get("initContainers") or []):
        for item in container.get("envFrom") or []:
            found.update((plural, item[key]["name"]) for key, plural in (("configMapRef", "configmaps"),
                                                                        ("secretRef", "secrets")) if key in item)
        for item in container.get("env") or []:
            source = item.get("valueFrom") or {}
            found.update((plural, source[key]["name"]) for key, plural in (("configMapKeyRef", "configmaps"),
                                                                          ("secretKeyRef", "secrets")) if key in source)
    for volume in spec.get("volumes") or []:
        if "persistentVolumeClaim" in volume:
            found.add(("persistentvolumeclaims", volume["persistentVolumeClaim"]["claimName"]))
        if "nodePublishSecretRef" in (volume.get("csi") or {}):
            found.add(("secrets", volume["csi"]["nodePublishSecretRef"]["name"]))
        if "ephemeral" in volume:
            found.add(("persistentvolumeclaims", f"{pod['metadata']['name']}-{volume['name']}"))
        for source in [volume, *((volume.get("projected") or {}).get("sources") or [])]:
            if "configMap" in source:
                found.add(("configmaps", source["configMap"]["name"]))
            if "secret" in source:
                found.add(("secrets", source["secret"].get("secretName") or source["secret"].get("name")))
    return found


def secrets_of(volume):
    """The Secrets of a PersistentVolume of a CSI driver."""
    csi = volume["spec"].get("csi") or {}
    return [csi[key]["name"] for key in ("nodeStageSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef") if key in csi]


def is_related(store, node, plural, namespace, name):
    pods = [pod for pod in store.all("pods", namespace) if pod["spec"].get("nodeName") == node]
    if plural == "persistentvolumes":
        claims = [claim for claim in store.all("persistentvolumeclaims") if claim["spec"].get("volumeName") == name]
        return any(is_related(store, node, "persistentvolumeclaims", *name_of(claim)) for claim in claims)
    if plural == "serviceaccounts":
        return any(pod["spec"].get("serviceAccountName") == name for pod in pods)
    if plural == "secrets" and any(name in secrets_of(volume) and is_related(store, node, "persistentvolumes", *name_of(volume))
                                   for volume in store.all("persistentvolumes")):
        return True
    if plural == "volumeattachments":
        found = store.get("volumeattachments", None, name)
        return bool(found) and found["spec"]["nodeName"] == node
    return any((plural, name) in named_by(pod) for pod in pods if MIRROR not in (pod["metadata"].get("annotations") or {}))


def authorize_node(store, user, request):
    """Applies NODE_RULES and limits the objects that a node may read to those that belong to it."""
    kind, verb, node = request.kind, request.verb, user.node
    key = kind.plural + (f"/{request.subresource}" if request.subresource else "")

    def refuse(why=None):
        raise forbidden(user, verb, kind, request.namespace, request.name, request.subresource, why)

    if verb not in NODE_RULES.get(key, ()):
        refuse()
    if kind.plural in ("configmaps", "secrets", "serviceaccounts", "persistentvolumeclaims", "persistentvolumes", "volumeattachments"):
        name = request.name or request.field("metadata.name")
        if not name or (kind.namespaced and not request.namespace):
            refuse("No Object name found")
        if not is_related(store, node, kind.plural, request.namespace, name):
            raise unrelated(user, verb, kind, request.namespace, request.name, request.subresource)
    if kind.plural == "csinodes" and request.name not in (node, None):
        refuse("can only access CSINode with the same name as the requesting node")
    if kind.plural == "nodes" and verb in READ and (request.name or request.field("metadata.name")) != node:
        refuse(f"node '{node}' cannot read all nodes, only its own Node object")
    if kind.plural == "pods" and verb in READ and request.name is None and request.field("spec.nodeName") != node:
        refuse("can only list/watch pods with spec.nodeName field selector")
    if kind.plural == "pods" and verb == "get":
        pod = store.get("pods", request.namespace, request.name)
        if pod is None or pod["spec"].get("nodeName") != node:
            raise unrelated(user, verb, kind, request.namespace, request.name, request.subresource)
    if kind.plural == "leases" and request.namespace != "kube-node-lease":
        refuse("can only access leases in the \"kube-node-lease\" system namespace")


# NodeRestriction: the objects that a node may write.

def admit_node(store, user, request, obj):
    kind, node = request.kind, user.node
    admit = {"nodes": admit_own_node, "pods": admit_pod, "leases": admit_lease}.get(kind.plural)
    if kind.plural == "serviceaccounts" and request.subresource == "token":
        return admit_token(store, node, request, obj)
    return admit(store, node, request, obj) if admit else None


def admit_own_node(_store, node, request, obj):
    name = request.name or obj["metadata"]["name"]
    if name != node:
        raise not_admitted(request.kind, name, f'node "{node}" is not allowed to modify node "{name}"')
    if request.verb == "create":
        return
    allowed = ("kubelet.kubernetes.io/", "node.kubernetes.io/")
    bad = [label for label in request.changed_labels if
           re.match(r"([^/]*\.)?(kubernetes|k8s)\.io/", label) and not label.startswith(allowed) and
           label not in ("kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch",
                         "beta.kubernetes.io/os", "topology.kubernetes.io/region", "topology.kubernetes.io/zone")]
    if bad:
        raise not_admitted(request.kind, name, f"is not allowed to modify labels: {', '.join(sorted(bad))}")
    if request.changed_taints:
        raise not_admitted(request.kind, name, f'node "{node}" is not allowed to modify taints')


def admit_pod(store, node, request, obj):
    if request.verb == "create":
        return admit_mirror(store, node, request.kind, obj)
    pod = store.get("pods", request.namespace, request.name)
    bound = (pod or {}).get("spec", {}).get("nodeName")
    if pod is not None and bound != node:
        verb = "delete" if request.verb == "delete" else "update status for"
        raise not_admitted(request.kind, request.name,
                           f'node "{node}" can only {verb} pods with spec.nodeName set to itself')
    return None


def admit_mirror(store, node, kind, pod):
    name, spec = pod["metadata"]["name"], pod.get("spec") or {}

    def refuse(why):
        raise not_admitted(kind, name, why)

    if MIRROR not in (pod["metadata"].get("annotations") or {}):
        refuse(f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods')
    if spec.get("nodeName") != node:
        refuse(f'node "{node}" can only create pods with spec.nodeName set to itself')
    owners = pod["metadata"].get("ownerReferences") or []
    if len(owners) != 1:
        refuse(f'node "{node}" can only create pods with a single owner reference set to itself')
    owner, own = owners[0], store.get("nodes", None, node)
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        refuse(f'node "{node}" can only create pods with an owner reference set to itself')
    if not owner.get("controller"):
        refuse(f'node "{node}" can only create pods with a controller owner reference set to itself')
    if owner.get("blockOwnerDeletion"):
        refuse(f'node "{node}" must not set blockOwnerDeletion on an owner reference')
    if own is None or owner.get("uid") != own["metadata"]["uid"]:
        refuse(f'node {node} UID mismatch: expected {own["metadata"]["uid"] if own else ""} got {owner.get("uid")}')
    if spec.get("serviceAccountName"):
        refuse(f'node "{node}" can not create pods that reference a service account')
    referred = {plural for plural, _ in named_by(pod) - {("configmaps", "kube-root-ca.crt")}}
    for plural, words in (("secrets", "secrets"), ("configmaps", "configmaps")):
        if plural in referred:
            refuse(f'node "{node}" can not create pods that reference {words}')
    if any("persistentVolumeClaim" in volume for volume in spec.get("volumes") or []):
        refuse(f'node "{node}" can not create pods that reference persistentvolumeclaims')
    if any("serviceAccountToken" in source for volume in spec.get("volumes") or []
           for source in (volume.get("projected") or {}).get("sources") or []):
        refuse("a mirror pod may not use service account token volume projections")


def admit_lease(_store, node, request, obj):
    name = request.name or obj["metadata"]["name"]
    if name != node:
        raise not_admitted(request.kind, name, f'can only access node lease with the same name as the requesting node')


def admit_token(store, node, request, obj):
    ref = (obj.get("spec") or {}).get("boundObjectRef") or {}
    if ref.get("kind") != "Pod":
        raise not_admitted(request.kind, request.name, "node requested token not bound to a pod")
    pod = store.get("pods", request.namespace, ref.get("name"))
    if pod is None:
        raise not_found(_Pods, ref.get("name"))
    if pod["metadata"]["uid"] != ref.get("uid"):
        raise conflict(_Pods, ref.get("name"), f"the UID in the bound object reference ({ref.get('uid')}) does not match "
                       f"the UID in record. The object might have been deleted and then recreated")
    if pod["spec"].get("nodeName") != node:
        raise not_admitted(request.kind, request.name, "node requested token bound to a pod scheduled on a different node")


class _Pods:
    plural, group, qualified, kind = "pods", "", "pods", "Pod"


def validate_pod(kind, pod):
    causes = []
    for i, container in enumerate((pod.get("spec") or {}).get("containers") or []):
        place = f"spec.containers[{i}]"
        if not LABEL.fullmatch(container.get("name") or ""):
            causes.append(("FieldValueInvalid", f'Invalid value: "{container.get("name")}": {LABEL_SENTENCE}',
                           place + ".name"))
        if not container.get("image"):
            causes.append(("FieldValueRequired", "Required value", place + ".image"))
    if not (pod.get("spec") or {}).get("containers"):
        causes.append(("FieldValueRequired", "Required value", "spec.containers"))
    if causes:
        raise invalid(kind, pod["metadata"]["name"], causes)
