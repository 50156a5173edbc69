# SPDX-License-Identifier: Apache-2.0
"""A client of the API server for tests: one persistent connection, JSON in and out."""

import ctypes
import http.client
import json
import os
import socket
import ssl
import threading
import urllib.parse

CLONE_NEWNET = 0x40000000
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"

# The path of each kind, and whether it has a namespace.
KINDS = {
    "Pod": ("api/v1", "pods", True), "ConfigMap": ("api/v1", "configmaps", True), "Secret": ("api/v1", "secrets", True),
    "Service": ("api/v1", "services", True), "ServiceAccount": ("api/v1", "serviceaccounts", True),
    "Event": ("api/v1", "events", True), "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims", True),
    "Namespace": ("api/v1", "namespaces", False), "Node": ("api/v1", "nodes", False),
    "PersistentVolume": ("api/v1", "persistentvolumes", False),
    "Deployment": ("apis/apps/v1", "deployments", True), "ReplicaSet": ("apis/apps/v1", "replicasets", True),
    "StatefulSet": ("apis/apps/v1", "statefulsets", True), "DaemonSet": ("apis/apps/v1", "daemonsets", True),
    "ControllerRevision": ("apis/apps/v1", "controllerrevisions", True),
    "Job": ("apis/batch/v1", "jobs", True), "CronJob": ("apis/batch/v1", "cronjobs", True),
    "Lease": ("apis/coordination.k8s.io/v1", "leases", True),
    "PriorityClass": ("apis/scheduling.k8s.io/v1", "priorityclasses", False),
    "RuntimeClass": ("apis/node.k8s.io/v1", "runtimeclasses", False),
    "StorageClass": ("apis/storage.k8s.io/v1", "storageclasses", False),
    "VolumeAttachment": ("apis/storage.k8s.io/v1", "volumeattachments", False),
    "CSIDriver": ("apis/storage.k8s.io/v1", "csidrivers", False), "CSINode": ("apis/storage.k8s.io/v1", "csinodes", False),
    "CertificateSigningRequest": ("apis/certificates.k8s.io/v1", "certificatesigningrequests", False),
    "ClusterRoleBinding": ("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "CustomResourceDefinition": ("apis/apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    "NodeResourceTopology": ("apis/topology.node.k8s.io/v1alpha2", "noderesourcetopologies", False),
    "VolumeSnapshot": ("apis/snapshot.storage.k8s.io/v1", "volumesnapshots", True),
    "VolumeSnapshotClass": ("apis/snapshot.storage.k8s.io/v1", "volumesnapshotclasses", False),
    "VolumeSnapshotContent": ("apis/snapshot.storage.k8s.io/v1", "volumesnapshotcontents", False),
    "PodDisruptionBudget": ("apis/policy/v1", "poddisruptionbudgets", True),
}
BY_PLURAL = {plural: (root, namespaced) for root, plural, namespaced in KINDS.values()}

_libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """The server's Status."""

    def __init__(self, code, status):
        self.code, self.status = code, status
        super().__init__(f"{code} {status.get('reason', '')}: {status.get('message', '')}")


def enter(net):
    """Moves the calling thread into a network namespace, which is given by a descriptor."""
    if _libc.setns(net, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def connect_inside(net, address, port, timeout):
    """A connection whose socket belongs to the network namespace that a file names. The thread returns to its own namespace."""
    own = os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    other = os.open(net, os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter(other)
        try:
            return socket.create_connection((address, port), timeout)
        finally:
            enter(own)
    finally:
        os.close(own)
        os.close(other)


class InsideConnection(http.client.HTTPSConnection):
    def __init__(self, net, address, context):
        super().__init__(address, 443, timeout=60, context=context)
        self.net, self.context = net, context

    def connect(self):
        self.sock = self.context.wrap_socket(connect_inside(self.net, self.host, self.port, self.timeout),
                                             server_hostname=self.host)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Client:
    """A client for one thread. 'cert' and 'key' are files, 'net' names the network namespace."""

    def __init__(self, net, address, authority, cert=None, key=None, token=None):
        context = ssl.create_default_context(cafile=authority)
        if cert:
            context.load_cert_chain(cert, key)
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.connection = InsideConnection(net, address, context)

    def close(self):
        self.connection.close()

    def do(self, method, path, body=None, content_type="application/json", parse=True):
        """Returns the response; without 'parse' its bytes. If a kept connection has ended in the meantime, it is opened again."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        for is_last in (self.connection.sock is None, True):
            try:
                self.connection.request(method, path, data, {**self.headers, "Content-Type": content_type})
                response = self.connection.getresponse()
                answer = response.read()
                break
            except (http.client.HTTPException, OSError) as error:
                self.connection.close()
                if is_last:
                    raise error if isinstance(error, OSError) else OSError(str(error)) from error
        if response.status >= 300:
            raise Refused(response.status, read_status(answer))
        return json.loads(answer) if parse else answer

    def get(self, plural, namespace, name, subresource=None):
        """The object, or None."""
        try:
            return self.do("GET", path_of(plural, namespace, name, subresource))
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def all(self, plural, namespace=None, **selectors):
        """All objects, for which labelSelector and fieldSelector may be given."""
        query = "?" + urllib.parse.urlencode(selectors) if selectors else ""
        return self.do("GET", path_of(plural, namespace) + query)["items"]

    def create(self, obj, namespace=None):
        _, plural, namespaced = KINDS[obj["kind"]]
        return self.do("POST", path_of(plural, namespaced and (namespace or obj["metadata"]["namespace"])), obj)

    def replace(self, obj, subresource=None):
        _, plural, _ = KINDS[obj["kind"]]
        metadata = obj["metadata"]
        return self.do("PUT", path_of(plural, metadata.get("namespace"), metadata["name"], subresource), obj)

    def patch(self, plural, namespace, name, patch, subresource=None, content_type=STRATEGIC):
        return self.do("PATCH", path_of(plural, namespace, name, subresource), patch, content_type)

    def post(self, plural, namespace, name, subresource, body):
        return self.do("POST", path_of(plural, namespace, name, subresource), body)

    def delete(self, plural, namespace, name=None, grace=None, propagation=None):
        """Deletes an object, or without a name all objects in the namespace. A missing object counts as deleted."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if propagation:
            options["propagationPolicy"] = propagation
        try:
            return self.do("DELETE", path_of(plural, namespace, name), options)
        except Refused as refused:
            if refused.code != 404:
                raise
            return None


def read_status(answer):
    try:
        return json.loads(answer)
    except ValueError:
        return {"message": answer.decode(errors="replace")}


def path_of(plural, namespace=None, name=None, subresource=None):
    root, namespaced = BY_PLURAL[plural]
    parts = [root] + (["namespaces", namespace] if namespaced and namespace else []) + [plural]
    return "/" + "/".join(parts + [part for part in (name, subresource) if part])
