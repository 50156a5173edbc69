# SPDX-License-Identifier: Apache-2.0
"""The agent with only the privileges of its unit: it works as it does with more privileges."""

import json
import os

import in_unit
import launch_server
import pytest
import specs
import world
from booted import Systemd
from world import wait

NUMBERS = {"chown": 0, "dac_override": 1, "fowner": 3, "fsetid": 4, "kill": 5}


@pytest.fixture(name="confined")
def fixture_confined(tmp_path, archive):
    systemd, launcher = Systemd(str(tmp_path)), launch_server.LaunchServer()
    node = in_unit.UnitNode(launcher, systemd, archive)
    yield node
    node.finish()
    launcher.finish()
    systemd.end()


def interfaces(node, name):
    summary = json.loads(node.get("/stats/summary")[1])
    found = [pod for pod in summary["pods"] if pod["podRef"]["name"] == name]
    return {one["name"] for pod in found for one in pod.get("network", {}).get("interfaces", [])}


def test_an_agent_has_the_privileges_of_its_unit_only(confined):
    expected = sum(1 << NUMBERS[name] for name in in_unit.capabilities())
    for line in "CapBnd", "CapEff", "CapPrm":
        assert int(world.status(confined.agent.pid, line), 16) == expected, line
    assert world.status(confined.agent.pid, "NoNewPrivs") == "1"


def test_pods_run_with_their_volumes_users_and_networks(confined):
    confined.drop({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}, "data": {"word": "hello"}}, "words.yaml")
    mounts = [specs.mount("kept", "/kept"), specs.mount("memory", "/memory"), specs.mount("words", "/words"), specs.mount("data", "/data")]
    script = "umask 0; id >/data/id; stat -c %a:%g /kept /memory >/data/modes; cat /words/word >/data/word; " + specs.IDLE
    volumes = [{"name": "kept", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}},
               {"name": "words", "configMap": {"name": "words"}}, specs.host_path("data", confined.data)]
    os.chmod(confined.data, 0o777)
    pod = specs.pod("web", specs.container(script=script, volumeMounts=mounts), volumes=volumes, hostNetwork=False,
                    securityContext={"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 2000})
    confined.drop(pod)
    confined.wait_running("web")
    wait(lambda: world.read(os.path.join(confined.data, "word")) == "hello", lambda: f"all is written: {confined.said()[-3000:]}")
    assert "uid=1000" in world.read(os.path.join(confined.data, "id")) and "2000" in world.read(os.path.join(confined.data, "id"))
    assert world.read(os.path.join(confined.data, "modes")).split() == ["2777:2000", "3777:2000"]
    assert confined.cli("exec", "web", "--", "cat", "/words/word").stdout == "hello"


def test_pods_survive_the_agent_and_leave_nothing_behind(confined):
    confined.drop(specs.pod("web"))
    confined.wait_running("web")
    pid = confined.init("web")
    confined.restart()
    assert confined.init("web") == pid and world.is_alive(pid)
    confined.launcher.stop()
    assert world.is_alive(pid)
    confined.launcher.start()
    confined.remove("web")
    confined.wait_gone("web")


def test_network_of_a_pod_is_measured(confined):
    """The network is measured in its namespace, which the agent may not enter."""
    confined.drop(specs.pod("apart", hostNetwork=False))
    confined.wait_running("apart")
    name = confined.pod("apart")["metadata"]["name"]
    wait(lambda: "eth0" in interfaces(confined, name), lambda: f"it is seen: {interfaces(confined, name)}\n{confined.said()[-3000:]}")
