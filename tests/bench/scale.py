# SPDX-License-Identifier: Apache-2.0
"""From one pod to hundreds: start, steady memory, idle CPU and stop; and with 110 pods the cost of a new agent, a
list of all pods and an edit without effect. Also how fast a container's output is written to its log."""

import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

import bare
import harness
import specs
import world
from world import wait

COUNTS, KUBELET_MAX = (1, 10, 50, 110, 250, 500), 110
BARE_SAMPLES, SAMPLES = 10, 10
LINE = "0123456789" * 10
# Ends on request.
SCRIPT = f"trap 'exit 0' TERM; {bare.SCRIPT.replace('exec sleep 100000', 'sleep 100000 & wait')}"
MIB = 1 << 20
MISSING = 0.25  # seconds for which the agent waits for a file that may reappear


def cpu_ms(pids):
    """CPU time so far."""
    return sum(int(world.read(f"/proc/{pid}/schedstat").split()[0]) for pid in pids) / 1e6


class Bench:
    def __init__(self, archive, figures, idle):
        self.figures, self.idle = figures, idle
        self.node = harness.Node(archive, {"maxPods": 1000, "containerLogMaxSize": "4Gi"}, start=False)
        self.node.log = tempfile.mkdtemp(prefix="mainstay-bench-log-", dir="/dev/shm")
        self.node.start()
        self.fifo = bare.StartFifo(self.node.data)
        self.node.drop(bare.measured_pod(self.node, "warm"))
        self.fifo.wait_for(["warm"])
        runtime = bare.Runtime(self.node, archive, self.node.wait_running("warm"))
        self.bare_run = statistics.median(runtime.run(self.fifo) for _ in range(BARE_SAMPLES))
        runtime.delete_all()
        self.node.remove("warm")
        self.node.wait_gone("warm")

    def pod(self, name):
        pod = bare.measured_pod(self.node, name)
        pod["spec"]["containers"][0]["command"][-1] = SCRIPT
        return pod

    def start(self, names):
        staged = [(self.node.stage(self.pod(name)), self.node.path(f"{name}.yaml")) for name in names]
        started = time.monotonic()
        for source, target in staged:
            os.rename(source, target)
        took = self.fifo.wait_for(names, 600) - started
        self.wait_all(names)
        return took

    def compare(self, what, names, times):
        self.figures.compare(f"{len(names)} pods: {what}, over as many {bare.RUNTIME} run in a row", times, [len(names) * self.bare_run],
                             2.0 if len(names) == 1 else 1.5)

    def wait_all(self, names):
        wait(lambda: sum(pod["status"]["phase"] == "Running" for pod in self.node.pods()) == len(names), "all pods run", 300)

    def steady(self, count):
        shims = self.node.shims()
        assert len(shims) == count, f"{len(shims)} shims"
        time.sleep(3)  # until the work that the agent defers after a start is done
        before = cpu_ms([self.node.agent.pid, *shims])
        time.sleep(self.idle)
        used = cpu_ms([self.node.agent.pid, *shims]) - before
        self.figures.add(f"{count} pods: CPU of agent and shims, {self.idle:g} s without work", used, 1 + count / 50, "ms")
        agent = world.pss_kib(self.node.agent.pid) / 1024
        self.figures.add(f"{count} pods: agent PSS", agent, 3.5 + count * 0.03, "MiB")
        self.figures.add(f"{count} pods: PSS of agent and shims, of each pod",
                         (agent * 1024 + sum(map(world.pss_kib, self.node.shim_processes()))) / count, 400 + 4096 / count, "KiB")

    def stop(self, names):
        started = time.monotonic()
        for name in names:
            os.unlink(self.node.path(f"{name}.yaml"))
        while self.node.pods():
            assert time.monotonic() < started + 600, "the pods are not gone"
            time.sleep(max(0.002, (time.monotonic() - started) / 50))
        return time.monotonic() - started - MISSING

    # With the default number of pods of a kubelet

    def take_over(self, names):
        times, cpu = [], []
        for _ in range(SAMPLES):
            self.node.kill9()
            started = time.monotonic()
            self.node.start(ready=False)
            while not self.knows_all(len(names)):
                time.sleep(0.002)
            times.append(time.monotonic() - started)
            cpu.append(cpu_ms([self.node.agent.pid]))
        self.figures.add(f"{len(names)} pods: a new agent has taken over", statistics.median(times) * 1000, 100, "ms")
        self.figures.add(f"{len(names)} pods: CPU of that, of each pod", statistics.median(cpu) / len(names), 1.0, "ms")

    def knows_all(self, count):
        """The new agent serves requests, and has connected to all shims."""
        try:
            status, text = self.node.get("/metrics")
        except OSError:
            return False
        match = re.search(r"^kubelet_running_pods(?:{[^}]*})? (\d+)", text, re.M)
        return status == 200 and match and int(match.group(1)) == count

    def lists(self, count):
        times, cpu = [], []
        for _ in range(SAMPLES):
            before, started = cpu_ms([self.node.agent.pid]), time.monotonic()
            self.node.get("/pods")
            times.append(time.monotonic() - started)
            cpu.append(cpu_ms([self.node.agent.pid]) - before)
        self.figures.add(f"{count} pods: GET /pods", statistics.median(times) * 1000, 50, "ms")
        self.figures.add(f"{count} pods: CPU of that, of each pod", statistics.median(cpu) / count, 0.2, "ms")

    def edits(self, name, count):
        """The same content again, by rename."""
        spec = self.pod(name)
        time.sleep(2)
        before = cpu_ms([self.node.agent.pid])
        for _ in range(SAMPLES):
            os.rename(self.node.stage(spec), self.node.path(f"{name}.yaml"))
            time.sleep(0.2)
        used = cpu_ms([self.node.agent.pid]) - before
        self.figures.add(f"{count} pods: CPU of an edit without effect", used / SAMPLES, 2, "ms")

    # Logs

    def logs(self, megabytes):
        """The log is in memory; 'cat' copies the same bytes there, also through a pipe."""
        text, target = (os.path.join(self.node.log, name) for name in ("text", "copy"))
        with open(text, "w", encoding="utf-8") as file:
            file.writelines(f"{LINE}\n" for _ in range(megabytes * MIB // (len(LINE) + 1)))
        script = "start=$(cut -d' ' -f1 /proc/uptime); cat /text; echo $start $(cut -d' ' -f1 /proc/uptime) > /dev/termination-log"
        container = specs.container(script=script, volumeMounts=[specs.mount("text", "/text", readOnly=True)])
        ours, bares = [], []
        for i in range(5):
            started = time.monotonic()
            with open(target, "wb") as file, subprocess.Popen(["cat", text], stdout=subprocess.PIPE) as source:
                subprocess.run(["cat"], stdin=source.stdout, stdout=file, check=True)
            bares.append(time.monotonic() - started)
            os.unlink(target)
            name = f"writer{i}"
            self.node.drop(specs.pod(name, container, volumes=[specs.host_path("text", text, type="File")], restartPolicy="Never"))
            self.node.wait_phase(name, "Succeeded", 600)
            start, end = map(float, self.node.status(name)["state"]["terminated"]["message"].split())
            ours.append(end - start)
            self.node.remove(name)
            self.node.wait_gone(name)
        os.unlink(text)
        mine, other = statistics.median(ours), statistics.median(bares)
        self.figures.add("500 MB of a container's output into its log in memory, beside cat", mine * 500 / megabytes, 1, "s",
                         ours_ms=round(mine * 1000, 1), bare_ms=round(other * 1000, 1), samples=len(ours))


def measure(archive, arguments, figures):
    bench = None
    try:
        bench = Bench(archive, figures, arguments.idle)
        for count in COUNTS:
            names = [f"scale{i}" for i in range(count)]
            starts, stops = [], []
            for _ in range(SAMPLES // count):  # few pods are started and stopped several times, as one is soon delayed
                starts.append(bench.start(names))
                stops.append(bench.stop(names))
            starts.append(bench.start(names))
            bench.compare("start", names, starts)
            bench.steady(count)
            if count == KUBELET_MAX:
                bench.take_over(names)
                bench.lists(count)
                bench.edits(names[0], count)
            stops.append(bench.stop(names))
            bench.compare(f"stop, {MISSING * 1000:g} ms after their files went", names, stops)
        bench.logs(arguments.megabytes)
    finally:
        if bench:
            bench.node.finish()
            shutil.rmtree(bench.node.log)
