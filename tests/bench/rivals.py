# SPDX-License-Identifier: Apache-2.0
"""Other agents with the same pod, alternately with Mainstay: 'podman kube play', and a kubelet with containerd if
MAINSTAY_KUBERNETES names a directory whose bin has one, containerd is installed, and the machine does not have a
kubelet of its own. The goal of each figure is that of the other agent."""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

import bare
import documents
import harness
import specs
import world
from real_kubelet import RealKubelet

IDLE = 30  # seconds for which the CPU time of idle pods is measured
EDIT = 30  # seconds for which a pod must survive a broken edit


def manifest(directory, data, name):
    """The same pod for each agent; Mainstay refuses none of its fields."""
    container = specs.container(script=bare.SCRIPT, env=[{"name": "NAME", "value": name}],
                                volumeMounts=[specs.mount("bench", "/bench")])
    path = os.path.join(directory, f".{name}.staged")
    with open(path, "w", encoding="utf-8") as file:
        file.write(specs.text(specs.pod(name, container, volumes=[specs.host_path("bench", data)],
                                        terminationGracePeriodSeconds=0)))
    return path


def find_process(name):
    """The container's own process, which has the pod's name in its environment."""
    def find():
        return next((pid for pid in world.pids() if world.cmdline(pid)[-2:] == ["sleep", "100000"]
                     and world.environ(pid).get("NAME") == name), None)
    return world.wait(find, f"the process of {name} runs")


