# SPDX-License-Identifier: Apache-2.0
"""Data that pods get from other objects of the server: ConfigMaps, Secrets, tokens, services, volumes."""

import base64
import json
import os

import pytest
import specs
import world
from node import LABEL
from trial import agnhost
from world import wait


def exec_in(node, name, *words):
    return node.cli("exec", "-n", node.namespace, name, "--", *words).stdout


def test_config_map_is_available_as_variables_and_updated_in_its_volume(node):
    node.create("ConfigMap", "settings", data={"colour": "red"})
    node.place("web", specs.container(script=f"echo $COLOUR; {specs.IDLE}",
                                      env=[{"name": "COLOUR", "valueFrom": {
                                          "configMapKeyRef": {"name": "settings", "key": "colour"}}}],
                                      volumeMounts=[specs.mount("settings", "/settings")]),
               volumes=[{"name": "settings", "configMap": {"name": "settings"}}])
    node.wait_api_running("web")
    pid = node.init("web")
    wait(lambda: node.output("web") == ["red"], "the variable")
    node.client.patch("configmaps", node.namespace, "settings", {"data": {"colour": "blue", "shape": "round"}})
    wait(lambda: exec_in(node, "web", "cat", "/settings/colour", "/settings/shape") == "blueround", "the new values")
    assert node.init("web") == pid


def test_secret_is_updated_in_its_volume(node):
    node.create("Secret", "login", stringData={"password": "first"})
    node.place("web", specs.container(volumeMounts=[specs.mount("login", "/login")]),
               volumes=[{"name": "login", "secret": {"secretName": "login", "defaultMode": 0o400}}])
    node.wait_api_running("web")
    assert exec_in(node, "web", "cat", "/login/password") == "first"
    assert exec_in(node, "web", "stat", "-L", "-c", "%a", "/login/password") == "400\n"
    node.client.patch("secrets", node.namespace, "login", {"stringData": {"password": "second"}})
    wait(lambda: exec_in(node, "web", "cat", "/login/password") == "second", "the new value")
    assert "second" not in node.said() and "second" not in str(node.pods())


def test_pod_waits_for_its_config_map(node):
    node.place("web", volumes=[{"name": "late", "configMap": {"name": "late"}}])
    event = node.wait_event("web", "FailedMount")
    assert 'configmap "late" not found' in event["message"], event
    assert node.read("pods", "web")["status"]["phase"] == "Pending"
    node.create("ConfigMap", "late", data={"a": "b"})
    node.wait_api_running("web")


def test_immutable_config_map_is_used(node):
    node.create("ConfigMap", "fixed", data={"a": "1"}, immutable=True)
    node.place("web", specs.container(envFrom=[{"configMapRef": {"name": "fixed"}}], script=f"echo $a; {specs.IDLE}"))
    node.wait_api_running("web")
    wait(lambda: node.output("web") == ["1"], "the variable")


def test_service_account_token_is_projected_and_bound_to_the_pod(node):
    node.place("web")
    pod = node.wait_api_running("web")
    place = "/var/run/secrets/kubernetes.io/serviceaccount"
    token = exec_in(node, "web", "cat", f"{place}/token")
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["kubernetes.io"]["pod"] == {"name": "web", "uid": pod["metadata"]["uid"]}
    assert claims["kubernetes.io"]["node"]["name"] == node.node_name
    assert exec_in(node, "web", "cat", f"{place}/namespace") == node.namespace
    assert exec_in(node, "web", "cat", f"{place}/ca.crt") == world.read(node.plane.authority.cert)
    review = node.client.do("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}})
    assert review["status"]["user"]["username"] == f"system:serviceaccount:{node.namespace}:default"


def test_service_account_token_for_an_audience_is_projected(node):
    node.place("web", specs.container(volumeMounts=[specs.mount("vault", "/vault")]), volumes=[
        {"name": "vault", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 600}}]}}])
    node.wait_api_running("web")
    token = exec_in(node, "web", "cat", "/vault/token")
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["aud"] == ["vault"] and claims["exp"] - claims["iat"] == 600


def test_refused_token_is_reported_with_the_message_of_the_server(node):
    node.create("ServiceAccount", "robot")
    node.kill9()
    node.bind("web", serviceAccountName="robot")
    node.client.delete("serviceaccounts", node.namespace, "robot")
    node.start()
    event = node.wait_event("web", "FailedMount")
    wait(lambda: any('serviceaccounts "robot" not found' in one["message"] for one in node.events("web")),
         lambda: f"the reason of the server: {node.describe_events('web')}")
    assert event["type"] == "Warning"
    node.create("ServiceAccount", "robot")


