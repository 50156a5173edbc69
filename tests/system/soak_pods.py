# SPDX-License-Identifier: Apache-2.0
"""The pods of the soak test: the content of each manifest, and the pods that must run because of it. Each container's
command line contains a word with the pod, the container and the version of the manifest, which shows to which manifest
a process belongs."""

import itertools
import os
import re

import specs
import world

COUNT = "trap 'exit 0' TERM; i=0; while :; do echo $i; i=$((i+1)); sleep 0.2; done"
DEAF = "trap '' TERM; sleep 100000 & wait"
SCRIPTS = {"idle": specs.IDLE, "deaf": DEAF, "counter": COUNT}
MEMORY = {"48Mi": 48 << 20, "64Mi": 64 << 20, "96Mi": 96 << 20}


def script(node, pod, name, version, body):
    """A script that records its start in a file that outlives the pod."""
    line = f"{pod}/{name}/{version}"
    return f": {os.path.basename(node.directory)}/{line}; echo {line} >> /starts/starts; {body}"


def find_processes(node):
    """The versions of the first processes that run now, by pod and container. Their forked children have their command
    line until they execute something else."""
    pattern = re.compile(rf": {re.escape(os.path.basename(node.directory))}/([^/]+)/([^/]+)/(\d+); ")
    found = {}
    for pid in world.pids():
        words = world.cmdline(pid)
        match = pattern.match(words[-1]) if words[0:1] == ["/bin/sh"] else None
        if match:
            found[pid] = (match[1], match[2], int(match[3]))
    running = {}
    for pid, (pod, name, version) in found.items():
        # One may have ended, and the next started, during the scan.
        if int(world.status(pid, "PPid") or 0) not in found and world.is_alive(pid):
            running.setdefault((pod, name), []).append(version)
    return running


def count_starts(node):
    counts = {}
    for line in (world.read(f"{node.data}/starts") or "").split():
        counts[line] = counts.get(line, 0) + 1
    return counts


def starts_volume(node):
    return {"name": "starts", "hostPath": {"path": node.data}}


PORTS = itertools.count(20000)
STARTS_MOUNT = specs.mount("starts", "/starts")


