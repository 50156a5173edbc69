# SPDX-License-Identifier: Apache-2.0
"""Random pods for the Pod Security Standards, and the verdict of the node's own implementation. The same seed and
number give the same case."""

import copy
import json
import os
import random
import subprocess

import harness

VERSIONS = ["latest"] + [f"v1.{minor}" for minor in (0, 7, 8, 18, 19, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
                                                     36)]
POLICIES = [(level, version) for level in ("baseline", "restricted") for version in VERSIONS] + [("privileged", "latest")]
CAPABILITIES = ["ALL", "NET_BIND_SERVICE", "CHOWN", "KILL", "MKNOD", "SYS_CHROOT", "NET_RAW", "NET_ADMIN", "SYS_ADMIN",
                "CAP_CHOWN", "SETFCAP"]
SYSCTLS = ["kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
           "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
           "net.core.somaxconn", "kernel.msgmax", "net.ipv4.ping_group_range"]
TYPES = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t", "spc_t", "unconfined_t"]
VOLUMES = [
    {"hostPath": {"path": "/etc"}}, {"emptyDir": {}}, {"configMap": {"name": "a"}}, {"secret": {"secretName": "a"}},
    {"downwardAPI": {"items": []}}, {"projected": {"sources": []}}, {"persistentVolumeClaim": {"claimName": "a"}},
    {"csi": {"driver": "a.example"}}, {"image": {"reference": "busybox"}}, {"nfs": {"server": "a", "path": "/a"}},
    {"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0}},
    {"gcePersistentDisk": {"pdName": "a"}}, {"awsElasticBlockStore": {"volumeID": "a"}},
    {"gitRepo": {"repository": "https://a.example/b"}}, {"glusterfs": {"endpoints": "a", "path": "a"}},
    {"rbd": {"monitors": ["a"], "image": "a"}}, {"flexVolume": {"driver": "a/b"}}, {"cinder": {"volumeID": "a"}},
    {"cephfs": {"monitors": ["a"]}}, {"flocker": {"datasetName": "a"}}, {"fc": {"targetWWNs": ["a"], "lun": 0}},
    {"azureFile": {"secretName": "a", "shareName": "a"}}, {"vsphereVolume": {"volumePath": "a"}},
    {"quobyte": {"registry": "a:1", "volume": "a"}}, {"azureDisk": {"diskName": "a", "diskURI": "a"}},
    {"photonPersistentDisk": {"pdID": "a"}}, {"portworxVolume": {"volumeID": "a"}},
    {"scaleIO": {"gateway": "a", "system": "a", "secretRef": {"name": "a"}, "volumeName": "a"}},
    {"storageos": {"volumeName": "a"}},
    {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {
        "requests": {"storage": "1Gi"}}}}}},
]


