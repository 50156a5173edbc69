# SPDX-License-Identifier: Apache-2.0
"""mainstay debug: the dump of the agent's state, and its log level."""

import base64
import re
import subprocess
import threading

import harness
import pytest
import specs
import world
from world import wait

TRANSITION = "Container 'default/crash-node1/main': "


@pytest.fixture(name="crash_node")
def fixture_crash_node(make_node):
    """A node with a pod that waits for its back-off of at least 10 seconds."""
    node = make_node(config={"crashLoopBackOff": {"maxContainerRestartPeriod": "300s"}})
    node.drop(specs.script_pod("crash", "exit 3"))
    node.wait_waiting("crash", "CrashLoopBackOff")
    return node


def dump(node):
    answer = node.cli("debug", "dump")
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def section(text, title):
    """The lines of a section of the dump."""
    match = re.search(rf"^{re.escape(title)}:\n((?:  .*\n)*)", text, re.M)
    assert match, f"no section {title} in\n{text}"
    return match.group(1)


def test_dump_shows_back_off_and_its_remaining_time(crash_node):
    text = wait(lambda: (text := dump(crash_node)) and "state back-off" in text and text, "the dump shows a waiting pod")
    workers = section(text, "Pod workers")
    assert re.search(r"pod: default/crash-node1, uid [0-9a-f-]+, state ready, desired", workers), workers
    container = workers[workers.index("container: main, "):]
    assert "state back-off" in container
    remaining = re.search(r"timer: back-off ends in ([\d.]+)s", container)
    assert remaining and 0 < float(remaining.group(1)) <= 20, container
    assert "waiting: CrashLoopBackOff: " in container
    assert "exit code 3" in container


def test_dump_has_all_sections(crash_node):
    crash_node.write("kind: Pod\napiVersion: v1\nmetadata: {name: Bad_Name}\n", "broken.yaml")
    wait(lambda: "broken.yaml" in crash_node.said(), "the broken manifest is reported")
    text = dump(crash_node)
    titles = re.findall(r"^(\S.*):$", text, re.M)
    assert titles == ["Agent", "Process", "Sources", "Desired pods", "Pod workers", "Start limiter", "Images", "CDI devices", "Encrypted Secrets", "CSI",
                      "DaemonSets", "Eviction manager", "HTTP server"]
    agent, process = section(text, "Agent"), section(text, "Process")
    assert "  node: node1\n" in agent and "  log level: info\n" in agent and "  version: " in agent
    assert f"  pid: {crash_node.agent.pid}\n" in process and "  uptime: " in process and "memory VmRSS: " in process
    sources = section(text, "Sources")
    assert "file: crash.yaml, 1 pods, 0 DaemonSets, 0 other objects, ok" in sources
    assert re.search(r"file: broken.yaml, .*, error\n    error since \S+: broken.yaml:\d+:\d+: ", sources), sources
    assert "pod: default/crash-node1, source: file crash.yaml, started" in section(text, "Desired pods")
    assert "connections: 1 of " in section(text, "HTTP server")
    assert "signal: memory.available, " in section(text, "Eviction manager")


def test_log_level_is_switched_while_the_agent_runs(crash_node):
    node = crash_node
    assert node.cli("debug", "log-level").stdout == "info\n"
    assert TRANSITION not in node.said()
    assert node.cli("debug", "log-level", "debug").returncode == 0
    assert node.cli("debug", "log-level").stdout == "debug\n"
    assert node.cli("delete", "pod", "crash").returncode == 0
    wait(lambda: TRANSITION in node.said(), "state changes of the container are logged")
    wait(lambda: "Pod worker 'default/crash-node1': " in node.said(), "state changes of the pod worker are logged")
    assert re.search(r"Recomputed the desired pods: 1 desired; actions: .*0 stop", node.said())
    assert node.cli("debug", "log-level", "info").returncode == 0
    lines = node.said().count(TRANSITION)
    assert node.cli("delete", "pod", "crash", "--wait").returncode == 0
    node.wait_waiting("crash", "CrashLoopBackOff")
    assert node.said().count(TRANSITION) == lines


def test_log_level_ends_with_the_agent(node):
    assert node.cli("debug", "log-level", "warning").returncode == 0
    assert node.cli("debug", "log-level").stdout == "warning\n"
    node.restart()
    assert node.cli("debug", "log-level").stdout == "info\n"


def test_environment_sets_the_log_level_at_start(make_node, monkeypatch):
    monkeypatch.setenv("MAINSTAY_DEBUG", "1")
    node = make_node()
    assert node.cli("debug", "log-level").stdout == "debug\n"
    assert "Recomputed the desired pods: 0 desired" in node.said()


def test_unknown_levels_and_commands_are_refused(node):
    answer = node.cli("debug", "log-level", "deb" + "gu")
    assert (answer.returncode, "debug" in answer.stderr) == (2, True), answer.stderr
    for words in ((), ("dmup",), ("dump", "all"), ("log-level", "info", "debug")):
        assert node.cli("debug", *words).returncode == 2, words
    assert node.get("/debug/loglevel") == (200, "info\n")
    connection = harness.SocketConnection(node.socket)
    for path, status in (("/debug/loglevel?level=verbose", 400), ("/debug/loglevel", 400), ("/debug/dump", 405)):
        connection.request("PUT", path)
        response = connection.getresponse()
        assert (response.status, bool(response.read())) == (status, True), path
    connection.close()
    assert node.get("/debug/loglevel") == (200, "info\n")


