# SPDX-License-Identifier: Apache-2.0
"""Programs that mainstay-launch starts for an agent with fewer privileges. tests/vm has them in the units."""

import os
import shutil
import signal
import socket
import subprocess

import harness
import launch_server
import node_api
import pytest
import specs
import test_node_api
import world
from world import wait

NOBODY = 65534


@pytest.fixture(name="server")
def fixture_server():
    found = launch_server.LaunchServer()
    yield found
    found.finish()


@pytest.fixture(name="launching")
def fixture_launching(server, archive):
    node = launch_server.LaunchingNode(server, archive)
    yield node
    node.finish()


def children(pid):
    return [int(child) for child in (world.read(f"/proc/{pid}/task/{pid}/children") or "").split()]


def find_program(server):
    """The program that the only keeper has started."""
    return wait(lambda: [pid for keeper in children(server.process.pid) for pid in children(keeper)], "the program was started")[0]


def start_reader(server, **options):
    """A program that waits for its input."""
    return server.client("mainstay-image", "pull", "--store", os.path.join(server.directory, "store"), "docker.io/library/none:1",
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.fixture(name="reader")
def fixture_reader(server):
    client = start_reader(server)
    yield client
    client.kill()
    client.communicate()
    wait(lambda: not children(server.process.pid), "the keeper has ended")
    shutil.rmtree(os.path.join(server.directory, "store"), ignore_errors=True)


# The parent of a client

def test_a_program_has_the_streams_the_arguments_and_the_exit_status_of_its_client(server):
    done = server.client("mainstay-image", "--version", stdout=subprocess.PIPE, text=True)
    assert done.communicate(timeout=world.DEADLINE)[0].startswith("mainstay-image ") and done.returncode == 0
    wrong = server.client("mainstay-image", "fly", "x" * 100000, stderr=subprocess.PIPE, text=True)
    assert "unknown verb" in wrong.communicate(timeout=world.DEADLINE)[1] and wrong.returncode == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_client_ends_by_the_signal_that_ended_the_program(server, reader, number):
    os.kill(find_program(server), number)
    assert reader.wait(world.DEADLINE) == -number


def test_a_program_ends_with_its_client(server, reader):
    pid = find_program(server)
    reader.kill()
    wait(lambda: not world.is_alive(pid), "the program was killed")


def test_a_program_ends_with_the_server_and_the_client_reports_it(server, reader):
    pid = find_program(server)
    server.stop()
    wait(lambda: not world.is_alive(pid), "the program was killed")
    assert b"mainstay-launch.service" in reader.communicate(timeout=world.DEADLINE)[1] and reader.returncode == os.EX_TEMPFAIL
    server.start()


def test_a_client_that_finds_no_server_names_the_unit_to_start(server):
    done = server.client("mainstay-image", "--version", stderr=subprocess.PIPE, text=True,
                         env={"MAINSTAY_LAUNCH_SOCKET": "/nonexistent/launch.sock"})
    assert "mainstay-launch.socket must be active" in done.communicate(timeout=world.DEADLINE)[1]
    assert done.returncode == os.EX_TEMPFAIL


def test_a_program_has_the_mounts_and_the_environment_of_its_client(server):
    client = subprocess.Popen(["unshare", "--mount", harness.program("launch/mainstay-image"), "pull", "--store",
                               os.path.join(server.directory, "store"), "docker.io/library/none:1"], stdin=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env={**server.environment(), "HTTPS_PROXY": "http://proxy.example:1"})
    try:
        pid = find_program(server)
        assert os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink(f"/proc/{client.pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
        assert "HTTPS_PROXY=http://proxy.example:1" in world.read(f"/proc/{pid}/environ").split("\0")
    finally:
        client.kill()
        client.communicate()
        wait(lambda: not children(server.process.pid), "the keeper has ended")
        shutil.rmtree(os.path.join(server.directory, "store"), ignore_errors=True)


# Permitted clients and programs

@pytest.mark.parametrize("words", [("mainstayd", "--version"), ("sh", "-c", "exit 0"), ("mainstay-shim", "prepare", "/run"),
                                   ("mainstay-shim",), ("../mainstay-image", "--version")])
def test_launch_server_refuses_other_programs(server, tmp_path, words):
    link = tmp_path / os.path.basename(words[0])
    link.symlink_to(harness.program("mainstay-launch"))
    client = subprocess.Popen([words[0], *words[1:]], executable=str(link), env=server.environment(), stderr=subprocess.DEVNULL,
                              stdout=subprocess.PIPE)
    printed = client.communicate(timeout=world.DEADLINE)[0]
    if words[0].startswith(".."):
        assert printed.startswith(b"mainstay-image ")  # the program of that name next to the server
    else:
        assert client.returncode == os.EX_TEMPFAIL and not printed


def test_launch_server_refuses_other_users(server):
    os.chmod(server.directory, 0o755)
    os.chmod(server.path, 0o666)
    done = subprocess.run(["setpriv", f"--reuid={NOBODY}", "--clear-groups", harness.program("launch/mainstay-image"), "--version"],
                          env=server.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=world.DEADLINE)
    assert done.returncode == os.EX_TEMPFAIL and not done.stdout


def test_launch_server_of_a_unit_refuses_root_outside_of_the_unit():
    server = launch_server.LaunchServer("--for", "mainstay.service")
    try:
        done = server.client("mainstay-image", "--version", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.communicate(timeout=world.DEADLINE)[0] == b"" and done.returncode == os.EX_TEMPFAIL
    finally:
        server.finish()


@pytest.mark.parametrize("variable", ["LD_PRELOAD=/nonexistent.so", "PATH=/nonexistent", "GCONV_PATH=/nonexistent"])
def test_a_client_cannot_change_which_files_a_program_executes(server, variable):
    name, value = variable.split("=")
    client = subprocess.Popen(["env", variable, harness.program("launch/mainstay-image"), "pull", "--store",
                               os.path.join(server.directory, "store"), "docker.io/library/none:1"], stdin=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env=server.environment())
    try:
        environment = world.read(f"/proc/{find_program(server)}/environ")
        assert f"{name}={value}" not in environment.split("\0"), environment
    finally:
        client.kill()
        client.communicate()
        wait(lambda: not children(server.process.pid), "the keeper has ended")
        shutil.rmtree(os.path.join(server.directory, "store"), ignore_errors=True)


@pytest.mark.parametrize("junk", [b"", b"x", b"\1\0\0\0" * 10, b"\0" * 5000])
def test_invalid_data_on_the_socket_affects_no_other_client(server, junk):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.connect(server.path)
        peer.send(junk)
        peer.settimeout(world.DEADLINE)
        assert peer.recv(64) == b""
    done = server.client("mainstay-image", "--version", stdout=subprocess.PIPE)
    done.communicate(timeout=world.DEADLINE)
    assert done.returncode == 0


# The agent

def test_an_agent_has_its_images_handled_by_the_server(server, launching):
    launching.launch(specs.pod("web", specs.container(script=specs.IDLE)))
    server.stop()
    launching.preload(launching.archive, "again.tar")

    def readers():
        return [pid for pid in children(launching.agent.pid) if "index" in world.cmdline(pid)]
    wait(readers, "a child is about to read the archive")
    server.start()
    wait(lambda: not readers(), "it was read")
    assert "again.tar" not in launching.said()


@pytest.mark.xdist_group("node_api")
def test_forwarded_ports_and_the_signer_are_started_by_the_server(server, archive):
    served = test_node_api.World(archive)
    try:
        served.node.environment = lambda: {**harness.Node.environment(served.node), "MAINSTAY_LAUNCH_SOCKET": server.path}
        served.node.restart()
        served.node.launch(specs.pod("apart", specs.container(script=test_node_api.ECHO.format(port=8080)), hostNetwork=False))
        name = served.node.pod("apart")["metadata"]["name"]
        stream, _ = served.upgrade(f"/portForward/default/{name}", node_api.spdy_headers("portforward.k8s.io"), method="POST")
        signers = [pid for keeper in children(server.process.pid) for pid in children(keeper) if "--signer" in world.cmdline(pid)]
        assert len(signers) == 1
        client = node_api.SpdyClient(stream)
        _, data = test_node_api.forward(client, 8080, 0)
        client.until(lambda: client.data[data] == b"hello")
        error, refused = test_node_api.forward(client, 81, 1)
        client.until(lambda: refused in client.reset and b"refused" in client.data[error])
        stream.close()
        served.node.kill9()
        wait(lambda: not world.is_alive(signers[0]), "the signer has ended with its agent")
        served.node.start()
    finally:
        served.finish()
