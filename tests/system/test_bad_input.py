# SPDX-License-Identifier: Apache-2.0
"""Invalid manifests: an error with its place, the pod keeps running, other pods are not affected, and the
agent's memory does not grow."""

import json
import os
import re
import socket

import harness
import pytest
import specs
import world

GOOD = specs.text(specs.pod("victim"))
BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9))

# The content that replaces a good file, and the pattern that the error must match: place and subject.
CASES = {
    "no YAML at all": ("a: b: c\n\t- [", r"victim\.yaml:1:\d+: "),
    "an unclosed quote": (GOOD.replace("name: victim", 'name: "victim'), r"victim\.yaml:\d+:\d+: "),
    "a list where a map is due": ("- kind: Pod\n", r"victim\.yaml:1:1: "),
    "a word where a map is due": ("hello\n", r"victim\.yaml:1:1: "),
    "an unknown kind": (GOOD.replace("kind: Pod", "kind: Prod"), r"victim\.yaml:2:\d+: .*Prod"),
    "a number where a string is due": (GOOD.replace("name: main", "name: 17"),
                                       r"victim\.yaml:\d+:\d+: spec\.containers\[0\]\.name: "),
    "a string where a number is due": (GOOD.replace("terminationGracePeriodSeconds: 2",
                                                    "terminationGracePeriodSeconds: soon"),
                                       r"victim\.yaml:\d+:\d+: spec\.terminationGracePeriodSeconds: .*soon"),
    "a string where a bool is due": (GOOD.replace("hostNetwork: true", "hostNetwork: perhaps"),
                                     r"victim\.yaml:\d+:\d+: spec\.hostNetwork: "),
    "a map where a list is due": (re.sub(r"containers:\n.*", "containers: {}\n", GOOD, flags=re.S),
                                  r"victim\.yaml:\d+:\d+: spec\.containers: "),
    "no containers": (re.sub(r"  containers:\n.*", "", GOOD, flags=re.S), r"victim\.yaml:\d+:\d+: spec.*containers"),
    "a name that is not a DNS label": (GOOD.replace("name: main", "name: Main_1"),
                                    r"victim\.yaml:\d+:\d+: spec\.containers\[0\]\.name: .*Main_1"),
    "an invalid pod name": (GOOD.replace("name: victim", "name: ../victim"),
                                r"victim\.yaml:\d+:\d+: metadata\.name: "),
    "a name that is too long": (GOOD.replace("name: main", "name: " + "x" * 64),
                                r"victim\.yaml:\d+:\d+: spec\.containers\[0\]\.name: "),
    "no name": (GOOD.replace("  name: victim\n", "  labels: {}\n"), r"victim\.yaml:\d+:\d+: metadata.*name"),
    "two containers of one name": (GOOD + GOOD[GOOD.index("  - name: main"):],
                                   r"victim\.yaml:\d+:\d+: spec\.containers\[1\]\.name: .*main"),
    "a mount of no volume": (GOOD + "    volumeMounts:\n    - name: nothing\n      mountPath: /x\n",
                             r"victim\.yaml:\d+:\d+: spec\.containers\[0\]\.volumeMounts\[0\]\.name: .*nothing"),
    "an invalid quantity": (GOOD + "    resources:\n      limits:\n        memory: lots\n",
                                r"victim\.yaml:\d+:\d+: spec\.containers\[0\]\.resources\.limits\.memory: .*lots"),
    "an unknown policy": (GOOD + "  restartPolicy: Sometimes\n",
                                   r"victim\.yaml:\d+:\d+: spec\.restartPolicy: .*Sometimes"),
    "an unsupported field": (GOOD + "    volumeDevices:\n    - name: x\n      devicePath: /x\n",
                                     r"victim\.yaml:\d+:\d+: spec\.containers\[0\]\.volumeDevices: "),
    "a key twice": (GOOD + "  hostNetwork: false\n", r"victim\.yaml:\d+:\d+: .*hostNetwork"),
    "an empty file": ("", r"victim\.yaml.*empty|victim\.yaml(:1:1)?: "),
    "nothing but a comment": ("# later\n", r"victim\.yaml(:\d+:\d+)?: "),
    "a NUL byte": (GOOD.replace("name: main", "name: ma\0in"), r"victim\.yaml(:\d+:\d+)?: "),
    "NUL bytes only": ("\0" * 4096, r"victim\.yaml(:\d+:\d+)?: "),
    "invalid UTF-8": (GOOD.encode().replace(b"name: main", b"name: \xff\xfe"), r"victim\.yaml(:\d+:\d+)?: "),
    "11 MiB": ("# " + "x" * (11 * 1024 * 1024), r"victim\.yaml.*(large|big|10 ?MiB|long|limit)"),
    "an alias bomb": (BOMB, r"victim\.yaml(:\d+:\d+)?: "),
    "10,000 levels": ("a: " + "[" * 10000 + "]" * 10000, r"victim\.yaml:1:\d+: "),
    "10,000 levels of maps": ("{a: " * 10000 + "}" * 10000, r"victim\.yaml:1:\d+: "),
    "100,000 documents": ("---\n" * 100000, r"victim\.yaml(:\d+:\d+)?: "),
}


