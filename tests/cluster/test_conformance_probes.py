# SPDX-License-Identifier: Apache-2.0
"""The requirements of Kubernetes' own tests for probes and hooks (test/e2e/common/node), each for a container and for a
sidecar. README.md lists the corresponding tests."""

import pytest
import specs
import world
from node import condition, is_ready
from trial import agnhost, status_of
from world import wait

PLACES = pytest.mark.parametrize("place", ["container", "sidecar"])
OK = {"exec": {"command": ["true"]}}
FAIL = {"exec": {"command": ["false"]}}
HANG = {"exec": {"command": ["sleep", "600"]}}
FILE = {"exec": {"command": ["cat", "/tmp/health"]}}
LONG = 100000  # seconds of a period in which nothing happens after the first time


def often(handler, **fields):
    """On a busy machine a command takes longer than a second."""
    return {**handler, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 20, **fields}


def http(path, **fields):
    return often({"httpGet": {"path": path, "port": 8080}}, **fields)


def bind(trial, place, container, **fields):
    """The container is always called 'main'. A sidecar gets an ordinary container next to it."""
    if place == "container":
        trial.bind(container, **fields)
    else:
        trial.bind(specs.container("other"), initContainers=[{**container, "restartPolicy": "Always"}], **fields)


def shell(script=specs.IDLE, **fields):
    return specs.container(script=script, **fields)


# Readiness

@PLACES
def test_pod_is_not_ready_before_the_delay_of_its_probe(trial, place):
    bind(trial, place, shell(readinessProbe=often(OK, initialDelaySeconds=5)))
    pod = trial.node.wait_api_running(trial.name)
    started = status_of(pod)["state"]["running"]["startedAt"]
    ready = condition(pod, "Ready")["lastTransitionTime"]
    assert seconds(ready) - seconds(started) >= 4 and status_of(pod)["restartCount"] == 0


def seconds(text):
    """Longer than any test lasts."""
    hours, minutes, rest = text.rstrip("Z").split("T")[1].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(rest)


@PLACES
@pytest.mark.parametrize("handler", [FAIL, HANG], ids=["fails", "takes too long"])
def test_pod_whose_probe_fails_is_never_ready_and_not_restarted(trial, place, handler):
    bind(trial, place, shell(readinessProbe=often(handler, timeoutSeconds=1)))
    event = wait(lambda: next((one for one in trial.node.events(trial.name, "Unhealthy") if one.get("count", 1) >= 2), None),
                 lambda: f"two failures: {trial.node.describe_events(trial.name)}")
    assert event["message"].startswith("Readiness probe failed")
    pod = trial.read()
    assert not is_ready(pod) and not status_of(pod)["ready"] and status_of(pod)["restartCount"] == 0


# Liveness: failures that restart a container

RESTARTS = {
    "file that vanishes": (lambda: shell(f"echo ok > /tmp/health; (sleep 2; rm /tmp/health) & {specs.IDLE}",
                                         livenessProbe=often(FILE, initialDelaySeconds=1)), "Liveness"),
    "server that gets sick": (lambda: agnhost("liveness", livenessProbe=http("/healthz", initialDelaySeconds=2)), "Liveness"),
    "command that takes too long": (lambda: shell(livenessProbe=often(HANG, timeoutSeconds=1)), "Liveness"),
    "command that fails after its time": (lambda: shell(livenessProbe=often(
        {"exec": {"command": ["sh", "-c", "sleep 3; exit 1"]}}, timeoutSeconds=1)), "Liveness"),
    "redirect to a server that gets sick": (lambda: agnhost("liveness", livenessProbe=http(
        "/redirect?loc=%2Fhealthz", initialDelaySeconds=2)), "Liveness"),
    "gRPC that nothing answers": (lambda: agnhost("grpc-health-checking", livenessProbe=often(
        {"grpc": {"port": 2333}}, initialDelaySeconds=1)), "Liveness"),
    "startup probe": (lambda: shell(startupProbe=often(FAIL)), "Startup"),
    "liveness probe after the startup probe": (lambda: shell(
        "sleep 1; echo ok > /tmp/health; exec sleep 100000",
        startupProbe=often(FILE, failureThreshold=60), livenessProbe=often(FAIL)), "Liveness"),
}


