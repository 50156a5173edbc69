# SPDX-License-Identifier: Apache-2.0
"""The hops between a node and its API server: nghttpx, which uses HTTP/2 over TLS to clients and HTTP/1.1 to the
server; and a link that loses packets. The former presents its own certificate, so its clients authenticate by a token.
It sends TLS records of full size, as a Go server does after the first 128 KiB."""

import os
import re
import signal
import socket
import subprocess
import threading

import network
import world
from api_faults import Relay
from world import wait


class Front:
    """'more' are options of nghttpx."""

    def __init__(self, api, *more):
        self.api, self.more, self.port = api, more, world.free_port()
        self.log = os.path.join(api.directory, f"front-{self.port}.log")
        self.own = []  # all masters that were started, the newest last
        self.start()

    def start(self):
        cert, key = self.api.authority.server()
        words = ["nghttpx", "--workers=1", "--no-ocsp", f"--frontend=127.0.0.1,{self.port}",
                 f"--backend=127.0.0.1,{self.api.port};;tls;proto=http/1.1;sni=localhost", f"--cacert={self.api.authority.cert}",
                 "--frontend-http2-read-timeout=1h", "--stream-read-timeout=1h", "--backend-read-timeout=1h",
                 "--no-via", "--no-server-push", "--tls-dyn-rec-warmup-threshold=0", "--backend-connections-per-host=1000", "--conf=/dev/null",
                 f"--accesslog-file={self.log}", "--accesslog-format=$remote_port $alpn $status",
                 "--errorlog-file=/dev/null", "--log-level=FATAL", *self.more, key, cert]
        self.own.append(subprocess.Popen(words, stdin=subprocess.DEVNULL))
        wait(self.is_there, "the front listens")

    def is_there(self):
        assert self.own[-1].poll() is None, "nghttpx has ended"
        try:
            socket.create_connection(("127.0.0.1", self.port), 5).close()
            return True
        except OSError:
            return False

    def all_pids(self):
        """All processes of the front: the master and the workers."""
        found, more = set(), {one.pid for one in self.own if one.poll() is None}
        while more:
            found |= more
            more = {pid for pid in world.pids() if int(world.status(pid, "PPid") or 0) in found} - found
        return found

    def signal(self, number):
        for pid in self.all_pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def freeze(self):
        """Nothing answers, and all connections stay open."""
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """All connections end at once."""
        self.signal(signal.SIGKILL)
        for one in self.own:
            one.wait()

    def replace(self):
        """A new worker starts and the old one sends GOAWAY, finishes its streams and accepts no new ones. Both share a
        socket, so that no connection is refused in between. Returns the old worker."""
        master = self.own[-1].pid
        old = self.all_pids() - {master}
        os.kill(master, signal.SIGHUP)
        wait(lambda: self.all_pids() - {master} - old, "another worker has started")
        return old

    def asked(self):
        """For each request that has ended: the client's port, the protocol, the status."""
        return re.findall(r"^(\S+) (\S+) (\S+)$", world.read(self.log) or "", re.M)

    def stop(self):
        self.thaw()
        self.kill()


class Wire(Relay):
    """A relay whose packets seem to come from another machine: it is in a network namespace at the other end of a veth
    pair. Its 'host' is the address there; clients have to verify the name 'kubernetes'."""

    def __init__(self, port):
        self.name, number = f"mt{os.getpid()}", os.getpid() % 16384 * 4
        own, self.host = (f"198.18.{number // 256}.{number % 256 + last}" for last in (1, 2))
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self.space = f"/proc/{self.holder.pid}/ns/net"
        wait(lambda: os.readlink(self.space) != os.readlink("/proc/self/ns/net"), "a network namespace of the test's own")
        run_command("ip", "link", "add", self.name, "type", "veth", "peer", "name", "far", "netns", str(self.holder.pid))
        run_command("ip", "address", "add", f"{own}/30", "dev", self.name)
        run_command("ip", "link", "set", self.name, "up")
        self.inside("ip", "address", "add", f"{self.host}/30", "dev", "far")
        self.inside("ip", "link", "set", "far", "up")
        super().__init__(port)

    def inside(self, *words):
        run_command("nsenter", f"--net={self.space}", *words)

    def listen(self):
        """Listens in the namespace: a socket stays in the namespace in which it was created; the thread that creates it
        does not return to its own."""
        made = []

        def listen_in_namespace():
            network.enter(self.space)
            made.append(socket.create_server((self.host, 0), backlog=100))
        thread = threading.Thread(target=listen_in_namespace)
        thread.start()
        thread.join()
        return made[0]

    def drop(self):
        """All packets are dropped silently."""
        for chain in ("INPUT", "OUTPUT"):
            self.inside("iptables", "-I", chain, "-j", "DROP")

    def heal(self):
        for chain in ("INPUT", "OUTPUT"):
            self.inside("iptables", "-F", chain)

    def stop(self):
        self.heal()
        super().stop()
        run_command("ip", "link", "delete", self.name)
        self.holder.kill()
        self.holder.wait()


def run_command(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=world.DEADLINE)
