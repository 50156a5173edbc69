# SPDX-License-Identifier: Apache-2.0
"""The agent in place of the kubelet: the program 'kubelet' with the kubelet's flags, and kubeadm's requirements for a
node."""

import http.client
import json
import os
import re
import shutil
import socket
import subprocess

import pytest
import specs
import world
from harness import NODE_NAME, program
from world import free_port, wait


def run(*words, **environment):
    return subprocess.run(words, check=False, text=True, timeout=world.DEADLINE, env={**os.environ, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ask(port, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=world.DEADLINE)
    connection.request(method, path)
    reply = connection.getresponse()
    body = reply.read().decode()
    connection.close()
    return reply.status, body


def with_options(node, *options):
    """Starts the agent with more options."""
    command = node.command()
    node.command = lambda: [*command, *options]
    node.start()


def test_version_is_that_of_kubernetes():
    done = run(program("kubelet"), "--version")
    assert done.returncode == 0
    assert re.fullmatch(r"Kubernetes v1\.35\.\d+[-+.\w]*\n", done.stdout)


def test_flags_start_mainstayd(tmp_path):
    shutil.copy(program("kubelet"), tmp_path / "kubelet")
    (tmp_path / "mainstayd").write_text('#!/bin/sh\nprintf "%s\\n" "debug=$MAINSTAY_DEBUG" "$@"\n'
                                        'echo "$MAINSTAY_KUBELET_FLAGS" >&2\n')
    (tmp_path / "mainstayd").chmod(0o755)
    done = run(str(tmp_path / "kubelet"), "--config=/c.yaml", "--kubeconfig", "/k.conf", "--hostname-override=web",
               "--bootstrap-kubeconfig=/b.conf", "--node-ip=10.0.0.1", "--pod-manifest-path=/m", "-v", "4",
               "--root-dir=/r", "--container-runtime-endpoint", "unix:///x", "--nonsense")
    assert done.returncode == 0
    assert done.stdout.split() == ["debug=1", "--config=/c.yaml", "--kubeconfig=/k.conf", "--node-name=web",
                                   "--bootstrap-kubeconfig=/b.conf", "--node-ip=10.0.0.1", "--manifest-dir=/m", "--kubelet-dir=/r",
                                   "--cert-dir=/var/lib/kubelet/pki"]
    assert "do not apply to Mainstay: --container-runtime-endpoint, --nonsense\n" in done.stderr
    assert done.stderr.endswith("\n--container-runtime-endpoint, --nonsense\n")
    assert run(str(tmp_path / "kubelet"), "stray").returncode == 2


def test_labels_and_taints_of_the_command_line_are_set_on_the_node(make_node):
    node = make_node(start=False, config={"registerWithTaints": [{"key": "other", "effect": "NoSchedule"}],
                                          "mainstay": {"nodeLabels": {"zone": "a", "rack": "1"}}})
    with_options(node, "--node-labels=zone=b,disk=", "--register-with-taints=dedicated=db:NoSchedule,cold:NoExecute")
    status, body = node.get("/node")
    assert status == 200
    reported = json.loads(body)
    labels = reported["metadata"]["labels"]
    assert (labels["zone"], labels["rack"], labels["disk"]) == ("b", "1", "")
    assert [(one["key"], one["effect"]) for one in reported["spec"]["taints"]] == \
        [("dedicated", "NoSchedule"), ("cold", "NoExecute")]


def test_wrong_label_address_and_taint_are_refused(make_node):
    node = make_node()
    for option, place in (("--node-labels=web", "--node-labels: 'web': must be key=value"),
                          ("--register-with-taints=a=b:Never", "--register-with-taints: 'a=b:Never': must have the effect"),
                          ("--node-ip=10.0.0", "--node-ip: must be an IP address")):
        done = run(*[word.replace(node.run, f"{node.directory}/data") for word in node.command()], option)
        assert done.returncode == 1
        assert place in done.stderr


def test_healthz_is_served_at_the_configured_port(make_node):
    port = free_port()
    node = make_node(config={"healthzPort": port})
    assert ask(port, "/healthz") == (200, "ok")
    assert ask(port, "/healthz/syncloop") == (200, "ok")
    assert ask(port, "/pods")[0] == 404
    assert ask(port, "/healthz", "POST")[0] == 405
    # Silent clients do not lock out other clients, and a new agent gets the port at once.
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(4)]
    assert ask(port, "/healthz") == (200, "ok")
    node.restart()
    assert ask(port, "/healthz") == (200, "ok")
    for one in silent:
        one.close()


def test_a_slow_client_of_healthz_is_disconnected(make_node):
    port = free_port()
    make_node(config={"healthzPort": port})
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET /h")

        def is_ended():
            try:
                client.sendall(b"x")
                return False
            except OSError:
                return True

        wait(is_ended, "the request has taken too long")
    assert ask(port, "/healthz") == (200, "ok")


def test_healthz_answers_after_its_connections_were_used_up(make_node):
    port = free_port()
    make_node(config={"healthzPort": port})
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(16)]
    for client in clients:
        client.sendall(b"GET /h")
    clients.append(socket.create_connection(("127.0.0.1", port), 2))
    clients[-1].sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
    with pytest.raises(TimeoutError):
        clients[-1].recv(1)
    for client in clients:
        client.close()
    assert ask(port, "/healthz") == (200, "ok")


