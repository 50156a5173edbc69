# SPDX-License-Identifier: Apache-2.0
"""Changes of the node's labels and taints in the configuration, and the pods that they stop and start."""

import hashlib
import os
import signal
import time

import pytest
import specs
import world
import yaml
from test_daemonsets import init_of, pods_of, wait_daemon, wait_none
from test_rollouts import run_cli
from world import wait

LEAVE = {"key": "leave", "effect": "NoExecute"}


def daemonset_that_tolerates(name, seconds, *more):
    tolerations = [{"key": "leave", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}, *more]
    return specs.daemonset(name, tolerations=tolerations)


def wait_changes(node, count):
    wait(lambda: node.said().count("Labels or taints of the node changed") >= count, "the change is seen")


def stamp_taint(node, seconds_ago):
    """Changes the record as if an earlier agent had added the taint that long ago."""
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds_ago))
    text = f"leave:NoExecute {when}\n"
    with open(f"{node.state}/taints", "w", encoding="utf-8") as file:
        file.write(text + hashlib.sha256(text.encode()).hexdigest() + "\n")


def time_added(node):
    document = yaml.safe_load(run_cli(node, "get", "node", "-o", "yaml"))["items"][0]
    return document["spec"]["taints"][0]["timeAdded"]


@pytest.mark.slow
def test_taint_removed_within_toleration_seconds_stops_no_pod(node):
    node.drop(daemonset_that_tolerates("patient", 30))
    node.drop(specs.daemonset("hasty"))
    pid = init_of(node, wait_daemon(node, "patient"))
    wait_daemon(node, "hasty")
    node.write_config(registerWithTaints=[LEAVE])
    wait_none(node, "hasty")
    node.write_config()
    wait_daemon(node, "hasty")
    assert world.is_alive(pid)
    # The seconds are counted again from the next taint on.
    start = time.monotonic()
    node.write_config(registerWithTaints=[LEAVE])
    wait_none(node, "patient")
    assert time.monotonic() - start >= 29, "the time counted from the first taint"
    assert not world.is_alive(pid)


def test_longest_toleration_applies(node):
    node.drop(daemonset_that_tolerates("patient", 1, {"key": "leave", "operator": "Exists"}))
    node.drop(daemonset_that_tolerates("brief", 1))
    pid = init_of(node, wait_daemon(node, "patient"))
    wait_daemon(node, "brief")
    node.write_config(registerWithTaints=[LEAVE])
    wait_none(node, "brief")
    assert world.is_alive(pid)


def test_taint_time_in_the_future_counts_as_now(node):
    """The clock of the machine was set back while no agent ran."""
    node.drop(daemonset_that_tolerates("patient", 20))
    pid = init_of(node, wait_daemon(node, "patient"))
    node.write_config(registerWithTaints=[LEAVE])
    wait_changes(node, 1)
    node.kill9()
    stamp_taint(node, -1000000)
    node.start()
    assert time_added(node) <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    assert world.is_alive(pid)
    wait_none(node, "patient")


def test_toleration_that_ended_while_no_agent_ran_stops_the_pod(node):
    node.drop(daemonset_that_tolerates("patient", 3600))
    pid = init_of(node, wait_daemon(node, "patient"))
    node.write_config(registerWithTaints=[LEAVE])
    wait_changes(node, 1)
    assert world.is_alive(pid)
    node.kill9()
    stamp_taint(node, 3700)
    node.start()
    wait_none(node, "patient")
    assert "for 3600s has ended" in run_cli(node, "describe", "ds", "patient")
    node.restart()
    assert not pods_of(node, "patient")


def test_damaged_taint_checkpoint_stops_no_pod(node):
    node.drop(daemonset_that_tolerates("patient", 3600))
    pid = init_of(node, wait_daemon(node, "patient"))
    node.write_config(registerWithTaints=[LEAVE])
    wait_changes(node, 1)
    node.kill9()
    with open(f"{node.state}/taints", "r+b") as file:
        file.write(b"x")
    node.start()
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid)


