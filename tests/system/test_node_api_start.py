# SPDX-License-Identifier: Apache-2.0
"""The agent listens for mainstay-api, if systemd does not, and starts it as a separate user."""

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess

import api_certs
import harness
import node_api
import pytest
import specs
import world
from world import wait

pytestmark = pytest.mark.xdist_group("node_api")

class StartNode(node_api.ActivatingNode, harness.Node):
    def __init__(self, archive, **config):
        self.port = world.free_port()
        self.make_mounts()
        super().__init__(archive, start=False)
        authority = api_certs.Authority(self.data)
        self.admin, _ = authority.issue("admin", "/O=system:masters/CN=admin")
        self.authority = authority.cert
        self.configure(enableServer=True, address="127.0.0.1", port=self.port, **config)
        self.add_user()

    def configure(self, **fields):
        self.write_config(authorization={"mode": "AlwaysAllow"},
                          authentication={"webhook": {"enabled": False}, "x509": {"clientCAFile": self.authority}}, **fields)

    def ask(self, path="/healthz"):
        return self.api.request(path, certificate=self.admin)


@pytest.fixture(name="node")
def fixture_node(archive):
    found = StartNode(archive)
    yield found
    found.finish()


def listens(node):
    """Whether the agent listens. Makes no connection, which would start mainstay-api."""
    return bool(world.sockets_of_port(node.port, "0A") & set(world.descriptors(node.agent.pid).values()))


def status_ids(pid):
    return {int(one) for field in ("Uid", "Gid") for one in world.status(pid, field).split()}


def test_the_first_client_starts_the_node_api_as_an_unprivileged_user(node):
    node.start()
    assert listens(node) and not node.api.pids()
    assert node.ask() == (200, "ok")
    pid, = node.api.pids()
    assert status_ids(pid) == {node_api.USER_ID}
    status = world.read(f"/proc/{pid}/status")
    assert "CapEff:\t0000000000000000" in status and "CapBnd" in status
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    assert node.ask("/pods")[0] == 200
    assert node.api.pids() == [pid]


def test_the_node_api_starts_again_after_it_has_exited(node):
    node.start()
    for number in (signal.SIGTERM, signal.SIGKILL):
        assert node.ask() == (200, "ok")
        pid, = node.api.pids()
        os.kill(pid, number)
        wait(lambda ended=pid: ended not in node.api.pids(), "it has ended")
    assert node.ask() == (200, "ok")
    wait(lambda: "was killed by signal 9" in node.said(), "the failure is reported")
    assert "exited with status" not in node.said()


def test_sessions_survive_the_agent_and_the_next_one_listens(node):
    node.start()
    node.launch(specs.pod("web", specs.container(script=specs.IDLE)))
    name = node.pod("web")["metadata"]["name"]
    stream, _ = node.api.upgrade(f"/exec/default/{name}/main?command=cat&input=1&output=1",
                                 node_api.websocket_headers("v5.channel.k8s.io"), certificate=node.admin)
    client = node_api.WebSocketClient(stream)
    client.send(node_api.BINARY, b"\0hello\n")
    while client.channel(1) != b"hello\n":
        client.step()
    old, = node.api.pids()
    node.restart()
    wait(lambda: listens(node), "the next agent listens, and the old mainstay-api does not")
    assert node.ask() == (200, "ok")
    new, = set(node.api.pids()) - {old}
    client.send(node_api.BINARY, b"\0again\n")
    while client.channel(1) != b"hello\nagain\n":
        client.step()
    stream.close()
    wait(lambda: node.api.pids() == [new], "the old one ends with its last client")


def test_user_that_is_created_after_the_agent_has_started_is_found(node):
    node.write_users()
    node.start()
    for _ in range(3):
        with pytest.raises((OSError, http.client.HTTPException)):
            node.ask()
    assert not node.api.pids()
    assert node.said().count("there is no user 'mainstay-api'") == 1
    shell = re.search(r"useradd --system --no-create-home --shell (\S+) mainstay-api", node.said()).group(1)
    assert os.access(shell, os.X_OK), shell
    assert "exited with status" not in node.said()
    node.add_user()
    assert node.ask() == (200, "ok")
    pid, = node.api.pids()
    assert status_ids(pid) == {node_api.USER_ID}
    assert node.ask("/pods")[0] == 200
    assert "Permission denied" not in node.said()


