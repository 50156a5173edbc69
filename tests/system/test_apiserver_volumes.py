# SPDX-License-Identifier: Apache-2.0
"""Volumes of this node that API pods use through claims, and volumes that the node cannot mount."""

import os

import pytest
import specs
import world
from harness import NODE_NAME
from test_apiserver_offline import wait_kept
from world import wait

MOUNT = "/data"


def events_of(member, name, reason):
    return [one for one in member.api.all("events") if one["involvedObject"]["name"] == name and one["reason"] == reason]


def bind(member, name, volume, **spec):
    return member.bind(name, specs.container(volumeMounts=[specs.mount("v", MOUNT)]), volumes=[{"name": "v", **volume}], **spec)


def claim(member, name, volume=None, **metadata):
    """Creates a claim, which is bound to a volume or not."""
    return member.api.create("persistentvolumeclaims", {
        "metadata": {"name": name, **metadata}, "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
                                                         **({"volumeName": volume} if volume else {})},
        "status": {"phase": "Bound" if volume else "Pending"}})


def volume(member, name, owner=None, **source):
    uid = owner["metadata"]["uid"] if owner else "00000000-0000-0000-0000-000000000000"
    return member.api.create("persistentvolumes", {
        "metadata": {"name": name}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
            "claimRef": {"namespace": "default", "name": "c", "uid": uid}, **source}, "status": {"phase": "Bound"}})


def inside(member, name, path):
    return world.read(f"/proc/{member.init(name)}/root{path}")


@pytest.mark.parametrize("kind, word", [
    ({"nfs": {"server": "-o", "path": "/export"}}, "-o:/export"),
    ({"csi": {"driver": "disk.csi.example.com", "volumeAttributes": {"a": "b"}}}, "disk.csi.example.com"),
    ({"iscsi": {"targetPortal": "192.0.2.1:3260", "iqn": "iqn.2001-04.com.example:x", "lun": 0}}, "iscsi"),
    ({"persistentVolumeClaim": {"claimName": "missing"}}, 'persistentvolumeclaim "missing" not found'),
    ({"projected": {"sources": [{"clusterTrustBundle": {"name": "x", "path": "ca"}}]}}, "clusterTrustBundle"),
])
def test_pod_waits_for_a_volume_that_cannot_be_mounted(make_member, kind, word):
    member = make_member()
    bind(member, "web", kind)
    event = wait(lambda: events_of(member, "web", "FailedMount"), lambda: f"it is reported: {member.api.all('events')}")[0]
    assert event["type"] == "Warning" and event["message"].startswith('MountVolume.SetUp failed for volume "v" : ')
    assert word in event["message"]
    status = member.wait_reported("web", lambda pod: pod["status"].get("containerStatuses"), "has container statuses")["status"]
    assert status["phase"] == "Pending" and "reason" not in status
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
    assert not events_of(member, "web", "FailedCreatePodSandBox")
    member.restart()
    wait(lambda: member.pod("web"), "the pod exists after a restart")
    assert member.reported("web")["status"]["phase"] == "Pending"
    member.api.delete("pods", "default", "web")
    member.wait_reported_gone("web")


