# SPDX-License-Identifier: Apache-2.0
"""Startup, liveness and readiness probes: their handlers, their results, and a restart of the agent."""

import json
import os
import re
import signal
import time

import grpc_health
import pytest
import specs
import world
from harness import condition

# The server of a container's probes: a file on a volume decides its responses.
SERVE = ("mkdir -p /tmp/www/sub; echo fine > /tmp/www/index.html; echo fine > /tmp/www/sub/index.html; cp /tmp/www/sub/index.html /tmp/www/sub/page; "
         "httpd -f -p {port} -h /tmp/www & trap 'exit 0' TERM; while :; do sleep 0.1; done")

# Their servers listen on the same port of the node.
pytestmark = pytest.mark.xdist_group("probes")

FAST = {"periodSeconds": 1, "timeoutSeconds": 1}
# For probes with a failure threshold of one, because a command may be late on a busy machine.
PATIENT = {**FAST, "timeoutSeconds": 60}


def probed(node, name, script=specs.IDLE, probes=None, **spec):
    """A pod with one container, in which the test's directory is mounted at /v."""
    return specs.pod(name, specs.container(script=script, volumeMounts=[specs.mount("v", "/v")], **(probes or {})),
                     volumes=[specs.host_path("v", node.data)], **spec)


def touch(node, name):
    with open(os.path.join(node.data, name), "w", encoding="ascii"):
        pass


def wait_ready(node, name, ready=True):
    """Waits until the pod reports that it is ready, or that it is not."""
    wanted = "True" if ready else "False"
    return node.wait_pod(name, lambda pod: condition(pod, "Ready")["status"] == wanted,
                         "is ready" if ready else "is not ready")


def exists(file):
    return {"exec": {"command": ["test", "-e", f"/v/{file}"]}, **PATIENT}


def test_readiness_follows_its_probe_up_and_down_and_restarts_nothing(node):
    node.launch(probed(node, "web", probes={"readinessProbe": {**exists("ok"), "failureThreshold": 1}}))
    status = node.status("web")
    assert (status["ready"], status["started"]) == (False, True)
    pod = node.pod("web")
    assert condition(pod, "Ready")["reason"] == "ContainersNotReady"
    assert condition(pod, "ContainersReady")["status"] == "False"
    touch(node, "ok")
    wait_ready(node, "web")
    assert "1/1" in node.cli("get", "pods").stdout
    os.unlink(os.path.join(node.data, "ok"))
    wait_ready(node, "web", ready=False)
    assert "0/1" in node.cli("get", "pods").stdout
    assert node.status("web")["restartCount"] == 0
    counts = re.findall(r'prober_probe_total\{container="main".*,probe_type="Readiness",result="(\w+)"\} (\d+)',
                        node.get("/metrics")[1])
    assert {result for result, count in counts if int(count) > 0} == {"successful", "failed"}


@pytest.mark.quick
def test_a_failed_liveness_probe_restarts_the_container_with_a_message(node):
    touch(node, "alive")
    node.launch(probed(node, "web", probes={"livenessProbe": {
        "exec": {"command": ["cat", "/v/alive"]}, **PATIENT, "failureThreshold": 2}}))
    first = node.init("web")
    os.unlink(os.path.join(node.data, "alive"))
    world.wait(lambda: not world.is_alive(first), "the process is stopped")
    touch(node, "alive")
    status = node.wait_restarts("web", 1)
    ended = status["lastState"]["terminated"]
    assert re.match(r"Container main failed liveness probe, will be restarted: cat: can't open '/v/alive'",
                    ended["message"])
    assert ended["message"].strip() in node.said()


def test_a_kill_of_an_earlier_agent_counts_as_a_failure(node):
    touch(node, "alive")
    node.launch(probed(node, "web", restartPolicy="OnFailure", probes={
        "livenessProbe": {**exists("alive"), "failureThreshold": 1, "terminationGracePeriodSeconds": 2},
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "touch /v/ending; sleep 100"]}}}}))
    os.unlink(os.path.join(node.data, "alive"))
    world.wait(lambda: os.path.exists(os.path.join(node.data, "ending")), "its hook has started")
    node.kill9()
    touch(node, "alive")
    node.start()
    assert node.wait_restarts("web", 1)["lastState"]["terminated"]["exitCode"] == 0
    node.wait_running("web")