def test_user_that_is_created_again_with_another_number_is_found(node):
    node.start()
    assert node.ask() == (200, "ok")
    pid, = node.api.pids()
    os.kill(pid, signal.SIGTERM)
    wait(lambda: not node.api.pids(), "it has ended")
    other = node_api.USER_ID + 1
    node.write_users(f"mainstay-api:x:{other}:{other}::/nonexistent:/usr/sbin/nologin\n")
    assert node.ask("/pods")[0] == 200
    assert status_ids(node.api.pids()[0]) == {other}


def test_user_is_found_by_a_program_that_the_agent_has_not_started(archive):
    """The program is started as systemd would start it. The agent notices that the file of users has changed, in the
    test's own /etc."""
    node = StartNode(archive)
    node.write_users()
    etc = os.path.join(node.directory, "etc")
    shutil.copytree("/etc", etc, symlinks=True, ignore_dangling_symlinks=True)
    users = world.read(os.path.join(node.directory, "passwd"))
    write_file(os.path.join(etc, "passwd"), users)
    subprocess.run(node.with_mounts("sh", "-c", f"umount /etc/passwd; mount --bind {etc} /etc"), check=True)
    node.start()
    user = f"mainstay-api:x:{node_api.USER_ID}:{node_api.USER_ID}::/nonexistent:/usr/sbin/nologin\n"
    write_file(os.path.join(etc, "passwd.new"), users + user)
    os.rename(os.path.join(etc, "passwd.new"), os.path.join(etc, "passwd"))
    wait(lambda: os.stat(node.socket).st_gid == node_api.USER_ID, "the socket is that of the user's group")
    node.finish()


def write_file(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def test_a_port_in_use_is_retried(node):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", node.port))
        other.listen()
        node.start()
        wait(lambda: f"Cannot listen at port {node.port} for mainstay-api" in node.said(), "it is reported")
    wait(lambda: listens(node), "the agent listens")
    assert node.ask() == (200, "ok")


def test_nothing_listens_unless_it_is_configured(archive):
    node = StartNode(archive)
    node.write_config(port=node.port)
    node.start()
    assert not listens(node)
    node.finish()


def test_a_unit_that_contradicts_the_configuration_is_reported(node):
    node.configure(port=node.port, address="127.0.0.2")
    node.start()
    log = os.path.join(node.directory, "unit.stderr")
    with socket.socket() as listener, open(log, "w", encoding="utf-8") as stderr:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        script = f'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@" 3<&{listener.fileno()}'
        with subprocess.Popen(["bash", "-c", script, harness.program("mainstay-api"), "--socket", node.socket, "--user", "root"],
                              env=node.environment(), pass_fds=[listener.fileno()], stderr=stderr) as unit:
            wait(lambda: f"mainstay-api.socket determines them (the socket listens at port {listener.getsockname()[1]} of "
                         f"::ffff:127.0.0.1, but the configuration has port {node.port} of 127.0.0.2" in world.read(log), lambda: world.read(log))
            unit_api = node_api.ActivatedApi(node, listener.getsockname()[1])
            assert unit_api.request("/healthz", certificate=node.admin) == (200, "ok"), "the connection waits at the socket of systemd"
            unit.terminate()
            assert unit.wait(60) == 0, world.read(log)


@pytest.mark.parametrize("address,host", [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "127.0.0.1"), ("::1", "[::1]"),
                                          (None, "127.0.0.1")])
def test_a_kubeconfig_names_the_configured_address_and_port(make_node, address, host):
    port = world.free_port()
    node = make_node(config={"port": port, **({"address": address} if address else {})})
    assert f"    server: https://{host}:{port}\n" in node.cli("kubeconfig").stdout
