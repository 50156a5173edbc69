# SPDX-License-Identifier: Apache-2.0
"""mainstay debug bundle: one archive with the contents that a bug report needs."""

import json
import os
import stat
import subprocess
import tarfile

import harness
import specs
import world
from world import wait

PREFIX = "mainstay-debug/"
OF_AGENT = {"configuration.json", "node.json", "events.json", "daemonsets.json", "revisions.json", "manifests.json", "images.json", "usage.json",
            "dump.txt", "metrics.txt", "pods.json"}


def bundle(node, name="bundle.tar.gz", path=None, **options):
    """The members of the archive, by their names."""
    file = path or os.path.join(node.directory, name)
    ran = node.cli("debug", "bundle", file, **options)
    assert ran.returncode == 0, ran
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    with tarfile.open(file, "r:gz") as archive:
        found = {member.name: archive.extractfile(member).read() for member in archive.getmembers()}
    assert all(member.startswith(PREFIX) for member in found)
    return {member[len(PREFIX):]: data for member, data in found.items()}, ran


def journal(tmp_path, text):
    """The value of a PATH whose journalctl prints this text."""
    (tmp_path / "text").write_text(text)
    (tmp_path / "journalctl").write_text(f"#!/bin/sh\n[ \"$1\" = --unit=mainstay.service ] && exec cat {tmp_path}/text\nexit 1\n")
    (tmp_path / "journalctl").chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def with_journal(node, tmp_path, text):
    environment, path = node.environment, journal(tmp_path, text)
    node.environment = lambda: {**environment(), "PATH": path}


def test_bundle_has_versions_configuration_states_events_logs_and_the_dump(make_node, tmp_path):
    node = make_node(config={"mainstay": {"httpProxy": "http://user:hunter2@127.0.0.1:1", "noProxy": "localhost"}})
    with_journal(node, tmp_path, "pulled by https://user:hunter2@example.com/\n")
    node.drop(specs.pod("web", specs.container(script='echo this is a line; echo "DB_PASSWORD=hunter2"; exec sleep inf',
                                               env=[{"name": "WORD", "value": "hunter2"}])), "web.yaml")
    node.drop(specs.pod("crash", specs.container(script="echo again; [ -e /data/seen ] && exec sleep inf; touch /data/seen; exit 3",
                                                 volumeMounts=[specs.mount("d", "/data")]), volumes=[specs.host_path("d", node.data)]), "crash.yaml")
    node.wait_running("web")
    node.wait_restarts("crash", 1)
    wait(lambda: node.logged("web")[-1:] == ["DB_PASSWORD=hunter2"], "the log has its lines")
    found, ran = bundle(node)
    assert OF_AGENT | {"versions.txt", "agent.log", "logs/default_web-node1/main.log", "logs/default_crash-node1/main.log"} <= set(found), (sorted(found), ran)
    assert "logs/default_crash-node1/main.previous.log" in found
    assert b"this is a line" in found["logs/default_web-node1/main.log"] and b"again" in found["logs/default_crash-node1/main.previous.log"]
    assert b"mainstay " in found["versions.txt"] and b"Linux " in found["versions.txt"]
    assert json.loads(found["configuration.json"])["mainstay"]["noProxy"] == "localhost"
    assert {pod["metadata"]["name"] for pod in json.loads(found["pods.json"])["items"]} == {"web-node1", "crash-node1"}
    assert json.loads(found["events.json"])["items"] and b"Pod workers:" in found["dump.txt"]
    assert found["agent.log"] == b"pulled by https://<masked>@example.com/\n"
    assert not [name for name, data in found.items() if b"hunter2" in data]


def test_bundle_without_an_agent_lists_the_missing_parts(make_node, tmp_path):
    node = make_node()
    with_journal(node, tmp_path, "the last words\n")
    assert node.stop() == 0
    found, ran = bundle(node)
    assert set(found) == {"versions.txt", "agent.log", "errors.txt"} and found["agent.log"] == b"the last words\n"
    assert all(f"{name}: ".encode() in found["errors.txt"] for name in OF_AGENT) and "parts are missing" in ran.stderr
    node.start()


def test_bundle_overwrites_no_file_and_leaves_none_behind(node):
    file = os.path.join(node.directory, "there")
    with open(file, "w", encoding="utf-8") as there:
        there.write("mine")
    os.symlink(os.path.join(node.directory, "nowhere"), os.path.join(node.directory, "link"))
    for name, words in (("there", "File exists"), ("link", "File exists"), ("none/bundle", "No such file")):
        ran = node.cli("debug", "bundle", os.path.join(node.directory, name))
        assert ran.returncode == 1 and words in ran.stderr and name in ran.stderr, ran
    assert open(file, encoding="utf-8").read() == "mine" and not os.path.exists(os.path.join(node.directory, "nowhere"))
    assert node.cli("debug", "bundle", "/dev/full").returncode == 1
    for words in ((), ("a", "b")):
        assert node.cli("debug", "bundle", *words).returncode == 2


def test_bundle_limits_logs_and_journal(node, tmp_path):
    with_journal(node, tmp_path, "0123456789abcde\n" * (600 * 1024))
    node.drop(specs.pod("web", specs.container(script="i=0; while [ $i -lt 5000 ]; do echo line $i of many; i=$((i+1)); done; exec sleep inf")), "web.yaml")
    node.wait_running("web")
    wait(lambda: node.logged("web")[-1:] == ["line 4999 of many"], "the log has its lines")
    found, _ = bundle(node)
    lines = found["logs/default_web-node1/main.log"].splitlines()
    assert len(lines) == 500 and lines[-1].endswith(b"line 4999 of many")
    assert found["agent.log"].endswith(b"(cut here)\n") and len(found["agent.log"]) < 9 * 1024 * 1024


def test_bundle_of_a_group_member_omits_dump_and_configuration(node):
    """Members of the socket's group get pods, but neither the dump nor the configuration."""
    for path in (node.directory, node.run):
        os.chmod(path, os.stat(path).st_mode | stat.S_IXOTH)
    os.chown(node.socket, 0, 65534)
    os.mkdir(os.path.join(node.directory, "theirs"))
    os.chown(os.path.join(node.directory, "theirs"), 65534, 65534)
    file = os.path.join(node.directory, "theirs", "bundle")
    ran = subprocess.run([harness.program("mainstay"), "--socket", node.socket, "debug", "bundle", file], check=False, text=True,
                         capture_output=True, user=65534, group=65534, extra_groups=[], timeout=world.DEADLINE)
    assert ran.returncode == 0, ran
    with tarfile.open(file, "r:gz") as archive:
        found = {member.name[len(PREFIX):]: archive.extractfile(member).read() for member in archive.getmembers()}
    assert {"pods.json", "node.json"} <= set(found) and not {"dump.txt", "configuration.json"} & set(found)
    assert b"dump.txt: only root" in found["errors.txt"]