@PLACES
@pytest.mark.parametrize("what", RESTARTS)
def test_container_is_restarted_if_its_probe_fails(trial, place, what):
    make, word = RESTARTS[what]
    bind(trial, place, make())
    trial.wait_restarts(1)

    def events():
        return trial.node.describe_events(trial.name)

    wait(lambda: any(f"Unhealthy: {word} probe" in event for event in events()), lambda: f"it is unhealthy: {events()}")
    wait(lambda: any("Killing: Container main failed" in event or "Killing: Init container main failed" in event
                     for event in events()), lambda: f"it is killed: {events()}")


@PLACES
def test_restart_count_never_decreases_while_a_probe_fails(trial, place):
    bind(trial, place, shell(livenessProbe=often(FAIL)))
    last = 0
    for count in (1, 2, 3):
        pod = trial.wait_restarts(count)
        assert status_of(pod)["restartCount"] >= last
        last = status_of(pod)["restartCount"]


# Liveness probes that must not restart the container

STAYS = {
    "a file that is there": lambda: shell(f"echo ok > /tmp/health; {specs.IDLE}", livenessProbe=often(FILE, initialDelaySeconds=2)),
    "a port that is open": lambda: agnhost("netexec", livenessProbe=often({"tcpSocket": {"port": 8080}}, initialDelaySeconds=2)),
    "a server that is well": lambda: agnhost("netexec", livenessProbe=http("/healthz", initialDelaySeconds=2)),
    "a redirect to another host": lambda: agnhost("netexec", livenessProbe=http(
        "/redirect?location=http%3A%2F%2F0.0.0.0%2F", initialDelaySeconds=2)),
    "gRPC that is served": lambda: agnhost("grpc-health-checking", livenessProbe=often({"grpc": {"port": 5000}}, initialDelaySeconds=2)),
    "a startup probe that continues": lambda: shell(startupProbe=often(FAIL, failureThreshold=LONG), livenessProbe=often(FAIL)),
}


@PLACES
@pytest.mark.parametrize("what", STAYS)
def test_container_is_not_restarted_unless_its_probe_fails(trial, place, what):
    """The container must not be restarted during three periods, which the metrics of the agent count if a probe
    runs."""
    bind(trial, place, STAYS[what]())
    trial.wait(lambda pod: "running" in status_of(pod).get("state", {}), "runs")
    uid = trial.read()["metadata"]["uid"]

    def probes():
        return sum(float(line.rsplit(" ", 1)[1]) for line in trial.node.get("/metrics")[1].splitlines()
                   if line.startswith("prober_probe_total") and uid in line)

    wait(lambda: probes() >= 5, lambda: f"five probes: {probes()}")
    assert status_of(trial.read())["restartCount"] == 0


# Startup

@PLACES
def test_container_is_ready_at_once_after_its_startup_probe(trial, place):
    """The container is ready at once although the period of the readiness probe is long."""
    bind(trial, place, shell("sleep 2; echo ok > /tmp/health; exec sleep 100000",
                             startupProbe=often(FILE, failureThreshold=60), readinessProbe={**FILE, "periodSeconds": 600}))
    trial.node.wait_api_running(trial.name, 30)


@PLACES
@pytest.mark.parametrize("probe", ["livenessProbe", "startupProbe"])
def test_probe_grace_period_overrides_that_of_the_pod(trial, place, probe):
    """The grace period of the pod would outlast the test."""
    bind(trial, place, shell("trap '' TERM; while :; do sleep 1; done", **{probe: often(FAIL, terminationGracePeriodSeconds=1)}),
         terminationGracePeriodSeconds=500)
    trial.wait_restarts(1, deadline=60)


# The end

@PLACES
def test_terminating_pod_becomes_unready_by_its_probe(trial, place):
    script = "touch /tmp/health; trap 'rm -f /tmp/health; until test -e /tmp/end; do sleep 0.1; done; exit 0' TERM; sleep 100000 & wait"
    bind(trial, place, shell(script, readinessProbe=often(FILE)), terminationGracePeriodSeconds=60)
    trial.node.wait_api_running(trial.name)
    trial.delete()
    trial.wait(lambda pod: condition(pod, "Ready").get("status") == "False" and not status_of(pod)["ready"], "is not ready")
    trial.exec("touch", "/tmp/end", container="main")
    trial.wait_gone()