def test_claim_is_mounted_from_the_directory_of_its_volume(make_member):
    member = make_member()
    path = os.path.join(member.data, "disk")
    os.makedirs(path)
    with open(os.path.join(path, "word"), "w", encoding="utf-8") as file:
        file.write("kept")
    bound = claim(member, "c", "pv")
    volume(member, "pv", bound, local={"path": path}, nodeAffinity={"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE_NAME]}]}]}})
    bind(member, "web", {"persistentVolumeClaim": {"claimName": "c"}})
    member.wait_reported_phase("web", "Running")
    assert inside(member, "web", f"{MOUNT}/word") == "kept"
    assert member.api.asked("get", "persistentvolumeclaims", "c") and not member.api.asked("list", "persistentvolumeclaims")
    wait_kept(member, "web", "persistentvolume__pv", "persistentvolumeclaim_default_c")
    member.api.stop()
    member.restart()
    pid = member.init("web")
    os.kill(pid, 9)
    wait(lambda: member.find_init("web", "main") not in (None, pid) and inside(member, "web", f"{MOUNT}/word") == "kept",
         lambda: f"its next container has the volume while the server is unreachable: {member.said()}")


def test_pod_starts_once_its_claim_is_bound(make_member):
    member = make_member()
    path = os.path.join(member.data, "made")
    claim(member, "c")
    bind(member, "web", {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}})
    event = wait(lambda: events_of(member, "web", "FailedMount"), "it waits for the claim")[0]
    assert 'persistentvolumeclaim "c" is not bound to a volume yet' in event["message"]
    volume(member, "pv", member.api.get("persistentvolumeclaims", "default", "c"),
           hostPath={"path": path, "type": "DirectoryOrCreate"})
    member.api.patch("persistentvolumeclaims", "default", "c", {"spec": {"volumeName": "pv"}})
    member.api.patch("persistentvolumeclaims", "default", "c", {"status": {"phase": "Bound"}}, "status")
    member.wait_reported_phase("web", "Running")
    assert os.path.isdir(path)
    mounts = world.read(f"/proc/{member.init('web')}/mountinfo").splitlines()
    assert [line for line in mounts if line.split()[4] == MOUNT][0].split()[5].startswith("ro")


def test_volumes_of_other_claims_and_kinds_are_not_mounted(make_member):
    member = make_member()
    bound = {name: claim(member, name, f"pv-{name}") for name in ("far", "stolen", "free", "elsewhere")}
    member.api.create("csidrivers", {"metadata": {"name": "disk.csi.example.com"}, "spec": {"attachRequired": False}})
    volume(member, "pv-far", bound["far"], csi={"driver": "disk.csi.example.com", "volumeHandle": "h"})
    volume(member, "pv-stolen", None, hostPath={"path": member.data})
    volume(member, "pv-free", None, hostPath={"path": member.data}, claimRef=None)
    volume(member, "pv-elsewhere", bound["elsewhere"], local={"path": member.data}, nodeAffinity={"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node2"]}]}]}})
    for name, word in (("far", "disk.csi.example.com"), ("stolen", 'persistentvolume "pv-stolen" is bound to another claim'),
                       ("free", 'persistentvolume "pv-free" is bound to no claim'),
                       ("elsewhere", 'persistentvolume "pv-elsewhere": no matching NodeSelectorTerms')):
        bind(member, name, {"persistentVolumeClaim": {"claimName": name}})
        event = wait(lambda name=name: events_of(member, name, "FailedMount"), "the reason is reported")[0]
        assert word in event["message"]


def make_disk(member, name, word):
    path = os.path.join(member.data, name)
    os.makedirs(path)
    with open(os.path.join(path, "word"), "w", encoding="utf-8") as file:
        file.write(word)
    return path


def give_volume_away(member, **metadata):
    """Gives the volume of claim 'c' with its content to another claim."""
    source = member.api.get("persistentvolumes", None, "pv")["spec"]["hostPath"]
    member.api.delete("persistentvolumeclaims", "default", "c")
    member.api.delete("persistentvolumes", None, "pv")
    with open(os.path.join(source["path"], "word"), "w", encoding="utf-8") as file:
        file.write("of others")
    volume(member, "pv", claim(member, "theirs", "pv", **metadata), hostPath=source)


