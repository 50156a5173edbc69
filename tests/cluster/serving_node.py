# SPDX-License-Identifier: Apache-2.0
"""A node for programs of other projects, with their images and the kubelet's port."""

import os
import subprocess

from node import ClusterNode
from node_api import ActivatingNode

MAKE_IMAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "make-image")


def preload_programs(node, directory, *images):
    """'images' contains names, and programs in the directory, each of which is its image's entry point."""
    for image, program in images:
        archive = os.path.join(node.directory, f"{program}.tar")
        subprocess.run([MAKE_IMAGE, image, archive, "--entrypoint", os.path.join(directory, program)], check=True)
        node.preload(archive)


def allow_everything(node):
    """Grants all permissions to the pods of the test's namespace."""
    node.client.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": node.namespace},
                        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": node.namespace}]})


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