class SoakPod:
    """One pod and its manifest. An edit that must restart the container has a new version; an edit that must not
    restart it keeps the version."""

    def __init__(self, node, name, kind, **features):
        """A pod of the kind 'completes' runs once and exits, 'crashes' exits repeatedly, and the others keep
        running."""
        self.node, self.name, self.kind = node, name, kind
        self.version = self.sandbox = self.label = self.edits = 0
        self.excuses = self.kills = 0  # excused starts of the version, and of all versions
        self.memory, self.image, self.duration = "64Mi", None, 0.5
        self.features = {"init": False, "side": False, "probes": False, "objects": False, "disk": False, "network": False,
                         **features}
        self.port = next(PORTS)

    def is_running(self):
        return self.kind in SCRIPTS

    def body(self):
        if self.is_running():
            return SCRIPTS[self.kind]
        return f"sleep {self.duration:.2f}; exit {0 if self.kind == 'completes' else 7}"

    def main(self):
        mounts = [STARTS_MOUNT]
        if self.features["objects"]:
            mounts += [specs.mount("settings", "/settings"), specs.mount("secrets", "/secrets")]
        if self.features["disk"]:
            mounts += [specs.mount("disk", "/disk"), specs.mount("memory", "/memory")]
        fields = {"volumeMounts": mounts, "env": [{"name": "VERSION", "value": str(self.version)}],
                  "resources": {"requests": {"memory": "8Mi"}, "limits": {"memory": self.memory}}}
        if self.image:
            fields["image"] = self.image
        if self.features["network"]:
            fields["ports"] = [{"containerPort": 80, "hostPort": self.port}]
        if self.features["probes"]:
            # The threshold is higher than the failures that a killed program or a slow machine causes.
            probe = {"exec": {"command": ["/bin/true"]}, "periodSeconds": 2, "timeoutSeconds": 60, "failureThreshold": 30}
            fields.update(livenessProbe=probe, readinessProbe=probe)
        return specs.container(script=script(self.node, self.name, "main", self.version, self.body()), **fields)

    def others(self):
        """The init containers of the pod."""
        made = []
        if self.features["init"]:
            made.append(specs.container("init", script(self.node, self.name, "init", self.sandbox, "exit 0"),
                                        volumeMounts=[STARTS_MOUNT]))
        if self.features["side"]:
            made.append(specs.container("side", script(self.node, self.name, "side", self.sandbox, specs.IDLE),
                                        restartPolicy="Always", volumeMounts=[STARTS_MOUNT]))
        return made

    def volumes(self):
        found = [starts_volume(self.node)]
        if self.features["objects"]:
            found += [{"name": "settings", "configMap": {"name": "settings"}}, {"name": "secrets", "secret": {"secretName": "secrets"}}]
        if self.features["disk"]:
            found += [{"name": "disk", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]
        return found

    def manifest(self):
        init = self.others()
        return specs.pod(self.name, self.main(), volumes=self.volumes(), hostNetwork=not self.features["network"],
                         restartPolicy="Never" if self.kind == "completes" else "Always",
                         metadata={"labels": {"label": str(self.label)}}, **({"initContainers": init} if init else {}))

    def write(self):
        self.node.drop(self.manifest(), self.file())

    def file(self):
        return f"{self.name}.yaml"

    def excuse(self):
        """Permits one more start, because the container or a process that runs it was killed."""
        self.excuses += 1
        self.kills += 1

    def excuse_from_start(self):
        """Permits a failed start while the disk is full, if the pod does not repeat it."""
        if self.kind == "completes":
            self.excuse()

    # Edits

    def change_command(self):
        self.version += 1
        self.excuses = 0

    def change_image(self, image):
        self.image = image
        self.change_command()

    def change_label(self):
        self.label += 1

    def change_memory(self, chance):
        self.memory = chance.choice(sorted(MEMORY))

    def change_feature(self, chance):
        """Counts a replacement of the pod."""
        name = chance.choice(["init", "side", "objects", "disk", "network"])
        self.features[name] = not self.features[name]
        self.sandbox += 1
        self.change_command()

    # Invariants

    def expected(self):
        """The versions of the processes that must run, by pod and container."""
        found = {(self.name, "main"): [self.version]} if self.is_running() else {}
        if self.features["side"] and self.kind != "completes":
            found[self.name, "side"] = [self.sandbox]
        return found

    def unsettled(self, reported, starts, objects):
        """The deviations from the manifest, in words."""
        status = reported["status"]
        phase = "Running" if self.kind != "completes" else "Succeeded"
        if status.get("phase") != phase and not (self.kind == "completes" and self.excuses and status.get("phase") == "Failed"):
            yield f"{self.name} must be {phase}: {status}"
            return
        if reported["metadata"]["labels"].get("label") != str(self.label):
            yield f"{self.name} lacks the label {self.label}: {reported['metadata']['labels']}"
        if self.kind != "completes" and not starts.get(f"{self.name}/main/{self.version}"):
            yield f"{self.name} has not started with version {self.version}"
        if self.is_running():
            yield from self.unsettled_main(objects)

    def unsettled_main(self, objects):
        pid = self.node.find_init(self.name)
        if not pid:
            yield f"{self.name} lacks a process"
            return
        root = f"/proc/{pid}/root"
        if self.features["objects"]:
            found = {name: world.read(f"{root}/{name}/k") for name in objects}
            if found != objects:
                yield f"{self.name} has the objects {found}, not {objects}"
        if world.environ(pid).get("VERSION") != str(self.version):
            yield f"{self.name} has another environment than that of version {self.version}"
        if (world.read(f"{root}/etc/soak") or "").strip() != (self.image or ""):
            yield f"{self.name} must have the image {self.image}: {world.read(f'{root}/etc/soak')}"
        limit = world.cgroup_value(self.node.container_cgroup(self.name), "memory",
                                   "memory.max" if world.cgroup_version() == 2 else "memory.limit_in_bytes")
        if limit != str(MEMORY[self.memory]):
            yield f"{self.name} must have the limit {self.memory}: {limit}"

    def surplus_starts(self, starts):
        """Unexplained starts: each version of a pod starts once, and once more for each time that its container or a
        process that runs it was killed. A pod that completes never starts twice."""
        started = starts.get(f"{self.name}/main/{self.version}", 0)
        if self.kind == "completes" and (started > 1 or started < 1 and not self.excuses):
            yield f"{self.name} of version {self.version} has started {started} times, which is once"
        if self.is_running() and started > 1 + self.excuses:
            yield f"{self.name} of version {self.version} has started {started} times, with {self.excuses} reasons for a restart"
        again = starts.get(f"{self.name}/init/{self.sandbox}", 0)
        if again > 1 + self.kills + self.edits:
            yield f"the init container of {self.name} has run {again} times, with {self.kills} reasons and {self.edits} edits"
