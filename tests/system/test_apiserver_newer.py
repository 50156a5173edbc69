# SPDX-License-Identifier: Apache-2.0
"""Values in pods that only a newer API server knows: each selects the default, or fails only where it does in the
kubelet."""

import pytest
import specs
import world
from test_apiserver_admission import rejected
from world import wait

NEWER = "FromTheFuture"


def events_of(member, name, reason):
    return [one for one in member.api.all("events") if one["involvedObject"]["name"] == name and one["reason"] == reason]


def wait_event(member, name, reason):
    return wait(lambda: events_of(member, name, reason), lambda: f"{name} has {reason}: {member.api.all('events')}")[0]["message"]


def wait_waiting(member, name):
    """Waits until the container waits for something other than its image and its volumes; returns the message."""
    pod = member.wait_reported(name, lambda pod: any(
        one.get("state", {}).get("waiting", {}).get("reason") == "CreateContainerConfigError"
        for one in pod["status"].get("containerStatuses", [])), "cannot create its container")
    assert pod["status"]["phase"] == "Pending" and "reason" not in pod["status"]
    return pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"]


def test_unknown_enum_values_with_a_default_leave_the_pod_running(make_member):
    member = make_member()
    member.bind("web", specs.container(
        imagePullPolicy=NEWER, restartPolicy=NEWER, terminationMessagePolicy=NEWER,
        restartPolicyRules=[{"action": NEWER, "exitCodes": {"operator": NEWER, "values": [1]}}, {"action": "Restart", NEWER: {}}],
        ports=[{"containerPort": 8080, "protocol": NEWER}],
        resizePolicy=[{"resourceName": "cpu", "restartPolicy": NEWER}, {"resourceName": NEWER, "restartPolicy": NEWER}],
        readinessProbe={NEWER: {}}, envFrom=[{NEWER: {"name": "x"}}], env=[{"name": "A", "valueFrom": {NEWER: {"name": "x"}}}],
        securityContext={"procMount": NEWER}),
        restartPolicy=NEWER, dnsPolicy=NEWER, tolerations=[{"operator": "Exists", "effect": NEWER}, {"key": "a", "operator": NEWER}],
        securityContext={"fsGroupChangePolicy": NEWER, "seLinuxChangePolicy": NEWER},
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "a", "labelSelector": {"matchExpressions": [{"key": "a", "operator": NEWER}]}}]}})
    member.wait_reported_phase("web", "Running")
    assert "A=" in world.read(f"/proc/{member.init('web')}/environ").split("\0")


def test_unknown_restart_policy_restarts_the_container(make_member):
    member = make_member()
    member.bind("web", specs.container(script="exit 0", restartPolicy=NEWER), restartPolicy=NEWER)
    member.wait_reported("web", lambda pod: any(one["restartCount"] > 0 for one in pod["status"].get("containerStatuses", [])),
                         "has restarted")


@pytest.mark.parametrize("word, fields, spec", [
    ("invalid MountPropagation mode", {"volumeMounts": [specs.mount("v", "/a", mountPropagation=NEWER)]}, {}),
    ("unknown recursive read-only mode", {"volumeMounts": [specs.mount("v", "/a", readOnly=True, recursiveReadOnly=NEWER)]}, {}),
    ("unknown seccomp profile type", {"securityContext": {"seccompProfile": {"type": NEWER}}}, {}),
    ("unknown seccomp profile type", {}, {"securityContext": {"seccompProfile": {"type": NEWER}}}),
    ("unknown AppArmor profile type", {"securityContext": {"appArmorProfile": {"type": NEWER}}}, {}),
    (f"unsupported fieldPath: status.{NEWER}", {"env": [
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": f"status.{NEWER}"}}}]}, {}),
])
def test_container_with_an_unknown_option_waits(make_member, word, fields, spec):
    member = make_member()
    member.bind("web", specs.container(**fields), volumes=[{"name": "v", "emptyDir": {}}], **spec)
    assert word in wait_waiting(member, "web")
    member.restart()
    assert word in wait_waiting(member, "web")
    member.api.delete("pods", "default", "web")
    member.wait_reported_gone("web")


@pytest.mark.parametrize("word, volume", [
    ("hostPath type check failed", {"hostPath": {"path": "/tmp", "type": NEWER}}),
    ("unknown storage medium", {"emptyDir": {"medium": NEWER}}),
    (f"unsupported fieldPath: {NEWER}", {"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": NEWER}}]}}),
])
def test_volume_with_an_unknown_option_waits(make_member, word, volume):
    member = make_member()
    member.bind("web", specs.container(volumeMounts=[specs.mount("v", "/a")]), volumes=[{"name": "v", **volume}])
    assert word in wait_event(member, "web", "FailedMount")
    assert member.wait_reported("web", lambda pod: pod["status"].get("phase"), "has a phase")["status"]["phase"] == "Pending"
    member.api.delete("pods", "default", "web")
    member.wait_reported_gone("web")


def test_sandbox_that_cannot_be_created_as_requested_waits(make_member):
    member = make_member()
    member.bind("web", securityContext={"supplementalGroupsPolicy": NEWER})
    assert "unsupported supplementalGroupsPolicy" in wait_event(member, "web", "FailedCreatePodSandBox")
    assert member.wait_reported("web", lambda pod: pod["status"].get("phase"), "has a phase")["status"]["phase"] == "Pending"


def test_handlers_of_an_unknown_kind_or_scheme_fail(make_member):
    member = make_member()
    member.bind("web", specs.container(livenessProbe={
        "httpGet": {"port": 80, "scheme": NEWER}, "periodSeconds": 1, "failureThreshold": 1000}))
    assert "unsupported protocol scheme" in wait_event(member, "web", "Unhealthy")
    member.bind("hook", specs.container(lifecycle={"postStart": {NEWER: {}}}))
    assert "missing handler" in wait_event(member, "hook", "FailedPostStartHook")


def test_unknown_node_or_system_rejects_the_pod(make_member):
    member = make_member()
    member.bind("system", os={"name": NEWER})
    assert rejected(member, "system", "PodOSNotSupported")
    requirement = {"key": "kubernetes.io/os", "operator": NEWER, "values": ["linux"]}
    for name, kind in (("labels", "matchExpressions"), ("fields", "matchFields")):
        member.bind(name, affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{kind: [requirement]}]}}})
        assert rejected(member, name, "NodeAffinity")