def restricted_container(name):
    return {"name": name, "image": "busybox", "securityContext": {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}


class Maker:
    """Makes a pod that the level 'restricted' allows, and changes some of its fields."""

    def __init__(self, seed, number):
        self.rng, self.number = random.Random(f"{seed}/{number}"), number
        self.pod = {"apiVersion": "v1", "kind": "Pod",
                    "metadata": {"name": f"p{number}", "annotations": {}},
                    "spec": {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                             "containers": [restricted_container("main")], "initContainers": [], "volumes": []}}
        self.spec = self.pod["spec"]

    def make(self):
        for name in self.rng.sample(["side", "b", "a"], self.rng.randint(0, 2)):
            self.spec["containers"].append(restricted_container(name))
        for name in self.rng.sample(["init", "proxy"], self.rng.randint(0, 2)):
            self.spec["initContainers"].append(restricted_container(name))
            if self.rng.random() < 0.5:
                self.spec["initContainers"][-1]["restartPolicy"] = "Always"
        changes = [getattr(self, name) for name in dir(self) if name.startswith("change_")]
        for change in self.rng.choices(changes, k=self.rng.choice([0, 1, 1, 2, 2, 3, 5])):
            change()
        if self.spec.get("os") == {"name": "windows"}:
            # A server does not copy them to the fields of a pod for Windows, but this node does.
            self.pod["metadata"]["annotations"].clear()
        return self.pod

    def container(self):
        return self.rng.choice(self.spec["containers"] + self.spec["initContainers"])

    def context(self):
        """The security context of the pod or of a container, chosen at random."""
        return self.rng.choice([self.spec, self.container()]).setdefault("securityContext", {})

    def own_context(self):
        return self.container().setdefault("securityContext", {})

    def pick(self, *values):
        return self.rng.choice(values)

    def set_or_drop(self, fields, key, *values):
        """Sets the key to one of the values, chosen at random, or removes it for None."""
        value = self.rng.choice(values)
        fields.pop(key, None)
        if value is not None:
            fields[key] = copy.deepcopy(value)

    def change_host_namespaces(self):
        self.set_or_drop(self.spec, self.pick("hostNetwork", "hostPID", "hostIPC"), True, True, False)

    def change_users(self):
        self.set_or_drop(self.spec, "hostUsers", False, False, True)
        if self.rng.random() < 0.5:
            self.change_proc_mount()

    def change_privileged(self):
        context = self.own_context()
        self.set_or_drop(context, "privileged", True, True, False)
        if context["privileged"]:
            context.pop("allowPrivilegeEscalation", None)  # false is not valid with privileged

    def change_escalation(self):
        self.set_or_drop(self.own_context(), "allowPrivilegeEscalation", None, True, False)

    def change_capabilities(self):
        self.set_or_drop(self.own_context(), "capabilities", None, {}, *(
            {"drop": self.rng.sample(["ALL", "all", "NET_RAW"], self.rng.randint(0, 2)),
             "add": self.rng.sample(CAPABILITIES, self.rng.randint(0, 3))} for _ in range(6)))

    def change_proc_mount(self):
        self.set_or_drop(self.own_context(), "procMount", "Unmasked", "Unmasked", "Default")

    def change_se_linux(self):
        options = {"type": self.pick(*TYPES)} if self.rng.random() < 0.8 else {}
        for key, values in (("user", ["", "system_u"]), ("role", ["", "system_r"]), ("level", ["s0:c1"])):
            if self.rng.random() < 0.3:
                options[key] = self.rng.choice(values)
        self.context()["seLinuxOptions"] = options

    def profile(self):
        return self.pick(None, {"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Unconfined"},
                         {"type": "Localhost", "localhostProfile": "a"})

    def change_seccomp(self):
        self.set_or_drop(self.context(), "seccompProfile", self.profile())

    def change_app_armor(self):
        self.set_or_drop(self.context(), "appArmorProfile", self.profile())

    def change_annotations(self):
        key = self.pick("container.apparmor.security.beta.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/",
                        "seccomp.security.alpha.kubernetes.io/pod")
        if key.endswith("/"):
            key += self.container()["name"]
        self.pod["metadata"]["annotations"][key] = self.pick("runtime/default", "unconfined", "unconfined", "localhost/a")

    def change_user(self):
        self.set_or_drop(self.context(), "runAsUser", 0, 0, 1, None)

    def change_non_root(self):
        self.set_or_drop(self.context(), "runAsNonRoot", None, None, False, True)

    def change_sysctls(self):
        self.spec.setdefault("securityContext", {})["sysctls"] = [
            {"name": name, "value": "1"} for name in self.rng.sample(SYSCTLS, self.rng.randint(1, 3))]

    def change_volumes(self):
        self.spec["volumes"].append({"name": f"v{len(self.spec['volumes'])}", **self.rng.choice(VOLUMES)})

    def change_ports(self):
        port = {"containerPort": self.pick(80, 443, 8080)}
        if self.rng.random() < 0.8:
            port["hostPort"] = port["containerPort"]
        container = self.container()
        container["ports"] = [*[old for old in container.get("ports", ()) if old["containerPort"] != port["containerPort"]], port]

    def handler(self):
        action, host = self.pick("httpGet", "tcpSocket"), self.pick(None, "", "10.0.0.1", "a.example")
        return {action: {"port": 80, **({} if host is None else {"host": host})}}

    def change_probes(self):
        container = self.rng.choice(self.spec["containers"])
        container[self.pick("livenessProbe", "readinessProbe", "startupProbe")] = self.handler()

    def change_hooks(self):
        container = self.rng.choice(self.spec["containers"])
        container.setdefault("lifecycle", {})[self.pick("postStart", "preStop")] = self.handler()

    def change_windows(self):
        if self.rng.random() < 0.5:
            is_host_process = self.pick(True, False)
            self.spec.setdefault("securityContext", {})["windowsOptions"] = {"hostProcess": is_host_process}
            if is_host_process:
                self.spec["hostNetwork"] = True  # required by hostProcess
            return
        self.spec["os"] = {"name": self.pick("windows", "linux")}
        if self.spec["os"]["name"] == "windows" and self.rng.random() < 0.8:
            self.spec.pop("securityContext", None)
            for container in self.spec["containers"] + self.spec["initContainers"]:
                container.pop("securityContext", None)


def make(seed, number):
    """A level, a version and a pod."""
    level, version = random.Random(f"{seed}/{number}/policy").choice(POLICIES)
    return level, version, Maker(seed, number).make()


def line_of(level, version, pod):
    """A case as the program reads it."""
    return f"{level} {version} {json.dumps(pod, separators=(',', ':'))}\n"


def judge(cases):
    """The verdict of the node's implementation for each case: "allowed", "violates PodSecurity …", or why it cannot be
    checked."""
    lines = []
    for number, (level, version, pod) in enumerate(cases):
        bound = copy.deepcopy(pod)
        bound["metadata"].update(namespace="default", uid=f"00000000-0000-4000-8000-{number:012}")
        lines.append(line_of(level, version, bound))
    program = os.path.join(harness.BUILD, "tests", "pod-security")
    done = subprocess.run([program], input="".join(lines), check=True, timeout=600, encoding="utf-8", stdout=subprocess.PIPE)
    return done.stdout.splitlines()