def use_and_give_away(member):
    """Lets a pod of the user use a volume, and then gives the volume to another user while the pod still exists."""
    volume(member, "pv", claim(member, "c", "pv"), hostPath={"path": make_disk(member, "disk", "own")})
    member.bind("first", specs.container(script="true", volumeMounts=[specs.mount("v", MOUNT)]), restartPolicy="Never",
                volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    member.wait_reported_phase("first", "Succeeded")
    member.api.create("namespaces", {"metadata": {"name": "other"}})
    give_volume_away(member, namespace="other")


@pytest.mark.parametrize("restart", [False, True], ids=["same", "restarted"])
@pytest.mark.parametrize("again", [False, True], ids=["gone", "again"])
def test_volume_is_not_mounted_for_its_previous_claim(make_member, again, restart):
    member = make_member()
    use_and_give_away(member)
    if again:
        volume(member, "pv2", claim(member, "c", "pv2"), hostPath={"path": make_disk(member, "disk2", "new")})
    if restart:
        member.restart()
    bind(member, "second", {"persistentVolumeClaim": {"claimName": "c"}})
    if again:
        member.wait_reported_phase("second", "Running")
        assert inside(member, "second", f"{MOUNT}/word") == "new"
    else:
        event = wait(lambda: events_of(member, "second", "FailedMount"), lambda: f"it waits: {member.said()[-3000:]}")[0]
        assert 'persistentvolumeclaim "c" not found' in event["message"]


def test_volume_is_available_to_its_claim_despite_a_pod_of_a_previous_claim(make_member):
    member = make_member()
    use_and_give_away(member)
    bind(member, "second", {"persistentVolumeClaim": {"claimName": "theirs"}}, namespace="other")
    wait(lambda: (member.reported("second", "other") or {}).get("status", {}).get("phase") == "Running",
         lambda: f"it runs: {member.api.all('events')}\n{member.said()[-3000:]}")
    pods = [pod for pod in member.pods() if pod["metadata"]["namespace"] == "other"]
    pid = min(world.cgroup_pids(member.cgroup_of(pods[0], "main")))
    assert world.read(f"/proc/{pid}/root{MOUNT}/word") == "of others"


def test_replaced_claim_is_read_again_before_its_next_pod_starts(make_member):
    member = make_member()
    volume(member, "pv", claim(member, "c", "pv"), hostPath={"path": make_disk(member, "disk", "own")})
    bind(member, "first", {"persistentVolumeClaim": {"claimName": "c"}})
    member.wait_reported_phase("first", "Running")
    wait_kept(member, "first", "persistentvolume__pv", "persistentvolumeclaim_default_c")
    member.stop()
    member.api.delete("pods", "default", "first", grace=0)
    give_volume_away(member)
    volume(member, "pv2", claim(member, "c", "pv2"), hostPath={"path": make_disk(member, "disk2", "new")})
    bind(member, "second", {"persistentVolumeClaim": {"claimName": "c"}})
    member.start()
    member.wait_reported_phase("second", "Running")
    assert inside(member, "second", f"{MOUNT}/word") == "new"


def test_slow_token_request_is_not_reported_as_a_failure(make_member):
    member = make_member()
    member.api.misbehave(verb="create", plural="serviceaccounts", subresource="token", latency=1.5, times=1)
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    assert [one["reason"] for one in member.api.all("events")
            if one["involvedObject"]["name"] == "web" and one["type"] == "Warning"] == []
    assert "token" not in member.complaints()


def test_pod_waits_for_its_token_until_the_server_sees_the_binding(make_member):
    member = make_member()
    fault = member.api.misbehave(verb="create", plural="serviceaccounts", subresource="token", unrelated=True, times=3)
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    assert fault.struck == 3
    assert [one["reason"] for one in member.api.all("events")
            if one["involvedObject"]["name"] == "web" and one["type"] == "Warning"] == []
    assert "token" not in member.complaints()


@pytest.mark.slow
def test_token_refusal_for_a_pod_that_is_never_bound_here_has_the_servers_reason(make_member):
    member = make_member()
    fault = member.api.misbehave(verb="create", plural="serviceaccounts", subresource="token", unrelated=True)
    member.bind("web")
    event = wait(lambda: events_of(member, "web", "FailedMount"), "it is reported")[0]
    assert ("failed to fetch token: 403 Forbidden: serviceaccounts \"default\" is forbidden" in event["message"] and
            f"no relationship found between node '{NODE_NAME}' and this object" in event["message"])
    member.api.faults.remove(fault)
    member.wait_reported_phase("web", "Running")


@pytest.mark.parametrize("plural", ["configmaps", "secrets"])
def test_pod_waits_for_its_objects_until_the_server_sees_the_binding(make_member, plural):
    member = make_member()
    member.api.create(plural, {"metadata": {"name": "settings"}, "data": {"word": "aGVsbG8="}})
    fault = member.api.misbehave(plural=plural, verb="list", unrelated=True, times=2,
                                 when=lambda request: request.field("metadata.name") == "settings")
    source = {"configMap": {"name": "settings"}} if plural == "configmaps" else {"secret": {"secretName": "settings"}}
    bind(member, "web", source)
    member.wait_reported_phase("web", "Running")
    assert fault.struck == 2
    assert [one["reason"] for one in member.api.all("events")
            if one["involvedObject"]["name"] == "web" and one["type"] == "Warning"] == []


def test_refused_token_is_reported_with_the_reason_of_the_server(make_member):
    member = make_member()
    fault = member.api.misbehave(verb="create", plural="serviceaccounts", subresource="token", status=403)
    member.bind("web")
    event = wait(lambda: events_of(member, "web", "FailedMount"), "it is reported")[0]
    assert "failed to fetch token: 403 Forbidden" in event["message"]
    assert not events_of(member, "web", "FailedCreatePodSandBox")
    member.api.faults.remove(fault)
    member.wait_reported_phase("web", "Running")


def test_pod_with_device_claims_waits(make_member):
    member = make_member()
    member.bind("web", specs.container(resources={"claims": [{"name": "gpu"}]}),
                resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}])
    event = wait(lambda: events_of(member, "web", "FailedPrepareDynamicResources"), "it is reported")[0]
    assert "this node does not support dynamic resource allocation, which spec.resourceClaims needs" in event["message"]
    assert member.reported("web")["status"]["phase"] == "Pending"


