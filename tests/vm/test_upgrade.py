# SPDX-License-Identifier: Apache-2.0
"""Upgrade and downgrade between an earlier package and this one, on a machine with pods of every kind: no container
restarts, no pod is created again. The earlier package is $MAINSTAY_OLD_PACKAGE; without it this file is not collected."""

import collections
import json
import os

from conftest import machine_of
from pods import MANIFESTS, wait_running
import pytest
import specs

pytestmark = pytest.mark.long

NOTES = "/var/tmp/notes"
OLD, NEW = "/opt/test/old.deb", "/opt/test/mainstay_*.deb"
OTHER_IMAGE = "docker.io/library/large0:1"
DEADLINE = 600
# How often one version is installed over the other, and the minimum number of pods that run in the meantime.
UPGRADES = int(os.environ.get("MAINSTAY_UPGRADES", "5"))
PODS = int(os.environ.get("MAINSTAY_UPGRADE_PODS", "0"))

COUNTER = "trap 'exit 0' TERM; i=0; while :; do echo line $i; i=$((i + 1)); sleep 0.5; done"
SLEEP = "exec sleep 100000"
SERVER = "trap 'exit 0' TERM; mkdir -p /tmp/www; echo well >/tmp/www/healthz; httpd -f -vv -p {port} -h /tmp/www & wait"

# Pods that log numbered lines, and files in NOTES that grow with each probe.
COUNTERS = "init", "sidecar", "logger", "terminal"
PROBES = "liveness", "readiness", "unready"
# The attempts and the files of this pod change by themselves.
CRASHING = "crashing-machine"


def probe(handler, period=5):
    """A probe with limits that an emulated machine on a busy host does not reach."""
    return {**handler, "periodSeconds": period, "timeoutSeconds": 60, "failureThreshold": 20}


def exec_probe(name, result="true"):
    """A probe that appends a line to a file in NOTES."""
    return probe({"exec": {"command": ["/bin/sh", "-c", f"echo probed >>/notes/{name}; {result}"]}})


def with_notes(container, *mounts):
    return {**container, "volumeMounts": [specs.mount("notes", "/notes"), *mounts]}


def notes_volume():
    return specs.host_path("notes", NOTES, type="DirectoryOrCreate")


def lifecycle_pods():
    """Init containers, sidecars, restart policies and hooks."""
    data = [specs.mount("data", "/data")]
    shared = {"volumes": [{"name": "data", "emptyDir": {}}]}
    yield specs.pod("init", specs.container(script=COUNTER, volumeMounts=data), **shared, initContainers=[
        specs.container("fetch", "echo page >/data/page", volumeMounts=data),
        specs.container("check", "test -s /data/page", volumeMounts=data)])
    yield specs.pod("sidecar", specs.container(script=COUNTER), initContainers=[
        {**specs.container("collector"), "restartPolicy": "Always"}])
    yield specs.pod("hooks", with_notes({**specs.container(), "lifecycle": {
        "postStart": {"exec": {"command": ["/bin/sh", "-c", "echo postStart >>/notes/hooks"]}},
        "preStop": {"exec": {"command": ["/bin/sh", "-c", "echo preStop >>/notes/hooks"]}}}}), volumes=[notes_volume()])
    yield specs.script_pod("succeeded", "echo done", restartPolicy="Never")
    yield specs.script_pod("failed", "echo failed; exit 1", restartPolicy="Never")
    yield specs.pod("onfailure", specs.container(
        script=f"test -e /data/tried || {{ touch /data/tried; exit 1; }}; {SLEEP}", volumeMounts=data),
                    restartPolicy="OnFailure", **shared)
    yield specs.script_pod("crashing", "exit 3")


def probed_pods():
    yield specs.pod("probed", with_notes({**specs.container(), "startupProbe": exec_probe("startup"),
                                          "livenessProbe": exec_probe("liveness"),
                                          "readinessProbe": exec_probe("readiness")}), volumes=[notes_volume()])
    yield specs.pod("web", {**specs.container(script=SERVER.format(port=18090)),
                            "livenessProbe": probe({"httpGet": {"path": "/healthz", "port": 18090}}),
                            "readinessProbe": probe({"tcpSocket": {"port": 18090}})})
    yield specs.pod("unready", with_notes({**specs.container(), "readinessProbe": exec_probe("unready", "false")}),
                    volumes=[notes_volume()])
    yield specs.pod("grpc", {**specs.container(), "readinessProbe": probe({"grpc": {"port": 18091}})})


