# SPDX-License-Identifier: Apache-2.0
"""The storage of the test API server: objects, their history, and the watches that wait for changes."""

import copy
import threading
import time
import uuid
from typing import NamedTuple


class Kind(NamedTuple):
    """A resource: its path in the API, and its names."""
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    has_status: bool = False
    has_generation: bool = False

    @property
    def api_version(self):
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self):
        """The name that messages use: "leases.coordination.k8s.io"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


KINDS = {kind.plural: kind for kind in (
    Kind("", "v1", "namespaces", "Namespace", False, True),
    Kind("", "v1", "nodes", "Node", False, True),
    Kind("", "v1", "pods", "Pod", True, True, True),
    Kind("", "v1", "events", "Event"),
    Kind("", "v1", "configmaps", "ConfigMap"),
    Kind("", "v1", "secrets", "Secret"),
    Kind("", "v1", "services", "Service", True, True),
    Kind("", "v1", "serviceaccounts", "ServiceAccount"),
    Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, True),
    Kind("", "v1", "persistentvolumes", "PersistentVolume", False, True),
    Kind("apps", "v1", "daemonsets", "DaemonSet", True, True, True),
    Kind("apps", "v1", "controllerrevisions", "ControllerRevision"),
    Kind("coordination.k8s.io", "v1", "leases", "Lease"),
    Kind("storage.k8s.io", "v1", "csidrivers", "CSIDriver", False),
    Kind("storage.k8s.io", "v1", "csinodes", "CSINode", False),
    Kind("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False, True),
    Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False),
    Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False),
    Kind("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", False, True),
)}

# The defaults that the server shows for a kind although they were not set.
SHOWN = {"Event": {"source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None,
                   "reportingComponent": "", "reportingInstance": ""},
         "Pod": {"spec": {}, "status": {}}, "Node": {"spec": {}, "status": {}}, "DaemonSet": {"spec": {}, "status": {}},
         "Lease": {"spec": {}}, "Namespace": {"spec": {}, "status": {}}}


def now(offset=0):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + offset))


def name_of(obj):
    return obj["metadata"].get("namespace"), obj["metadata"]["name"]


class Change(NamedTuple):
    version: int
    what: str  # ADDED, MODIFIED, DELETED
    obj: dict
    before: dict  # None if it is new


class Store:
    """Objects are never changed in place: each write stores a new one, so that a reader needs no copy."""

    def __init__(self, version=1000):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.version = version
        self.chosen_uids = {}  # UIDs that a test chooses, by plural and name
        self.oldest = version  # a watch from an earlier version has expired
        self.objects = {plural: {} for plural in KINDS}
        self.history = {plural: [] for plural in KINDS}
        self.snapshots = {}  # lists that were partially returned, by their resourceVersion

    def get(self, plural, namespace, name):
        with self.lock:
            return self.objects[plural].get((namespace, name))

    def all(self, plural, namespace=None):
        """The objects in the order of their names."""
        with self.lock:
            found = self.objects[plural].items()
            return [obj for key, obj in sorted(found, key=lambda item: (item[0][0] or "", item[0][1]))
                    if namespace is None or key[0] == namespace]

    def complete(self, kind, obj):
        """The object as the server shows it, with its defaults."""
        metadata = {**obj["metadata"], "resourceVersion": str(self.version)}
        rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")}
        shown = {**copy.deepcopy(SHOWN.get(kind.kind, {})), **rest}
        if kind.kind == "Pod":
            for condition in shown["status"].get("conditions") or []:
                condition.setdefault("lastProbeTime", None)
        return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata, **shown}

    def record_change(self, kind, what, obj, before):
        self.history[kind.plural].append(Change(self.version, what, obj, before))
        self.changed.notify_all()

    def create(self, kind, obj):
        with self.lock:
            self.version += 1
            uid = self.chosen_uids.get((kind.plural, obj["metadata"]["name"])) or str(uuid.uuid4())
            metadata = {**obj["metadata"], "uid": uid, "creationTimestamp": now()}
            if kind.has_generation:
                metadata["generation"] = 1
            new = self.complete(kind, {**obj, "metadata": metadata})
            self.objects[kind.plural][name_of(new)] = new
            self.record_change(kind, "ADDED", new, None)
            return new

    def replace(self, kind, obj):
        """Replaces the object of the same name, or adds it. An object that has not changed is not written; one that
        waits only for its finalizers is removed together with the last of them."""
        with self.lock:
            before = self.objects[kind.plural][name_of(obj)]
            if obj == before:
                return before
            self.version += 1
            new = self.complete(kind, copy.deepcopy(obj))
            self.objects[kind.plural][name_of(new)] = new
            self.record_change(kind, "MODIFIED", new, before)
            metadata = new["metadata"]
            if metadata.get("deletionTimestamp") and not metadata.get("finalizers") and \
                    not metadata.get("deletionGracePeriodSeconds"):
                self.remove(kind, new)
            return new

    def remove(self, kind, obj):
        with self.lock:
            before = self.objects[kind.plural].pop(name_of(obj), None)
            if before is None:
                return obj
            self.version += 1
            last = self.complete(kind, before)
            self.record_change(kind, "DELETED", last, before)
            return last

    def compact(self):
        """Forgets all history: watches and lists that began earlier have expired."""
        with self.lock:
            self.version += 1
            self.oldest = self.version
            for changes in self.history.values():
                changes.clear()
            self.snapshots.clear()
            self.changed.notify_all()

    def changes_after(self, plural, version):
        with self.lock:
            changes = self.history[plural]
            first = len(changes)
            while first and changes[first - 1].version > version:
                first -= 1
            return changes[first:]

    def dump(self):
        """The content of an etcd backup, for restore()."""
        with self.lock:
            return self.version, {plural: dict(objects) for plural, objects in self.objects.items()}

    def restore(self, backup):
        """Sets objects and resourceVersions back to those of the dump; watches get no event."""
        with self.lock:
            self.version, objects = backup
            self.objects = {plural: dict(found) for plural, found in objects.items()}
            self.oldest = self.version
            for changes in self.history.values():
                changes.clear()
            self.snapshots.clear()
