# SPDX-License-Identifier: Apache-2.0
"""The checks of the soak test: whether processes, control groups, files and logs match the manifests, and the figures
that must not grow."""

import collections
import gzip
import json
import os
import re
import subprocess

import harness
import many
import network
import soak_pods
import world

SETTLED_SECONDS = 420
ROTATED = re.compile(r"\.log\.\d{8}-")
MOST_DESCRIPTORS = 200
# The tolerance of a figure of a later measurement over that of the first one. An agent has a descriptor for each shim
# that it has started itself (those of the four pods whose shims may be killed), and three for a running fetch of the
# source. A container that was restarted has two logs, with a link to each.
SLACK = {"descriptors": 9, "threads": 0, "shims": 0, "descriptors of a shim": 2, "cgroups": 0, "mounts": 1, "files of state": 8,
         "files of run": 2, "files of log": 12, "KiB of state": 1024,
         "addresses": 0, "interfaces": 0, "rules": 0, "chains": 0}
GROWTH_KIB = {"KiB of the agent": 4096, "PSS of the agent": 6144, "KiB of a shim": 2048}


def read_log(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8")
    with opened as file:
        return file.read()


def file_key(name):
    """A sort key: the oldest file of an attempt comes first, and the one that is being written last."""
    attempt, _, rest = name.partition(".log")
    return int(attempt), rest == "", rest


class CounterLog:
    """The log of a container that counts: each number follows the one before, also across files. Another attempt counts
    from zero; its predecessor may have lost the part that its shim had not written when it was killed, but nothing in
    between."""

    def __init__(self, node, name):
        self.node, self.name, self.last = node, name, {}

    def check(self):
        directory = os.path.join(self.node.log_directory(self.name), "main")
        attempts = {}
        for name in sorted(os.listdir(directory), key=file_key):
            attempts.setdefault(file_key(name)[0], []).append(read_log(os.path.join(directory, name)))
        current = max(attempts)
        for attempt, texts in attempts.items():
            lines = "".join(texts).split("\n")
            numbers = [int(line.split(" ", 3)[3]) for line in lines[:-1]]
            if not numbers:
                continue
            assert numbers == list(range(numbers[0], numbers[-1] + 1)), f"{self.name}, attempt {attempt}: lines are lost or repeated"
            before = self.last.get(attempt, -1)
            assert numbers[0] <= before + 1 and numbers[-1] >= before, \
                f"{self.name}, attempt {attempt}: after {before} there are {numbers[0]} to {numbers[-1]}"
            self.last[attempt] = numbers[-1]
        assert current >= max(self.last, default=0)
        return sum(os.path.getsize(os.path.join(directory, name)) for name in os.listdir(directory))


class SoakChecks:
    def __init__(self, soak):
        self.soak, self.node = soak, soak.node
        self.identity, self.remains = {}, []
        self.logs = [CounterLog(self.node, name) for name in ("steady-counter", "mortal-counter")]

    # Deviations that may be temporary

    def unsettled(self):
        """The deviations in words; empty if everything is correct."""
        found = [*self.unsettled_pods(), *self.unsettled_processes()]
        return found or [*self.unsettled_shims(), *self.unsettled_groups(), *self.unsettled_networks()]

    def expected(self):
        soak = self.soak
        found = {**soak.daemons.expected(), **soak.source.expected()}
        for pod in soak.all_pods():
            found.update(pod.expected())
        return found

    def unsettled_pods(self):
        reported = {pod["metadata"]["name"]: pod for pod in self.node.pods()}
        sets = [owner["name"] for pod in reported.values() for owner in pod["metadata"].get("ownerReferences", [])
                if owner["kind"] == "DaemonSet"]
        if sorted(sets) != sorted(self.soak.daemons.selected()):
            yield f"there are pods of {sets}, and the DaemonSets {self.soak.daemons.selected()}"
        named = sorted(name for name in reported if not name.startswith("daemon-"))
        wanted = sorted(f"{name}-{self.node.node_name}" for name in
                        [*(pod.name for pod in self.soak.all_pods()), *self.soak.source.names()])
        if named != wanted:
            yield f"there are the pods {named}, not {wanted}"
            return
        yield from (f"{name} does not run: {pod['status']}" for name, pod in reported.items()
                    if name.startswith(("daemon-", "indexed-")) and not harness.is_running(pod))
        starts, objects = soak_pods.count_starts(self.node), self.soak.objects.values()
        for pod in self.soak.all_pods():
            yield from pod.unsettled(reported[f"{pod.name}-{self.node.node_name}"], starts, objects)

    def unsettled_processes(self):
        found, expected = soak_pods.find_processes(self.node), self.expected()
        crashing = {(pod.name, "main"): [pod.version] for pod in self.soak.all_pods() if pod.kind == "crashes"}
        for key in {*found, *expected}:
            if found.get(key) != expected.get(key) and (key not in crashing or found[key] != crashing[key]):
                yield f"of {'/'.join(key)} run the versions {found.get(key)}, not {expected.get(key)}"

    def unsettled_shims(self):
        pods = {pod["metadata"]["uid"]: pod for pod in self.node.pods()}
        owners = [next((uid for uid in pods if any(uid in word for word in world.cmdline(pid))), None) for pid in self.node.shims()]
        if None in owners:
            yield "there is a shim of no pod"
        for uid, pod in pods.items():
            count = owners.count(uid)
            if count > 1 or count < 1 and pod["status"]["phase"] == "Running":
                yield f"{pod['metadata']['name']} has {count} shims"

    def unsettled_groups(self):
        uids = [pod["metadata"]["uid"] for pod in self.node.pods()]
        for path in world.cgroups_below(self.node.cgroup_root):
            if (match := re.search("/pod([0-9a-f-]{32,36})", path)) and match[1] not in uids:
                yield f"the control group {path} is of no pod"
        for pod in self.node.pods():
            statuses = [one for kind in ("containerStatuses", "initContainerStatuses") for one in pod["status"].get(kind, [])]
            ids = [status.get("containerID", "").removeprefix("mainstay://") for status in statuses]
            yield from (f"the control group {path} of {pod['metadata']['name']} is of no container" for path in
                        world.cgroups_below(self.node.cgroup_of(pod)) if os.path.basename(path) not in ids)
        for directory in (f"{self.node.state}/pods", f"{self.node.run}/pods"):
            yield from (f"{directory}/{name} is of no pod" for name in os.listdir(directory)
                        if re.fullmatch("[0-9a-f-]{32,36}", name) and name not in uids)

    def addresses(self, has_completed=False):
        """The addresses of the pods with their own network."""
        names = {f"{pod.name}-{self.node.node_name}" for pod in self.soak.all_pods()
                 if pod.features["network"] and (pod.kind == "completes") == has_completed}
        return {pod["status"].get("podIP", "none") for pod in self.node.pods() if pod["metadata"]["name"] in names}

    def unsettled_networks(self):
        """A pod that has completed keeps its address as long as its sandbox."""
        addresses, reserved, interfaces = self.addresses(), set(self.node.reserved()), self.node.veths()
        if not addresses <= reserved <= addresses | self.addresses(True):
            yield f"the addresses {reserved} are reserved, and pods have {addresses}"
        if len(interfaces) != len(reserved):
            yield f"there are the interfaces {interfaces} for the addresses {reserved}"
        known = {*reserved, network.GATEWAY, network.SUBNET.split("/", maxsplit=1)[0]}
        yield from (f"a rule is of no pod: {rule}" for rule in self.node.rules()
                    if not known.issuperset(re.findall(r"10\.213\.0\.\d+", rule)))

    def wait_settled(self):
        self.soak.settle()
        last = []

        def is_settled():
            assert self.node.agent.poll() is None, self.node.describe_agent_exit()
            last[:] = self.unsettled() if self.soak.is_answering() else ["the agent does not answer"]
            return not last
        world.wait(is_settled, lambda: "\n".join(["all is as the manifests say:", *last[:20], "the agent said:",
                                                  self.node.said()[-6000:]]), SETTLED_SECONDS)

    # Conditions that must hold immediately

    def look_at_steady(self):
        found = {}
        for name in self.soak.spared_names():
            reported = next(pod for pod in self.node.pods() if pod["metadata"]["name"].startswith(name + "-"))
            for status in reported["status"]["containerStatuses"]:
                pid = self.node.init(reported["metadata"]["name"], status["name"])
                found[name, status["name"]] = (reported["metadata"]["uid"], pid, world.start_time(pid), status["restartCount"],
                                              reported["status"]["podIP"])
        return found

    def check(self):
        self.wait_settled()
        now = self.look_at_steady()
        self.identity = self.identity or now
        assert now == self.identity, f"processes of pods have changed: {set(now.items()) ^ set(self.identity.items())}"
        self.soak.spared = {uid for uid, *_ in now.values()}
        starts = soak_pods.count_starts(self.node)
        surplus = [text for pod in self.soak.all_pods() for text in pod.surplus_starts(starts)]
        assert not surplus, "\n".join([*surplus, self.node.said()[-6000:]])
        self.soak.counts["bytes of the counters' logs"] = sum(log.check() for log in self.logs)
        self.check_programs()
        self.check_secrets()
        self.check_addresses()

    def check_addresses(self):
        """For a few seconds the node may still have the hardware address of an earlier pod, because the plugin does not
        announce the new one."""
        for address in self.addresses():
            ping = ["busybox", "ping", "-c", "1", "-W", "1", address]
            world.wait(lambda ping=ping: " 0% packet loss" in self.node.run_inside(*ping, check=False),
                       lambda address=address: "\n".join([f"{address} answers", *self.describe_network(address)]))

    def describe_network(self, address):
        pod = next(pod for pod in self.node.pods() if pod["status"].get("podIP") == address)
        name = pod["metadata"]["name"]
        yield f"{name}: {pod['status']}"
        inside = ["nsenter", f"--net=/proc/{self.node.shim(name)}/ns/net", "busybox", "ip", "address", "show"]
        yield subprocess.run(inside, check=False, capture_output=True, text=True).stdout
        yield self.node.run_inside("busybox", "ip", "neigh", "show")
        yield from (line for line in self.node.said().splitlines()[-400:] if name in line)

    def check_programs(self):
        pids = [self.node.agent.pid, *self.node.shims()]
        world.wait(lambda: not any(world.zombies_of(pid) for pid in pids if world.is_alive(pid)), "there are no zombies", 30)
        descriptors = len(many.descriptors(self.node.agent.pid))
        assert descriptors < MOST_DESCRIPTORS, f"{descriptors} descriptors: {many.descriptors(self.node.agent.pid)}"
        reports = self.node.sanitizer_reports()
        assert not reports, "\n".join(reports)

    def check_secrets(self):
        secret = self.soak.objects.secret
        said = self.node.said() + self.node.cli("get", "events").stdout + json.dumps(self.node.pods())
        assert secret not in said, f"a secret is shown: {[line for line in said.splitlines() if secret in line][:3]}"
        for directory, _, names in os.walk(self.node.log):
            for name in names:
                path = os.path.join(directory, name)
                assert path.endswith(".gz") or secret not in (world.read(path) or ""), f"a secret is in {path}"

    # Figures

    def measure(self):
        """Measures while only the permanent pods exist."""
        self.soak.clear()
        self.check()
        self.soak.archives.remove_all()
        last = []

        def is_same():
            """Images are removed one after the other; a pull whose client has disconnected may end late, and its image
            is pruned as well."""
            self.node.cli("images", "prune")
            listed = self.node.cli("images", "--no-headers").stdout.splitlines()
            last.append(self.figures() if len(listed) == 1 else {"images": listed})
            return len(last) > 3 and all(one.get("files of state") == last[-1].get("files of state", 0) for one in last[-4:])
        world.wait(is_same, lambda: f"nothing changes any longer: {last[-3:]}")
        self.remains.append(self.list_remains())
        return last[-1]

    def list_remains(self):
        """The objects that are counted, to list those that are too many; a pod's UID is replaced by its name."""
        names = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in self.node.pods()}
        descriptors = collections.Counter(re.sub("[0-9]+", "N", path) for path in many.descriptors(self.node.agent.pid))
        paths = [*(f"descriptor {number} of {path}" for path, count in descriptors.items() for number in range(count)),
                 *world.cgroups_below(self.node.cgroup_root), *self.log_files(), *many.files_below(self.node.state),
                 *many.files_below(self.node.run)]
        return {re.sub("[0-9a-f-]{32,36}", lambda uid: names.get(uid[0], uid[0]), path) for path in paths}

    def surplus(self):
        return sorted(self.remains[-1] - self.remains[0])

    def log_files(self):
        return [path for path in many.files_below(self.node.log) if not ROTATED.search(path)]

    def figures(self):
        node, pid = self.node, self.node.agent.pid
        uids = [uid for uid, *_ in self.identity.values()]
        shims = [shim for shim in node.shims() if any(uid in word for uid in uids for word in world.cmdline(shim))]
        disk = os.statvfs(node.state)
        return {"KiB of the agent": many.own_kib(pid), "PSS of the agent": world.pss_kib(pid),
                "descriptors": len(many.descriptors(pid)), "threads": int(world.status(pid, "Threads")),
                "shims": len(node.shims()), "KiB of a shim": max(many.own_kib(shim) for shim in shims),
                "descriptors of a shim": max(len(many.descriptors(shim)) for shim in shims),
                "cgroups": len(world.cgroups_below(node.cgroup_root)),
                "mounts": sum(node.directory in mount["at"] for mount in world.mounts(pid)),
                "files of state": len(many.files_below(node.state)), "files of run": len(many.files_below(node.run)),
                "files of log": len(self.log_files()), "addresses": len(node.reserved()), "interfaces": len(node.veths()),
                "rules": len(node.rules()), "chains": len(node.chains()),
                "KiB of state": (disk.f_blocks - disk.f_bfree) * disk.f_frsize // 1024}


def slopes(measured, calm):
    """The figures that have grown. For memory, the minimum of the measurements of one agent is compared, because
    a leak raises it."""
    first, last = measured[0], measured[-1]
    found = [f"{name}: {first[name]}, then {last[name]}" for name, slack in SLACK.items() if last[name] > first[name] + slack]
    half = len(calm) // 2
    for name, growth in GROWTH_KIB.items():
        numbers = [figures[name] for figures in calm]
        if half and min(numbers[half:]) > min(numbers[:half]) + growth:
            found.append(f"{name}: {numbers}")
    return found