def test_client_in_a_pod_reaches_the_API_server(agnhost_node):
    """The client uses the token, the authority and the address that every pod gets."""
    node = agnhost_node
    node.place("client", agnhost("inclusterclient", "--poll-interval=1"))
    node.wait_api_running("client")
    wait(lambda: any("calling /healthz" in line for line in node.output("client")), lambda: f"a call: {node.output('client')}")
    wait(lambda: any(line.strip().endswith("status=success") or "authz_header=" in line for line in node.output("client")),
         lambda: f"a token: {node.output('client')}")


def test_service_variables_are_set(node):
    node.create("Service", "data-base", spec={"selector": {"app": "none"}, "ports": [
        {"name": "main", "port": 5432, "protocol": "TCP"}]})
    address = node.read("services", "data-base")["spec"]["clusterIP"]
    node.place("web", specs.container(script=f"env; {specs.IDLE}"))
    node.wait_api_running("web")
    wait(lambda: len(node.output("web")) > 5, "the variables")
    lines = node.output("web")
    assert f"DATA_BASE_SERVICE_HOST={address}" in lines and "DATA_BASE_SERVICE_PORT=5432" in lines
    assert "DATA_BASE_SERVICE_PORT_MAIN=5432" in lines and f"DATA_BASE_PORT_5432_TCP=tcp://{address}:5432" in lines
    assert "KUBERNETES_SERVICE_HOST=10.96.0.1" in lines and "KUBERNETES_SERVICE_PORT=443" in lines


def test_service_variables_are_not_set_if_service_links_are_disabled(node):
    node.create("Service", "web", spec={"selector": {"app": "none"}, "ports": [{"port": 80}]})
    node.place("web", specs.container(script=f"env; {specs.IDLE}"), enableServiceLinks=False)
    node.wait_api_running("web")
    wait(lambda: len(node.output("web")) > 3, "the variables")
    assert not [line for line in node.output("web") if line.startswith("WEB_")]
    assert "KUBERNETES_SERVICE_HOST=10.96.0.1" in node.output("web")


def test_files_of_a_config_map_have_the_requested_modes(agnhost_node):
    node = agnhost_node
    node.create("ConfigMap", "files", data={"data-1": "value-1"})
    node.place("test", agnhost("mounttest", "--file_content=/etc/files/data-1", "--file_mode=/etc/files/data-1",
                               volumeMounts=[specs.mount("files", "/etc/files")]),
               volumes=[{"name": "files", "configMap": {"name": "files", "defaultMode": 0o400}}], restartPolicy="Never")
    node.wait_api_phase("test", "Succeeded")
    log = "\n".join(node.output("test"))
    assert 'content of file "/etc/files/data-1": value-1' in log
    assert 'mode of file "/etc/files/data-1": -r--------' in log


def test_emptyDir_has_the_requested_mode_and_medium(agnhost_node):
    node = agnhost_node
    node.place("test", agnhost("mounttest", "--fs_type=/empty", "--file_perm=/empty", "--file_mode=/empty",
                               volumeMounts=[specs.mount("empty", "/empty")]),
               volumes=[{"name": "empty", "emptyDir": {"medium": "Memory"}}], restartPolicy="Never")
    node.wait_api_phase("test", "Succeeded")
    log = "\n".join(node.output("test"))
    assert 'mount type of "/empty": tmpfs' in log and 'perms of file "/empty": -rwxrwxrwx' in log


def test_downward_API_reports_names_and_limits(agnhost_node):
    node = agnhost_node
    node.place("test", agnhost("mounttest", "--file_content=/info/cpu", volumeMounts=[specs.mount("info", "/info")],
                               resources={"limits": {"cpu": "1250m", "memory": "64Mi"}}),
               volumes=[{"name": "info", "downwardAPI": {"items": [{"path": "cpu", "resourceFieldRef": {
                   "containerName": "main", "resource": "limits.cpu", "divisor": "1m"}}]}}], restartPolicy="Never")
    node.wait_api_phase("test", "Succeeded")
    assert 'content of file "/info/cpu": 1250' in "\n".join(node.output("test"))


# Volumes of the cluster

