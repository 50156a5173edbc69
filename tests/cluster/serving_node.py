# SPDX-License-Identifier: Apache-2.0
"""A node for programs of other projects, with their images and the kubelet's port."""

import os
import subprocess

from client import KINDS
from node import ClusterNode
from node_api import ActivatingNode

MAKE_IMAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "make-image")


def preload_programs(node, directory, *images):
    """'images' are pairs of an image name and a program in the directory, which is the entry point of the image."""
    for image, program in images:
        archive = os.path.join(node.directory, f"{program}.tar")
        subprocess.run([MAKE_IMAGE, image, archive, "--entrypoint", os.path.join(directory, program)], check=True)
        node.preload(archive)


def allow_everything(node):
    """Grants all permissions to the pods of the test's namespace."""
    node.client.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": node.namespace},
                        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": node.namespace}]})


def make_kind(client, kind, **version):
    """Creates the definition of a custom resource of client.KINDS with any content; returns its name."""
    root, plural, namespaced = KINDS[kind]
    _, group, version_name = root.split("/")
    client.create({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                   "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
                   "spec": {"group": group, "scope": "Namespaced" if namespaced else "Cluster", "names": {"plural": plural, "kind": kind},
                            "versions": [{"name": version_name, "served": True, "storage": True, **version, "schema": {
                                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
    return f"{plural}.{group}"


class ServingNode(ActivatingNode, ClusterNode):
    """A node that listens at the kubelet's port, with the cluster's authentication and authorization."""

    port = 10250

    def __init__(self, plane, archive):
        self.make_mounts()
        super().__init__(plane, archive=archive, start=False)
        self.write_config(enableServer=True, port=self.port, authentication={"x509": {"clientCAFile": plane.authority.cert}})
        self.add_user()

    def start_with_images(self, directory, *images):
        preload_programs(self, directory, *images)
        self.start()
        self.wait_node_ready()
