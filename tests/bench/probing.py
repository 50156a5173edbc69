# SPDX-License-Identifier: Apache-2.0
"""Liveness probes of many containers, one per second each: their lateness, their CPU time, and whether any healthy container
is restarted."""

import asyncio
import os
import statistics
import threading
import time

import bare
import harness
import world


class ProbeServer:
    """A server for the probes of all containers; records the time of each request by the container's name."""

    ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    def __init__(self):
        self.requests = {}
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(asyncio.start_server(self.answer, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    async def answer(self, reader, writer):
        now = time.monotonic()
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            self.requests.setdefault(request.split()[1].decode().strip("/"), []).append(now)
            writer.write(self.ANSWER)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def probe(self, name):
        return {"httpGet": {"host": "127.0.0.1", "port": self.port, "path": f"/{name}"},
                "periodSeconds": 1, "timeoutSeconds": 1, "failureThreshold": 1}

    def lateness(self, names, started, ended):
        """The lateness of each probe in that period, in seconds, relative to a grid of one second that starts with the pod's earliest
        probe."""
        late = []
        for name in names:
            times = [moment for moment in self.requests.get(name, []) if started <= moment <= ended]
            phases = [moment - round(moment - times[0]) for moment in times]
            late += [phase - min(phases) for phase in phases]
        return sorted(late)


def ticks(pid):
    fields = world.read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def observe(node, names, seconds, server, figures):
    pid, count = node.agent.pid, len(names)
    started, before = time.monotonic(), ticks(pid)
    time.sleep(seconds)
    spent, ended = ticks(pid) - before, time.monotonic()
    late = server.lateness(names, started, ended)
    restarts = sum(node.status(name)["restartCount"] for name in names)
    percent = 100 * spent / os.sysconf("SC_CLK_TCK") / (ended - started)
    figures.add(f"restarts of {count} healthy containers, probed for {seconds:g} s", restarts, 0)
    figures.add(f"probes that were omitted, of {len(late)}", max(0, count * int(seconds) - count - len(late)), 0)
    figures.add("lateness of a probe, 99th percentile", late[int(len(late) * 0.99)] * 1000, 20, "ms",
                median_ms=round(statistics.median(late) * 1000, 2), worst_ms=round(late[-1] * 1000, 2))
    figures.add(f"CPU of the agent, {count} probes per second", percent, 2, "%")


def measure(archive, arguments, figures):
    node, server = harness.Node(archive), ProbeServer()
    names = [f"probed{i}" for i in range(arguments.pods)]
    try:
        fifo = bare.StartFifo(node.data)
        for name in names:
            pod = bare.measured_pod(node, name)
            pod["spec"]["containers"][0]["livenessProbe"] = server.probe(name)
            node.drop(pod)
        fifo.wait_for(names, 300)
        time.sleep(3)  # until the work that the agent defers after a start is done
        observe(node, names, arguments.probes, server, figures)
    finally:
        server.stop()
        node.finish()
