# SPDX-License-Identifier: Apache-2.0
"""Labels and taints of the node as they come and go with its configuration, and what that does to what runs."""

import hashlib
import os
import signal
import time

import pytest
import specs
import world
import yaml
from test_daemonsets import init_of, pods_of, wait_daemon, wait_none
from test_rollouts import told
from world import wait

LEAVE = {"key": "leave", "effect": "NoExecute"}


def patient(name, seconds, *more):
    tolerations = [{"key": "leave", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}, *more]
    return specs.daemonset(name, tolerations=tolerations)


def wait_changes(node, count):
    wait(lambda: node.said().count("other labels or taints") >= count, "the change is seen")


def stamp_taint(node, seconds_ago):
    """As if an earlier agent had seen the taint first so long ago."""
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds_ago))
    text = f"leave:NoExecute {when}\n"
    with open(f"{node.state}/taints", "w", encoding="utf-8") as file:
        file.write(text + hashlib.sha256(text.encode()).hexdigest() + "\n")


def time_added(node):
    document = yaml.safe_load(told(node, "get", "node", "-o", "yaml"))["items"][0]
    return document["spec"]["taints"][0]["timeAdded"]


def test_a_taint_that_goes_before_the_seconds_are_over_ends_nobody(node):
    node.drop(patient("patient", 4))
    node.drop(specs.daemonset("hasty"))
    pid = init_of(node, wait_daemon(node, "patient"))
    wait_daemon(node, "hasty")
    node.write_config(registerWithTaints=[LEAVE])
    wait_none(node, "hasty")
    node.write_config()
    wait_daemon(node, "hasty")
    assert world.is_alive(pid)
    # It counts anew when it comes again.
    node.write_config(registerWithTaints=[LEAVE])
    wait_changes(node, 3)
    begun = time.monotonic()
    wait_none(node, "patient")
    assert time.monotonic() - begun >= 2, "not from the first time on"
    assert not world.is_alive(pid)


def test_the_longest_of_the_tolerations_counts(node):
    node.drop(patient("patient", 1, {"key": "leave", "operator": "Exists"}))
    node.drop(patient("brief", 1))
    pid = init_of(node, wait_daemon(node, "patient"))
    wait_daemon(node, "brief")
    node.write_config(registerWithTaints=[LEAVE])
    wait_none(node, "brief")
    assert world.is_alive(pid)


def test_a_time_that_is_to_come_is_now(node):
    """The clock of the machine was set back while no agent looked."""
    node.write_config(registerWithTaints=[LEAVE])
    wait_changes(node, 1)
    node.drop(patient("patient", 12))
    pid = init_of(node, wait_daemon(node, "patient"))
    node.kill9()
    stamp_taint(node, -1000000)
    node.start()
    assert time_added(node) <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    assert world.is_alive(pid)
    wait_none(node, "patient")


def test_what_was_over_while_no_agent_looked_ends_at_once_and_is_not_begun_again(node):
    node.drop(patient("patient", 3600))
    pid = init_of(node, wait_daemon(node, "patient"))
    node.write_config(registerWithTaints=[LEAVE])
    wait_changes(node, 1)
    assert world.is_alive(pid)
    node.kill9()
    stamp_taint(node, 3700)
    node.start()
    wait_none(node, "patient")
    assert "for 3600s has ended" in told(node, "describe", "ds", "patient")
    node.restart()
    assert not pods_of(node, "patient")


def test_a_damaged_note_of_taints_ends_nobody(node):
    node.drop(patient("patient", 3600))
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


def test_labels_and_taints_that_are_malformed_change_nothing(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "a"}}})
    node.drop(specs.daemonset("a", nodeSelector={"role": "a"}))
    node.drop(specs.daemonset("b", nodeSelector={"role": "b"}))
    pid = init_of(node, wait_daemon(node, "a"))
    for i, (fields, place) in enumerate(MALFORMED):
        said = len(node.said())
        node.write_config(**fields)
        if i % 2:
            os.kill(node.agent.pid, signal.SIGHUP)
        wait(lambda said=said, place=place: place in node.said()[said:] and "going on with the configuration as it was"
             in node.said()[said:], lambda place=place: f"{place} is told; it said {node.said()[-500:]}")
        assert world.is_alive(pid)
    assert not pods_of(node, "b")
    node.write_config(mainstay={"nodeLabels": {"role": "b"}})
    wait_daemon(node, "b")
    wait_none(node, "a")


def test_a_configuration_that_is_empty_for_a_moment_changes_nothing(make_node):
    """As editors leave it between truncating and writing."""
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "a"}}})
    node.drop(specs.daemonset("a", nodeSelector={"role": "a"}))
    pid = init_of(node, wait_daemon(node, "a"))
    os.truncate(node.config, 0)
    os.kill(node.agent.pid, signal.SIGHUP)
    wait(lambda: "config.yaml: the file is empty" in node.said(), "it is told")
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid)
    node.write_config(mainstay={"nodeLabels": {"role": "b"}})
    wait_none(node, "a")


def test_an_agent_does_not_begin_with_an_empty_configuration(make_node):
    node = make_node(start=False)
    os.truncate(node.config, 0)
    node.agent = node.spawn()
    assert node.agent.wait(30) != 0
    assert "config.yaml: the file is empty" in node.said()
    node.write_config()
    node.start()


@pytest.mark.parametrize("fields, place", MALFORMED[2:8:5])
def test_an_agent_does_not_begin_with_what_is_malformed(make_node, fields, place):
    node = make_node(start=False)
    node.write_config(**fields)
    node.agent = node.spawn()
    assert node.agent.wait(30) != 0
    assert place in node.said() and "config.yaml:" in node.said()
    node.write_config()
    node.start()


def test_a_label_is_acted_on_whichever_way_the_file_comes(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "none"}}})
    for role in ("renamed", "written", "told"):
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
    # A file that is a link elsewhere rings no bell; a person does.
    target = os.path.join(node.data, "config.yaml")
    os.rename(path, target)
    os.symlink(target, path)
    node.config = target
    node.write_config(mainstay={"nodeLabels": {"role": "told"}})
    os.kill(node.agent.pid, signal.SIGHUP)
    wait_daemon(node, "told")
    wait_none(node, "written")
