# SPDX-License-Identifier: Apache-2.0
"""Notifications to the service manager (readiness, reloads, watchdog) and the metrics that alerts and the dashboard use."""

import json
import os
import re
import signal
import socket
import threading

import harness
import pytest
import specs
import world
import yaml

PACKAGING = os.path.join(harness.TOP, "packaging")


class Manager:
    """Receives notifications in place of systemd, without delay: an agent waits while ten of them have not been
    received."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.heard = []
        threading.Thread(target=self.receive, daemon=True).start()

    def receive(self):
        while True:
            self.heard.append(self.socket.recv(65536).decode())

    def listen(self):
        """Receives everything that has been sent so far; messages keep their order."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
            own.sendto(b"MARK=1", self.path)
        world.wait(lambda: "MARK=1" in self.heard, "the message is received")
        self.heard.remove("MARK=1")
        return self.heard

    def wait_for(self, prefix, count=1):
        world.wait(lambda: len([one for one in self.listen() if one.startswith(prefix)]) >= count,
                   lambda: f"{prefix} is sent {count} times: {self.heard}")


@pytest.fixture(name="manager")
def fixture_manager(tmp_path, monkeypatch):
    manager = Manager(tmp_path)
    monkeypatch.setenv("NOTIFY_SOCKET", manager.path)
    return manager


def test_readiness_is_reported_once_after_the_first_reconciliation(make_node, manager):
    node = make_node(start=False)
    node.drop(specs.pod("web"))
    node.start()
    manager.wait_for("READY=1")
    assert node.pods(), "READY=1 is sent after the pods are known"
    node.wait_running("web")
    manager.wait_for("STATUS=1 pod, 1 running")
    assert manager.heard.count("READY=1") == 1
    node.stop()
    manager.wait_for("STOPPING=1")
    node.start()


def test_a_reload_is_reported_at_start_and_end_even_if_the_configuration_is_invalid(make_node, manager):
    node = make_node()
    manager.wait_for("READY=1")
    node.write_config(mainstay={"nodeLabels": {"size": "large"}})
    manager.wait_for("RELOADING=1")
    manager.wait_for("READY=1", 2)
    with open(node.config, "w", encoding="utf-8") as file:
        file.write("kind: [")
    manager.wait_for("READY=1", 3)
    node.agent.send_signal(signal.SIGHUP)
    manager.wait_for("RELOADING=1", 3)
    manager.wait_for("READY=1", 4)
    kinds = [one.split("=")[0] for one in manager.heard if one.startswith(("READY", "RELOADING"))]
    assert kinds == ["READY"] + ["RELOADING", "READY"] * ((len(kinds) - 1) // 2)
    assert all("MONOTONIC_USEC=" in one for one in manager.heard if one.startswith("RELOADING"))
    node.write_config()


def test_the_watchdog_is_notified_only_while_the_event_loop_runs(make_node, manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "2000000")
    node = make_node()
    manager.wait_for("WATCHDOG=1", 2)
    node.agent.send_signal(signal.SIGSTOP)
    world.wait(lambda: world.status(node.agent.pid, "State").startswith("T"), "it has stopped")
    fed = manager.listen().count("WATCHDOG=1")
    signal.sigtimedwait([], 3)
    assert manager.listen().count("WATCHDOG=1") == fed
    node.agent.send_signal(signal.SIGCONT)
    manager.wait_for("WATCHDOG=1", fed + 1)


def names_in(expressions):
    words = set()
    for expression in expressions:
        bare = re.sub(r"\{[^}]*\}|\"[^\"]*\"|\[[^]]*\]|\b(by|on|without|ignoring) *\([^)]*\)", " ", expression)
        words |= set(re.findall(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b", bare))
    return words - {"histogram_quantile", "label_values", "label_replace"}


def expressions_of_dashboard(value):
    if isinstance(value, dict):
        for key, part in value.items():
            if key in ("expr", "query") and isinstance(part, str):
                yield part
            else:
                yield from expressions_of_dashboard(part)
    elif isinstance(value, list):
        for part in value:
            yield from expressions_of_dashboard(part)


def test_all_metrics_of_alerts_and_the_dashboard_are_exported(make_node):
    node = make_node(config={"staticPodURL": "http://127.0.0.1:1/pods.yaml",
                             "mainstay": {"report": {"url": "https://127.0.0.1:1/report"}}})  # there are metrics of sources and of the report
    with open(os.path.join(PACKAGING, "alerts.yaml"), encoding="utf-8") as file:
        rules = [rule for group in yaml.safe_load(file)["groups"] for rule in group["rules"]]
    with open(os.path.join(PACKAGING, "dashboard.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    assert all(rule["alert"] and rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in rules)
    asked = names_in([rule["expr"] for rule in rules]) | names_in(expressions_of_dashboard(dashboard))
    node.launch(specs.pod("web", specs.container(readinessProbe={"exec": {"command": ["true"]}, "periodSeconds": 1})))
    exported = set()

    def missing():
        for path in "/metrics", "/metrics/resource":
            exported.update(re.findall(r"^# TYPE (\S+)", node.get(path)[1], re.M))
        return {name for name in asked if name not in exported and re.sub(r"_(bucket|sum|count|total)$", "", name) not in exported}

    world.wait(lambda: not missing(), lambda: f"all are exported but {missing()}")
    assert len(asked) > 8
