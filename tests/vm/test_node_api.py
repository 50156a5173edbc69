# SPDX-License-Identifier: Apache-2.0
"""mainstay-api as a service: started by its socket, confined, and the journal behind it."""

import re

from pods import MANIFESTS, end, show, wait_running
import specs

CONFIG = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
enableSystemLogQuery: true
"""
SAVE = "sed -n 's/.*{}: //p' /run/kubeconfig | base64 -d > /run/{}"


def ask(machine, path):
    """The reply to a client with an administrator's certificate: head and body."""
    request = f"GET {path} HTTP/1.1\\r\\nHost: node\\r\\nConnection: close\\r\\n\\r\\n"
    return machine.run(f"printf '{request}' | timeout 60 openssl s_client -quiet "
                       "-connect 127.0.0.1:10250 -cert /run/admin.crt -key /run/admin.key 2>/dev/null")


def configure(machine, more=""):
    machine.write("/etc/mainstay/config.yaml", CONFIG + more)
    machine.run("systemctl restart mainstay && systemctl stop mainstay-api.service")


def test_the_first_connection_starts_the_node_api_as_its_own_user(machine):
    configure(machine)
    machine.run("systemctl enable --now mainstay-api.socket")
    machine.run("mainstay kubeconfig > /run/kubeconfig")  # with a separate key each time
    machine.run(SAVE.format("client-certificate-data", "admin.crt") + "; " + SAVE.format("client-key-data", "admin.key"))
    assert show(machine, "mainstay-api.service", "ActiveState")["ActiveState"] == "inactive"
    reply = ask(machine, "/healthz")
    assert reply.startswith("HTTP/1.1 200") and "ok" in reply.split(), reply
    unit = show(machine, "mainstay-api.service", "ActiveState", "MainPID")
    assert unit["ActiveState"] == "active"
    status = machine.run(f"cat /proc/{unit['MainPID']}/status")
    user = machine.run("id -u mainstay-api").strip()
    assert re.search(rf"^Uid:\t{user}\t{user}\t{user}\t{user}$", status, re.MULTILINE)
    for line in ("CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in status
    assert '"kind":"PodList"' in ask(machine, "/pods")


def test_the_log_of_a_service_is_read_from_the_journal(machine):
    reply = ask(machine, "/logs/?query=mainstay&pattern=watching&tailLines=1")
    assert reply.startswith("HTTP/1.1 200") and "mainstayd[" in reply and "watching manifests in /etc/kubernetes/manifests" in reply
    assert "log not found for absent" in ask(machine, "/logs/?query=absent")
    assert ask(machine, "/logs/?query=mainstay&tailLines=-1").startswith("HTTP/1.1 406")


PORT = ("GET /portForward/default/apart-machine?port={port} HTTP/1.1\\r\\nHost: node\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Protocol: v4.channel.k8s.io\\r\\n\\r\\n")


def test_ports_and_interfaces_of_a_pod_are_reached_by_an_agent_that_enters_no_namespace(machine):
    script = "while :; do echo hello | nc -l -p 8080; done"
    pod = specs.pod("apart", specs.container(script=script), hostNetwork=False)
    machine.write(f"{MANIFESTS}/apart.yaml", specs.text(pod))
    wait_running(machine, "apart")
    for port, said in ((81, "refused"), (8080, "hello")):
        machine.wait(f"printf '{PORT.format(port=port)}' | timeout 60 openssl s_client -quiet -connect 127.0.0.1:10250 "
                     f"-cert /run/admin.crt -key /run/admin.key 2>/dev/null | grep -aq {said}", f"port {port} is reached")
    lines = [line for line in ask(machine, "/metrics/cadvisor").splitlines() if line.startswith("container_network_receive_bytes_total{")]
    assert [line for line in lines if 'interface="eth0"' in line and 'pod="apart-machine"' in line], lines
    end(machine, "apart")


def test_the_unit_has_a_low_exposure_level(machine):
    overall = machine.run("systemd-analyze security --no-pager mainstay-api.service | grep 'Overall exposure'")
    assert float(re.search(r": ([0-9.]+) ", overall)[1]) <= 1.5, overall


def test_a_socket_that_listens_elsewhere_than_configured_is_reported(machine):
    configure(machine, "port: 10251\n")
    assert ask(machine, "/healthz").startswith("HTTP/1.1 200")
    machine.wait("journalctl --no-pager -o cat -u mainstay-api | grep -q 'mainstay-api.socket determines them (the socket "
                 "listens at port 10250 of ::, but the configuration has port 10251 of all addresses'", "the difference is reported")
