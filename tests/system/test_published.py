# SPDX-License-Identifier: Apache-2.0
"""Daemons that other projects publish, in the file of the corpus with all other objects: each runs as one pod of this
node. Only their programs are replaced, and the host's directories are replaced by some of the test."""

import os

import harness
import pytest
import specs
import world
import yaml
from test_daemonsets import wait_daemon, wait_none

PUBLISHED = os.path.join(harness.TOP, "tests", "corpus", "published")
TYPES = {"Directory": "DirectoryOrCreate", "File": "FileOrCreate"}

# File and DaemonSet: with roles, CRDs and Services, an old serviceAccount, a volume without a source, an unknown field, SYS_ADMIN
# without privileges, projections of a ConfigMap, users that are not root.
DAEMONS = [("flannel", "kube-flannel-ds"), ("kube-router", "kube-router"), ("multus", "kube-multus-ds"), ("whereabouts", "whereabouts"),
           ("weave-net", "weave-net"), ("kindnet", "kindnet"), ("dcgm-exporter", "dcgm-exporter"), ("goldpinger", "goldpinger"),
           ("fluentd-elasticsearch", "fluentd"), ("nvidia-device-plugin-service-account", "nvidia-device-plugin-daemonset"),
           ("node-problem-detector", "node-problem-detector"), ("grafana-alloy", "grafana-alloy"), ("azure-npm", "azure-npm"),
           ("aad-pod-identity", "nmi"), ("csi-nfs", "csi-nfs-node")]


# Static pods of control planes: null and empty fields, both a priority and its class, users, selectors, an unknown source of a volume.
STATIC_PODS = ["kubeadm-keepalived", "kubeadm-kube-vip", "kubespray-nginx-proxy", "kubespray-haproxy", "gce-etcd", "gce-kube-apiserver",
               "kops-kube-scheduler", "openshift-keepalived"]


def replace_program(container, command):
    """Gives the container the test's image and command; fields that belong to the program are removed."""
    for field in ("args", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources"):
        container.pop(field, None)
    container.update(image=specs.IMAGE, imagePullPolicy="IfNotPresent", command=command)
    for mount in container.get("volumeMounts", []):
        mount.pop("mountPropagation", None)  # the directories of the test are not on a shared mount


def tame(spec, directory):
    """Makes the spec of a published daemon harmless: its host paths are below a directory of the test."""
    for container in spec.get("initContainers", []):
        replace_program(container, ["/bin/true"])
    for container in spec["containers"]:
        replace_program(container, ["/bin/sh", "-c", specs.IDLE])
    for volume in spec.get("volumes", []):
        if "hostPath" in volume:
            kind = volume["hostPath"].get("type")
            volume["hostPath"] = {"path": f"{directory}/{volume['name']}", "type": TYPES.get(kind, kind) or "DirectoryOrCreate"}
    spec.update(hostNetwork=True, terminationGracePeriodSeconds=2)


def published(file, directory):
    with open(os.path.join(PUBLISHED, file + ".yaml"), encoding="utf-8") as stream:
        documents = list(yaml.safe_load_all(stream))
    for document in documents:
        if document["kind"] == "DaemonSet":
            tame(document["spec"]["template"]["spec"], directory)
        elif document["kind"] == "Pod":
            tame(document["spec"], directory)
    return specs.text(*documents)


@pytest.mark.quick
def test_published_daemons_run_from_the_files_they_are_published_in(make_node):
    node = make_node()
    for file, _ in DAEMONS:
        os.makedirs(f"{node.data}/{file}")
        node.drop(published(file, f"{node.data}/{file}").encode(), file=file + ".yaml")
    for _, name in DAEMONS:
        wait_daemon(node, name)
    for file, name in DAEMONS:
        node.remove(file)
        wait_none(node, name)


def test_published_static_pods_run(make_node):
    node = make_node()
    specs_by_file = {}
    for file in STATIC_PODS:
        os.makedirs(f"{node.data}/{file}")
        document = yaml.safe_load(published(file, f"{node.data}/{file}"))
        document["metadata"].update(name=file, namespace="default")
        node.drop(specs.text(document).encode(), file=file + ".yaml")
        specs_by_file[file] = document["spec"]
    for file, spec in specs_by_file.items():
        node.wait_running(file)
        user = spec.get("securityContext", {}).get("runAsUser", 0)
        pid = node.init(file, spec["containers"][0]["name"])
        assert world.status(pid, "Uid").split()[0] == str(user)