def test_other_users_are_refused(crash_node):
    """Members of the socket's group are refused, too, although they may read pods."""
    node = crash_node
    for path in (node.directory, node.run):
        assert subprocess.run(["chmod", "o+x", path], check=False).returncode == 0
    subprocess.run(["chgrp", "65534", node.socket], check=True)

    def run_as_nobody(*words):
        return subprocess.run([harness.program("mainstay"), "--socket", node.socket, *words], check=False, text=True,
                              capture_output=True, user=65534, group=65534, extra_groups=[], timeout=world.DEADLINE)
    assert run_as_nobody("get", "pods").returncode == 0
    for words in (("dump",), ("log-level",), ("log-level", "debug")):
        answer = run_as_nobody("debug", *words)
        assert (answer.returncode, answer.stdout) == (1, ""), words
        assert "only root" in answer.stderr
    assert node.cli("debug", "log-level").stdout == "info\n"


def test_dump_does_not_contain_values_of_secrets(node):
    """Neither the content of a Secret nor an environment variable appears, even if the pod is edited."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"password": "hunter2"}}
    pod = specs.pod("web", specs.container(env=[
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}},
        {"name": "DIRECT", "value": "swordfish"}], args=["ignored", "opensesame"]))
    node.drop(secret, "login.yaml")
    node.launch(pod)
    pod["spec"]["containers"][0]["env"][1]["value"] = "swordfish2"
    pod["spec"]["containers"][0]["image"] = "docker.io/library/missing:1"
    pod["spec"]["containers"][0]["imagePullPolicy"] = "Never"
    pod["spec"]["dnsPolicy"] = "Default"
    node.drop(pod)
    assert node.cli("debug", "log-level", "debug").returncode == 0
    text = dump(node) + node.said()
    for word in ("hunter2", base64.b64encode(b"hunter2").decode(), "swordfish", "opensesame"):
        assert word not in text, text


def test_dump_of_50_pods_is_complete_and_does_not_block_the_agent(node):
    """Several clients request it at once, one of which does not read at all."""
    for i in range(50):
        node.drop(specs.pod(f"p{i}"))
    for i in range(50):
        node.wait_running(f"p{i}")
    deaf = harness.SocketConnection(node.socket)
    deaf.request("GET", "/debug/dump")
    texts = []
    readers = [threading.Thread(target=lambda: texts.append(dump(node))) for _ in range(5)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(world.DEADLINE)
    assert node.get("/healthz")[0] == 200
    deaf.close()
    assert len(texts) == 5
    for text in texts:
        workers = section(text, "Pod workers")
        assert len(re.findall(r"^  pod: default/p\d+-node1, .*state ready", workers, re.M)) == 50
        assert len(re.findall(r"^    container: main, .*state running", workers, re.M)) == 50
        assert "Start limiter:" in text and text.endswith("\n") and "HTTP server:" in text


def test_dump_has_the_api_server_without_tokens(make_member):
    member = make_member()
    member.api.create("secrets", {"metadata": {"name": "login"}, "data": {"key": base64.b64encode(b"s3cr3t").decode()}})
    member.bind("web", specs.container(
        env=[{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "login", "key": "key"}}}]))
    member.wait_reported_phase("web", "Running")
    token = world.read(f"/proc/{member.init('web')}/root/var/run/secrets/kubernetes.io/serviceaccount/token")
    assert member.cli("debug", "log-level", "debug").returncode == 0
    text = dump(member)
    api = section(text, "API server")
    assert "connection: reached since " in api
    assert re.search(r"reflector: /api/v1/pods\?\S+, watching, resourceVersion \d+, synced", api), api
    assert re.search(r"object: \S*login\S*, present", api), api
    assert re.search(r"token: pod default/web, account default, audience of the API server, present, refresh in ", api), api
    assert "work queue: pod status, length " in api and "Lease: present, renewed " in api
    assert "pod: default/web, source: api, started" in section(text, "Desired pods")
    member.api.patch("pods", "default", "web", {"metadata": {"labels": {"color": "blue"}}})
    wait(lambda: re.search(r"API server request (GET|PUT|PATCH) /\S+: status 200 after \d+ ms", member.said()),
         "requests are logged")
    for word in ("s3cr3t", base64.b64encode(b"s3cr3t").decode(), token):
        assert word not in text + member.said()


def test_dump_shows_requests_that_wait_for_an_unreachable_api_server(make_member):
    member = make_member()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    member.api.stop()
    member.drop(specs.pod("local"))
    member.wait_running("local")
    api = wait(lambda: (text := section(dump(member), "API server")) and "connection: not reached since " in text and text,
               "the dump has the lost connection")
    assert "last error: " in api
    pattern = r"work queue: pod status, length \d+, .*\n(    .*\n)*    item: default/local-node1, (due|in flight)"
    wait(lambda: re.search(pattern, section(dump(member), "API server")), "the mirror pod waits in the queue")
