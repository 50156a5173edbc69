# SPDX-License-Identifier: Apache-2.0
"""Random manifests of pods: valid ones, most of which are changed in one or two places so that they may be invalid.
The same seed and number give the same manifest."""

import copy
import json
import random

import yaml

QUANTITIES = ["0", "1", "100m", "1.5", "2Gi", "64Mi", "1e3", "1E3", "0.5", "12345678", "1k", "2Ki"]
NAMES = ["main", "side", "web-1", "a", "x0"]
KEYS = ["app", "example.com/role", "disk", "kubernetes.io/hostname"]
STRINGS = ["", " ", "a", "A_B", "a b", "-a", "a-", "a.b", "a..b", ".", "..", "../x", "/", "/a", "/a/../b", "a/b", "/a:/b",
           "é", "x" * 63, "x" * 64, "x" * 254, "0", "1", "-1", "true", "null", "1.2.3.4", "::1", "a=b", "$(X)", "TCP",
           "Always", "Never", "None", "a\nb", "http", "10%", "1Gi", "-1Gi", "1.5m", "5x", "*"]
NUMBERS = [-1, 0, 1, 2, 255, 256, 511, 512, 599, 600, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 1.5]
OTHERS = [None, True, False, [], {}, [None], {"a": "b"}, [{}]]
# Words that YAML may not read as text.
RAW = ["yes", "no", "on", "0777", "0o777", "0x1F", "1e3", "1_000", "12:30:45", "~", "2024-01-01", ".5", "+1", ".inf", "1.",
       "'1'", '"a"', "!!str 1", "off", "Null", "TRUE", "0b11", "1e400", "9223372036854775808"]


class Raw(str):
    """Written to the YAML text unchanged."""