def test_a_kill_of_an_earlier_agent_is_not_repeated(node):
    node.drop(specs.pod("web", specs.container(script="trap '' TERM; while :; do sleep 0.1; done", startupProbe={
        "exec": {"command": ["false"]}, **FAST, "failureThreshold": 1, "terminationGracePeriodSeconds": 6}), restartPolicy="Never"))
    world.wait(lambda: "Killing" in node.cli("get", "events").stdout, "its startup probe has failed")
    node.restart()
    node.wait_phase("web", "Failed")
    assert node.status("web")["state"]["terminated"]["exitCode"] == 137
    assert not re.search("Killing|Unhealthy", node.cli("get", "events").stdout), "the agent that was restarted kills it once more"


def test_a_probe_that_has_killed_its_container_does_not_run_again(node):
    """The next run of the probe is due when it fails, because it takes longer than its period."""
    node.drop(specs.pod("web", specs.container(
        script="trap '' TERM; while :; do sleep 0.1; done", volumeMounts=[specs.mount("v", "/v")], livenessProbe={
            "exec": {"command": ["sh", "-c", "echo run >> /v/runs; sleep 2; false"]}, "periodSeconds": 1, "timeoutSeconds": 30,
            "failureThreshold": 1, "terminationGracePeriodSeconds": 3}),
        volumes=[specs.host_path("v", node.data)], restartPolicy="Never"))
    node.wait_phase("web", "Failed")
    assert world.read(os.path.join(node.data, "runs")).split() == ["run"]


def test_other_probes_wait_for_the_startup_probe(node):
    node.launch(probed(node, "slow", probes={
        "startupProbe": {**exists("started"), "failureThreshold": 1000},
        "livenessProbe": {"exec": {"command": ["sh", "-c", "echo > /v/asked; test -e /v/alive"]}, **PATIENT,
                          "failureThreshold": 1},
        "readinessProbe": exists("started")}))
    world.wait(lambda: "Startup probe failed" in node.said(), "its startup probe ran")
    assert not os.path.exists(os.path.join(node.data, "asked"))
    status = node.status("slow")
    assert (status["ready"], status["started"], status["restartCount"]) == (False, False, 0)
    touch(node, "alive")
    touch(node, "started")
    wait_ready(node, "slow")
    assert node.status("slow")["started"]
    world.wait(lambda: os.path.exists(os.path.join(node.data, "asked")), "its liveness probe runs")


def test_a_failed_startup_probe_restarts_the_container(node):
    node.drop(probed(node, "stuck", probes={"startupProbe": {**exists("never"), "failureThreshold": 2}}))
    status = node.wait_restarts("stuck", 1)
    assert "Container main failed startup probe, will be restarted" in status["lastState"]["terminated"]["message"]


def test_with_policy_never_a_failed_probe_ends_the_pod(node):
    node.drop(probed(node, "once", "trap '' TERM; while :; do sleep 0.1; done", {
        "livenessProbe": {**exists("never"), "failureThreshold": 1, "terminationGracePeriodSeconds": 1}},
        restartPolicy="Never", terminationGracePeriodSeconds=600))
    node.wait_phase("once", "Failed")
    ended = node.status("once")["state"]["terminated"]
    assert ended["exitCode"] == 137, "the grace period is that of the probe, not of the pod"
    assert ended["message"].startswith("Container main failed liveness probe: ")


@pytest.mark.parametrize("handler", [
    {"httpGet": {"port": 18231}},
    {"httpGet": {"port": "web", "path": "/sub/page?x=1"}},
    {"httpGet": {"port": 18231, "host": "localhost", "httpHeaders": [{"name": "X-A", "value": "b"}]}},
    {"httpGet": {"port": 18231, "path": "/sub"}},  # a redirection
    {"tcpSocket": {"port": "web"}},
    {"tcpSocket": {"port": 18231, "host": "localhost"}},
], ids=lambda handler: json.dumps(handler).replace('"', ""))
def test_network_probes_connect_to_the_pod(node, handler):
    container = specs.container(script=SERVE.format(port=18231), ports=[{"name": "web", "containerPort": 18231}],
                                readinessProbe={**handler, **FAST})
    node.launch(specs.pod("server", container))
    wait_ready(node, "server")


