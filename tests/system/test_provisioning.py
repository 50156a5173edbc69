# SPDX-License-Identifier: Apache-2.0
"""The examples for Ansible, cloud-init and Butane: a node accepts the files that they write, and a second run changes
nothing."""

import os
import re
import shutil
import subprocess

import harness
import pytest
import world
import yaml

PROVISIONING = os.path.join(harness.TOP, "packaging", "provisioning")
CONFIG, MANIFEST = "/etc/mainstay/config.d/50-site.conf", "/etc/kubernetes/manifests/site-hello.yaml"


def example(name):
    with open(os.path.join(PROVISIONING, name), encoding="utf-8") as file:
        text = file.read()
    return text, yaml.safe_load(text)


def files_of_cloud_init():
    text, document = example("cloud-init.yaml")
    assert text.startswith("#cloud-config\n")
    assert all(file["permissions"] == "0644" and file["owner"] == "root:root" for file in document["write_files"])
    return {file["path"]: file["content"] for file in document["write_files"]}


def files_of_butane():
    document = example("butane.yaml")[1]
    assert (document["variant"], document["version"]) == ("fcos", "1.5.0")
    assert all(file["mode"] == 0o644 for file in document["storage"]["files"])
    return {file["path"]: file["contents"]["inline"] for file in document["storage"]["files"]}


@pytest.mark.parametrize("files", [files_of_cloud_init, files_of_butane])
@pytest.mark.slow
def test_a_node_runs_the_manifests_that_an_example_writes(make_node, files):
    """The example writes its files before the agent starts, as on a new machine, and once more while the agent runs."""
    written = files()
    assert sorted(written) == [MANIFEST, CONFIG]
    node = make_node(start=False)
    config_dir = os.path.join(node.directory, "config.d")
    os.mkdir(config_dir)

    def write():
        for path, directory in ((CONFIG, config_dir), (MANIFEST, node.manifests)):
            with open(os.path.join(directory, os.path.basename(path)), "w", encoding="utf-8") as file:
                file.write(written[path])
    write()
    node.start()
    expect_site(node)
    pid = node.init("site-hello")
    write()
    expect_site(node)
    assert node.init("site-hello") == pid


def expect_site(node):
    node.wait_running("site-hello")
    assert "example.com/site=lab" in node.cli("get", "nodes", "--show-labels").stdout
    assert "error" not in node.cli("get", "pods").stdout


def play(node, directory):
    """Runs the playbook on this machine, without the tasks that need a service manager."""
    environment = {**node.environment(), "PATH": f"{directory}:{node.environment()['PATH']}", "ANSIBLE_LOCAL_TEMP": f"{directory}/local",
                   "ANSIBLE_REMOTE_TEMP": f"{directory}/remote", "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": f"{directory}/home"}
    said = subprocess.run(["ansible-playbook", "-i", "localhost,", "-c", "local", "--skip-tags", "install",
                           "-e", f"mainstay_config_dir={node.directory}/config.d", "-e", f"mainstay_manifest_dir={node.manifests}",
                           "-e", "mainstay_restart=false", "-e", "ansible_python_interpreter=/usr/bin/python3",
                           os.path.join(PROVISIONING, "ansible.yaml")],
                          env=environment, capture_output=True, text=True, check=False, timeout=world.DEADLINE)
    assert said.returncode == 0, said.stdout + said.stderr
    return int(re.search(r"changed=(\d+)", said.stdout).group(1))


@pytest.mark.slow
def test_the_playbook_provisions_a_node_and_changes_nothing_when_it_runs_twice(node, tmp_path):
    assert shutil.which("ansible-playbook"), "the package ansible-core is installed"
    (tmp_path / "mainstay").symlink_to(harness.program("mainstay"))
    assert play(node, tmp_path) == 3
    expect_site(node)
    pid = node.init("site-hello")
    assert play(node, tmp_path) == 0
    assert node.init("site-hello") == pid
