# SPDX-License-Identifier: Apache-2.0
"""The node's own implementation of the Pod Security Standards: the verdicts of a real API server about random pods
(pod-security.txt, made by cluster/test_pod_security.py), and policies that the implementation does not have."""

import json
import os

import pod_security
import pytest

VERDICTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pod-security.txt")
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
       "spec": {"containers": [{"name": "main", "image": "busybox"}], "hostPID": True}}


def read_verdicts():
    with open(VERDICTS, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("#")]
    cases = [line.split(" ", 2) for line in lines[0::2]]
    return [(level, version, json.loads(pod)) for level, version, pod in cases], [line.strip() for line in lines[1::2]]


@pytest.mark.data
def test_pods_get_the_recorded_verdicts_of_a_real_api_server():
    cases, verdicts = read_verdicts()
    assert len(cases) == len(verdicts) > 200
    found = pod_security.judge(cases)
    wrong = [f"{level}:{version} {pod}\n  server: {theirs}\n  node:   {own}"
             for (level, version, pod), theirs, own in zip(cases, verdicts, found) if theirs != own]
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.data
def test_each_control_has_a_verdict_of_a_real_server():
    _, verdicts = read_verdicts()
    for reason in ("forbidden AppArmor profile", "non-default capabilities", "host namespaces", "hostPath volumes", "hostPort",
                   "probe or lifecycle host", "privileged (", "procMount", "seLinuxOptions", "seccompProfile (container",
                   "seccompProfile (pod or", "forbidden sysctls", "hostProcess",
                   "allowPrivilegeEscalation != false", "unrestricted capabilities", "restricted volume types",
                   "runAsNonRoot != true", "runAsUser=0"):
        assert any(reason in verdict for verdict in verdicts), reason


@pytest.mark.data
@pytest.mark.parametrize("level, version", [
    ("", "latest"), ("Baseline", "latest"), ("privileged ", "latest"), ("none", "-"), ("baseline", "v1.37"), ("baseline", "1.30"),
    ("baseline", "v1.030"), ("baseline", "v1."), ("baseline", "v1.3x"), ("baseline", "v2.0"), ("baseline", "Latest"),
    ("baseline", "v1.99999999999999999999"), ("restricted", "v1.-1"), ("privileged", "v1.99"), ("-", "newest")])
def test_unknown_levels_and_versions_are_no_policy(level, version):
    if level != level.strip() or not level:
        level = "unknown" + level.strip()
    (verdict,) = pod_security.judge([(level, version, POD)])
    assert verdict.startswith("no policy: its label pod-security.kubernetes.io/enforce"), verdict


@pytest.mark.data
@pytest.mark.parametrize("level, version, expected", [
    ("-", "-", "allowed"), ("privileged", "-", "allowed"), ("-", "v1.20", "allowed"),
    ("baseline", "-", 'violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'),
    ("baseline", "v1.0", 'violates PodSecurity "baseline:v1.0": host namespaces (hostPID=true)')])
def test_missing_labels_are_privileged_and_latest(level, version, expected):
    assert pod_security.judge([(level, version, POD)]) == [expected]


@pytest.mark.data
@pytest.mark.parametrize("place", ["containers", "initContainers", "ephemeralContainers"])
def test_containers_of_each_kind_are_checked(place):
    pod = {**POD, "spec": {"containers": [{"name": "main", "image": "busybox"}], "initContainers": []}}
    pod["spec"][place] = [{"name": "main", "image": "busybox"}][:place == "containers"] + [
        {"name": "bad", "image": "busybox", "securityContext": {"privileged": True}}]
    assert pod_security.judge([("baseline", "latest", pod)]) == [
        'violates PodSecurity "baseline:latest": privileged (container "bad" must not set securityContext.privileged=true)']
