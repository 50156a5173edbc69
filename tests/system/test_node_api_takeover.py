# SPDX-License-Identifier: Apache-2.0
"""The powers of a taken-over mainstay-api. Programs that run as its user replace it: this user may send any request to
the agent's socket, and the programs try requests that no client has made."""

import base64
import json
import os
import re
import subprocess
import sys

import api_certs
import harness
import node_api
import pytest
import specs
import world
from world import wait

pytestmark = pytest.mark.xdist_group("node_api")

# A program that runs as the user: it reads requests, one a line, each with its headers, and prints the statuses and the
# bodies.
ATTACK = """
import json, socket, sys
for line in sys.stdin:
    method, path, *headers = json.loads(line)
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(60)
    stream.connect(sys.argv[1])
    stream.sendall("\\r\\n".join([f"{method} {path} HTTP/1.0", "Host: a", *headers, "", ""]).encode())
    data = b""
    while piece := stream.recv(65536):
        data += piece
    head, _, body = data.partition(b"\\r\\n\\r\\n")
    print(json.dumps([int(head.split()[1]), body.decode(errors="replace")]), flush=True)
"""
PRIVILEGED = "%7B%22name%22%3A%22d%22%2C%22image%22%3A%22tools%22%2C%22securityContext%22%3A%7B%22privileged%22%3Atrue%7D%7D"
UPGRADE = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: v5.channel.k8s.io"]


class TakenNode(node_api.ActivatingNode, harness.Node):
    """A node whose user mainstay-api is the attacker's."""

    def __init__(self, archive, **config):
        self.port = world.free_port()
        self.make_mounts()
        super().__init__(archive, start=False)
        self.certs = api_certs.Authority(self.data)
        self.admin, _ = self.certs.issue("admin", "/O=system:masters/CN=admin")
        self.write_config(enableServer=True, address="127.0.0.1", port=self.port,
                          authentication={"x509": {"clientCAFile": self.certs.cert}, "webhook": {"enabled": False}}, **config)
        self.add_user()
        self.start()
        self.launch(specs.pod("web", specs.container(script="echo secret-word; " + specs.IDLE)))
        self.name = self.pod("web")["metadata"]["name"]

    def attack(self, *requests):
        """The replies to requests of the user."""
        run = subprocess.run([sys.executable, "-c", ATTACK, self.socket], input="".join(json.dumps(one) + "\n" for one in requests),
                             stdout=subprocess.PIPE, text=True, check=True, user=node_api.USER_ID, group=node_api.USER_ID,
                             extra_groups=[], cwd="/", timeout=world.DEADLINE)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def everything(self):
        """A request for each action or piece of information of the agent."""
        pod = f"default/{self.name}"
        return [["GET", "/pods"], ["GET", "/runningpods"], ["GET", "/configz"], ["GET", "/stats/summary"], ["POST", "/stats/summary"],
                ["GET", "/metrics"], ["GET", "/metrics/cadvisor"], ["GET", "/metrics/resource"], ["GET", "/metrics/probes"],
                ["GET", "/logs/"], ["GET", "/healthz"], ["GET", "/readyz"], ["GET", f"/containerLogs/{pod}/main"],
                ["GET", f"/containerLogs/{pod}/main", "Connection: Upgrade", "Upgrade: descriptor"],
                ["GET", f"/exec/{pod}/main?command=id&output=1"],
                ["GET", f"/exec/{pod}/main?command=id&output=1&held=1", *UPGRADE],
                ["GET", f"/attach/{pod}/main?output=1", *UPGRADE],
                ["GET", f"/portForward/{pod}?port=80", "Connection: Upgrade", "Upgrade: descriptor"],
                ["DELETE", f"/api/v1/namespaces/default/pods/{self.name}?gracePeriodSeconds=0"],
                ["POST", f"/api/v1/namespaces/default/pods/{self.name}/ephemeralcontainers?container={PRIVILEGED}"],
                ["GET", "/secrets"], ["GET", "/configmaps"], ["GET", "/node"], ["GET", "/events"], ["GET", "/daemonsets"],
                ["GET", "/revisions"], ["GET", "/schemas"], ["POST", "/daemonsets/default/x/restart"],
                ["GET", "/priorityclasses"], ["GET", "/runtimeclasses"],
                ["GET", f"/nodeapi/access?method=GET&path=/exec/{pod}/main&session=1"]]

    def local_things(self):
        """Requests that only root and the group may send, regardless of a client's proof."""
        return [["GET", "/manifests"], ["GET", "/images"], ["POST", "/images/prune"], ["POST", "/images/pull?image=x"],
                ["POST", "/kubeconfig"], ["GET", "/debug/dump"], ["GET", "/debug/loglevel"], ["PUT", "/debug/loglevel?level=debug"]]


@pytest.fixture(scope="module", name="node")
def fixture_node(archive):
    found = TakenNode(archive)
    assert found.api.request("/healthz", certificate=found.admin) == (200, "ok")
    yield found
    found.finish()


def with_headers(requests, *headers):
    return [[*one, *headers] for one in requests]