def test_port_of_healthz_that_is_taken_is_reported(make_node):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        node = make_node(config={"healthzPort": port})
        assert f"Cannot serve /healthz at 127.0.0.1 port {port}: Address already in use" in node.said()


def test_settings_without_effect_are_listed_in_one_line(make_node):
    node = make_node(config={"syncFrequency": "0s", "fileCheckFrequency": "30s", "failSwapOn": True, "imageMinimumGCAge": "0s"})
    lines = [line for line in node.said().splitlines() if "do not apply to Mainstay" in line]
    assert len(lines) == 1
    assert lines[0].endswith("that do not apply to Mainstay: fileCheckFrequency, failSwapOn")


def test_flags_without_effect_are_shown_to_the_user(make_node):
    node = make_node(start=False, config={"syncFrequency": "2m"})
    environment = node.environment()
    node.environment = lambda: {**environment, "MAINSTAY_KUBELET_FLAGS": "--cpu-manager-policy, --nonsense"}
    node.start()
    names = "syncFrequency, --cpu-manager-policy, --nonsense"
    assert re.search(rf"^Settings Without Effect:\s+{names}$", node.cli("describe", "node").stdout, re.M)
    assert f"have no effect on this node: {names}" in node.cli("get", "events").stdout
    node.environment = lambda: environment
    node.restart()
    assert re.search(r"^Settings Without Effect:\s+syncFrequency$", node.cli("describe", "node").stdout, re.M)


def test_embedded_certificate_is_renewed_at_once(make_member):
    member = make_member(start=False, config={"rotateCertificates": True})
    cert, key = member.api.authority.node(NODE_NAME)
    member.api.kubeconfig(member.kubeconfig, cert=cert, key=key, inline=True)
    with open(member.kubeconfig, encoding="utf-8") as file:
        written = file.read()
    assert "client-certificate-data" in written
    directory = os.path.join(member.directory, "certificates")
    with_options(member, "--cert-dir", directory)
    request = wait(lambda: member.api.all("certificatesigningrequests"), lambda: f"a certificate is requested\n{member.said()}")[0]
    member.api.approve(request["metadata"]["name"])
    pair = os.path.join(directory, "kubelet-client-current.pem")
    wait(lambda: os.path.exists(pair), lambda: f"the renewed certificate is served\n{member.said()}")
    wait(lambda: "is rotated in time" in member.cli("debug", "dump").stdout, member.said)
    with open(member.kubeconfig, encoding="utf-8") as file:
        assert file.read() == written
    member.restart()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    assert len(member.api.all("certificatesigningrequests")) == 1


DIRECTORIES = ["device-plugins", "plugins", "plugins_registry", "pod-resources", "pods"]


def of_plugins(node):
    """A pod that works only if the kubelet's directories exist, as published plugins do."""
    root = os.path.join(node.directory, "kubelet")
    volumes = [specs.host_path(name.replace("_", "-"), os.path.join(root, name), type="Directory") for name in DIRECTORIES]
    mounts = [specs.mount(volume["name"], f"/kubelet/{volume['name']}") for volume in volumes]
    return specs.pod("plugin", specs.container(script=f"touch /kubelet/device-plugins/plugin.sock; {specs.IDLE}", volumeMounts=mounts),
                     volumes=volumes)


def test_the_directories_of_plugins_exist_with_the_kubelets_modes(make_node):
    node = make_node(start=False)
    root = os.path.join(node.directory, "kubelet")
    mask = os.umask(0o077)
    try:
        node.start()
    finally:
        os.umask(mask)
    for name in ["", *DIRECTORIES]:
        assert os.stat(os.path.join(root, name)).st_mode & 0o7777 == 0o750, name
    node.launch(of_plugins(node))
    world.wait(lambda: os.path.exists(f"{root}/device-plugins/plugin.sock"), "the plugin writes there")
    os.chmod(f"{root}/plugins", 0o711)
    os.rmdir(f"{root}/pods")
    node.restart()
    assert os.stat(f"{root}/plugins").st_mode & 0o7777 == 0o711, "an existing directory is not changed"
    assert os.path.isdir(f"{root}/pods")
    assert os.path.exists(f"{root}/device-plugins/plugin.sock")


@pytest.mark.parametrize("option", ["--kubelet-dir", "--root-dir"])
def test_an_option_moves_the_directories_of_plugins(make_node, option):
    node = make_node(start=False)
    os.mkdir(os.path.join(node.directory, "elsewhere"))
    node.own_mounts.add(os.path.join(node.directory, "elsewhere"))  # drivers can mount below it
    os.symlink("elsewhere", os.path.join(node.directory, "moved"))
    with_options(node, option, os.path.join(node.directory, "moved"))
    assert sorted(os.listdir(os.path.join(node.directory, "elsewhere"))) == DIRECTORIES
    assert not os.path.exists(os.path.join(node.directory, "kubelet"))


def test_pods_run_if_the_directories_of_plugins_cannot_be_made(make_node):
    node = make_node(start=False)
    with open(os.path.join(node.directory, "file"), "w", encoding="ascii"):
        pass
    with_options(node, "--kubelet-dir", os.path.join(node.directory, "file"))
    node.launch(specs.pod("runs"))
    assert f"Cannot make the directories of plugins in {node.directory}/file: Not a directory" in node.said()