@pytest.mark.parametrize("handler,message", [
    ({"httpGet": {"port": 18232, "path": "/nothing"}}, "HTTP probe failed with statuscode: 404"),
    ({"httpGet": {"port": 18233}}, "connect"),
    ({"httpGet": {"port": 18232, "scheme": "HTTPS"}}, 'Get "https://'),
    ({"tcpSocket": {"port": 18233}}, "connect: connection refused"),
    ({"grpc": {"port": 18232}}, "error: health rpc probe failed"),
], ids=["404", "no HTTP", "no TLS", "no port", "no gRPC"])
def test_failed_probes_have_the_kubelets_message(node, handler, message):
    container = specs.container(script=SERVE.format(port=18232),
                                readinessProbe={**handler, **FAST, "initialDelaySeconds": 1})
    node.launch(specs.pod("server", container))
    # The log contains only the first of several failures, which on a busy node may be that of a server that does not
    # listen yet.
    world.wait(lambda: re.search(r"Readiness probe failed: .*" + re.escape(message),
                                 node.cli("describe", "pod", "server").stdout),
               lambda: f"the agent reports {message}: {node.said()}")
    assert not node.status("server")["ready"]


def test_libcurl_is_loaded_only_for_requests(node):
    def is_loaded():
        return "libcurl" in world.read(f"/proc/{node.agent.pid}/maps")
    node.launch(probed(node, "quiet", probes={"livenessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": 1,
                                                                "failureThreshold": 1000},
                                              "readinessProbe": exists("ok")}))
    world.wait(lambda: "Liveness probe failed" in node.said(), "it was queried")
    assert not is_loaded()
    node.launch(specs.pod("asked", specs.container(livenessProbe={"httpGet": {"port": 1}, "periodSeconds": 3600})))
    world.wait(is_loaded, "libcurl is loaded")


def test_grpc_probes_ask_the_named_service(node):
    """The pod is in the node's network, and so is the server."""
    server = grpc_health.HealthServer()
    try:
        node.launch(specs.pod("service", specs.container(
            readinessProbe={"grpc": {"port": server.port, "service": "shop"}, **PATIENT, "failureThreshold": 1})))
        world.wait(lambda: 'service unhealthy (responded with "NOT_SERVING")' in node.said(), "it is not ready")
        server.status = grpc_health.SERVING
        wait_ready(node, "service")
        server.status = grpc_health.NOT_SERVING
        wait_ready(node, "service", ready=False)
        assert server.services == {"shop"}
    finally:
        server.stop()


def test_a_hanging_exec_probe_is_killed_and_fails(node):
    node.launch(probed(node, "hang", probes={"readinessProbe": {
        "exec": {"command": ["sh", "-c", "echo $$ >> /v/pids; sleep 1000 & sleep 1000"]}, **FAST}}))
    world.wait(lambda: "command timed out" in node.said(), lambda: f"it is logged: {node.said()}")
    group = node.container_cgroup("hang")

    def probes():
        return [pid for pid in world.cgroup_pids(group) if "1000" in world.cmdline(pid)]
    world.wait(lambda: len((world.read(os.path.join(node.data, "pids")) or "").split()) > 3, "several have run")
    # Only one command runs at a time: earlier ones and their children are gone.
    world.wait(lambda: len(probes()) <= 2, lambda: f"the programs are gone: {probes()}")


def test_a_probe_runs_as_the_container_does(node):
    container = specs.container(
        script=specs.IDLE, workingDir="/tmp", env=[{"name": "A", "value": "b"}],
        securityContext={"runAsUser": 1000}, volumeMounts=[specs.mount("v", "/v")],
        readinessProbe={"exec": {"command": ["sh", "-c", 'echo "$(id -u) $(pwd) $A $(A) $0" > /v/new; mv /v/new /v/identity']}, **FAST})
    os.chmod(node.data, 0o777)
    node.launch(specs.pod("identity", container, volumes=[specs.host_path("v", node.data)]))
    wait_ready(node, "identity")
    assert world.read(os.path.join(node.data, "identity")) == "1000 /tmp b b sh\n"


def test_an_exec_probe_cannot_access_host_devices(node):
    node.launch(specs.pod("web", specs.container(script=specs.IDLE, readinessProbe={
        "exec": {"command": ["sh", "-c", "test ! -c /proc/self/fd/0 && test $(wc -c) = 0"]}, **FAST})))
    wait_ready(node, "web")


def test_probe_results_survive_a_restart_of_the_agent(node):
    touch(node, "ok")
    node.launch(probed(node, "kept", probes={
        "startupProbe": {**exists("ok"), "failureThreshold": 1},
        "readinessProbe": {**exists("ok"), "periodSeconds": 3600},
        "livenessProbe": {**exists("ok"), "failureThreshold": 1000}}))
    wait_ready(node, "kept")
    since = condition(node.pod("kept"), "Ready")["lastTransitionTime"]
    # A startup probe that runs again would fail now, and immediately.
    node.kill9()
    os.unlink(os.path.join(node.data, "ok"))
    node.start()
    world.wait(lambda: "Liveness probe failed" in node.said(), "the probe after the startup probe has run")
    status = node.status("kept")
    assert (status["ready"], status["started"], status["restartCount"]) == (True, True, 0)
    assert condition(node.pod("kept"), "Ready")["lastTransitionTime"] <= since
    assert "startup probe" not in node.said().lower()