def identity(node, name):
    pid = node.init(name)
    return pid, world.start_time(pid)


@pytest.fixture(scope="module", name="stage")
def fixture_stage(shared_node):
    """A node with a pod whose file is broken and one that must not be affected, and their processes."""
    shared_node.drop(GOOD, "victim.yaml")
    shared_node.wait_running("victim")
    shared_node.launch(specs.pod("bystander"))
    shared_node.before = {name: identity(shared_node, name) for name in ("victim", "bystander")}
    return shared_node


def expect_error(node, pattern):
    """Asserts that the error is in the output of 'get pods', in the log, and in 'describe' of the file's pod."""
    found = world.wait(lambda: re.search(pattern, node.said()), lambda: f"the log has {pattern}:\n{node.said()[-3000:]}")
    answer = node.cli("get", "pods", "-A")
    assert re.search(pattern, answer.stdout + answer.stderr), answer
    return found


def expect_untouched(node):
    assert {name: identity(node, name) for name in ("victim", "bystander")} == node.before
    for name in ("victim", "bystander"):
        assert node.status(name)["restartCount"] == 0


def forget(node):
    """Skips the earlier lines of the log, so that the next case only sees its own."""
    os.truncate(node.stderr, 0)


@pytest.mark.parametrize("case", CASES)
def test_an_invalid_manifest_is_an_error_and_its_pod_keeps_running(stage, case):
    content, pattern = CASES[case]
    forget(stage)
    stage.drop(content, "victim.yaml")
    expect_error(stage, pattern)
    expect_untouched(stage)
    stage.drop(GOOD, "victim.yaml")
    world.wait(lambda: "victim.yaml" not in stage.cli("get", "pods", "-A").stderr +
               stage.cli("get", "pods", "-A").stdout, "the error is gone")
    expect_untouched(stage)


def make_fifo(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)


def make_dangling_link(path):
    os.symlink("/nonexistent/victim.yaml", path)


def make_looping_link(path):
    os.symlink("victim.yaml", path)


def make_device_link(path):
    os.symlink("/dev/zero", path)


@pytest.mark.parametrize("make", [make_fifo, make_socket, make_dangling_link, make_looping_link, make_device_link],
                         ids=lambda make: make.__name__[5:].replace("_", " "))
def test_a_non_regular_file_is_an_error_and_its_pod_keeps_running(stage, make):
    forget(stage)
    staged = os.path.join(stage.staging, "odd")
    make(staged)
    os.rename(staged, stage.path("victim.yaml"))
    expect_error(stage, r"victim\.yaml: ")
    expect_untouched(stage)
    stage.drop(GOOD, "victim.yaml")
    world.wait(lambda: stage.pod("victim") and "victim.yaml" not in stage.cli("get", "pods", "-A").stderr,
               "the error is gone")
    expect_untouched(stage)


def test_a_directory_named_like_a_manifest_is_an_error(stage):
    forget(stage)
    os.mkdir(stage.path("folder.yaml"))
    expect_error(stage, r"folder\.yaml: ")
    os.rmdir(stage.path("folder.yaml"))
    expect_untouched(stage)


def test_an_error_is_logged_once_and_not_at_every_scan(stage):
    forget(stage)
    stage.drop("hello\n", "broken.yaml")
    expect_error(stage, r"broken\.yaml:1:1: ")
    for i in range(5):
        stage.launch(specs.pod(f"later{i}"))
    assert len(re.findall(r"broken\.yaml:1:1: ", stage.said())) == 1
    stage.remove("broken.yaml")
    for i in range(5):
        stage.remove(f"later{i}")


