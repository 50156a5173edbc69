# SPDX-License-Identifier: Apache-2.0
"""Valid manifests that cannot start: the reason is that of Kubernetes, the message quotes the error, and the start is
retried."""

import os
import re
import shutil
import subprocess

import harness
import pytest
import specs
import world

MISSING = "docker.io/library/missing:1"


def test_a_missing_image_with_pull_policy_never_is_reported(node):
    node.drop(specs.pod("never", specs.container(image=MISSING, imagePullPolicy="Never")))
    assert MISSING in node.wait_waiting("never", "ErrImageNeverPull")
    assert node.pod("never")["status"]["phase"] == "Pending"


def test_a_missing_image_is_in_pull_back_off(node):
    node.drop(specs.pod("nowhere", specs.container(image="missing:1")))
    node.wait_pod("nowhere", lambda pod: any(
        status["state"].get("waiting", {}).get("reason") in ("ErrImagePull", "ImagePullBackOff") and
        "missing:1" in status["state"]["waiting"].get("message", "")
        for status in pod["status"].get("containerStatuses", [])), "reports the missing image")
    node.wait_waiting("nowhere", "ImagePullBackOff")


def test_an_invalid_image_name_is_reported(node):
    node.drop(specs.pod("misnamed", specs.container(image="Not A Name")))
    node.wait_pod("misnamed", lambda pod: "InvalidImageName" in str(pod["status"]), "reports the invalid name")


def test_an_archive_that_appears_later_is_used(make_node, archive):
    node = make_node(archive=None)
    node.drop(specs.pod("early"))
    node.wait_pod("early", lambda pod: "ErrImage" in str(pod["status"]) or "ImagePull" in str(pod["status"]),
                  "waits for its image")
    node.preload(archive)
    node.wait_running("early")
    assert node.status("early")["restartCount"] == 0


@pytest.mark.parametrize("form,how", [(form, how) for form in ("docker", "oci") for how in ("none", "gzip", "zstd")])
def test_an_archive_of_any_form_is_used(make_node, tmp_path, form, how):
    path = str(tmp_path / "image.tar")
    subprocess.run([os.path.join(harness.TOP, "tests", "make-image"), specs.IMAGE, path, "--format", form,
                    "--compress", how], check=True)
    node = make_node(archive=path)
    node.launch(specs.pod("web"))
    assert node.status("web")["imageID"].startswith("sha256:") or "@sha256:" in node.status("web")["imageID"]


def test_a_missing_image_does_not_delay_other_pods(node):
    node.drop(specs.pod("a", specs.container(image=MISSING)))
    node.launch(specs.pod("b"))
    assert node.pod("a")["status"]["phase"] == "Pending"


def test_a_missing_command_is_reported_and_retried(node):
    node.drop(specs.pod("typo", specs.container(command=["/bin/no-such-program"])))
    message = node.wait_waiting("typo", "RunContainerError")
    assert "/bin/no-such-program" in message and "no such file or directory" in message
    node.wait_pod("typo", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] >= 1, "is restarted")
    ended = world.wait(lambda: node.status("typo")["lastState"].get("terminated") or
                       node.status("typo")["state"].get("terminated"), "the failed attempt is reported")
    assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)


def start_errors(node):
    return int(re.search(r"(\d+) start errors", node.cli("debug", "dump").stdout)[1])


def is_refused(pod):
    """While it is tried again, the status is that of a container that is being created."""
    return harness.waiting_state(pod).get("reason") == "CreateContainerError"


def test_a_start_that_fails_before_the_runtime_does_not_count_as_a_restart(node):
    """Like the kubelet, the agent counts the containers that were created."""
    place = os.path.join(node.data, "place")
    with open(place, "w", encoding="utf-8") as file:
        file.write("a file")
    node.drop(specs.pod("web", specs.container(script=f"echo started; {specs.IDLE}",
                                               volumeMounts=[specs.mount("data", "/data", subPath="place/below")]),
                        volumes=[specs.host_path("data", node.data)]))
    node.wait_waiting("web", "CreateContainerError")
    world.wait(lambda: start_errors(node) >= 3, "it is tried again")
    status = harness.container_status(node.wait_pod("web", is_refused, "is not created"))
    assert status["restartCount"] == 0 and "containerID" not in status

    def logs():
        """The logs. While a start is under way the log exists and is empty."""
        said = node.cli("logs", "web")
        assert said.stdout == "" and (said.returncode == 1) == (said.stderr != ""), said
        return said.stderr
    world.wait(lambda: "is waiting to start: CreateContainerError" in logs(), logs)
    node.restart()
    node.wait_waiting("web", "CreateContainerError")
    os.unlink(place)
    os.makedirs(f"{place}/below")
    node.wait_running("web")
    assert node.status("web")["restartCount"] == 0
    world.wait(lambda: node.cli("logs", "web").stdout == "started\n", lambda: f"the error is in its log: {node.cli('logs', 'web')}")


