# SPDX-License-Identifier: Apache-2.0
"""The remains of pods after a shutdown of the machine, for the next boot and after a cancellation.
tests/vm/test_shutdown.py has a real systemd."""

import os

import pytest
import specs
from booted import BootedNode, Systemd
from test_apiserver_offline import reboot
from world import wait

SETTINGS = {"shutdownGracePeriod": "20s", "shutdownGracePeriodCriticalPods": "1s", "cgroupDriver": "cgroupfs"}
COMPLETED = "echo run >>/data/once"


@pytest.fixture(name="systemd")
def fixture_systemd(tmp_path):
    systemd = Systemd(str(tmp_path))
    yield systemd
    systemd.end()


@pytest.fixture(name="booted")
def fixture_booted(systemd, archive, image_store):
    node = BootedNode(systemd, store=image_store, config=SETTINGS)
    yield node
    node.finish()


def pod_of(node, **spec):
    """A pod with a container that runs and one that completes and counts its runs."""
    return specs.pod("web", specs.container(volumeMounts=[specs.mount("kept", "/kept")]),
                     specs.container("once", script=COMPLETED, volumeMounts=[specs.mount("data", "/data")]),
                     volumes=[{"name": "kept", "emptyDir": {}}, specs.host_path("data", node.data)], **spec)


def launch(node, pod):
    """Launches the pod; waits until one of its containers runs and the other one has completed."""
    node.drop(pod)
    wait_both(node)
    node.wait_trap("web")
    assert node.cli("exec", "web", "-c", "main", "--", "touch", "/kept/file").returncode == 0


def wait_both(node):
    node.wait_pod("web", lambda pod: {name: list(status["state"])[0] for name, status in statuses(pod).items()} ==
                  {"main": "running", "once": "terminated"}, "main runs, the other one has completed")


def statuses(pod):
    return {status["name"]: status for status in pod["status"].get("containerStatuses", [])}


def runs_of_completed(node):
    with open(os.path.join(node.data, "once"), encoding="utf-8") as file:
        return len(file.readlines())


def shut_down(node):
    """Shuts the machine down up to the end of the agent."""
    node.systemd.stop_units()
    assert node.stop() == 0, node.said()[-4000:]
    assert "stopping all pods within 20s" in node.said()


def boot(node):
    reboot(node)
    node.systemd.boot()
    node.start()


def test_a_stopped_container_runs_after_the_next_boot_and_a_completed_one_does_not(booted):
    launch(booted, pod_of(booted, restartPolicy="OnFailure"))
    shut_down(booted)
    boot(booted)
    wait_both(booted)
    assert booted.cli("exec", "web", "-c", "main", "--", "test", "-e", "/kept/file").returncode == 0
    assert runs_of_completed(booted) == 1


def test_a_pod_that_was_debugged_runs_after_the_next_boot(booted):
    booted.launch(specs.pod("web"))
    answer = booted.cli("debug", "web", f"--image={specs.IMAGE}", "-c", "debugger", "--", "true")
    assert answer.returncode == 0, answer
    booted.wait_pod("web", lambda pod: "terminated" in str(pod["status"].get("ephemeralContainerStatuses")), "debugger has ended")
    shut_down(booted)
    boot(booted)
    booted.wait_running("web")
    booted.init("web")


def test_a_stopped_container_that_never_restarts_stays_ended_after_the_next_boot(booted):
    launch(booted, pod_of(booted, restartPolicy="Never"))
    shut_down(booted)
    boot(booted)
    pod = booted.wait_pod("web", lambda pod: pod["status"]["phase"] in ("Failed", "Succeeded"), "has ended")
    assert all(status["restartCount"] == 0 for status in statuses(pod).values()), pod
    assert runs_of_completed(booted) == 1


def test_a_cancelled_shutdown_restarts_only_the_containers_that_it_stopped(booted):
    launch(booted, pod_of(booted, restartPolicy="OnFailure"))
    before = booted.container_id("web")
    booted.systemd.prepare_shutdown()
    booted.wait_pod("web", lambda pod: pod["status"].get("reason") == "Terminated" and "terminated" in statuses(pod)["main"]["state"],
                    "is stopped")
    booted.systemd.cancel_shutdown()
    wait_both(booted)
    assert booted.container_id("web") != before
    assert runs_of_completed(booted) == 1
    assert booted.stop() == 0  # only the agent stops, not the machine


def test_a_daemonset_keeps_its_pod_across_a_shutdown(booted):
    booted.drop(specs.daemonset("web", specs.container(volumeMounts=[specs.mount("kept", "/kept")]),
                                volumes=[{"name": "kept", "emptyDir": {}}]), "web.yaml")
    wait(booted.pods, "its pod exists")
    name, uid = (booted.pods()[0]["metadata"][key] for key in ("name", "uid"))
    booted.wait_running(name)
    booted.wait_trap(name)
    assert booted.cli("exec", name, "--", "touch", "/kept/file").returncode == 0
    booted.systemd.prepare_shutdown()
    wait(lambda: "All pods have terminated" in booted.said(), "all have terminated")
    shut_down(booted)
    boot(booted)
    booted.wait_running(name)
    assert booted.pod(name)["metadata"]["uid"] == uid
    assert booted.cli("exec", name, "--", "test", "-e", "/kept/file").returncode == 0
