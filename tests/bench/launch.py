# SPDX-License-Identifier: Apache-2.0
"""Pods in the node's network: the time to start and to restart, and the cost of idle pods."""

import os
import statistics
import time

import bare
import harness
import world


class Bench:
    def __init__(self, node, archive, fifo, figures):
        self.node, self.fifo, self.figures = node, fifo, figures
        node.drop(self.pod("warm"))
        fifo.wait_for(["warm"])
        self.runtime = bare.Runtime(node, archive, node.wait_running("warm"))
        self.runtime.run(fifo)

    def pod(self, name):
        return bare.measured_pod(self.node, name)

    def restart(self, name):
        self.node.wait_running(name)
        pid = self.node.init(name)
        started = time.monotonic()
        os.kill(pid, 9)
        return self.fifo.wait_for([name]) - started

    def latencies(self, samples):
        starts, restarts, bares = [], [], []
        for i in range(samples):
            name = f"sample{i}"
            bares.append(self.runtime.run(self.fifo))
            starts.append(bare.start(self.node, self.fifo, self.pod(name)))
            bares.append(self.runtime.run(self.fifo))
            restarts.append(self.restart(name))
            self.runtime.delete_all()
            self.node.remove(name)
            self.node.wait_gone(name)
        self.figures.compare(f"manifest renamed -> container runs, over {bare.RUNTIME} run", starts, bares, bare.GOAL[bare.RUNTIME])
        self.figures.compare(f"exit -> restarted process runs, over {bare.RUNTIME} run", restarts, bares, bare.GOAL[bare.RUNTIME])

    def boots(self, samples):
        """Seconds from the agent's start, with a manifest in the directory, as after a boot."""
        ours, bares = [], []
        for i in range(samples):
            name = f"boot{i}"
            bares.append(self.runtime.run(self.fifo))
            self.runtime.delete_all()
            self.node.stop()
            self.node.drop(self.pod(name))
            started = time.monotonic()
            self.node.start(ready=False)
            ours.append(self.fifo.wait_for([name]) - started)
            self.node.wait_running(name)
            self.node.remove(name)
            self.node.wait_gone(name)
        mine, other = statistics.median(ours), statistics.median(bares)
        self.figures.add(f"agent's start -> container runs, more than {bare.RUNTIME} run", (mine - other) * 1000, 300, "ms",
                         ours_ms=round(mine * 1000, 1), bare_ms=round(other * 1000, 1), samples=samples)

    def many(self, count):
        """Leaves the pods running."""
        names = [f"many{i}" for i in range(count)]
        staged = [(self.node.stage(self.pod(name)), self.node.path(f"{name}.yaml")) for name in names]
        started = time.monotonic()
        for source, target in staged:
            os.rename(source, target)
        ours = self.fifo.wait_for(names, 300) - started
        for name in names:
            self.node.wait_running(name)
        alone = sum(self.runtime.run(self.fifo) for _ in range(count))
        self.runtime.delete_all()
        self.figures.add(f"{count} pods at once -> all run, over as many {bare.RUNTIME} run in a row", ours / alone, 1.5, "x",
                         ours_ms=round(ours * 1000, 1), bare_ms=round(alone * 1000, 1))
        self.node.remove("warm")
        self.node.wait_gone("warm")
        return names

    def ticks(self, pids):
        total = 0
        for pid in pids:
            fields = world.read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total

    def idle(self, count, seconds):
        shims = self.node.shims()
        assert len(shims) == count, f"{len(shims)} shims"
        pids = [self.node.agent.pid, *self.node.shim_processes()]  # with their log copiers
        time.sleep(2)  # until the work that the agent defers after a start is done
        before = self.ticks(pids)
        time.sleep(seconds)
        ticks = self.ticks(pids) - before
        self.figures.add(f"agent PSS with {count} pods", world.pss_kib(self.node.agent.pid) / 1024, 6, "MiB")
        self.figures.add(f"shim PSS, mean of {count}", sum(map(world.pss_kib, self.node.shim_processes())) / count, 200, "KiB")
        self.figures.add(f"CPU of agent and shims, {count} idle pods, {seconds:g} s", ticks, 1, "ticks")


def measure(archive, arguments, figures):
    node = harness.Node(archive, {"crashLoopBackOff": {"maxContainerRestartPeriod": "300s"}})
    bench = None
    try:
        bench = Bench(node, archive, bare.StartFifo(node.data), figures)
        bench.latencies(arguments.samples)
        bench.boots(arguments.samples)
        names = bench.many(arguments.pods)
        bench.idle(len(names), arguments.idle)
    finally:
        if bench:
            bench.runtime.delete_all()
        node.finish()