def test_an_unready_container_stays_unready_after_a_restart_of_the_agent(node):
    node.launch(probed(node, "unready", probes={"readinessProbe": {**exists("ok"), "periodSeconds": 3600}}))
    node.restart()
    node.wait_running("unready")
    assert not node.status("unready")["ready"]


def test_a_probe_added_by_an_edit_does_not_reset_started(node):
    pod = probed(node, "web")
    node.launch(pod)
    pid = node.init("web")
    pod["spec"]["containers"][0].update(startupProbe={**exists("never"), "failureThreshold": 1},
                                        readinessProbe={**exists("never"), "failureThreshold": 1000})
    node.drop(pod)
    node.wait_pod("web", lambda pod: "startupProbe" in pod["spec"]["containers"][0], "is edited")
    for _ in range(2):
        status = node.status("web")
        assert (status["started"], status["ready"], status["restartCount"]) == (True, True, 0)
        node.restart()
        node.wait_pod("web", lambda pod: "containerID" in pod["status"]["containerStatuses"][0], "is known again")
    assert world.is_alive(pid)


def test_a_hanging_server_does_not_delay_other_probes(node):
    """One pod has a socket that accepts and never responds; the other pod is probed nevertheless."""
    node.drop(specs.pod("deaf", specs.container(
        script="nc -lk -p 18234 -e sleep 1000 & " + specs.IDLE,
        readinessProbe={"httpGet": {"port": 18234}, "periodSeconds": 1, "timeoutSeconds": 3600})))
    node.drop(probed(node, "well", probes={"readinessProbe": {**exists("ok"), "failureThreshold": 1}}))
    node.wait_running("deaf")
    node.wait_running("well")
    for _ in range(2):
        touch(node, "ok")
        wait_ready(node, "well")
        os.unlink(os.path.join(node.data, "ok"))
        wait_ready(node, "well", ready=False)
    assert not node.status("deaf")["ready"]


@pytest.mark.slow
def test_a_frozen_agent_does_not_restart_containers_when_it_continues(node):
    node.launch(specs.pod("patient", specs.container(
        script=SERVE.format(port=18235),
        startupProbe={"httpGet": {"port": 18235}, **FAST, "failureThreshold": 1000},
        livenessProbe={"httpGet": {"port": 18235}, **FAST, "timeoutSeconds": 4, "failureThreshold": 1},  # one late answer counts
        readinessProbe={"httpGet": {"port": 18235}, **FAST})))
    wait_ready(node, "patient")
    for _ in range(5):
        node.agent.send_signal(signal.SIGSTOP)
        world.wait(lambda: world.read(f"/proc/{node.agent.pid}/stat").split()[2] == "T", "the agent is frozen")
        until = time.monotonic() + 8  # longer than a period and a timeout, as the test requires
        world.wait(lambda end=until: time.monotonic() > end, "it was frozen for long enough")
        node.agent.send_signal(signal.SIGCONT)
        wait_ready(node, "patient")
    assert node.status("patient")["restartCount"] == 0


def test_describe_shows_probes_as_kubectl_does(node):
    container = specs.container(
        ports=[{"name": "web", "containerPort": 8080}],
        livenessProbe={"httpGet": {"port": "web", "path": "/healthz"}, "periodSeconds": 3600},
        readinessProbe={"exec": {"command": ["cat", "/tmp/x"]}, "initialDelaySeconds": 5},
        startupProbe={"tcpSocket": {"port": 8080}, "timeoutSeconds": 2, "failureThreshold": 30})
    node.launch(specs.pod("shown", container))
    text = node.cli("describe", "pod", "shown").stdout
    assert re.search(r"Liveness: +http-get http://:web/healthz delay=0s timeout=1s period=3600s #success=1 #failure=3", text)
    assert re.search(r"Readiness: +exec \[cat /tmp/x\] delay=5s timeout=1s period=10s #success=1 #failure=3", text)
    assert re.search(r"Startup: +tcp-socket :8080 delay=0s timeout=2s period=10s #success=1 #failure=30", text)
