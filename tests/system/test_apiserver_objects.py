# SPDX-License-Identifier: Apache-2.0
"""Objects to which API pods refer: ConfigMaps, Secrets, tokens, services."""

import base64
import glob
import json
import os

import specs
import world
from harness import NODE_NAME
from world import wait

USER = f"system:node:{NODE_NAME}"
TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"


def inside(member, name, path, container="main"):
    """A file as the container sees it, or None."""
    return world.read(f"/proc/{member.init(name, container)}/root{path}")


def test_pod_has_its_service_account_volume(make_member):
    member = make_member()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    assert inside(member, "web", f"{TOKENS}/namespace") == "default"
    assert inside(member, "web", f"{TOKENS}/ca.crt") == member.api.get("configmaps", "default", "kube-root-ca.crt")["data"]["ca.crt"]
    request = member.api.asked("create", "serviceaccounts", "default", "token", user=USER)[-1]
    assert request.body["spec"]["boundObjectRef"]["uid"] == member.reported("web")["metadata"]["uid"]
    token = inside(member, "web", f"{TOKENS}/token")
    assert token and token not in member.said()
    kept = wait(lambda: glob.glob(os.path.join(member.state, "cluster", "tokens", "*")), "the token is stored")
    assert [os.stat(path).st_mode & 0o777 for path in kept] == [0o600]


def test_objects_are_watched_by_name_and_volumes_follow_them(make_member):
    member = make_member()
    member.api.create("configmaps", {"metadata": {"name": "settings"}, "data": {"color": "red"}})
    member.api.create("secrets", {"metadata": {"name": "login"}, "data": {"key": base64.b64encode(b"s3cr3t").decode()}})
    member.bind("web", specs.container(
        env=[{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "login", "key": "key"}}}],
        volumeMounts=[specs.mount("s", "/settings")]), volumes=[{"name": "s", "configMap": {"name": "settings"}}])
    member.wait_reported_phase("web", "Running")
    assert inside(member, "web", "/settings/color") == "red"
    assert world.environ(member.init("web"))["KEY"] == "s3cr3t"
    assert "s3cr3t" not in member.said()
    member.api.patch("configmaps", "default", "settings", {"data": {"color": "blue"}})
    wait(lambda: inside(member, "web", "/settings/color") == "blue", "the volume follows the ConfigMap")
    assert not [one for one in member.api.asked("list", "secrets") + member.api.asked("list", "configmaps")
                if "metadata.name" not in str(one.query)]


def test_changed_object_does_not_affect_pods_without_a_reference(make_member):
    member = make_member()
    for name in ("another", "mine"):  # in the order in which the pods are checked
        member.api.create("configmaps", {"metadata": {"name": name}, "data": {"word": "old"}})
        member.bind(name, specs.container(volumeMounts=[specs.mount("v", "/v")]),
                    volumes=[{"name": "v", "configMap": {"name": name}}])
        member.wait_reported_phase(name, "Running")
    uid = member.reported("another")["metadata"]["uid"]
    link = os.path.join(member.state, "pods", uid, "volumes", "kubernetes.io~configmap", "v", "word")
    os.unlink(link)  # an update of the volume would create it again
    member.api.patch("configmaps", "default", "mine", {"data": {"word": "new"}})
    wait(lambda: inside(member, "mine", "/v/word") == "new", "the volume follows its ConfigMap")
    assert not os.path.lexists(link)
    member.api.patch("configmaps", "default", "another", {"data": {"word": "new"}})
    wait(lambda: inside(member, "another", "/v/word") == "new", "the other volume follows it, too")


def test_pod_waits_until_an_optional_object_is_known(make_member):
    member = make_member()
    fault = member.api.misbehave(when=lambda one: "metadata.name=later" in str(one.query), status=503)
    member.bind("web", specs.container(script="echo $(cat /later/word); " + specs.IDLE, volumeMounts=[specs.mount("l", "/later")]),
                volumes=[{"name": "l", "configMap": {"name": "later", "optional": True}}])
    member.bind("strict", specs.container(volumeMounts=[specs.mount("l", "/later")]),
                volumes=[{"name": "l", "configMap": {"name": "missing"}}])
    member.wait_pod("web", lambda pod: True, "exists")
    wait(lambda: 'missing' in member.complaints(), lambda: f"it reports what is missing: {member.complaints()[-6000:]}")
    assert member.reported("web")["status"].get("phase") != "Running"
    member.api.create("configmaps", {"metadata": {"name": "later"}, "data": {"word": "hello"}})
    member.api.faults.remove(fault)
    member.wait_reported_phase("web", "Running")
    wait(lambda: member.logged("web") == ["hello"], "it has received the late object")
    member.api.create("configmaps", {"metadata": {"name": "missing"}, "data": {}})
    member.wait_reported_phase("strict", "Running")


def test_service_variables_are_those_of_the_namespace(make_member):
    member = make_member()
    member.api.create("namespaces", {"metadata": {"name": "other"}})
    for namespace, name in (("default", "my-db"), ("other", "far")):
        member.api.create("services", {"metadata": {"name": name, "namespace": namespace}, "spec": {
            "clusterIP": "10.0.0.7", "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}]}}, namespace)
    wait(lambda: '"my-db"' in (world.read(os.path.join(member.state, "cluster", "services")) or ""), "the node has stored the services")
    member.bind("web")
    member.bind("alone", enableServiceLinks=False)
    member.wait_reported_phase("web", "Running")
    member.wait_reported_phase("alone", "Running")
    env = world.environ(member.init("web"))
    assert env["MY_DB_SERVICE_HOST"] == "10.0.0.7" and env["MY_DB_SERVICE_PORT"] == "5432"
    assert env["MY_DB_SERVICE_PORT_SQL"] == "5432" and env["MY_DB_PORT"] == "tcp://10.0.0.7:5432"
    assert env["MY_DB_PORT_5432_TCP_ADDR"] == "10.0.0.7" and env["MY_DB_PORT_5432_TCP_PROTO"] == "tcp"
    assert "FAR_SERVICE_HOST" not in env
    assert "MY_DB_SERVICE_HOST" not in world.environ(member.init("alone"))


def test_token_is_refreshed_before_it_expires(make_member):
    member = make_member()
    member.api.api.token_life = 12
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    first = inside(member, "web", f"{TOKENS}/token")
    pid = member.init("web")
    wait(lambda: inside(member, "web", f"{TOKENS}/token") not in (first, None, ""), "the token has changed")
    assert member.init("web") == pid


def test_unsupported_pod_is_rejected_with_a_reason(make_member):
    member = make_member()
    member.bind("claims", specs.container(resources={"limits": {"hugepages-64Ki": "64Ki", "cpu": "1"}}))
    reported = member.wait_reported_phase("claims", "Failed")
    assert reported["status"]["reason"] == "UnexpectedAdmissionError"
    assert "hugepages-64Ki" in reported["status"]["message"]
    member.api.delete("pods", "default", "claims")
    member.wait_reported_gone("claims")
    assert json.dumps(member.pods()).count("claims") == 0