def test_one_invalid_document_invalidates_the_whole_file(stage):
    forget(stage)
    stage.drop(specs.text(specs.pod("first")) + "---\nkind: Nonsense\napiVersion: v1\n", "two.yaml")
    expect_error(stage, r"two\.yaml:\d+:\d+: ")
    assert not stage.pod("first")
    stage.remove("two.yaml")


def test_describe_shows_the_error_of_the_pods_file(stage):
    stage.drop(GOOD.replace("name: main", "name: Main_1"), "victim.yaml")
    world.wait(lambda: re.search(r"victim\.yaml:\d+:\d+: spec\.containers\[0\]\.name", stage.cli(
        "describe", "pod", "victim").stdout), "describe shows the error")
    stage.drop(GOOD, "victim.yaml")


def test_an_unknown_field_is_a_warning_and_the_pod_runs(stage):
    forget(stage)
    stage.drop(specs.text(specs.pod("typo")) + "  hostNetwrok: true\n", "typo.yaml")
    stage.wait_running("typo")
    expect_error(stage, r"typo\.yaml:\d+:3: spec\.hostNetwrok: ")
    stage.remove("typo")
    stage.wait_gone("typo")


def test_many_invalid_files_neither_leak_memory_nor_delay_pods(stage):
    limit_kib = 96 * 1024 if harness.is_sanitized() else 4 * 1024
    before = world.memory_kib(stage.agent.pid, "VmRSS")
    for round_ in range(8):
        for i in range(25):
            stage.drop(list(CASES.values())[(round_ * 25 + i) % len(CASES)][0], f"bad{i}.yaml")
    for i in range(25):
        os.unlink(stage.path(f"bad{i}.yaml"))
    stage.launch(specs.pod("after"))
    expect_untouched(stage)
    stage.remove("after")
    stage.wait_gone("after")
    after = world.memory_kib(stage.agent.pid, "VmRSS")
    assert after - before < limit_kib, f"the agent grew from {before} to {after} KiB"


CONTROLS = "\x1b]0;title\x07", "\x9b31m", "\u202e", "\u2066", "\u2028", "\x7f"


def test_control_characters_of_a_manifest_do_not_reach_the_terminal(node):
    evil = "".join(CONTROLS)
    node.drop("kind: Pod\nspec: {", f"broken{evil}.yaml")
    pod = specs.pod("painted", specs.container(script="exit 3"), metadata={"annotations": {"note": "text" + evil[4:]}},
                    restartPolicy="Never")
    pod["spec"]["containers"][0].update(image="localhost/none", imagePullPolicy="Never")
    pod["spec"]["containers"][0]["args"] = [evil[4:]]
    node.drop(pod, f"painted{evil}.yaml")
    node.wait_waiting("painted", "ErrImageNeverPull")
    world.wait(lambda: "broken" in node.said(), "the log names the file")
    shown = [node.said()]
    for words in (("get", "pods"), ("describe", "pod", "painted"), ("get", "events"), ("get", "pods", "-o", "json"),
                  ("get", "pods", "-o", "yaml"), ("get", "pods", "-o", "wide"), ("validate", node.manifests)):
        answer = node.cli(*words)
        shown += [answer.stdout, answer.stderr]
    assert "broken" in shown[2]
    for text in shown:
        found = [character for character in text if character in evil and not character.isalnum() and character not in "];"]
        assert not found, text
    answer = json.loads(node.cli("get", "pods", "-o", "json").stdout)
    assert answer["items"][0]["metadata"]["annotations"]["note"] == "text" + evil[4:], "JSON contains it escaped"


def test_a_directory_that_others_may_write_to_causes_a_warning(node):
    node.launch(specs.pod("web"))
    assert "users other than root" not in node.complaints()
    for owner, mode in ((0, 0o777), (1234, 0o755)):
        os.chown(node.manifests, owner, -1)
        os.chmod(node.manifests, mode)
        world.wait(lambda: f"warning: {node.manifests}: users other than root may write" in node.cli("get", "pods").stderr, node.said)
        assert f"(mode {mode:04o}, owner {owner}:" in node.said()
        os.chown(node.manifests, 0, -1)
        os.chmod(node.manifests, 0o755)
        world.wait(lambda: "users other than root" not in node.cli("get", "pods").stderr, "the warning is gone")
    assert node.status("web")["restartCount"] == 0