@PLACES
def test_terminating_pod_is_not_restarted_by_its_probe(trial, place):
    script = "touch /tmp/health; trap 'rm -f /tmp/health; sleep 3; exit 0' TERM; sleep 100000 & wait"
    bind(trial, place, shell(script, readinessProbe=often(FILE), livenessProbe=often(FILE)), terminationGracePeriodSeconds=60)
    trial.node.wait_api_running(trial.name)
    trial.delete()
    trial.wait(lambda pod: condition(pod, "Ready").get("status") == "False", "is not ready")
    trial.wait_gone()
    assert not [event for event in trial.node.describe_events(trial.name) if "Liveness probe" in event]


# Hooks

def get(trial, port, scheme="HTTP"):
    """Queries the other pod's server."""
    return {"httpGet": {"path": f"/echo?msg={trial.name}", "host": trial.server, "port": port, "scheme": scheme}}


@pytest.fixture(name="server")
def fixture_server(trial):
    """A pod that records the requests that it gets."""
    pair = {name: world.read(trial.node.plane.path(f"apiserver.{name}")) for name in ("crt", "key")}
    trial.secret(pair, f"{trial.name}-pair")
    tls = agnhost("netexec", "--http-port=9090", "--udp-port=9091", "--tls-cert-file=/pair/crt", "--tls-private-key-file=/pair/key",
                  volumeMounts=[specs.mount("pair", "/pair")])
    pod = trial.start(agnhost("netexec"), {**tls, "name": "tls"}, name=f"{trial.name}-server",
                      volumes=[{"name": "pair", "secret": {"secretName": f"{trial.name}-pair"}}])
    trial.server = pod["status"]["podIP"]
    return trial.server


HANDLERS = {
    "exec": lambda trial: {"exec": {"command": ["wget", "-q", "-O", "-", f"http://{trial.server}:8080/echo?msg={trial.name}"]}},
    "http": lambda trial: get(trial, 8080),
    "https": lambda trial: get(trial, 9090, "HTTPS"),
}


@PLACES
@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("moment", ["postStart", "preStop"])
@pytest.mark.usefixtures("server")
def test_hook_is_executed(trial, place, handler, moment):
    bind(trial, place, shell(lifecycle={moment: HANDLERS[handler](trial)}), terminationGracePeriodSeconds=60)
    trial.node.wait_api_running(trial.name)
    if moment == "preStop":
        trial.delete()
        trial.wait_gone()

    def requests():
        return trial.output("tls" if handler == "https" else "main", f"{trial.name}-server")

    wait(lambda: any(f"/echo?msg={trial.name}" in line for line in requests()), lambda: f"the request: {requests()}")


@pytest.mark.parametrize("length", [0, 2])
def test_sleep_hook_ends_before_the_grace_period(trial, length):
    grace = 600
    trial.start(shell(lifecycle={"preStop": {"sleep": {"seconds": length}}}), terminationGracePeriodSeconds=grace)
    trial.delete()
    pod = trial.wait(lambda pod: pod["metadata"].get("deletionTimestamp"), "is being deleted")
    trial.wait_gone()
    assert pod["metadata"]["deletionGracePeriodSeconds"] == grace
    assert not trial.node.events(trial.name, "FailedPreStopHook")


def test_sleep_hook_ends_early_when_the_grace_period_is_shortened(trial):
    trial.start(shell(lifecycle={"preStop": {"sleep": {"seconds": 300}}}), terminationGracePeriodSeconds=600)
    trial.delete()
    trial.wait(lambda pod: pod["metadata"].get("deletionTimestamp"), "is being deleted")
    trial.delete(grace=2)
    trial.wait_gone()


def test_sleep_hook_is_not_waited_for_after_its_container_has_ended(trial):
    trial.bind(shell("sleep 2", lifecycle={"preStop": {"sleep": {"seconds": 300}}}), terminationGracePeriodSeconds=600,
               restartPolicy="Always")
    trial.node.wait_api_running(trial.name)
    trial.wait(lambda pod: "running" not in status_of(pod)["state"], "has ended")
    trial.delete(grace=20)
    trial.wait_gone()