def volume_pods():
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
           "data": {"color": "blue", "greeting": "hello"}}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "stringData": {"password": "unknown"}}
    yield specs.pod("objects", specs.container(
        script=SLEEP, env=[{"name": "GREETING", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "greeting"}}}],
        volumeMounts=[specs.mount("settings", "/settings"), specs.mount("settings", "/color", subPath="color"),
                      specs.mount("password", "/password"), specs.mount("disk", "/sub", subPath="a/b")]),
                    volumes=[{"name": "settings", "configMap": {"name": "settings"}}, {"name": "disk", "emptyDir": {}},
                             {"name": "password", "secret": {"secretName": "password", "defaultMode": 0o400}}])
    yield specs.pod("scratch", specs.container(
        script=f"echo kept >/disk/file; echo kept >/memory/file; {SLEEP}",
        resources={"requests": {"cpu": "50m", "memory": "16Mi"},
                   "limits": {"cpu": "500m", "memory": "64Mi", "ephemeral-storage": "64Mi"}},
        volumeMounts=[specs.mount("disk", "/disk"), specs.mount("memory", "/memory")]),
                    volumes=[{"name": "disk", "emptyDir": {"sizeLimit": "16Mi"}},
                             {"name": "memory", "emptyDir": {"medium": "Memory"}}])
    yield specs.pod("imagevolume", specs.container(script=SLEEP, volumeMounts=[specs.mount("files", "/files", subPath="etc")]),
                    volumes=[{"name": "files", "image": {"reference": specs.IMAGE, "pullPolicy": "IfNotPresent"}}])
    yield specs.pod("downward", specs.container(script=SLEEP, volumeMounts=[specs.mount("fields", "/fields")]), volumes=[
        {"name": "fields", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}])


