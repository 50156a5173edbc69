# SPDX-License-Identifier: Apache-2.0
"""The programs that nearly every cluster runs next to its nodes' agents, laid out as published: kube-proxy, the metrics server and
node-problem-detector. MAINSTAY_ADDONS names the directory of their programs: kube-proxy, metrics-server,
node-problem-detector; without it these tests are left out."""

import json
import os
import subprocess

import pytest
import specs
from serving_node import ServingNode, allow_everything
from specs import mount
from world import wait

PROGRAMS = os.environ.get("MAINSTAY_ADDONS")
PROXY, METRICS, DETECTOR = ("registry.k8s.io/kube-proxy:v1.36.2", "registry.k8s.io/metrics-server/metrics-server:v0.8.0",
                            "registry.k8s.io/node-problem-detector/node-problem-detector:v1.36.0")
# The published images contain iptables; this one contains only the program.
TOOLS = [("usr", "/usr", "/usr"), ("lib", "/lib", "/usr/lib"), ("lib64", "/lib64", "/usr/lib64"), ("sbin", "/sbin", "/usr/sbin"),
         ("bin", "/bin", "/usr/bin"), ("etc-alternatives", "/etc/alternatives", "/etc/alternatives")]


@pytest.fixture(name="node")
def fixture_node(plane, shared):
    node = ServingNode(plane, shared["archive"])
    node.start_with_images(PROGRAMS, (PROXY, "kube-proxy"), (METRICS, "metrics-server"), (DETECTOR, "node-problem-detector"))
    allow_everything(node)
    yield node
    plane.client.delete("clusterrolebindings", None, node.namespace)
    node.finish()


def config_map(node, name, **data):
    node.create("ConfigMap", name, data=data)


def in_cluster_kubeconfig():
    """The kubeconfig that kubeadm writes for kube-proxy."""
    secrets = "/var/run/secrets/kubernetes.io/serviceaccount"
    return json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "default",
                       "clusters": [{"name": "default", "cluster": {"server": "https://10.96.0.1:443", "certificate-authority": f"{secrets}/ca.crt"}}],
                       "users": [{"name": "default", "user": {"tokenFile": f"{secrets}/token"}}],
                       "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}]})


