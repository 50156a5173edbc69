# SPDX-License-Identifier: Apache-2.0
"""Many containers that are asked each second whether they live: how late, at which cost, and whether any of them is
wronged."""

import asyncio
import os
import statistics
import threading
import time

import bare
import harness
import world


class Asked:
    """A server that probes ask, and that remembers who was asked about, and when."""

    ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    def __init__(self):
        self.heard = {}
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(asyncio.start_server(self.answer, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    async def answer(self, reader, writer):
        now = time.monotonic()
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            self.heard.setdefault(request.split()[1].decode().strip("/"), []).append(now)
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

    def lateness(self, names, begun, ended):
        """Of each probe in that time, in seconds, against the grid of one a second that its pod's earliest is on."""
        late = []
        for name in names:
            times = [moment for moment in self.heard.get(name, []) if begun <= moment <= ended]
            phases = [moment - round(moment - times[0]) for moment in times]
            late += [phase - min(phases) for phase in phases]
        return sorted(late)


def ticks(pid):
    fields = world.read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def observe(node, names, seconds, asked, figures):
    pid, count = node.agent.pid, len(names)
    begun, before = time.monotonic(), ticks(pid)
    time.sleep(seconds)
    spent, ended = ticks(pid) - before, time.monotonic()
    late = asked.lateness(names, begun, ended)
    restarts = sum(node.status(name)["restartCount"] for name in names)
    percent = 100 * spent / os.sysconf("SC_CLK_TCK") / (ended - begun)
    figures.add(f"restarts of {count} containers that are well, probed for {seconds:g} s", restarts, 0)
    figures.add(f"probes that were left out, of {len(late)}", max(0, count * int(seconds) - count - len(late)), 0)
    figures.add("lateness of a probe, 99th percentile", late[int(len(late) * 0.99)] * 1000, 20, "ms",
                median_ms=round(statistics.median(late) * 1000, 2), worst_ms=round(late[-1] * 1000, 2))
    figures.add(f"CPU of the agent, {count} probes a second", percent, 2, "%")


def measure(archive, arguments, figures):
    node, asked = harness.Node(archive), Asked()
    names = [f"probed{i}" for i in range(arguments.pods)]
    try:
        bell = bare.Bell(node.data)
        for name in names:
            pod = bare.measured_pod(node, name)
            pod["spec"]["containers"][0]["livenessProbe"] = asked.probe(name)
            node.drop(pod)
        bell.wait_for(names, 300)
        time.sleep(3)  # what a start leaves to be done later
        observe(node, names, arguments.probes, asked, figures)
    finally:
        asked.stop()
        node.finish()
