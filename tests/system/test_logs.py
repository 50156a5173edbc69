# SPDX-License-Identifier: Apache-2.0
"""Container logs: files, the CRI format, rotation, and 'mainstay logs'."""

import gzip
import os
import re
import shutil
import subprocess
import time

import pytest
import harness
import specs
import world

LINE = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) (stdout|stderr) ([FP]) (.*)$")


def pod_that_logs(name, script, **spec):
    return specs.script_pod(name, script + "; " + specs.IDLE, **spec)


@pytest.mark.quick
def test_lines_are_in_the_cri_format_with_their_stream(node):
    node.launch(pod_that_logs("talker", "echo out; echo err >&2; printf unfinished"))
    world.wait(lambda: len(node.log_lines("talker")) >= 2, "two lines are written")
    lines = [LINE.match(line).groups() for line in node.log_lines("talker")]
    assert {line[1:] for line in lines[:2]} == {("stdout", "F", "out"), ("stderr", "F", "err")}
    node.wait_running("talker")


def test_incomplete_line_is_written_when_the_stream_ends(node):
    node.drop(specs.script_pod("partial", "printf unfinished", restartPolicy="Never"))
    node.wait_phase("partial", "Succeeded")
    world.wait(lambda: node.log_lines("partial"), "the incomplete line is written")
    assert LINE.match(node.log_lines("partial")[-1]).group(4) == "unfinished"


def test_long_line_is_split_into_parts(node):
    node.launch(pod_that_logs("long", "head -c 100000 /dev/zero | tr '\\0' x; echo"))
    world.wait(lambda: node.log_lines("long") and LINE.match(node.log_lines("long")[-1]).group(3) == "F",
               "the line has ended")
    parts = [LINE.match(line).groups() for line in node.log_lines("long")]
    assert "".join(part[3] for part in parts) == "x" * 100000
    assert [part[2] for part in parts] == ["P"] * (len(parts) - 1) + ["F"]
    assert len(parts) > 1


def test_binary_output_is_unchanged(node):
    node.launch(pod_that_logs("binary", r"printf '\377\000\001\n'"))
    path = os.path.join(node.log_directory("binary"), "main", "0.log")

    def content():
        with open(path, "rb") as file:
            return file.read()
    world.wait(lambda: content().endswith(b" stdout F \xff\x00\x01\n"), lambda: f"the bytes are written: {content()}")


def test_each_attempt_has_a_file_and_the_link_points_to_the_latest(node):
    node.launch(pod_that_logs("twice", "echo up"))
    world.wait(lambda: node.logged("twice") == ["up"], "the first has written")
    world.kill_all([node.init("twice")])
    node.wait_restarts("twice", 1)
    world.wait(lambda: node.logged("twice", attempt=1) == ["up"], "the second has written")
    link = (f"{node.log}/containers/twice-node1_default_main-{node.container_id('twice')}.log")
    assert os.path.realpath(link) == os.path.join(node.log_directory("twice"), "main", "1.log")


def test_file_modes_are_those_that_log_shippers_expect(node):
    node.launch(pod_that_logs("modes", "echo x"))
    for path in (f"{node.log}/pods", node.log_directory("modes"), node.log_directory("modes") + "/main"):
        assert os.stat(path).st_mode & 0o777 == 0o755
    assert os.stat(node.log_directory("modes") + "/main/0.log").st_mode & 0o777 == 0o640


def test_log_is_rotated_at_its_maximum_size(make_node):
    node = make_node(config={"containerLogMaxSize": "16Ki", "containerLogMaxFiles": 3})
    node.launch(pod_that_logs("chatty", "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo end"))
    world.wait(lambda: node.logged("chatty")[-1:] == ["end"], "all is written")
    directory = node.log_directory("chatty") + "/main"

    def find_files():
        """The log files, or None while some are being removed or compressed: finally all rotated files except the
        latest are compressed."""
        names = sorted(os.listdir(directory))
        pattern = r"0\.log(\.\d{8}-\d{6}(\.\d+)?(\.gz)?)?"
        return names if len(names) == 3 and all(re.fullmatch(pattern, name) for name in names) else None

    names = world.wait(find_files, lambda: f"three files are left: {os.listdir(directory)}")
    for name in names:
        path = os.path.join(directory, name)
        with (gzip.open(path, "rt") if name.endswith(".gz") else open(path, encoding="utf-8")) as file:
            lines = file.readlines()
        assert all(LINE.match(line.rstrip("\n")) for line in lines), "every line is complete"
        assert sum(len(line) for line in lines) <= 16 * 1024