if PROGRAMS:
    def test_kube_proxy_makes_services_reachable_from_pods(node):
        config_map(node, "kube-proxy", **{
            "config.conf": json.dumps({"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
                                       "clientConnection": {"kubeconfig": "/var/lib/kube-proxy/kubeconfig.conf"},
                                       "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}}),
            "kubeconfig.conf": in_cluster_kubeconfig()})
        node.workload("DaemonSet", "kube-proxy", {
            "name": "kube-proxy", "image": PROXY, "securityContext": {"privileged": True},
            "args": ["--config=/var/lib/kube-proxy/config.conf", "--hostname-override=$(NODE_NAME)"],
            "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    {"name": "PATH", "value": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"}],
            "volumeMounts": [mount("kube-proxy", "/var/lib/kube-proxy"), mount("xtables-lock", "/run/xtables.lock"),
                             *(mount(name, path) for name, path, _ in TOOLS)]},
            template={"hostNetwork": True, "priorityClassName": "system-node-critical", "volumes": [
                {"name": "kube-proxy", "configMap": {"name": "kube-proxy"}},
                specs.host_path("xtables-lock", os.path.join(node.directory, "xtables.lock"), type="FileOrCreate"),
                *(specs.host_path(name, path) for name, _, path in TOOLS)]})
        node.wait_pods("kube-proxy", 1)
        node.workload("Deployment", "web", specs.container(script='exec nc -ll -p 8080 -e sh -c "hostname"'), replicas=2,
                      template={"hostNetwork": False})
        node.create("Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]})
        names = {pod["metadata"]["name"] for pod in node.wait_pods("web", 2)}
        address = node.read("services", "web")["spec"]["clusterIP"]
        node.place("client", specs.container(script=f"while sleep 0.2; do nc {address} 80 </dev/null; nc $WEB_SERVICE_HOST $WEB_SERVICE_PORT "
                                                    "</dev/null; done"), hostNetwork=False)
        node.wait_api_running("client")
        wait(lambda: names <= set(node.output("client")), lambda: (node.output("client")[-20:], names, node.output(
            node.api_pods("kube-proxy")[0]["metadata"]["name"], "kube-proxy")[-10:]), 60)
        node.client.delete("services", node.namespace, "web")
        wait(lambda: f"{node.namespace}/web" not in subprocess.run(
            ["nsenter", f"--net=/proc/{node.holder.pid}/ns/net", "iptables-save"], capture_output=True, text=True, check=True).stdout,
             "kube-proxy has removed its rules")

    def test_metrics_server_reports_usage_of_the_node_and_its_pods(node):
        node.place("busy", specs.container(script="while :; do :; done"))
        node.workload("Deployment", "metrics-server", {
            "name": "metrics-server", "image": METRICS, "ports": [{"containerPort": 10250, "name": "https"}],
            "args": ["--cert-dir=/tmp", "--secure-port=10250", "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
                     "--kubelet-use-node-status-port", "--metric-resolution=15s", "--kubelet-insecure-tls"],
            "livenessProbe": {"httpGet": {"path": "/livez", "port": "https", "scheme": "HTTPS"}, "periodSeconds": 10},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "https", "scheme": "HTTPS"}, "initialDelaySeconds": 1, "periodSeconds": 2},
            "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsNonRoot": True, "runAsUser": 1000,
                                "seccompProfile": {"type": "RuntimeDefault"}, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [mount("tmp", "/tmp")]}, replicas=1,
            template={"hostNetwork": False, "volumes": [{"name": "tmp", "emptyDir": {}}]})
        node.wait_api_running("busy")
        pod = node.wait_pods("metrics-server", 1, 120)[0]
        token = node.client.post("serviceaccounts", node.namespace, "default", "token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]

        def figures(path):
            result = subprocess.run(["nsenter", f"--net=/proc/{node.holder.pid}/ns/net", "curl", "-sk", "--max-time", "5", "-H",
                                     f"Authorization: Bearer {token}",
                                     f"https://{pod['status']['podIP']}:10250/apis/metrics.k8s.io/v1beta1/{path}"],
                                    capture_output=True, text=True, check=False)
            return json.loads(result.stdout) if result.stdout.startswith("{") else {}
        usage = wait(lambda: figures(f"nodes/{node.node_name}").get("usage"), lambda: figures("nodes"), 60)
        assert int(usage["cpu"].rstrip("n")) > 0 and int(usage["memory"].rstrip("Ki")) > 0
        busy = wait(lambda: figures(f"namespaces/{node.namespace}/pods/busy").get("containers"), lambda: figures("pods"), 60)
        assert [one["name"] for one in busy] == ["main"]
        assert int(busy[0]["usage"]["cpu"].rstrip("n")) > 50_000_000 and int(busy[0]["usage"]["memory"].rstrip("Ki")) > 0

    def test_agent_keeps_the_condition_that_node_problem_detector_writes(node):
        config_map(node, "npd", **{"kernel.json": json.dumps({
            "plugin": "filelog", "pluginConfig": {"timestamp": "^.{15}", "message": "kernel: (.*)", "timestampFormat": "Jan _2 15:04:05"},
            "logPath": "/var/log/kern.log", "lookback": "5m", "bufferSize": 10, "source": "kernel-monitor",
            "conditions": [{"type": "KernelDeadlock", "reason": "KernelHasNoDeadlock", "message": "kernel has no deadlock"}],
            "rules": [{"type": "permanent", "condition": "KernelDeadlock", "reason": "DockerHung", "pattern": "task docker:\\w+ blocked.*"}]})})
        log = os.path.join(node.directory, "kern.log")
        with open(log, "w", encoding="ascii") as file:
            file.write("\n")
        node.workload("DaemonSet", "npd", {
            "name": "npd", "image": DETECTOR, "args": ["--logtostderr", "--config.system-log-monitor=/config/kernel.json", "--address=0.0.0.0"],
            "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}], "securityContext": {"privileged": True},
            "volumeMounts": [mount("log", "/var/log/kern.log", readOnly=True), mount("config", "/config", readOnly=True)]},
            template={"hostNetwork": False, "volumes": [specs.host_path("log", log, type="File"), {"name": "config", "configMap": {"name": "npd"}}]})
        node.wait_pods("npd", 1)
        wait(lambda: node.condition("KernelDeadlock").get("status") == "False", lambda: node.node()["status"]["conditions"], 60)
        node.restart()
        node.wait_node_ready()
        assert node.condition("KernelDeadlock")["reason"] == "KernelHasNoDeadlock"
        assert node.is_node_ready()