class Maker:
    """Makes one manifest."""

    def __init__(self, rng, number):
        self.rng, self.number = rng, number
        self.volumes, self.names, self.mounts = [], [], 0

    def chance(self, probability):
        return self.rng.random() < probability

    def pick(self, *values):
        return self.rng.choice(values)

    def some(self, fields, probability=0.12):
        """A few of the fields, which are functions or values."""
        return {name: value() if callable(value) else value for name, value in fields.items() if self.chance(probability)}

    def several(self, make, most=2):
        return [make() for _ in range(self.rng.randint(1, most))]

    def quantity(self):
        return self.rng.choice(QUANTITIES)

    # Metadata

    def labels(self):
        return {self.rng.choice(KEYS): self.pick("", "a", "web-1", "1") for _ in range(self.rng.randint(0, 3))}

    def metadata(self):
        return {"name": f"p{self.number}", **self.some({"labels": self.labels, "annotations": self.labels}, 0.3)}

    # Containers

    def resources(self):
        names = self.rng.sample(["cpu", "memory", "ephemeral-storage"], 2)
        if self.chance(0.1):
            names = ["memory", self.pick("hugepages-2Mi", "hugepages-2Mi", "example.com/gpu")]
        found = {}
        for name in names:
            amount = self.pick("1", "100m", "2") if name == "cpu" else self.pick("4Mi", "64Mi", "1Gi")
            if "pages" in name or self.chance(0.7):
                found.setdefault("limits", {})[name] = amount
            if self.chance(0.7):
                found.setdefault("requests", {})[name] = amount if self.chance(0.9) else self.quantity()
        return found

    def variable(self):
        name = self.pick("A", "B_C", "a.b", "a-b", "PATH")
        source = self.pick("value", "value", "field", "resource", "config", "secret", "none")
        if source == "value":
            return {"name": name, "value": self.pick("", "x", "$(A)", "1")}
        sources = {
            "field": lambda: {"fieldRef": {"fieldPath": self.pick(
                "metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels['app']", "spec.nodeName",
                "spec.serviceAccountName", "status.hostIP", "status.podIP", "status.podIPs", "metadata.name",
                "metadata.annotations['a']", "metadata.labels")}},
            "resource": lambda: {"resourceFieldRef": {"resource": self.pick(
                "limits.cpu", "requests.memory", "limits.memory", "limits.ephemeral-storage", "limits.hugepages-2Mi"),
                **self.some({"divisor": lambda: self.pick("1", "1", "0", "1m", "1Mi"), "containerName": self.names[0]}, 0.2)}},
            "config": lambda: {"configMapKeyRef": {"name": "c", "key": "k", **self.some({"optional": True})}},
            "secret": lambda: {"secretKeyRef": {"name": "c", "key": "k", **self.some({"optional": False})}}}
        return {"name": name, **({"valueFrom": sources[source]()} if source in sources else {})}

    def port(self):
        number = self.pick(80, 8080, 443)
        return {"containerPort": number, **self.some({
            "name": lambda: self.pick("http", "p-1"), "hostPort": lambda: self.pick(number, 9090),
            "protocol": lambda: self.pick("TCP", "UDP", "SCTP"), "hostIP": lambda: self.pick("127.0.0.1", "::1")}, 0.3)}

    def port_number(self):
        return self.pick(80, 8080, 443, "http") if self.chance(0.1) else 80

    def handler(self):
        return self.pick(
            lambda: {"exec": {"command": ["true"]}},
            lambda: {"tcpSocket": {"port": self.port_number(), **self.some({"host": "localhost"})}},
            lambda: {"httpGet": {"port": self.port_number(), **self.some({
                "path": lambda: self.pick("/", "/x?y=z", "x"), "scheme": lambda: self.pick("HTTP", "HTTPS"),
                "host": "localhost", "httpHeaders": lambda: [{"name": self.pick("X-A", "Host"), "value": "b"}]}, 0.3)}})()

    def probe(self, is_readiness=False):
        handler = self.handler() if self.chance(0.85) else {"grpc": {"port": 80, **self.some({"service": "s"})}}
        return {**handler, **self.some({
            "initialDelaySeconds": lambda: self.pick(0, 5), "timeoutSeconds": lambda: self.pick(1, 5),
            "periodSeconds": lambda: self.pick(1, 10), "failureThreshold": lambda: self.pick(1, 3),
            "successThreshold": lambda: self.pick(1, 2) if is_readiness else 1,
            **({} if is_readiness else {"terminationGracePeriodSeconds": 5})}, 0.25)}

    def hook(self):
        return self.handler() if self.chance(0.8) else {"sleep": {"seconds": self.pick(0, 1, 5)}}

    def mount(self):
        self.mounts += 1
        return {"name": self.pick(*self.volumes)["name"], "mountPath": f"{self.pick('/a', '/b/c', 'data')}{self.mounts}",
                **self.some({
                    "readOnly": lambda: self.pick(True, False), "subPath": lambda: self.pick("x", "x/y"),
                    "mountPropagation": lambda: self.pick("None", "HostToContainer", "HostToContainer", "Bidirectional"),
                    "recursiveReadOnly": lambda: self.pick("Disabled", "Disabled", "IfPossible", "Enabled")}),
                **self.some({"subPathExpr": "$(A)"}, 0.03)}

    def seccomp(self):
        return self.pick({"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost", "localhostProfile": "a"},
                         {"type": "Localhost"})

    def container_security(self):
        return self.some({
            "privileged": lambda: self.pick(True, False), "runAsUser": lambda: self.pick(0, 1000), "runAsGroup": 5,
            "runAsNonRoot": lambda: self.pick(True, False), "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": lambda: self.pick(True, False),
            "capabilities": lambda: self.some({"add": ["NET_ADMIN"], "drop": ["ALL"]}, 0.6),
            "procMount": lambda: self.pick("Default", "Unmasked"), "seccompProfile": self.seccomp,
            "appArmorProfile": self.seccomp, "seLinuxOptions": {"level": "s0:c1,c2"}}, 0.2)

    def container(self, name, is_init=False):
        fields = {"name": name, "image": self.pick("busybox", "busybox:1", "registry.example.com:5000/a/b@sha256:" + "a" * 64)}
        fields.update(self.some({
            "imagePullPolicy": lambda: self.pick("Always", "IfNotPresent", "Never"), "command": lambda: ["sh"],
            "args": lambda: ["-c", "x"], "workingDir": "/tmp", "stdin": True, "stdinOnce": True, "tty": True,
            "ports": lambda: self.several(self.port), "env": lambda: self.several(self.variable, 3),
            "envFrom": lambda: [self.pick({"configMapRef": {"name": "c"}}, {"secretRef": {"name": "c"}, "prefix": "P_"})],
            "resources": self.resources, "volumeMounts": lambda: self.several(self.mount) if self.volumes else [],
            "terminationMessagePath": "/dev/x", "terminationMessagePolicy": lambda: self.pick("File", "FallbackToLogsOnError"),
            "securityContext": self.container_security}, 0.2))
        if not is_init or self.chance(0.02):
            fields.update(self.some({"resizePolicy": lambda: [{"resourceName": self.pick("cpu", "memory"),
                                     "restartPolicy": self.pick("NotRequired", "RestartContainer")}]}))
        is_sidecar = is_init and self.chance(0.4)
        if is_sidecar:
            fields["restartPolicy"] = "Always"
        elif self.chance(0.05):
            fields["restartPolicy"] = self.pick("Never", "OnFailure", "Always")
            fields.update(self.some({"restartPolicyRules": [{"action": "Restart", "exitCodes": {
                "operator": self.pick("In", "NotIn"), "values": [self.pick(1, 42)]}}]}, 0.5))
        if not is_init or is_sidecar or self.chance(0.05):
            fields.update(self.some({"livenessProbe": self.probe, "startupProbe": self.probe,
                                     "readinessProbe": lambda: self.probe(True),
                                     "lifecycle": lambda: self.some({"postStart": self.hook, "preStop": self.hook}, 0.5)}))
        return fields

    # Volumes

    def item(self):
        return {"key": "k", "path": self.pick("p", "p/q"), **self.some({"mode": lambda: self.pick(0o400, 0o644)})}

    def downward(self):
        return {"path": self.pick("labels", "a/b"), **self.pick(
            {"fieldRef": {"fieldPath": self.pick("metadata.labels", "metadata.name", "metadata.annotations['a']")}},
            {"resourceFieldRef": {"containerName": self.names[0], "resource": "limits.cpu"}})}

    def volume(self, name):
        mode = self.some({"defaultMode": lambda: self.pick(0o400, 0o777)})
        optional = self.some({"optional": True})
        return {"name": name, **self.pick(
            lambda: {"emptyDir": self.some({"medium": lambda: self.pick("", "Memory", "Memory", "Memory", "HugePages"),
                                            "sizeLimit": self.quantity}, 0.4)},
            lambda: {"hostPath": {"path": self.pick("/tmp", "/var/log"), **self.some({"type": lambda: self.pick(
                "", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice")}, 0.5)}},
            lambda: {"configMap": {"name": "c", **mode, **optional, **self.some({"items": [self.item()]})}},
            lambda: {"secret": {"secretName": "s", **mode, **optional, **self.some({"items": [self.item()]})}},
            lambda: {"downwardAPI": {"items": self.several(self.downward), **mode}},
            lambda: {"image": {"reference": "busybox:1", **self.some({"pullPolicy": "Never"})}},
            lambda: {"projected": {"sources": [self.pick(
                {"configMap": {"name": "c", **optional}}, {"secret": {"name": "s", "items": [self.item()]}},
                {"downwardAPI": {"items": [self.downward()]}})], **mode}})()}

    # Placement and the pod

    def expression(self):
        operator = self.pick("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
        values = {"In": ["a"], "NotIn": ["a", "b"], "Gt": ["1"], "Lt": ["2"]}.get(operator)
        return {"key": self.rng.choice(KEYS), "operator": operator, **({"values": values} if values else {})}

    def affinity(self):
        term = {"matchExpressions": self.several(self.expression)}
        near = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
        return self.pick(
            {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}},
            {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": self.pick(1, 100), "preference": term}]}},
            {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}},
            {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": near}]}})

    def toleration(self):
        return self.pick(
            {"operator": "Exists"}, {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
            {"key": "a", "effect": "PreferNoSchedule"}, {"operator": "Exists", "effect": "NoSchedule"})

    def pod_security(self):
        return self.some({
            "runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": True, "fsGroup": lambda: self.pick(0, 2000),
            "supplementalGroups": lambda: [1, 2], "fsGroupChangePolicy": lambda: self.pick("Always", "OnRootMismatch"),
            "sysctls": lambda: [{"name": self.pick("kernel.shm_rmid_forced", "net.ipv4.tcp_syncookies"), "value": "1"}],
            "seccompProfile": self.seccomp, "appArmorProfile": self.seccomp,
            "supplementalGroupsPolicy": lambda: self.pick("Merge", "Strict"),
            "seLinuxOptions": {"user": "u", "role": "r", "type": "t", "level": "s0"}}, 0.25)

    def dns(self):
        return self.some({"nameservers": lambda: ["1.2.3.4"], "searches": lambda: ["a.example.com", "."],
                          "options": lambda: [{"name": "ndots", "value": "2"}, {"name": "rotate"}]}, 0.6)

    def pod(self):
        self.names = self.rng.sample(NAMES, self.rng.choice((1, 1, 1, 2)))
        self.volumes = [self.volume(f"v{i}") for i in range(self.rng.choice((0, 0, 1, 2)))]
        spec = {"containers": [self.container(name) for name in self.names]}
        if self.chance(0.2):
            spec["initContainers"] = [self.container(f"init{i}", True) for i in range(self.rng.choice((1, 1, 2)))]
        if self.volumes:
            spec["volumes"] = self.volumes
        spec.update(self.some({
            "restartPolicy": lambda: self.pick("Always", "OnFailure", "Never"), "hostNetwork": True, "hostPID": True,
            "hostIPC": True, "shareProcessNamespace": True, "hostUsers": lambda: self.pick(True, False),
            "terminationGracePeriodSeconds": lambda: self.pick(0, 30), "activeDeadlineSeconds": 60,
            "dnsPolicy": lambda: self.pick("ClusterFirst", "Default", "ClusterFirstWithHostNet"),
            "dnsConfig": self.dns, "nodeSelector": self.labels, "affinity": self.affinity,
            "tolerations": lambda: self.several(self.toleration), "securityContext": self.pod_security,
            "hostname": "web", "subdomain": "sub", "setHostnameAsFQDN": True, "hostnameOverride": "other.example",
            "hostAliases": lambda: [{"ip": self.pick("1.2.3.4", "::1"), "hostnames": ["a", "b.c"]}],
            "priorityClassName": "system-node-critical", "enableServiceLinks": False, "schedulerName": "mine",
            "imagePullSecrets": lambda: [{"name": "s"}], "os": lambda: {"name": "linux"},
            "readinessGates": lambda: [{"conditionType": "example.com/gate"}], "preemptionPolicy": "PreemptLowerPriority",
            "resources": lambda: {"limits": {"cpu": "2", "memory": "64Mi"}}}, 0.08))
        return {"apiVersion": "v1", "kind": "Pod", "metadata": self.metadata(), "spec": spec}


# Changes

def places(value, path=()):
    """Every position in a tree except its root and the fields that name the object."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        here = (*path, key)
        if here not in (("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("spec",)):
            yield here
        yield from places(child, here)


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def strange(rng, old):
    """Another value; mostly of the same type."""
    pools = [OTHERS, STRINGS, NUMBERS]
    kind = 2 if isinstance(old, (int, float)) and not isinstance(old, bool) else 1 if isinstance(old, str) else 0
    return copy.deepcopy(rng.choice(pools[kind] if rng.random() < 0.75 else rng.choice(pools)))


def mutate(rng, tree, is_yaml):
    found = list(places(tree))
    if not found:
        return
    path = rng.choice(found)
    parent, key = at(tree, path[:-1]), path[-1]
    old = parent[key]
    how = rng.random()
    if how < 0.12:
        del parent[key]
    elif how < 0.2 and isinstance(parent, list):
        parent.append(copy.deepcopy(old))
    elif how < 0.26 and isinstance(parent, dict):
        parent[rng.choice(("extra", key.upper(), key + "s", key.capitalize(), ""))] = parent.pop(key)
    elif how < 0.36 and is_yaml and not isinstance(old, (dict, list)):
        parent[key] = Raw(rng.choice(RAW))
    else:
        parent[key] = strange(rng, old)


def make(seed, number):
    """The name of a file and its text."""
    rng = random.Random(f"{seed}-{number}")
    tree = Maker(rng, number).pod()
    is_yaml = rng.random() < 0.4
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2))):
        mutate(rng, tree, is_yaml)
    if not is_yaml:
        return f"{number}.json", json.dumps(tree)
    return f"{number}.yaml", write_yaml(tree)


def write_yaml(tree):
    """Raw text is inserted without the quotes that the dumper adds."""
    raw = {}

    def mark(value):
        if isinstance(value, dict):
            return {key: mark(child) for key, child in value.items()}
        if isinstance(value, list):
            return [mark(child) for child in value]
        if isinstance(value, Raw):
            raw[f"rawvalue{len(raw)}"] = str(value)
            return f"rawvalue{len(raw) - 1}"
        return value

    text = yaml.safe_dump(mark(tree), sort_keys=False, width=1000, allow_unicode=True)
    for name, value in raw.items():
        text = text.replace(name, value, 1)
    return text