def assert_refused(node, requests, statuses):
    for request, (status, body) in zip(requests, node.attack(*requests)):
        assert status in statuses and "secret-word" not in body, (request, status, body)
    pod = node.pod("web")
    assert not pod["spec"].get("ephemeralContainers") and pod["status"]["containerStatuses"][0]["state"].get("running")


def test_a_taken_over_api_without_a_client_can_execute_and_read_nothing(node):
    assert_refused(node, node.everything(), {401})


@pytest.mark.parametrize("credential", [
    "Mainstay-Client: eyJ1c2VybmFtZSI6ImFkbWluIn0=." + 64 * "0", "Mainstay-Client: .", "Mainstay-Client: admin",
    "Mainstay-Token: made-up", "Mainstay-User: admin", "X-Remote-User: admin", "Authorization: Bearer admin"])
def test_a_forged_identity_is_rejected(node, credential):
    assert_refused(node, with_headers(node.everything(), credential), {401})


def test_local_routes_are_never_open_to_clients(node):
    assert_refused(node, node.local_things(), {403})


def test_clients_cannot_create_reviews(node):
    assert_refused(node, [["POST", "/nodeapi/tokenreview"], ["POST", "/nodeapi/accessreview"]], {404})


def test_the_key_of_the_certificate_cannot_be_obtained(node):
    """The key cannot be obtained from the agent, the signer or a file."""
    (status, settings), = node.attack(["GET", "/nodeapi/settings"])
    assert status == 200 and "PRIVATE" not in settings and '"key"' not in settings and "BEGIN" not in settings
    for path in (os.path.join(node.state, "pki"), os.path.join(os.path.dirname(node.socket), "node-api.key"), node.admin.replace(".crt", ".key")):
        assert subprocess.run(["cat", path], user=node_api.USER_ID, group=node_api.USER_ID, extra_groups=[], capture_output=True,
                              check=False).returncode != 0
    api, = node.api.pids()
    signer, = signer_pids(node)
    memory = subprocess.run([sys.executable, "-c", f"open('/proc/{signer}/mem', 'rb')"], user=node_api.USER_ID, group=node_api.USER_ID,
                            extra_groups=[], capture_output=True, check=False)
    assert memory.returncode != 0
    assert not holds_key(api) and holds_key(signer)


def signer_pids(node):
    return [pid for pid in world.pids() if world.cmdline(pid)[1:] == ["--signer"] and world.status(pid, "PPid") == str(node.agent.pid)]


def holds_key(pid):
    """Whether the memory of a process has the PEM of a key."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            start, end, mode = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            if not mode.startswith("rw") or int(end, 16) - int(start, 16) > 1 << 28:
                continue
            try:
                memory.seek(int(start, 16))
                if b"PRIVATE KEY-----\n" in memory.read(int(end, 16) - int(start, 16)):
                    return True
            except (OSError, OverflowError):
                continue
    return False


def test_the_signer_runs_as_a_separate_unprivileged_user(node):
    signer, = signer_pids(node)
    status = world.read(f"/proc/{signer}/status")
    uid = int(world.status(signer, "Uid").split()[0])
    assert uid not in (0, node_api.USER_ID)
    assert "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    assert not [name for name in world.descriptors(signer).values() if name.startswith("/") and name != "/dev/null"
                and not name.startswith(node.directory)]


def test_a_ticket_grants_only_the_permissions_of_its_client(archive):
    """The API server allows Jane to read on this node; an attacker who has taken over mainstay-api then has her
    ticket."""
    found = TakenNode(archive)
    try:
        jane, _ = found.certs.issue("jane", "/O=users/CN=jane")
        assert found.api.request("/pods", certificate=jane)[0] == 500, "no API server can be queried about her"
        assert found.api.request("/pods", certificate=found.admin)[0] == 200
        wait(lambda: found.api.pids(), "it runs")
        admin, users = stolen_tickets(found, ("admin", "jane"))
        assert_refused(found, with_headers(found.everything(), f"Mainstay-Client: {users}"), {500})
        (status, body), = found.attack(["GET", "/pods", f"Mainstay-Client: {admin}"])
        assert status == 200 and found.name in body, "it can make every request of a client that is connected"
        assert_refused(found, with_headers(found.local_things(), f"Mainstay-Client: {admin}"), {403})
    finally:
        found.finish()


def stolen_tickets(node, names):
    """The tickets of these users that are in the memory of mainstay-api while they are connected."""
    connections = [node.api.connect(node.admin if name == "admin" else os.path.join(node.data, f"{name}.crt")) for name in names]
    for connection in connections:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n")
        assert connection.recv(12).startswith(b"HTTP/1.1 ")
    pid, = node.api.pids()
    found = {}
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            start, end, mode = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            if not mode.startswith("rw") or int(end, 16) - int(start, 16) > 1 << 28:
                continue
            try:
                memory.seek(int(start, 16))
                data = memory.read(int(end, 16) - int(start, 16))
            except (OSError, OverflowError):
                continue
            for ticket in re.findall(rb"eyJ1c2VybmFtZSI6[A-Za-z0-9+/]+=*\.[0-9a-f]{64}", data):
                found[ticket_user(ticket)] = ticket.decode()
    return [found[name] for name in names]


def ticket_user(ticket):
    return json.loads(base64.b64decode(ticket.split(b".")[0]))["username"]
