# SPDX-License-Identifier: Apache-2.0
"""SELinux in enforcing mode: the labels of containers and volumes, and access to files of other pods."""

import json
import re

import pytest
import specs

pytestmark = pytest.mark.long

MANIFESTS = "/etc/kubernetes/manifests"
FILE = "system_u:object_r:container_file_t"


def launch(machine, name, *containers, **spec):
    containers = containers or [specs.container(script="exec sleep 100000")]
    machine.write(f"{MANIFESTS}/{name}.yaml", specs.text(specs.pod(name, *containers, **spec)))
    machine.wait(f"mainstay get pods | grep -E '^{name}-machine +{len(containers)}/{len(containers)} +Running'",
                 f"pod {name} runs")


def inside(machine, pod, script, container="c"):
    return machine.run(f"mainstay exec {pod}-machine -c {container} -- sh -c '{script}'").strip("\n\0 ")


def label(machine, pod, container="c"):
    """The label of the container's first process."""
    return inside(machine, pod, "cat /proc/1/attr/current", container)


def labels_of(machine, pod, *paths, container="c"):
    """The labels of files in the container, read from the node: busybox cannot print them."""
    uid = json.loads(machine.run(f"mainstay get pod {pod}-machine -o json"))["metadata"]["uid"]
    script = (f"pid=$(cat $(find /sys/fs/cgroup -path '*{uid}*' -name cgroup.procs) | while read p; do "
              f"grep -qz ^NAME={container}$ /proc/$p/environ && echo $p; done | head -n 1); "
              f"for path in {' '.join(paths)}; do stat -c %C /proc/$pid/root$path; done")
    return machine.run(script).split()


def container(name="c", script="exec sleep 100000", **fields):
    return specs.container(name, script=script, env=[{"name": "NAME", "value": name}], **fields)


def test_containers_of_a_pod_share_categories_that_no_other_pod_has(enforcing):
    launch(enforcing, "first", container("c", script=specs.IDLE), container("d"))
    launch(enforcing, "second", container("c"))
    labels = [label(enforcing, "first", "c"), label(enforcing, "first", "d"), label(enforcing, "second", "c")]
    for one in labels:
        assert re.fullmatch(r"system_u:system_r:container_t:s0:c\d+,c\d+", one), one
    assert labels[0] == labels[1] != labels[2]


def test_root_file_system_and_volumes_of_a_pod_have_its_label(enforcing):
    enforcing.write(f"{MANIFESTS}/objects.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: words}\n"
                                                 "data: {word: first}\n")
    mounts = {"disk": "/disk", "memory": "/memory", "words": "/words", "field": "/field", "image": "/image"}
    launch(enforcing, "files", container(
        script="touch /made /disk/made /memory/made /dev/shm/made /sub/made && exec sleep 100000",
        volumeMounts=[{"name": name, "mountPath": path} for name, path in mounts.items()] +
                     [{"name": "disk", "mountPath": "/sub", "subPath": "a/b"}]),
           volumes=[{"name": "disk", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}},
                    {"name": "words", "configMap": {"name": "words"}},
                    {"name": "field", "downwardAPI": {"items": [{"path": "name",
                                                                 "fieldRef": {"fieldPath": "metadata.name"}}]}},
                    {"name": "image", "image": {"reference": specs.IMAGE}}])
    level = label(enforcing, "files").split(":", 3)[3]
    paths = ["/", "/bin", "/made", "/disk", "/disk/made", "/sub", "/sub/made", "/memory", "/memory/made", "/words",
             "/words/word", "/words/..data", "/field/name", "/image", "/image/bin", "/etc/hosts", "/etc/hostname",
             "/etc/resolv.conf", "/dev", "/dev/shm", "/dev/shm/made", "/dev/mqueue", "/dev/pts",
             "/dev/termination-log"]
    assert dict(zip(paths, labels_of(enforcing, "files", *paths))) == {path: f"{FILE}:{level}" for path in paths}
    assert inside(enforcing, "files", "cat /words/word /field/name /image/etc/passwd >/dev/null && echo read") == "read"


def test_updated_files_of_a_volume_have_the_label_of_the_pod(enforcing):
    level = label(enforcing, "files").split(":", 3)[3]
    enforcing.write(f"{MANIFESTS}/objects.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: words}\n"
                                                 "data: {word: second, other: third}\n")
    enforcing.wait("mainstay exec files-machine -c c -- cat /words/word /words/other | grep -q secondthird",
                   "the new values are in the volume")
    assert labels_of(enforcing, "files", "/words/word", "/words/other", "/words/..data") == [f"{FILE}:{level}"] * 3