def test_rotation_loses_no_line_between_files(make_node):
    node = make_node(config={"containerLogMaxSize": "16Ki", "containerLogMaxFiles": 100})
    node.launch(pod_that_logs("chatty", "i=0; while [ $i -lt 1000 ]; do echo $i; i=$((i+1)); done"))
    world.wait(lambda: node.logged("chatty")[-1:] == ["999"], "all is written")
    text = node.cli("logs", "chatty").stdout
    assert text.split() == [str(i) for i in range(1000)]


# ---- mainstay logs ----

@pytest.mark.quick
def test_logs_prints_the_messages(node):
    node.launch(pod_that_logs("talker", "echo one; echo two; echo three"))
    world.wait(lambda: len(node.log_lines("talker")) == 3, "all is written")
    assert node.cli("logs", "talker").stdout == "one\ntwo\nthree\n"
    assert node.cli("logs", "talker-node1").stdout == "one\ntwo\nthree\n"
    assert node.cli("logs", "talker", "--tail=1").stdout == "three\n"
    assert node.cli("logs", "talker", "--tail", "2").stdout == "two\nthree\n"
    assert re.fullmatch(r"(\S+Z (one|two|three)\n){3}", node.cli("logs", "talker", "--timestamps").stdout)


def test_logs_since_skips_older_lines(node):
    node.launch(pod_that_logs("talker", "echo old; echo new"))
    world.wait(lambda: node.logged("talker") == ["old", "new"], "all is written")
    with open(os.path.join(node.log_directory("talker"), "main", "0.log"), "r+", encoding="ascii") as file:
        file.write(time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 7200)))  # two hours ago
    assert node.cli("logs", "talker", "--since=1h").stdout == "new\n"
    assert node.cli("logs", "talker", "--since=3h").stdout == "old\nnew\n"


def test_logs_joins_the_parts_of_a_long_line(node):
    node.launch(pod_that_logs("long", "head -c 50000 /dev/zero | tr '\\0' x; echo"))
    world.wait(lambda: node.log_lines("long") and " F " in node.log_lines("long")[-1][:50], "the line has ended")
    assert node.cli("logs", "long").stdout == "x" * 50000 + "\n"


def test_logs_previous_prints_the_log_of_the_previous_attempt(node):
    node.launch(pod_that_logs("twice", "cat /proc/sys/kernel/random/uuid"))
    world.wait(lambda: node.logged("twice"), "the first has written")
    first = node.logged("twice")[0]
    world.kill_all([node.init("twice")])
    node.wait_restarts("twice", 1)
    assert node.cli("logs", "twice", "-p").stdout == first + "\n"
    world.wait(lambda: node.logged("twice", attempt=1), "the second has written")
    assert node.cli("logs", "twice").stdout != first + "\n"


def expect_no_previous(node, pod, container):
    answer = node.cli("logs", pod, "-c", container, "--previous")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == f'error: previous terminated container "{container}" in pod "{pod}-node1" not found\n'


@pytest.mark.parametrize("code", [0, 3])
def test_a_container_that_has_ended_and_never_restarted_has_no_previous_log(node, code):
    pod = specs.pod("once", specs.container(script=f"echo main; exit {code}"), restartPolicy="Never",
                    initContainers=[specs.container("init", "echo init"),
                                    specs.container("side", specs.IDLE, restartPolicy="Always")])
    node.drop(pod)
    node.wait_phase("once", "Failed" if code else "Succeeded")
    world.wait(lambda: "terminated" in node.status("once", "side")["state"], "the sidecar has ended")
    for container in ("init", "side", "main"):
        expect_no_previous(node, "once", container)
    node.restart()
    for container in ("init", "main"):
        expect_no_previous(node, "once", container)
        assert node.cli("logs", "once", "-c", container).stdout == container + "\n"


def test_logs_previous_prints_the_last_attempt_of_a_container_in_back_off(make_node):
    node = make_node(config={"crashLoopBackOff": {"maxContainerRestartPeriod": "300s"}})  # no attempt starts during the test
    node.drop(specs.script_pod("crash", "cat /proc/sys/kernel/random/uuid; exit 1"))
    node.wait_waiting("crash", "CrashLoopBackOff")
    latest = node.cli("logs", "crash").stdout
    assert latest and node.cli("logs", "crash", "--previous").stdout == latest


def gate_runtime(node):
    """Makes the runtime wait for a line from the returned FIFO before it runs a container, as long as the FIFO exists;
    a file ".held" shows that it waits."""
    gate, path = f"{node.directory}/gate", f"{node.directory}/runtime"
    runtime = shutil.which("runc", path="/usr/sbin:/usr/bin")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\ncase " $* " in *" run "*) if [ -p {gate} ]; then : >{gate}.held; read line <{gate}; fi;; esac\n'
                   f'exec {runtime} "$@"\n')
    os.chmod(path, 0o755)
    return gate