def isolated_pods():
    """Networks, namespaces, users, runtimes and terminals."""
    yield specs.pod("network", {**specs.container(script=SERVER.format(port=8080)),
                                "ports": [{"containerPort": 8080, "hostPort": 18088}]}, hostNetwork=False)
    yield specs.pod("users", specs.container(script=SLEEP), hostUsers=False, hostNetwork=False)
    yield specs.pod("together", specs.container(script=SLEEP), specs.container("second", SLEEP), shareProcessNamespace=True)
    yield specs.pod("terminal", {**specs.container(script=COUNTER), "stdin": True, "tty": True})
    yield specs.script_pod("critical", SLEEP, priorityClassName="system-node-critical")
    yield specs.pod("restricted", {**specs.container(script=SLEEP), "securityContext": {
        "runAsUser": 1000, "runAsNonRoot": True, "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}})
    yield specs.pod("privileged", {**specs.container(script=SLEEP), "securityContext": {"privileged": True}})
    yield specs.pod("journal", specs.container(script=COUNTER),
                    metadata={"annotations": {"mainstay.dev/journal-logs": "true"}})
    yield specs.script_pod("logger", COUNTER)


def edited_pod(image):
    return specs.pod("edited", {**specs.container(script=SLEEP), "image": image}, specs.container("second", SLEEP))


def daemonset(revision):
    return specs.daemonset("agent", specs.container(script=SLEEP, env=[{"name": "REVISION", "value": str(revision)}]),
                           metadata={"annotations": {"kubernetes.io/change-cause": f"revision {revision}"}})


def documents():
    yield from lifecycle_pods()
    yield from probed_pods()
    yield from volume_pods()
    yield from isolated_pods()
    yield edited_pod(specs.IMAGE)
    for name in "removed", "removedlater":
        yield specs.script_pod(name, SLEEP)


def all_documents():
    """All documents, and as many more pods as requested."""
    kinds = list(documents())
    n_pods = sum(document["kind"] == "Pod" for document in kinds)
    return kinds + [specs.script_pod(f"plain{i}", COUNTER if i % 4 == 0 else SLEEP) for i in range(PODS - n_pods)]


def write(machine, document):
    machine.write(f"{MANIFESTS}/{document['metadata']['name']}.yaml", specs.text(document))


def roll(machine, revision):
    """Writes a revision of the DaemonSet; ends when its pod is the only one, and ready."""
    write(machine, daemonset(revision))
    machine.wait("mainstay get pods -l app=agent -o json | perl -0777 -ne '"
                 f"exit !(/\"value\": *\"{revision}\"/ && !/deletionTimestamp/ && (() = /\"phase\"/g) == 1)' && "
                 "mainstay get pods -l app=agent --no-headers | grep ' 1/1 '", f"revision {revision} is rolled out", DEADLINE)


def history(machine):
    """The DaemonSet's revisions, each with its cause."""
    lines = machine.run("mainstay rollout history daemonset/agent").splitlines()
    return [line.split(None, 1) for line in lines if line[:1].isdigit()]


# Prints a line for each scope of a container: its name, its inode, and the number, start and network of each of its
# processes.
SCOPES = """find /sys/fs/cgroup -type d '(' -name 'mainstay-*.scope' -o -name 'cri-containerd-*.scope' ')' | while read scope; do
    echo $(basename $scope) $(stat -c %i $scope) $(for pid in $(cat $scope/cgroup.procs); do
        start=$(cut -d ' ' -f 22 /proc/$pid/stat) && echo $pid,$start,$(stat -Lc %i /proc/$pid/ns/net); done)
done 2>/dev/null"""

# Prints the same for the shim of each pod.
SHIMS = """for uid in $(ls /run/mainstay/pods); do
    pid=$(systemctl show -P MainPID mainstay-pod-$uid.service)
    echo $uid $pid $(cut -d ' ' -f 22 /proc/$pid/stat 2>/dev/null) $(stat -Lc %i /proc/$pid/ns/net 2>/dev/null)
done"""

# Prints names and inodes, but only the names of the agent's records, which may be replaced when they are written.
# Version 0.1.0 does not record which ends it has synced.
FILES = """cd /var/lib/mainstay/pods && find . -mindepth 2 -type d -printf '%P %i\\n'
find . -type f ! -name ends.synced -printf '%P\\n'; cd /var/log/pods && find . -type f -printf '%P %i\\n'"""

Process = collections.namedtuple("Process", "start pid network")


def processes(machine):
    """The first process of each container by the name of its scope, with the scope's inode."""
    found = {}
    for line in machine.run(SCOPES, DEADLINE).splitlines():
        name, *rest = line.split()
        if len(rest) < 2:
            continue  # The scope has disappeared since it was listed, like that of the container that crashes.
        inode, *all_ = rest
        started = [Process(int(start), int(pid), network) for pid, start, network in (one.split(",") for one in all_)]
        found[name] = inode, *min(started)
    return found


def list_pods(machine):
    return {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod
            for pod in json.loads(machine.run("mainstay get pods -A -o json", DEADLINE))["items"]}


def container_state(scopes, status):
    """The state of a container that must not change; for a running one, with its process and its control group."""
    (kind, state), = status["state"].items()
    identity = status.get("containerID", "/").rsplit("/", 1)[1]
    scope = [found for name, found in scopes.items() if identity and identity in name]
    assert len(scope) == (kind == "running"), f"{status['name']} of {identity} is {kind}, with scopes {scope}"
    # Version 0.1.0 does not record the image of a container that has ended.
    image = None if kind == "terminated" else status["imageID"]
    return (identity, status["restartCount"], status["ready"], image, kind, state.get("startedAt"),
            state.get("finishedAt"), state.get("exitCode"), *scope)


def snapshot(machine):
    """State that no upgrade may change: dictionaries of pods, containers, shims and files. A pod that has ended
    releases its sandbox, which version 0.1.0 keeps."""
    pods, scopes = list_pods(machine), processes(machine)
    ended = {pod["metadata"]["uid"] for pod in pods.values() if pod["status"]["phase"] in ("Succeeded", "Failed")}
    crashing = next((pod["metadata"]["uid"] for name, pod in pods.items() if name.endswith(CRASHING)), "none")
    state = {}
    for name, pod in pods.items():
        status = pod["status"]
        # Version 0.1.0 does not record when a pod of a DaemonSet started, and reports its own start.
        started = None if "ownerReferences" in pod["metadata"] else status["startTime"]
        address = None if pod["spec"].get("hostNetwork") or pod["metadata"]["uid"] in ended else status["podIP"]
        state[name] = pod["metadata"]["uid"], status["phase"], address, started
        for container in status.get("initContainerStatuses", []) + status["containerStatuses"]:
            if not name.endswith(CRASHING):
                state[f"{name}/{container['name']}"] = container_state(scopes, container)
    for line in machine.run(SHIMS, DEADLINE).splitlines():
        if line.split()[0] not in ended:
            state[f"shim of {line.split()[0]}"] = tuple(line.split()[1:])
    state["files"] = {line for line in machine.run(FILES, DEADLINE).splitlines() if crashing not in line
                      and line.split("/")[0].split()[0] not in ended}
    return state


def differences(before, after):
    """Lines with the changes."""
    found = [f"{name}: {before.get(name)} became {after.get(name)}" for name in sorted(before.keys() | after.keys())
             if name != "files" and before.get(name) != after.get(name)]
    return found + [f"file {line}" for line in sorted(before["files"] ^ after["files"])]


def assert_unchanged(before, machine):
    changed = differences(before, snapshot(machine))
    assert not changed, "\n".join(changed)


def differences_without(changed, *names):
    """The differences that do not mention any of these names."""
    return [line for line in changed if not any(name in line for name in names)]


def count_crashes(machine):
    """The restart count of the pod in back-off."""
    status = list_pods(machine)[f"default/{CRASHING}"]["status"]["containerStatuses"][0]
    return status["restartCount"]


def lengths(machine):
    """Counts that must grow: the lines of logs and notes."""
    script = [f"echo {name} $(cat /var/log/pods/default_{name}-machine_*/main/*.log | wc -l)" for name in (*COUNTERS, "web")]
    script += [f"echo {name} $(wc -l <{NOTES}/{name})" for name in PROBES]
    return {line.split()[0]: int(line.split()[1]) for line in machine.run("; ".join(script)).splitlines()}


def wait_growth(machine):
    before = lengths(machine)
    for name in COUNTERS:
        machine.wait(f"[ $(cat /var/log/pods/default_{name}-machine_*/main/*.log | wc -l) -gt {before[name] + 2} ]",
                     f"{name} continues its log", DEADLINE)
    machine.wait(f"[ $(cat /var/log/pods/default_web-machine_*/main/*.log | wc -l) -gt {before['web'] + 2} ]",
                 "web is probed over HTTP", DEADLINE)
    for name in PROBES:
        machine.wait(f"[ $(wc -l <{NOTES}/{name}) -gt {before[name] + 1} ]", f"the probe '{name}' continues", DEADLINE)


def assert_logs_are_whole(machine):
    for name in COUNTERS:
        lines = machine.run(f"cat /var/log/pods/default_{name}-machine_*/main/0.log").splitlines()
        numbers = [int(line.split("line ")[1]) for line in lines if "line " in line]
        assert numbers == list(range(len(numbers))), f"{name} has lost or repeated lines"


def start_watch(machine):
    """Watches all pods; a stream that ends with its agent is opened again at once."""
    machine.run("systemctl stop watch-pods 2>/dev/null; rm -f /var/tmp/pods; systemd-run --quiet --unit=watch-pods bash -c "
                "'while :; do mainstay get pods -A -w --no-headers; sleep 0.02; done >/var/tmp/pods 2>/dev/null'")


def assert_watched(before, machine, first_row):
    """Asserts that from this row on no ready pod has become unready, and that the agent reports no event about an
    interruption."""
    machine.run("systemctl stop watch-pods")
    ready = {}
    for name, state in before.items():
        if name.count("/") == 2 and state[4] == "running":
            pod = name.rsplit("/", 1)[0]
            ready[pod] = ready.get(pod, True) and state[2]
    rows = [line.split() for line in machine.run("cat /var/tmp/pods").splitlines()[first_row:]]
    wrong = [row for row in rows if len(row) > 4 and ready.get(f"{row[0]}/{row[1]}") and len(set(row[2].split("/"))) != 1]
    assert not wrong, wrong
    events = [line.split() for line in machine.run("mainstay get events -A --no-headers", DEADLINE).splitlines()]
    wrong = [row for row in events if {"Killing", "Stopping", "Created", "Started", "Unhealthy"} & set(row)
             and not any(name in " ".join(row) for name in ("crashing", "unready", "grpc"))]
    assert not wrong, wrong


def agent(machine):
    return machine.run("systemctl show -P MainPID mainstay").strip()


def exchange(machine, package, version):
    """Installs another version over the installed one; all pods must be unchanged."""
    before, old, crashes = snapshot(machine), agent(machine), count_crashes(machine)
    hooks = machine.run(f"cat {NOTES}/hooks")
    start_watch(machine)
    machine.run(f"dpkg --install {package}", DEADLINE)
    # Until it notifies systemd that it is ready, an agent lists pods without the state of their shims.
    rows = int(machine.run("wc -l </var/tmp/pods"))
    assert agent(machine) not in (old, "0")
    assert machine.run("dpkg-query -W -f '${Version}' mainstay").strip() == version
    machine.wait("mainstay get pods", "the agent answers", DEADLINE)
    assert_unchanged(before, machine)
    wait_growth(machine)
    assert_unchanged(before, machine)
    assert_watched(before, machine, rows)
    assert_logs_are_whole(machine)
    assert machine.run(f"cat {NOTES}/hooks") == hooks == "postStart\n"
    # The back-off of the container is not reset, otherwise it would have restarted four times in 70 seconds.
    assert count_crashes(machine) - crashes <= 2


def assert_usable(machine):
    """Asserts that operations work that go through the shims of the other version."""
    assert machine.run("mainstay exec critical-machine -- echo inside", DEADLINE).strip() == "inside"
    assert "kept" in machine.run("mainstay exec scratch-machine -- cat /disk/file /memory/file", DEADLINE)
    assert machine.run("mainstay exec objects-machine -- cat /color /settings/color", DEADLINE) == "blueblue"
    assert "line" in machine.run("mainstay logs --tail 1 logger-machine", DEADLINE)
    assert "well" in machine.run("exec 3<>/dev/tcp/$(mainstay get pod network-machine -o json | "
                                           "sed -n 's/.*\"podIP\": *\"\\([0-9.]*\\)\".*/\\1/p' | head -n 1)/8080; "
                                           "printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3", DEADLINE)


def edit_image(machine, image, restarts):
    """Edits the image of a container; only that one restarts."""
    before = snapshot(machine)
    uid = before["default/edited-machine"][0]
    write(machine, edited_pod(image))
    machine.wait("mainstay get pod edited-machine -o json | perl -0777 -ne '"
                 f"exit !(/\"restartCount\": *{restarts}\\b/ && (() = /\"ready\": *true/g) == 2)'",
                 "the edit is applied", DEADLINE)
    changed = differences(before, snapshot(machine))
    assert [line for line in changed if line.startswith("default/edited-machine/main: ")]
    assert not differences_without(changed, "default/edited-machine/main: ", f"file {uid}", f"edited-machine_{uid}"), changed


def remove(machine, name):
    """Removes a pod; only this one stops."""
    before = snapshot(machine)
    pod = list_pods(machine)[f"default/{name}-machine"]["metadata"]["uid"]
    machine.run(f"rm {MANIFESTS}/{name}.yaml")
    machine.wait(f"! mainstay get pods | grep -E '^{name}-machine '", f"pod {name} is removed", DEADLINE)
    machine.wait(f"! ls /var/lib/mainstay/pods | grep {pod}", f"the files of pod {name} are removed", DEADLINE)
    assert not differences_without(differences(before, snapshot(machine)), pod, f"default/{name}-machine"), name


def start_pods(machine):
    """Writes all manifests, and a second revision of the DaemonSet; returns when all pods are in their expected
    state."""
    roll(machine, 1)
    roll(machine, 2)
    for document in all_documents():
        write(machine, document)
    states = {"succeeded": "0/1 +Completed", "failed": "0/1 +Error", "crashing": "0/1 +CrashLoopBackOff",
              "unready": "0/1 +Running", "grpc": "0/1 +Running"}
    for name in (document["metadata"]["name"] for document in all_documents() if document["kind"] == "Pod"):
        state = states.get(name, "([0-9]+)/\\1 +Running")
        machine.wait(f"mainstay get pods | grep -E '^{name}-machine +{state}'", f"pod {name} is {state}", DEADLINE)
    # The next restart of the container is at least 80 seconds later.
    machine.wait(f"mainstay get pods | grep -E '^{CRASHING} .* [4-9] \\('", "the back-off is long", DEADLINE)


@pytest.fixture(scope="module", name="machine")
def _machine(disk):
    """A machine with the old package and pods of every kind."""
    with machine_of(disk) as machine:
        machine.boot()
        machine.run(f"dpkg --install {OLD}", DEADLINE)
        machine.run("cp /opt/test/busybox-*.tar /opt/test/large0-*.tar /var/lib/mainstay/preload/")
        start_pods(machine)
        yield machine


def test_twenty_pods_of_every_kind_run(machine):
    phases = [pod["status"]["phase"] for pod in list_pods(machine).values()]
    assert phases.count("Running") >= max(20, PODS - 10) and {"Succeeded", "Failed"} < set(phases)
    assert [cause for _, cause in history(machine)] == ["revision 1", "revision 2"]


def test_upgrade_restarts_no_pod(machine):
    revisions = history(machine)
    exchange(machine, NEW, machine.run(f"dpkg-deb -f {NEW} Version").strip())
    assert history(machine) == revisions
    assert_usable(machine)


def test_edit_after_upgrade_restarts_only_the_edited_container(machine):
    edit_image(machine, OTHER_IMAGE, 1)


def test_removed_file_after_upgrade_stops_only_its_pod(machine):
    remove(machine, "removed")
    assert "Stopping pod default/removed-machine: removed.yaml was removed" in \
        machine.run("journalctl --sync; journalctl -u mainstay --no-pager -o cat | grep 'Stopping pod'")


def test_downgrade_restarts_no_pod(machine):
    revisions = history(machine)
    exchange(machine, OLD, machine.run(f"dpkg-deb -f {OLD} Version").strip())
    assert history(machine) == revisions
    assert_usable(machine)


def test_edit_after_downgrade_restarts_only_the_edited_container(machine):
    edit_image(machine, specs.IMAGE, 2)
    remove(machine, "removedlater")


def test_second_upgrade_rolls_the_daemonset_with_its_history(machine):
    exchange(machine, NEW, machine.run(f"dpkg-deb -f {NEW} Version").strip())
    before = snapshot(machine)
    old = [pod["metadata"]["uid"] for name, pod in list_pods(machine).items() if name.startswith("default/agent-")]
    roll(machine, 3)
    new = [pod["metadata"]["uid"] for name, pod in list_pods(machine).items() if name.startswith("default/agent-")]
    assert len(old) == len(new) == 1 and old != new
    assert [cause for _, cause in history(machine)] == ["revision 1", "revision 2", "revision 3"]
    assert not differences_without(differences(before, snapshot(machine)), *old, *new, "default/agent-")


@pytest.mark.parametrize("number", range(3, UPGRADES + (UPGRADES + 1) % 2))
def test_further_downgrades_and_upgrades_restart_no_pod(machine, number):
    package = OLD if number % 2 else NEW
    revisions = history(machine)
    exchange(machine, package, machine.run(f"dpkg-deb -f {package} Version").strip())
    assert history(machine) == revisions
    assert_usable(machine)


def test_pods_of_both_versions_start_again_after_the_upgrade(machine):
    for name in "critical", "users", "network":
        machine.run(f"mainstay delete pod {name}-machine", DEADLINE)
        wait_running(machine, name)
