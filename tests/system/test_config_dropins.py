# SPDX-License-Identifier: Apache-2.0
"""Drop-ins of the configuration, by the rules of the kubelet's --config-dir; and settings without effect."""

import json
import os
import subprocess

import pytest
import world

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def directory_of(node):
    return os.path.join(node.directory, "config.d")


def write_dropin(node, name, text, head=HEAD):
    """Writes a drop-in that appears complete, like those of an installer."""
    path = os.path.join(directory_of(node), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(head + text)
    os.rename(path + ".new", path)
    return path


@pytest.fixture(name="stopped")
def fixture_stopped(make_node):
    return make_node(start=False, config={"mainstay": {"nodeLabels": {"stays": "file", "goes": "file", "changes": "file"}}})


def labels(node):
    return {key: value for key, value in node.node_object()["metadata"]["labels"].items() if "/" not in key}


def wait_labels(node, **expected):
    world.wait(lambda: labels(node) == expected, lambda: f"the labels are {expected}, not {labels(node)}:\n{node.said()}")


def test_dropins_apply_in_lexical_order_with_directories_among_them(stopped):
    write_dropin(stopped, "10-first.conf", "maxPods: 10\nmainstay: {nodeLabels: {last: '10'}}\n")
    write_dropin(stopped, "20-more/30-inner.conf", "maxPods: 20\nmainstay: {nodeLabels: {last: '20'}}\n")
    write_dropin(stopped, "25-then.conf", "maxPods: 25\n")
    write_dropin(stopped, ".hidden.conf", "maxPods: 5\n")
    write_dropin(stopped, "99-other.yaml", "maxPods: 99\n")
    write_dropin(stopped, "99-backup.conf~", "maxPods: 98\n")
    stopped.start()
    assert stopped.node_object()["status"]["capacity"]["pods"] == "25"
    assert labels(stopped)["last"] == "20"
    skipped, = (line for line in stopped.said().splitlines() if "99-other.yaml" in line)
    assert "99-backup.conf~" in skipped and "because their names do not end with .conf" in skipped


def test_a_dropin_is_a_merge_patch(stopped):
    write_dropin(stopped, "a.conf", "mainstay:\n  nodeLabels: {goes: null, changes: 'dropin', added: 'dropin'}\n"
                                    "registerWithTaints:\n- {key: a, effect: NoSchedule}\n- {key: b, effect: NoSchedule}\n")
    write_dropin(stopped, "b.conf", json.dumps({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
                                                "registerWithTaints": [{"key": "c", "effect": "NoExecute"}]}), head="")
    stopped.start()
    assert labels(stopped) == {"stays": "file", "changes": "dropin", "added": "dropin"}
    assert [taint["key"] for taint in stopped.node_object()["spec"]["taints"]] == ["c"], "a list is replaced"


BROKEN = {
    "no_kind": ("apiVersion: kubelet.config.k8s.io/v1beta1\nmaxPods: 1\n", "must have 'apiVersion: kubelet.config.k8s.io/v1beta1' and"),
    "no_version": ("kind: KubeletConfiguration\nmaxPods: 1\n", "must have 'apiVersion: kubelet.config.k8s.io/v1beta1' and"),
    "other_kind": (HEAD.replace("KubeletConfiguration", "Pod"), "bad.conf:2:7: kind: must be KubeletConfiguration, not the string 'Pod'"),
    "other_version": (HEAD.replace("v1beta1", "v1"), "bad.conf:1:13: apiVersion: must be"),
    "wrong_value": (HEAD + "maxPods: many\n", "bad.conf:3:10: maxPods: "),
    "unknown_own_setting": (HEAD + "mainstay:\n  signaturePolicyFil: /x\n", "bad.conf:4:3: mainstay.signaturePolicyFil"),
    "a_rule_of_two_files": (HEAD + "shutdownGracePeriodCriticalPods: 60s\n", "bad.conf:3:34: shutdownGracePeriodCriticalPods: must be <="),
    "no_mapping": ("- a\n", "must have 'apiVersion"),
    "empty": ("", "bad.conf: the file is empty"),
    "only_comments": ("# nothing\n", "must have 'apiVersion"),
    "two_documents": (HEAD + "---\n" + HEAD, "bad.conf: must hold one document, not 2"),
    "no_yaml": (HEAD + "a: [\n", "bad.conf:"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_dropin_prevents_a_start_and_is_named(make_node, name):
    node = make_node(start=False, config={"shutdownGracePeriod": "30s"})
    text, says = BROKEN[name]
    path = write_dropin(node, "bad.conf", text, head="")
    said = subprocess.run(node.command(), env=node.environment(), capture_output=True, text=True, check=False, timeout=world.DEADLINE)
    os.unlink(path)
    assert said.returncode == 1 and says in said.stderr and path in said.stderr, said.stderr


def test_a_pipe_or_a_dangling_link_is_an_error_without_blocking(stopped):
    for name, make in (("p.conf", os.mkfifo), ("l.conf", lambda path: os.symlink("/nonexistent", path))):
        path = os.path.join(directory_of(stopped), name)
        os.makedirs(directory_of(stopped), exist_ok=True)
        make(path)
        said = subprocess.run(stopped.command(), env=stopped.environment(), capture_output=True, text=True, check=False, timeout=world.DEADLINE)
        assert said.returncode == 1 and path in said.stderr, said.stderr
        os.unlink(path)


def test_an_unknown_setting_of_the_kubelet_is_a_warning_with_the_place_of_its_file(stopped):
    path = write_dropin(stopped, "new.conf", "settingOfTomorrow: 1\n")
    stopped.start()
    assert f"{path}:3:1: settingOfTomorrow" in stopped.said()


def test_dropins_are_reloaded_like_the_main_file(stopped, tmp_path):
    stopped.start()
    base = {"stays": "file", "goes": "file", "changes": "file"}
    wait_labels(stopped, **base)
    path = write_dropin(stopped, "10.conf", "mainstay: {nodeLabels: {a: renamed}}\n")  # its directory is also new
    wait_labels(stopped, **base, a="renamed")
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD + "mainstay: {nodeLabels: {a: rewritten}}\n")
    wait_labels(stopped, **base, a="rewritten")
    inner = write_dropin(stopped, "20/inner.conf", "mainstay: {nodeLabels: {a: inner}}\n")
    wait_labels(stopped, **base, a="inner")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(HEAD + "mainstay: {nodeLabels: {b: linked}}\n", encoding="utf-8")
    os.symlink(elsewhere, os.path.join(directory_of(stopped), "30.conf"))
    wait_labels(stopped, **base, a="inner", b="linked")
    os.unlink(inner)
    wait_labels(stopped, **base, a="rewritten", b="linked")
    os.rename(path, path + ".disabled")
    wait_labels(stopped, **base, b="linked")


def test_a_broken_dropin_or_a_missing_directory_changes_nothing(stopped):
    path = write_dropin(stopped, "10.conf", "mainstay: {nodeLabels: {a: first}}\n")
    stopped.start()
    expected = {"stays": "file", "goes": "file", "changes": "file", "a": "first"}
    write_dropin(stopped, "10.conf", "mainstay: [\n")
    world.wait(lambda: f"{path}:" in stopped.said() and "continuing with the previous configuration" in stopped.said(), "it is reported")
    assert labels(stopped) == expected
    os.rename(directory_of(stopped), directory_of(stopped) + ".away")
    world.wait(lambda: f"{directory_of(stopped)}: the directory of drop-ins is missing" in stopped.said(), "it is reported")
    assert labels(stopped) == expected
    os.rename(directory_of(stopped) + ".away", directory_of(stopped))
    write_dropin(stopped, "10.conf", "mainstay: {nodeLabels: {a: second}}\n")
    wait_labels(stopped, **{**expected, "a": "second"})


def test_other_settings_of_a_dropin_take_effect_at_a_restart(stopped):
    stopped.start()
    write_dropin(stopped, "10.conf", "maxPods: 7\n")
    world.wait(lambda: "take effect when the agent restarts" in stopped.said(), "it is reported")
    stopped.restart()
    assert stopped.node_object()["status"]["capacity"]["pods"] == "7"


def test_config_dir_option_names_a_directory_that_must_exist(stopped, tmp_path):
    write_dropin(stopped, "10.conf", "maxPods: 7\n")
    (tmp_path / "9.conf").write_text(HEAD + "maxPods: 9\n", encoding="utf-8")
    plain = stopped.command()
    stopped.command = lambda: [*plain, "--config-dir", str(tmp_path) + "/"]
    stopped.start()
    assert stopped.node_object()["status"]["capacity"]["pods"] == "9"
    stopped.stop()
    said = subprocess.run([*plain, "--config-dir", "/nonexistent"], env=stopped.environment(), capture_output=True, text=True,
                          check=False, timeout=world.DEADLINE)
    assert said.returncode == 1 and "/nonexistent: the directory of drop-ins is missing" in said.stderr


def test_dropins_work_without_a_main_file(stopped):
    os.unlink(stopped.config)
    write_dropin(stopped, "10.conf", f"cgroupRoot: {stopped.cgroup_root}\nmainstay: {{nodeLabels: {{only: dropin}}}}\n")
    stopped.start()
    assert labels(stopped) == {"only": "dropin"}
    write_dropin(stopped, "20.conf", "mainstay: {nodeLabels: {more: dropin}}\n")
    wait_labels(stopped, only="dropin", more="dropin")


def test_settings_without_effect_are_shown_to_the_user(stopped):
    write_dropin(stopped, "10.conf", "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\ntopologyManagerPolicy: none\n"
                                     "syncFrequency: 1m0s\nfeatureGates: {MemoryQoS: true}\n")
    stopped.start()
    names = "cpuManagerPolicy, featureGates, reservedSystemCPUs"

    def sorted_names(text):
        return ", ".join(sorted(text.split(", ")))
    line, = (line for line in stopped.said().splitlines() if "do not apply to Mainstay: " in line)
    assert sorted_names(line.rsplit(": ", 1)[1]) == names
    described = stopped.cli("describe", "node").stdout
    shown, = (line for line in described.splitlines() if line.startswith("Settings Without Effect:"))
    assert sorted_names(shown.split(":", 1)[1].strip()) == names
    for text in (described, stopped.cli("get", "events").stdout):
        event, = (line for line in text.splitlines() if "SettingsWithoutEffect" in line)
        assert "Warning" in event and "cpuManagerPolicy" in event


def test_ignored_settings_that_match_the_node_cause_no_warning(make_node):
    node = make_node(config={"cpuManagerPolicy": "none", "fileCheckFrequency": "20s", "failSwapOn": False, "syncFrequency": "60s",
                             "memoryManagerPolicy": "None", "registerNode": True, "seccompDefault": False})
    assert "do not apply" not in node.said()
    assert ["Settings", "Without", "Effect:", "<none>"] in [line.split() for line in node.cli("describe", "node").stdout.splitlines()]
    assert "SettingsWithoutEffect" not in node.cli("get", "events").stdout