def test_a_container_that_is_started_again_has_the_reason_and_the_log_of_its_last_attempt(make_node):
    node = make_node(start=False)
    node.write_config(mainstay={"runtime": f"{node.directory}/runtime"})
    gate = gate_runtime(node)
    node.start()
    node.drop(specs.script_pod("crash", "echo once; exit 1"))
    node.wait_waiting("crash", "CrashLoopBackOff")
    os.mkfifo(gate)
    world.wait(lambda: os.path.exists(gate + ".held"), "the next attempt is being created")
    status = node.status("crash")
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff", status
    assert status["state"]["waiting"]["message"].startswith("back-off ")
    assert node.cli("logs", "crash").stdout == node.cli("logs", "crash", "--previous").stdout == "once\n"
    with open(gate, "w", encoding="utf-8") as file:
        os.unlink(gate)
        file.write("go\n")
    node.wait_pod("crash", lambda pod: harness.container_status(pod)["restartCount"] > status["restartCount"], "was started again")


def test_the_log_of_a_container_reports_that_its_image_is_missing(node):
    node.drop(specs.pod("absent", specs.container(image="registry.test/absent:1", imagePullPolicy="Never")))
    node.drop(specs.pod("unreachable", specs.container(image="127.0.0.1:9/absent:1")))
    node.wait_waiting("absent", "ErrImageNeverPull")
    node.wait_waiting("unreachable", "ImagePullBackOff")
    for pod, says in (("absent", "ErrImageNeverPull"), ("unreachable", "trying and failing to pull image")):
        assert node.cli("logs", pod).stderr.endswith(f'container "main" in pod "{pod}-node1" is waiting to start: {says}\n')
        expect_no_previous(node, pod, "main")


def test_logs_requires_a_container_name_if_the_pod_has_two_containers(node):
    node.launch(specs.pod("two", specs.container("a", "echo from a; " + specs.IDLE),
                          specs.container("b", "echo from b; " + specs.IDLE)))
    world.wait(lambda: node.logged("two", "a") and node.logged("two", "b"), "both have written")
    assert node.cli("logs", "two", "-c", "b").stdout == "from b\n"
    answer = node.cli("logs", "two", "-c", "absent")
    assert answer.returncode != 0 and "absent" in answer.stderr


@pytest.mark.parametrize("script", [specs.IDLE, "exit 0", "exit 3"])
def test_logs_of_a_container_whose_file_was_lost_names_the_file(node, script):
    node.drop(specs.script_pod("lost", script, restartPolicy="Never"))
    ended = "running" if script == specs.IDLE else "terminated"
    node.wait_pod("lost", lambda pod: ended in node.status("lost").get("state", {}), f"is {ended}")
    path = f"{node.log_directory('lost')}/main/0.log"
    os.unlink(path)
    answer = node.cli("logs", "lost")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == f'error: failed to try resolving symlinks in path "{path}": lstat {path}: no such file or directory\n'


def test_logs_of_an_unknown_pod_is_an_error(node):
    answer = node.cli("logs", "absent")
    assert answer.returncode == 1
    assert "absent" in answer.stderr


def test_logs_follow_prints_new_lines(node):
    node.launch(pod_that_logs("talker", "trap 'echo signalled' USR1; echo ready; "
                              "trap 'exit 0' TERM; while :; do sleep 100000 & wait; done"))
    world.wait(lambda: node.logged("talker") == ["ready"], "it is ready")
    with subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, "logs", "-f", "talker"], text=True,
                          stdout=subprocess.PIPE, env=node.environment()) as client:
        try:
            assert client.stdout.readline() == "ready\n"
            os.kill(node.init("talker"), 10)
            assert client.stdout.readline() == "signalled\n"
        finally:
            client.kill()


def test_logs_follow_ends_with_the_container(node):
    node.launch(specs.pod("short", specs.container(script="echo first; until [ -e /v/go ]; do sleep 0.05; done; echo end",
                                                   volumeMounts=[specs.mount("v", "/v")]),
                          volumes=[specs.host_path("v", node.data)], restartPolicy="Never"))
    with subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, "logs", "-f", "short"], text=True,
                          stdout=subprocess.PIPE, env=node.environment()) as client:
        try:
            assert client.stdout.readline() == "first\n"
            with open(f"{node.data}/go", "w", encoding="ascii"):
                pass
            assert client.stdout.readlines() == ["end\n"]
            assert client.wait(world.DEADLINE) == 0
        finally:
            client.kill()