def test_a_secret_is_mounted_above_and_below_the_token_of_the_pod_and_a_claim_below_it(make_member):
    """Both mounts stay when the Secret and the token are updated."""
    member = make_member()
    member.api.api.token_life = 12
    tokens = "/var/run/secrets/kubernetes.io/serviceaccount"
    path = os.path.join(member.data, "disk")
    os.makedirs(path)
    with open(os.path.join(path, "word"), "w", encoding="utf-8") as file:
        file.write("kept")
    bound = claim(member, "c", "pv")
    volume(member, "pv", bound, hostPath={"path": path})
    secret = member.api.create("secrets", {"metadata": {"name": "s"}, "data": {"key": "b25l"}})
    mounts = [specs.mount("claim", f"{tokens}/disk"), specs.mount("s", f"{tokens}/more"), specs.mount("s", "/var/run/secrets"),
              specs.mount("claim", "/disk"), specs.mount("s", "/disk/s")]
    member.bind("web", specs.container(volumeMounts=mounts), volumes=[
        {"name": "s", "secret": {"secretName": "s"}}, {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}}])
    member.wait_reported_phase("web", "Running")
    first = inside(member, "web", f"{tokens}/token")
    assert first and inside(member, "web", f"{tokens}/disk/word") == "kept"
    places = ("/var/run/secrets/key", f"{tokens}/more/key", "/disk/s/key")
    assert [inside(member, "web", place) for place in places] == ["one"] * 3
    assert os.path.isdir(f"{path}/s"), "the runtime creates the mount point in a writable volume"
    member.api.replace("secrets", {**secret, "data": {"key": "dHdv"}})
    wait(lambda: [inside(member, "web", place) for place in places] == ["two"] * 3, "the Secret is updated everywhere")
    wait(lambda: inside(member, "web", f"{tokens}/token") not in (first, None, ""), "the token has changed")
    assert inside(member, "web", f"{tokens}/disk/word") == "kept"
