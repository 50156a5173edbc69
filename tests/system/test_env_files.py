# SPDX-License-Identifier: Apache-2.0
"""fileKeyRef: variables that an init container has written into a file of an emptyDir."""

import pytest
import specs
import world


def from_file(key, path="app.env", **fields):
    return {"name": key, "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": path, "key": key, **fields}}}


def pod(script, *variables, medium="", **spec):
    return specs.pod("web", specs.container(env=list(variables)), volumes=[{"name": "v", "emptyDir": {"medium": medium}}],
                     initContainers=[specs.container("init", script=script, volumeMounts=[specs.mount("v", "/v")])], **spec)


@pytest.mark.parametrize("medium", ["", "Memory"])
def test_a_container_gets_variables_written_by_an_earlier_one(node, medium):
    script = """printf "# ours\\nADDRESS='db:1'\\nMANY='a\\nb'\\n" >/v/app.env"""
    node.launch(pod(script, from_file("ADDRESS"), from_file("MANY"), from_file("NONE", optional=True),
                    from_file("NOWHERE", path="no/file", optional=True), {"name": "URL", "value": "x://$(ADDRESS)/"},
                    medium=medium))
    found = world.environ(node.init("web"))
    assert (found["ADDRESS"], found["MANY"], found["URL"]) == ("db:1", "a\nb", "x://db:1/")
    assert "NONE" not in found and "NOWHERE" not in found
    assert not world.mount_at(node.init("web"), "/v"), "the container itself does not mount the volume"
    assert "<set to the key 'ADDRESS' of file 'app.env' in volume 'v'>" in node.cli("describe", "pod", "web").stdout


@pytest.mark.parametrize("script, said", [
    ("true", "file app.env of volume v: No such file or directory"),
    ("echo \"OTHER='1'\" >/v/app.env", "couldn't find key KEY in file app.env of volume v"),
    ("echo KEY=secret >/v/app.env", "invalid environment variable format at line 1"),
    ("ln -s /etc/hostname /v/app.env", "file app.env of volume v: "),
    ("mkfifo /v/app.env", "file app.env of volume v: is not a regular file"),
    ("dd if=/dev/zero of=/v/app.env bs=1k count=65 2>/dev/null", "file app.env of volume v: File too large"),
])
def test_a_missing_or_invalid_env_file_is_reported_and_the_container_waits(node, script, said):
    node.drop(pod(script, from_file("KEY")))
    message = node.wait_waiting("web", "CreateContainerConfigError")
    assert said in message and "secret" not in message


def test_a_successor_passes_preflight_before_its_env_file_exists(node):
    script = "echo \"KEY='1'\" >/v/app.env"
    node.launch(pod(script, from_file("KEY")))
    before = node.init("web")
    node.drop(pod(script, from_file("KEY"), hostIPC=True))
    world.wait(lambda: not world.is_alive(before), "its successor has taken its place")
    node.wait_running("web")
    assert world.environ(node.init("web"))["KEY"] == "1"


def test_a_container_starts_when_its_env_file_appears(node):
    late = "until [ -e /d/go ]; do sleep 0.1; done; echo \"KEY='late'\" >/v/app.env; " + specs.IDLE
    node.drop(specs.pod("web", specs.container(env=[from_file("KEY")]), specs.container(
        "late", late, volumeMounts=[specs.mount("v", "/v"), specs.mount("d", "/d")]),
        volumes=[{"name": "v", "emptyDir": {}}, specs.host_path("d", node.data)]))
    node.wait_waiting("web", "CreateContainerConfigError")
    with open(f"{node.data}/go", "w", encoding="utf-8"):
        pass
    node.wait_running("web")
    assert world.environ(node.init("web"))["KEY"] == "late"