def run(*words, **options):
    done = subprocess.run(words, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise SystemExit(f"bench: {' '.join(words)}: {done.stdout}")
    return done.stdout


def remove_cgroups(name):
    """The agent's remaining cgroups, in all hierarchies."""
    for top in glob.glob(f"{world.CGROUP}/{name}") + glob.glob(f"{world.CGROUP}/*/{name}"):
        for directory, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(directory)


class Agent:
    """Operations that all agents perform on files in a directory; 'data' is the FIFO."""

    def __init__(self):
        self.short = type(self).__name__.lower()
        self.directory = tempfile.mkdtemp(prefix="mainstay-rival-")
        self.manifests, self.data = f"{self.directory}/manifests", f"{self.directory}/data"
        os.mkdir(self.manifests)
        os.mkdir(self.data)
        self.fifo = bare.StartFifo(self.data)

    def path(self, name):
        return f"{self.manifests}/{name}.yaml"

    def apply(self, name):
        """Makes the agent start a pod."""
        os.rename(manifest(self.directory, self.data, name), self.path(name))

    def remove(self, name):
        os.unlink(self.path(name))

    def start(self, name):
        started = time.monotonic()
        self.apply(name)
        return self.fifo.wait_for([name]) - started

    def crash(self, name):
        pid = find_process(name)
        started = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        return self.fifo.wait_for([name]) - started

    def survives_edit(self, name):
        """Whether the process of a pod is the same some time after a broken edit of its manifest."""
        pid = find_process(name)
        with open(self.path(name), "a", encoding="utf-8") as file:
            file.write("\n  - ]\n")
        end = time.monotonic() + EDIT
        while world.is_alive(pid) and time.monotonic() < end:
            time.sleep(0.1)
        return world.is_alive(pid)


class Mainstay(Agent):
    def __init__(self, archive, _unused):
        super().__init__()
        self.node = harness.Node(archive, {"crashLoopBackOff": {"maxContainerRestartPeriod": "300s"}})
        self.manifests = self.node.manifests

    def processes(self):
        return [self.node.agent.pid, *self.node.shims()]

    def finish(self):
        self.node.finish()
        shutil.rmtree(self.directory)


# The agent's own limits are higher than a machine may allow.
CONTAINERS_CONF = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
"""


class Podman(Agent):
    """Podman does not watch a directory: 'kube play' takes a file."""

    name = documents.PODMAN
    share = 0.5  # the part of its memory that ours may use

    def __init__(self, archive, _unused):
        super().__init__()
        self.words = ["podman", "--root", f"{self.directory}/root", "--runroot", f"{self.directory}/run", "--tmpdir",
                      f"{self.directory}/tmp", "--storage-driver", "overlay", "--cgroup-manager", "cgroupfs", "--runtime",
                      "runc", "--events-backend", "none"]
        self.environment = {**os.environ, "CONTAINERS_CONF": f"{self.directory}/containers.conf"}
        with open(self.environment["CONTAINERS_CONF"], "w", encoding="utf-8") as file:
            file.write(CONTAINERS_CONF)
        self.podman("load", "--input", archive)

    def podman(self, *words):
        run(*self.words, *words, env=self.environment)

    def apply(self, name):
        super().apply(name)
        self.podman("kube", "play", self.path(name))

    def remove(self, name):
        self.podman("kube", "down", self.path(name))
        super().remove(name)

    def processes(self):
        return [pid for pid in world.pids() if "conmon" in "".join(world.cmdline(pid)[:1])
                and self.directory in " ".join(world.cmdline(pid))]

    def finish(self):
        self.podman("pod", "rm", "--all", "--force")
        subprocess.run(["umount", f"{self.directory}/root/overlay"], check=False, capture_output=True)
        remove_cgroups("libpod_parent")
        shutil.rmtree(self.directory)


KUBELET = "/var/lib/kubelet"  # in which it creates a directory regardless of its settings


class Kubelet(Agent):
    """Static pods of a kubelet without an API server."""

    name = documents.KUBELET
    share = 0.25

    def __init__(self, archive, _unused):
        super().__init__()
        self.real = RealKubelet(self.directory, [archive], words=["--hostname-override", "rival"],
                                staticPodPath=self.manifests, localStorageCapacityIsolation=False)
        self.real.start()

    def processes(self):
        return [self.real.kubelet.pid, self.real.containerd.pid, *self.real.shims()]

    def finish(self):
        self.real.finish()
        for line in reversed((world.read("/proc/self/mounts") or "").splitlines()):
            if line.split()[1].startswith(self.directory):
                subprocess.run(["umount", line.split()[1]], check=False)
        remove_cgroups("kubepods")
        shutil.rmtree(KUBELET)
        shutil.rmtree(self.directory)


def sum_memory(pids):
    """PSS in MiB."""
    def one(pid):
        lines = (world.read(f"/proc/{pid}/smaps_rollup") or "").splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return sum(map(one, pids)) / 1024


def sum_ticks(pids):
    fields = [(world.read(f"/proc/{pid}/stat") or ") " + "0 " * 20).rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(field[11]) + int(field[12]) for field in fields)


def available_kib():
    """Memory that the machine could still give to programs, including caches that can be dropped."""
    return int(next(line.split()[1] for line in world.read("/proc/meminfo").splitlines() if line.startswith("MemAvailable:")))


def measure_idle(agent, count):
    """With some idle pods: MiB of the agent's processes, ticks, and the KiB of machine memory that each pod costs."""
    names = [f"{agent.short}-many{i}" for i in range(count)]
    free = available_kib()
    for name in names:
        agent.apply(name)
    agent.fifo.wait_for(names, 300)
    time.sleep(5)  # deferred work after a start is done
    pids = agent.processes()
    memory, before, lost = sum_memory(pids), sum_ticks(pids), (free - available_kib()) / count
    time.sleep(IDLE)
    return memory, sum_ticks(pids) - before, lost


def compare_latencies(ours, theirs, samples, figures):
    times = {(agent, what): [] for agent in (ours, theirs) for what in ("start", "crash")}
    for i in range(samples):
        for agent in (ours, theirs):
            times[agent, "start"].append(agent.start(f"{agent.short}{i}"))
            times[agent, "crash"].append(agent.crash(f"{agent.short}{i}"))
        for agent in (ours, theirs):
            agent.remove(f"{agent.short}{i}")
    for what, words in (("start", "manifest renamed -> container runs"), ("crash", "exit -> restarted process runs")):
        figures.compare(f"{words}, over {theirs.name}", times[ours, what], times[theirs, what], 1.0)


def compare_idle(ours, theirs, count, figures):
    memory, ticks, lost = measure_idle(theirs, count)
    figures.add(f"PSS of agent and shims, {count} pods, beside {theirs.name}", ours[0], round(memory, 1), "MiB")
    figures.add(f"CPU, {count} idle pods, {IDLE} s, beside {theirs.name}", ours[1], ticks, "ticks")
    figures.add(f"memory of the machine for each of {count} pods, {theirs.share:g} x that of {theirs.name}", ours[2],
                round(theirs.share * lost), "KiB")


def others():
    kubelet = documents.find_kubelet()
    if shutil.which("podman"):
        yield Podman, None
    is_node = os.path.isdir(KUBELET) and os.listdir(KUBELET)
    if os.access(kubelet, os.X_OK) and shutil.which("containerd") and not is_node:
        yield Kubelet, kubelet


def measure(archive, arguments, figures):
    for make, argument in others():
        with contextlib.ExitStack() as stack:
            ours = Mainstay(archive, None)
            stack.callback(ours.finish)
            theirs = make(archive, argument)
            stack.callback(theirs.finish)
            compare_latencies(ours, theirs, arguments.samples, figures)
            compare_idle(measure_idle(ours, arguments.pods), theirs, arguments.pods, figures)
            if make is Kubelet:
                stopped = [int(not agent.survives_edit(f"{agent.short}-many0")) for agent in (ours, theirs)]
                figures.add(f"pods that a broken edit stops within {EDIT} s, beside {theirs.name}", *stopped)