def test_files_of_a_pod_are_unreadable_for_other_pods_despite_their_mode(enforcing):
    enforcing.run(f"mkdir -m 0777 /srv/shared && chcon {FILE}:s0 /srv/shared")
    share = {"volumes": [{"name": "v", "hostPath": {"path": "/srv/shared"}}]}
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    launch(enforcing, "writer", container(script="umask 0; echo secret >/v/file; exec sleep 100000", **mount), **share)
    launch(enforcing, "reader", container(**mount), **share)
    level = label(enforcing, "writer").split(":", 3)[3]
    assert enforcing.run("stat -c %C /srv/shared/file").strip() == f"{FILE}:{level}"
    assert inside(enforcing, "writer", "cat /v/file") == "secret"
    assert "Permission denied" in inside(enforcing, "reader", "cat /v/file 2>&1; true")
    # A hostPath volume of the node is not relabelled.
    assert enforcing.run("stat -c %C /srv/shared").strip() == f"{FILE}:s0"


def test_selinux_options_of_a_container_override_those_of_its_pod(enforcing):
    disk = {"volumes": [{"name": "v", "emptyDir": {}}]}
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    launch(enforcing, "chosen", container("c", **mount),
           container("d", securityContext={"seLinuxOptions": {"type": "other_container_t"}}),
           container("e", securityContext={"seLinuxOptions": {"level": "s0:c8"}}),
           securityContext={"seLinuxOptions": {"level": "s0:c5,c6"}}, **disk)
    assert [label(enforcing, "chosen", name) for name in "cde"] == [
        "system_u:system_r:container_t:s0:c5,c6", "system_u:system_r:other_container_t:s0:c5,c6",
        "system_u:system_r:container_t:s0:c8"]
    assert labels_of(enforcing, "chosen", "/v", "/etc/hosts") == [f"{FILE}:s0:c5,c6", f"{FILE}:s0"]
    # All containers can read the files of the pod.
    assert "localhost" in inside(enforcing, "chosen", "cat /etc/hosts", "e")


def test_edit_of_selinux_options_restarts_the_container_and_relabels_its_volume(enforcing):
    def relabelled(level):
        launch(enforcing, "edited", container(
            script="test -e /v/file || echo kept >/v/file; exec sleep 100000",
            volumeMounts=[{"name": "v", "mountPath": "/v"}], securityContext={"seLinuxOptions": {"level": level}}),
               volumes=[{"name": "v", "emptyDir": {}}])
        enforcing.wait(f"mainstay exec edited-machine -c c -- cat /proc/1/attr/current | grep -q '{level}'",
                       f"it runs with {level}")
        assert labels_of(enforcing, "edited", "/v", "/v/file") == [f"{FILE}:{level}"] * 2
        assert inside(enforcing, "edited", "cat /v/file") == "kept"
    relabelled("s0:c20,c21")
    relabelled("s0:c30")


def test_privileged_and_host_pid_containers_are_not_confined(enforcing):
    own = enforcing.run("cat /proc/$(pgrep -o mainstay-shim)/attr/current").strip("\0\n")
    launch(enforcing, "privileged", container(securityContext={"privileged": True}))
    launch(enforcing, "seeing", container(), hostPID=True)
    before = enforcing.run("stat -c %C /dev/mqueue")
    launch(enforcing, "talking", container(securityContext={"seLinuxOptions": {"level": "s0:c7"}}), hostIPC=True)
    assert label(enforcing, "privileged") == own
    assert inside(enforcing, "seeing", "cat /proc/self/attr/current") == own
    assert label(enforcing, "talking") == "system_u:system_r:container_t:s0:c7"
    assert enforcing.run("stat -c %C /dev/mqueue") == before


def test_container_without_privilege_escalation_has_its_label(enforcing):
    launch(enforcing, "plain", container(securityContext={"allowPrivilegeEscalation": False, "runAsUser": 1000}))
    assert ":container_t:s0:c" in label(enforcing, "plain")


def test_pod_with_user_namespace_has_its_label(enforcing):
    launch(enforcing, "apart", container(script="touch /made && exec sleep 100000"), hostUsers=False, hostNetwork=False)
    level = label(enforcing, "apart").split(":", 3)[3]
    assert labels_of(enforcing, "apart", "/made", "/dev/mqueue", "/etc/hosts") == [f"{FILE}:{level}"] * 3


def test_label_unknown_to_the_policy_is_reported(enforcing):
    for name, options, says in [("alien", {"type": "alien_t"}, "does not know 'system_u:system_r:alien_t:s0:c"),
                                ("wrong", {"level": "high"}, "the format of 'level' \"high\" is not correct")]:
        pod = specs.pod(name, container(securityContext={"seLinuxOptions": options}))
        enforcing.write(f"{MANIFESTS}/{name}.yaml", specs.text(pod))
        output = enforcing.wait(f"mainstay describe pod {name}-machine | grep -A1 'Reason: *CreateContainerError'",
                              f"pod {name} is refused")
        assert says in output


def test_labels_survive_a_restart_of_the_agent(enforcing):
    before = [label(enforcing, pod) for pod in ("first", "second")]
    enforcing.run("systemctl kill --signal KILL mainstay")
    enforcing.wait("mainstay get pods | grep -E '^first-machine +2/2 +Running'", "the next agent runs")
    enforcing.ask("mainstay exec first-machine -c c -- kill 1")
    enforcing.wait("mainstay get pods | grep -E '^first-machine +2/2 +Running +1'", "its container has restarted")
    assert [label(enforcing, pod) for pod in ("first", "second")] == before