def test_a_missing_command_with_policy_never_fails_the_pod(node):
    node.drop(specs.pod("typo", specs.container(command=["/bin/no-such-program"]), restartPolicy="Never"))
    node.wait_phase("typo", "Failed")
    ended = node.status("typo")["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)
    assert "no-such-program" in ended["message"]


def runtime_script(node, text):
    path = os.path.join(node.directory, "runtime")
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path + ".new", 0o755)
    os.rename(path + ".new", path)
    return path


def test_a_runtime_that_is_killed_while_it_starts_a_probe_leaves_no_file(make_node):
    """runc writes the process ID to a file whose name starts with a dot, and then renames the file."""
    node = make_node(start=False)
    killed = os.path.join(node.directory, "killed")
    real = shutil.which("runc", path="/usr/sbin:/usr/bin")
    path = runtime_script(node, f"""
case " $* " in *" exec "*) if ! [ -e {killed} ]; then
    file=$(echo "$*" | sed 's/.*--pid-file \\([^ ]*\\).*/\\1/')
    echo 1 > "$(dirname "$file")/.$(basename "$file")" && echo "$file" > {killed}
    kill -KILL $$
fi;; esac
exec {real} "$@"
""")
    node.write_config(mainstay={"runtime": path})
    node.start()
    node.launch(specs.pod("web", specs.container(readinessProbe={"exec": {"command": ["true"]}, "periodSeconds": 1})))
    world.wait(lambda: world.read(killed), "it is killed")
    file = world.read(killed).strip()
    world.wait(lambda: not [name for name in os.listdir(os.path.dirname(file)) if "exec-" in name], "no file of a command is left")


def test_a_missing_runtime_is_reported_and_retried(make_node):
    node = make_node(start=False)
    path = os.path.join(node.directory, "runtime")
    node.write_config(mainstay={"runtime": path})
    node.start()
    node.drop(specs.pod("web"))
    node.wait_pod("web", lambda pod: path in str(pod["status"]) and "No such file" in str(pod["status"]),
                  "names the runtime that is missing")
    runtime_script(node, f'exec {shutil.which("runc", path="/usr/sbin:/usr/bin")} "$@"\n')
    node.wait_running("web")


def test_a_runtime_error_is_quoted_and_retried(make_node):
    node = make_node(start=False)
    path = runtime_script(node, 'echo "the disk is on fire" >&2\nexit 1\n')
    node.write_config(mainstay={"runtime": path})
    node.start()
    node.drop(specs.pod("web"))
    assert "the disk is on fire" in node.wait_waiting("web", "RunContainerError")
    runtime_script(node, f'exec {shutil.which("runc", path="/usr/sbin:/usr/bin")} "$@"\n')
    node.wait_running("web")


def test_an_invalid_archive_is_reported_and_others_are_used(node):
    with open(os.path.join(node.state, "preload", ".broken"), "wb") as file:
        file.write(b"not an archive" * 1000)
    os.rename(os.path.join(node.state, "preload", ".broken"), os.path.join(node.state, "preload", "broken.tar"))
    node.launch(specs.pod("web"))
    world.wait(lambda: "broken.tar" in node.complaints(), "the archive is named")


def test_an_invalid_working_directory_fails_only_its_pod(node):
    node.drop(specs.pod("bad", specs.container(workingDir="/etc/passwd")))
    node.wait_waiting("bad", "RunContainerError")
    node.launch(specs.pod("good"))


def test_a_runtime_that_is_killed_early_leaves_no_control_group(make_node):
    """The runtime has created some of the container's groups, and has not recorded yet that there is a container."""
    node = make_node(start=False)
    real, made = shutil.which("runc", path="/usr/sbin:/usr/bin"), os.path.join(node.directory, "made")
    hierarchy = world.cgroup_directory("")
    path = runtime_script(node, f"""
case " $* " in *" run "*) if ! [ -e {made} ]; then
    group=$(sed -n 's/.*"cgroupsPath" *: *"\\([^"]*\\)".*/\\1/p' $(find {node.run}/pods -name config.json))
    mkdir {hierarchy}$group && echo {hierarchy}$group > {made}
    kill -KILL $$
fi;; esac
exec {real} "$@"
""")
    node.write_config(mainstay={"runtime": path})
    node.start()
    node.launch(specs.pod("web"))
    group = world.read(made).strip()
    assert node.pod_cgroup("web") in group and node.container_id("web") not in group
    world.wait(lambda: {os.path.basename(path) for path in world.cgroups_below(node.pod_cgroup("web"))} == {node.container_id("web")},
               lambda: f"the other cgroups are removed: {world.cgroups_below(node.pod_cgroup('web'))}")
