# SPDX-License-Identifier: Apache-2.0
"""PriorityClasses and RuntimeClasses in manifests: the values that a pod gets from them, and the effect of their
removal."""

import os

import specs
import world


def priority_class(name, value, **fields):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, **fields}


def runtime_class(name, handler, **fields):
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name},
            "handler": handler, **fields}


def message(pod):
    return pod["status"]["containerStatuses"][0]["state"].get("waiting", {}).get("message", "")


def wrapper(node):
    """An OCI runtime of a different name, which records its calls."""
    path = os.path.join(node.directory, "other-runtime")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\necho called >> {node.directory}/calls\nexec runc "$@"\n')
    os.chmod(path, 0o755)
    return path


def test_a_pod_waits_for_its_priority_class_and_keeps_its_priority(node):
    node.drop(specs.pod("web", priorityClassName="high"))
    node.wait_pod("web", lambda pod: "no PriorityClass with name high was found" in message(pod), "waits")
    node.drop(priority_class("high", 1000))
    assert node.wait_running("web")["spec"]["priority"] == 1000
    pid = node.init("web")
    node.remove("high")
    node.launch(specs.pod("later"))
    node.restart()
    assert node.pod("web")["spec"]["priority"] == 1000
    assert node.init("web") == pid
    assert node.status("web")["restartCount"] == 0


def test_there_is_one_default_priority_class(node):
    node.drop(priority_class("usual", 7, globalDefault=True), "a.yaml")
    node.launch(specs.pod("web"))
    assert node.pod("web")["spec"]["priorityClassName"] == "usual"
    assert node.pod("web")["spec"]["priority"] == 7
    node.drop(priority_class("other", 8, globalDefault=True), "b.yaml")
    world.wait(lambda: "b.yaml: a priorityclass with globalDefault is already defined by a.yaml" in node.complaints(),
               "the other file is named")
    assert node.launch(specs.pod("named", priorityClassName="other"))["spec"]["priority"] == 8
    assert node.launch(specs.pod("second"))["spec"]["priority"] == 7


def test_diff_shows_a_changed_priority(node):
    def diff(**spec):
        return node.cli("diff", "-", input=specs.text(specs.pod("web", **spec))).stdout

    node.drop(priority_class("high", 1000))
    node.drop(priority_class("low", 10))
    node.launch(specs.pod("web", priorityClassName="high"))
    assert diff(priorityClassName="high") == "pod default/web: unchanged\n"
    assert diff() == ("pod default/web: applied live: spec.priorityClassName (high -> none), "
                      "spec.priority (1000 -> none)\n")
    assert "spec.priorityClassName (high -> low), spec.priority (1000 -> 10)" in diff(priorityClassName="low")
    node.drop(priority_class("usual", 7, globalDefault=True))
    world.wait(lambda: "usual" in node.cli("get", "pc").stdout, "there is a default")
    assert "spec.priorityClassName (high -> usual), spec.priority (1000 -> 7)" in diff()
    node.drop(specs.pod("web"))
    node.wait_pod("web", lambda pod: pod["spec"]["priority"] == 7, "has the default")
    assert diff() == "pod default/web: unchanged\n"


def test_a_runtime_class_names_a_runtime_of_the_configuration(make_node):
    node = make_node(start=False)
    node.write_config(mainstay={"runtimes": {"other": wrapper(node)}})
    node.start()
    node.drop(specs.pod("web", runtimeClassName="second"))
    node.wait_pod("web", lambda pod: 'RuntimeClass "second" not found' in message(pod), "waits")
    node.launch(specs.pod("plain"))
    assert not os.path.exists(f"{node.directory}/calls")
    node.drop(runtime_class("second", "third"))
    node.wait_pod("web", lambda pod: 'no runtime for "third" is configured' in message(pod), "waits")
    node.drop(runtime_class("second", "other"))
    node.wait_running("web")
    assert world.read(f"{node.directory}/calls")
    pid = node.init("web")
    node.remove("second")
    node.launch(specs.pod("later"))
    node.restart()
    assert node.init("web") == pid


def test_the_overhead_of_a_runtime_class_is_part_of_the_pods_cgroup(node):
    limits = {"resources": {"limits": {"cpu": "200m", "memory": "64Mi"}}}
    node.drop(runtime_class("heavy", "runc", overhead={"podFixed": {"cpu": "100m", "memory": "16Mi"}}))
    pod = node.launch(specs.pod("web", specs.container(**limits), runtimeClassName="heavy"))
    assert pod["spec"]["overhead"] == {"cpu": "100m", "memory": "16Mi"}
    group = node.pod_cgroup("web")
    own = node.container_cgroup("web")
    if world.cgroup_version() == 2:
        assert world.cgroup_value(group, "memory", "memory.max") == str(80 << 20)
        assert world.cgroup_value(group, "cpu", "cpu.max") == "30000 100000"
        assert world.cgroup_value(own, "memory", "memory.max") == str(64 << 20)
    else:
        assert world.cgroup_value(group, "memory", "memory.limit_in_bytes") == str(80 << 20)
        assert world.cgroup_value(group, "cpu", "cpu.cfs_quota_us") == "30000"
        assert world.cgroup_value(group, "cpu", "cpu.shares") == str(300 * 1024 // 1000)
        assert world.cgroup_value(own, "memory", "memory.limit_in_bytes") == str(64 << 20)