def claim(node, volume):
    """Creates a PersistentVolume and its claim, bound to each other."""
    name = f"{node.namespace}-data"
    node.client.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": node.namespace, "name": "data"}, **volume}})
    node.create("PersistentVolumeClaim", "data", spec={"accessModes": ["ReadWriteOnce"], "storageClassName": "",
                                                       "volumeName": name,
                                                       "resources": {"requests": {"storage": "1Gi"}}})
    node.wait_for("persistentvolumeclaims", "data", lambda claim: claim["status"]["phase"] == "Bound", "is bound")
    return [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def local(node):
    """A local volume, which is on this node."""
    return {"local": {"path": node.data}, "nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": LABEL, "operator": "In", "values": [node.node_name]}]}]}}}


def check_claimed_volume(node, volume):
    volumes = claim(node, volume)
    try:
        with open(os.path.join(node.data, "there"), "w", encoding="utf-8") as file:
            file.write("before")
        node.place("web", specs.container(script=f"cat /data/there > /data/copy; {specs.IDLE}",
                                          volumeMounts=[specs.mount("data", "/data")]), volumes=volumes)
        node.wait_api_running("web")
        wait(lambda: world.read(os.path.join(node.data, "copy")) == "before", "the volume is that directory")
        node.client.delete("pods", node.namespace, "web")
        node.wait_api_gone("web")
        assert world.read(os.path.join(node.data, "there")) == "before"
    finally:
        node.client.delete("pods", node.namespace, "web", grace=0)
        node.client.delete("persistentvolumeclaims", node.namespace, "data")
        node.client.delete("persistentvolumes", None, f"{node.namespace}-data")


def test_claim_bound_to_a_hostPath_volume_is_mounted(node):
    check_claimed_volume(node, {"hostPath": {"path": node.data}})


def test_claim_bound_to_a_local_volume_is_mounted(node):
    check_claimed_volume(node, local(node))


@pytest.mark.parametrize("policy", ["Always", "OnRootMismatch"])
def test_claim_bound_to_a_local_volume_has_the_fs_group_of_the_pod(node, policy):
    os.makedirs(f"{node.data}/below")
    with open(f"{node.data}/below/file", "w", encoding="utf-8") as file:
        file.write("before")
    os.symlink("/etc/passwd", f"{node.data}/link")
    volumes = claim(node, local(node))
    try:
        node.place("web", specs.container(script=f"echo more >> /data/below/file; touch /data/below/new; {specs.IDLE}",
                                          volumeMounts=[specs.mount("data", "/data")], securityContext={"runAsUser": 1000}),
                   securityContext={"fsGroup": 2000, "fsGroupChangePolicy": policy}, volumes=volumes)
        node.wait_api_running("web")
        wait(lambda: os.path.exists(f"{node.data}/below/new"), "a file of the pod")
        modes = {name: (os.stat(path).st_gid, os.stat(path).st_mode & 0o7777) for name, path in (
            ("root", node.data), ("below", f"{node.data}/below"), ("file", f"{node.data}/below/file"))}
        assert modes["below"] == (2000, 0o2775) and modes["file"] == (2000, 0o664), modes
        assert modes["root"][0] == 2000 and os.stat(f"{node.data}/below/new").st_gid == 2000
        assert os.stat("/etc/passwd").st_gid == 0
    finally:
        node.client.delete("pods", node.namespace, "web", grace=0)
        node.client.delete("persistentvolumeclaims", node.namespace, "data")
        node.client.delete("persistentvolumes", None, f"{node.namespace}-data")


def check_waits_for_volume(node, volume, *words):
    node.bind("web", specs.container(volumeMounts=[specs.mount("data", "/data")]), volumes=[{"name": "data", **volume}])
    event = wait(lambda: next((event for event in node.events("web", "FailedMount")
                               if all(word in event["message"] for word in words)), None),
                 lambda: f"an event of {words}; there are {node.describe_events('web')}")
    assert event["type"] == "Warning"
    pod = node.read("pods", "web")
    assert pod["status"]["phase"] == "Pending", pod["status"]


def test_pod_with_a_missing_claim_is_pending(node):
    check_waits_for_volume(node, {"persistentVolumeClaim": {"claimName": "absent"}}, "data",
                           'persistentvolumeclaim "absent" not found')


def test_pod_with_a_CSI_volume_is_pending(node):
    check_waits_for_volume(node, {"csi": {"driver": "csi.example.com"}}, "data", "csi.example.com")


def test_pod_with_an_NFS_volume_is_pending(node):
    check_waits_for_volume(node, {"nfs": {"server": "127.0.0.1", "path": "/export"}}, "data", "mount failed", "127.0.0.1:/export")