MALFORMED = [
    ({"mainstay": {"nodeLabels": {"not a key": "a"}}}, "mainstay.nodeLabels"),
    ({"mainstay": {"nodeLabels": {"a/b/c": "a"}}}, "mainstay.nodeLabels"),
    ({"mainstay": {"nodeLabels": {"key": "x" * 64}}}, "mainstay.nodeLabels[key]"),
    ({"mainstay": {"nodeLabels": ["a=b"]}}, "mainstay.nodeLabels"),
    ({"registerWithTaints": {"a": "NoSchedule"}}, "registerWithTaints"),
    ({"registerWithTaints": [{"key": "a"}]}, "registerWithTaints[0].effect"),
    ({"registerWithTaints": [{"effect": "NoSchedule"}]}, "registerWithTaints[0].key"),
    ({"registerWithTaints": [{"key": "a", "effect": "Never"}]}, "registerWithTaints[0].effect"),
    ({"registerWithTaints": [{"key": "a b", "effect": "NoSchedule"}]}, "registerWithTaints[0].key"),
    ({"registerWithTaints": [{"key": "a", "value": "b c", "effect": "NoSchedule"}]}, "registerWithTaints[0].value"),
    ({"registerWithTaints": [{"key": "a", "effect": "NoExecute", "timeAdded": "now"}]},
     "registerWithTaints[0].timeAdded"),
    ({"registerWithTaints": [LEAVE, LEAVE]}, "registerWithTaints[1]"),
]


def test_malformed_labels_and_taints_change_nothing(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "a"}}})
    node.drop(specs.daemonset("a", nodeSelector={"role": "a"}))
    node.drop(specs.daemonset("b", nodeSelector={"role": "b"}))
    pid = init_of(node, wait_daemon(node, "a"))
    for i, (fields, place) in enumerate(MALFORMED):
        said = len(node.said())
        node.write_config(**fields)
        if i % 2:
            os.kill(node.agent.pid, signal.SIGHUP)
        wait(lambda said=said, place=place: place in node.said()[said:] and "continuing with the previous configuration"
             in node.said()[said:], lambda place=place: f"{place} is reported; the log: {node.said()[-500:]}")
        assert world.is_alive(pid)
    assert not pods_of(node, "b")
    node.write_config(mainstay={"nodeLabels": {"role": "b"}})
    wait_daemon(node, "b")
    wait_none(node, "a")


def test_empty_configuration_changes_nothing(make_node):
    """An editor leaves the file empty between truncating and writing it."""
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "a"}}})
    node.drop(specs.daemonset("a", nodeSelector={"role": "a"}))
    pid = init_of(node, wait_daemon(node, "a"))
    os.truncate(node.config, 0)
    os.kill(node.agent.pid, signal.SIGHUP)
    wait(lambda: "config.yaml: the file is empty" in node.said(), "it is reported")
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid)
    node.write_config(mainstay={"nodeLabels": {"role": "b"}})
    wait_none(node, "a")


def test_agent_does_not_start_with_an_empty_configuration(make_node):
    node = make_node(start=False)
    os.truncate(node.config, 0)
    node.agent = node.spawn()
    assert node.agent.wait(60) != 0
    assert "config.yaml: the file is empty" in node.said()
    node.write_config()
    node.start()


@pytest.mark.parametrize("fields, place", MALFORMED[2:8:5])
def test_agent_does_not_start_with_a_malformed_configuration(make_node, fields, place):
    node = make_node(start=False)
    node.write_config(**fields)
    node.agent = node.spawn()
    assert node.agent.wait(60) != 0
    assert place in node.said() and "config.yaml:" in node.said()
    node.write_config()
    node.start()


def test_label_change_is_seen_however_the_file_is_written(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "none"}}})
    for role in ("renamed", "written", "signalled"):
        node.drop(specs.daemonset(role, nodeSelector={"role": role}))
    fresh = node.config + ".new"
    path, node.config = node.config, fresh
    node.write_config(mainstay={"nodeLabels": {"role": "renamed"}})
    node.config = path
    os.rename(fresh, path)
    wait_daemon(node, "renamed")
    node.write_config(mainstay={"nodeLabels": {"role": "written"}})
    wait_daemon(node, "written")
    wait_none(node, "renamed")
    # A link to a file elsewhere is not watched; SIGHUP makes the agent read it.
    target = os.path.join(node.data, "config.yaml")
    os.rename(path, target)
    os.symlink(target, path)
    node.config = target
    node.write_config(mainstay={"nodeLabels": {"role": "signalled"}})
    os.kill(node.agent.pid, signal.SIGHUP)
    wait_daemon(node, "signalled")
    wait_none(node, "written")
