# SPDX-License-Identifier: Apache-2.0
"""Ephemeral containers: those of pods of files, by mainstay debug, and those of pods of an API server, by the
subresource."""

import json
import os
import signal
import subprocess

import harness
import pytest
import specs
import world
import yaml
from watch_gap import run_while_a_pod_goes
from world import wait


def debug(node, *words, **options):
    return node.cli("debug", *words, **options)


def statuses(node, name):
    return {one["name"]: one for one in node.pod(name)["status"].get("ephemeralContainerStatuses", [])}


def wait_state(node, name, container, state, deadline=world.DEADLINE):
    """Waits until the ephemeral container is running, waiting or terminated; returns that state."""
    return wait(lambda: statuses(node, name).get(container, {}).get("state", {}).get(state),
                lambda: f"{container} of {name} is {state}; there is {statuses(node, name)}\n{node.said()[-3000:]}", deadline)


def start_debugger(node, name, *words, container="dbg", script=specs.IDLE):
    answer = debug(node, name, f"--image={specs.IMAGE}", "-c", container, *words, "--", "/bin/sh", "-c", script)
    assert answer.returncode == 0, answer.stderr
    return answer


def process(node, name, container):
    """The first process of a container that has a target and therefore is not the first of its PID namespace."""
    return wait(lambda: world.oldest_process(node.container_cgroup(name, container)), f"{container} has a process")


def main_identity(node, name):
    pod = node.pod(name)
    status = pod["status"]["containerStatuses"][0]
    return pod["metadata"]["uid"], status["containerID"], status["restartCount"], world.start_time(node.init(name))


def test_debug_adds_a_container_without_affecting_the_others(node):
    node.launch(specs.pod("web"))
    before = main_identity(node, "web")
    answer = debug(node, "web", f"--image={specs.IMAGE}", "--", "/bin/sh", "-c", "echo from-$HOSTNAME; " + specs.IDLE)
    assert (answer.returncode, answer.stdout) == (0, "")
    (name,) = statuses(node, "web") or [None]
    assert answer.stderr == f"Defaulting debug container name to {name}.\n" and name.startswith("debugger-")
    wait_state(node, "web", name, "running")
    wait(lambda: node.logged("web", name), "its log has a line")
    assert node.logged("web", name)[0].startswith("from-")
    assert main_identity(node, "web") == before
    pod = node.pod("web")
    assert [one["name"] for one in pod["spec"]["ephemeralContainers"]] == [name]
    assert pod["status"]["phase"] == "Running"
    assert statuses(node, "web")[name]["ready"] is False and "started" not in statuses(node, "web")[name]
    assert name in node.cli("get", "pod", "web", "-o", "yaml").stdout
    described = node.cli("describe", "pod", "web").stdout
    assert "Ephemeral Containers:\n" in described and f"  {name}:\n" in described
    assert node.cli("get", "pods").stdout.splitlines()[1].split()[1] == "1/1"
    assert node.cli("exec", "web", "-c", name, "--", "echo", "hello").stdout == "hello\n"
    summary = json.loads(node.get("/stats/summary")[1])
    assert {one["name"] for one in summary["pods"][0]["containers"]} == {"main", name}
    assert f'container="{name}"' in node.get("/metrics/cadvisor")[1]


def test_an_ephemeral_container_is_never_restarted_and_its_exit_is_reported(node):
    node.launch(specs.pod("web"))
    start_debugger(node, "web", script="echo bye; exit 3")
    terminated = wait_state(node, "web", "dbg", "terminated")
    assert (terminated["exitCode"], terminated["reason"]) == (3, "Error")
    before = main_identity(node, "web")
    node.restart()
    node.wait_running("web")
    assert wait_state(node, "web", "dbg", "terminated")["exitCode"] == 3
    assert statuses(node, "web")["dbg"]["restartCount"] == 0
    assert node.logged("web", "dbg") == ["bye"]
    assert main_identity(node, "web") == before
    assert node.pod("web")["status"]["phase"] == "Running"


def test_an_ephemeral_container_sees_its_target_and_no_process_of_the_node(node):
    node.launch(specs.pod("web", specs.container("main"), specs.container("side")))
    start_debugger(node, "web", "--target=side", script="ps -o pid,args; echo i-am $$; " + specs.IDLE)
    wait_state(node, "web", "dbg", "running")
    pid = process(node, "web", "dbg")
    assert os.readlink(f"/proc/{pid}/ns/pid") == os.readlink(f"/proc/{node.init('web', 'side')}/ns/pid")
    assert os.readlink(f"/proc/{pid}/ns/pid") != os.readlink(f"/proc/{node.init('web', 'main')}/ns/pid")
    seen = wait(lambda: (lines := node.logged("web", "dbg")) and lines[-1].startswith("i-am") and lines, "it lists processes")
    assert any("trap 'exit 0' TERM" in line and line.split()[0] == "1" for line in seen), seen
    assert seen[-1] != "i-am 1"


def test_an_ephemeral_container_ends_with_its_target(node):
    node.launch(specs.pod("web"))
    start_debugger(node, "web", "--target=main", script="sleep 7654 & exec sleep 7655")
    wait_state(node, "web", "dbg", "running")
    marked = lambda word: [pid for pid in world.pids_of_root(node.cgroup_root) if word in world.cmdline(pid) and world.is_alive(pid)]
    wait(lambda: marked("7654") and marked("7655"), "both run")
    os.kill(marked("7655")[0], signal.SIGKILL)
    wait_state(node, "web", "dbg", "terminated")
    wait(lambda: not marked("7654"), "its other process is gone, though the PID namespace is the target's")
    assert world.is_alive(node.init("web"))
    start_debugger(node, "web", "--target=main", container="again")
    wait_state(node, "web", "again", "running")
    os.kill(node.init("web"), signal.SIGKILL)
    assert wait_state(node, "web", "again", "terminated")["exitCode"] == 137
    node.wait_restarts("web", 1)


def test_an_ephemeral_container_is_not_waited_for_after_its_pod_is_removed(node):
    node.launch(specs.pod("web"))
    answer = run_while_a_pod_goes(node, "web", "debug", "web", "-i", "--image", specs.IMAGE, "--", "cat")
    assert answer.returncode == 1 and "the pod has been removed" in answer.stderr, answer


def test_a_restarted_agent_finds_the_ephemeral_container_again(node):
    node.launch(specs.pod("web"))
    start_debugger(node, "web")
    wait_state(node, "web", "dbg", "running")
    before, pid = main_identity(node, "web"), node.init("web", "dbg")
    node.kill9()
    node.start()
    node.wait_running("web")
    wait_state(node, "web", "dbg", "running")
    assert node.init("web", "dbg") == pid
    assert main_identity(node, "web") == before


def test_an_ephemeral_container_starts_once_if_the_agent_dies_after_the_request(node):
    node.launch(specs.pod("web"))
    for i in range(5):
        start_debugger(node, "web", container=f"dbg{i}", script="echo once; " + specs.IDLE)
        node.kill9()
        node.start()
        wait_state(node, "web", f"dbg{i}", "running")
    for i in range(5):
        wait(lambda i=i: node.logged("web", f"dbg{i}"), "it wrote")
        assert node.logged("web", f"dbg{i}") == ["once"]
        assert statuses(node, "web")[f"dbg{i}"]["restartCount"] == 0


def test_an_ephemeral_container_survives_an_edit_in_place_and_not_a_replacement(node):
    node.launch(specs.pod("web"))
    start_debugger(node, "web")
    wait_state(node, "web", "dbg", "running")
    before, pid = main_identity(node, "web"), node.init("web", "dbg")
    node.drop(specs.pod("web", metadata={"labels": {"edited": "yes"}}))
    node.wait_pod("web", lambda pod: pod["metadata"].get("labels") == {"edited": "yes"}, "has the label")
    assert main_identity(node, "web") == before
    assert node.init("web", "dbg") == pid and wait_state(node, "web", "dbg", "running")
    node.drop(specs.pod("web", metadata={"labels": {"edited": "yes"}}, hostname="other"))
    node.wait_pod("web", lambda pod: pod["spec"].get("hostname") == "other", "has been replaced")
    node.wait_running("web")
    assert "ephemeralContainers" not in node.pod("web")["spec"] and not statuses(node, "web")
    wait(lambda: not world.is_alive(pid), "it is gone")


def test_an_ephemeral_container_does_not_start_again_in_a_new_sandbox(node):
    node.launch(specs.pod("web"))
    start_debugger(node, "web", script="echo once; " + specs.IDLE)
    wait_state(node, "web", "dbg", "running")
    wait(lambda: node.logged("web", "dbg") == ["once"], "its line is in its log")
    os.kill(node.shim("web"), signal.SIGKILL)
    node.wait_restarts("web", 1)
    node.wait_running("web")
    terminated = wait_state(node, "web", "dbg", "terminated")
    assert (terminated["exitCode"], terminated["reason"]) == (137, "ContainerStatusUnknown")
    assert node.logged("web", "dbg") == ["once"]


def test_a_pod_whose_init_container_fails_can_be_debugged(node):
    node.drop(specs.pod("web", initContainers=[specs.container("first", script="exit 1")]))
    node.wait_pod("web", lambda pod: pod["status"]["initContainerStatuses"][0]["restartCount"] > 0, "its init container fails")
    start_debugger(node, "web")
    wait_state(node, "web", "dbg", "running")
    assert node.pod("web")["status"]["phase"] == "Pending"


def test_an_ephemeral_container_is_removed_with_its_pod(node):
    node.launch(specs.pod("web"))
    start_debugger(node, "web")
    wait_state(node, "web", "dbg", "running")
    pid = node.init("web", "dbg")
    node.remove("web")
    node.wait_gone("web")
    assert not world.is_alive(pid)


def test_a_missing_image_of_an_ephemeral_container_is_reported_and_the_pod_keeps_running(node):
    node.launch(specs.pod("web"))
    answer = debug(node, "web", "--image=registry.invalid/no/such:1", "-c", "dbg")
    assert answer.returncode == 0
    wait(lambda: statuses(node, "web")["dbg"]["state"].get("waiting", {}).get("reason") in ("ErrImagePull", "ImagePullBackOff"),
         lambda: f"the failed pull is shown; there is {statuses(node, 'web')}")
    assert node.pod("web")["status"]["phase"] == "Running"
    assert {one["type"]: one["status"] for one in node.pod("web")["status"]["conditions"]}["Ready"] == "True"


def test_interactive_debug_attaches_until_the_shell_ends(node):
    node.launch(specs.pod("web"))
    words = [harness.program("mainstay"), "--socket", node.socket, "debug", "-i", "web", f"--image={specs.IMAGE}", "--target=main",
             "-c", "dbg", "--", "sh", "-c", "read line; echo $line; cat /proc/1/cmdline | tr '\\0' ' '; echo; wc -c"]
    with subprocess.Popen(words, env=node.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
        session.stdin.write(b"hello\n12345")
        session.stdin.close()
        out = session.stdout.read().decode()
        assert session.wait(60) == 0
    assert "hello" in out and "trap 'exit 0' TERM" in out and out.splitlines()[-1].strip() == "5", out
    assert wait_state(node, "web", "dbg", "terminated")["exitCode"] == 0


@pytest.mark.parametrize("script", ["echo done", "echo done; exit 3", "echo done; sleep 0.05", "echo done; read line"])
def test_interactive_debug_shows_the_output_of_a_command_that_ends_at_once(node, script):
    node.launch(specs.pod("web"))
    for number in range(3):
        answer = debug(node, "web", "-i", f"--image={specs.IMAGE}", "-c", f"dbg-{number}", "--", "sh", "-c", script, input="")
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("words,status,said", [
    (["missing", f"--image={specs.IMAGE}"], 1, 'pods "missing" not found'),
    (["web", "--image="], 1, "spec.ephemeralContainers[0].image: is required"),
    (["web", "--image= x"], 1, "spec.ephemeralContainers[0].image: must not have white space around it"),
    (["web", f"--image={specs.IMAGE}", "-c", "main"], 1, "spec.ephemeralContainers[0].name: must be unique; 'main' is also containers[0]"),
    (["web", f"--image={specs.IMAGE}", "-c", "Not_A_Label"], 1, "spec.ephemeralContainers[0].name: must be a DNS label"),
    (["web", f"--image={specs.IMAGE}", "--target=other"], 1,
     "spec.ephemeralContainers[0].targetContainerName: must be an init container or container of the pod, not 'other'"),
    (["web", f"--image={specs.IMAGE}", "--profile=odd"], 2, "unknown profile 'odd'"),
    (["web"], 2, "requires --image"),
    ([f"--image={specs.IMAGE}"], 2, "a pod is required"),
    (["dump", f"--image={specs.IMAGE}"], 1, 'pods "dump" not found'),
])
def test_invalid_debug_requests_are_reported(shared_node, words, status, said):
    if not shared_node.pod("web"):
        shared_node.launch(specs.pod("web"))
    answer = debug(shared_node, *words)
    assert (answer.returncode, answer.stdout) == (status, "")
    assert said in answer.stderr
    assert "ephemeralContainers" not in shared_node.pod("web")["spec"]


def test_a_pod_that_has_completed_cannot_be_debugged(node):
    node.drop(specs.script_pod("done", "exit 0", restartPolicy="Never"))
    node.wait_phase("done", "Succeeded")
    answer = debug(node, "done", f"--image={specs.IMAGE}")
    assert answer.returncode == 1
    assert 'pod "done-node1" has terminated' in answer.stderr


def post(node, container):
    connection = harness.SocketConnection(node.socket)
    query = "" if container is None else "?container=" + "".join(f"%{byte:02x}" for byte in json.dumps(container).encode())
    connection.request("POST", "/api/v1/namespaces/default/pods/web-node1/ephemeralcontainers" + query)
    reply = connection.getresponse()
    return reply.status, reply.read().decode()


@pytest.mark.parametrize("field,value", [
    ("ports", [{"containerPort": 80}]), ("resources", {"limits": {"cpu": "1"}}), ("livenessProbe", {"exec": {"command": ["true"]}}),
    ("lifecycle", {"preStop": {"sleep": {"seconds": 1}}}), ("restartPolicy", "Always"), ("readinessProbe", {"tcpSocket": {"port": 1}}),
    ("resizePolicy", [{"resourceName": "cpu", "restartPolicy": "NotRequired"}])])
def test_fields_that_an_ephemeral_container_cannot_have_are_refused(shared_node, field, value):
    if not shared_node.pod("web"):
        shared_node.launch(specs.pod("web"))
    status, text = post(shared_node, {"name": "dbg", "image": specs.IMAGE, field: value})
    assert (status, text) == (400, f"spec.ephemeralContainers[0].{field}: cannot be set for an ephemeral container\n")


def test_broken_requests_are_refused(shared_node):
    if not shared_node.pod("web"):
        shared_node.launch(specs.pod("web"))
    assert post(shared_node, None) == (400, "the parameter 'container' is required\n")
    assert post(shared_node, []) == (400, "the container must be a JSON object\n")
    assert post(shared_node, {"image": specs.IMAGE, "subPath": 1})[0] == 400
    mount = {"name": "x", "image": specs.IMAGE, "volumeMounts": [{"name": "no", "mountPath": "/x"}]}
    assert "must name a volume of this" in post(shared_node, mount)[1]


def test_an_unprivileged_user_may_not_debug(node):
    node.launch(specs.pod("web"))
    os.chmod(node.directory, 0o755)
    os.chmod(node.run, 0o755)
    os.chown(node.socket, -1, 65534)
    asker = ("import http.client, socket, sys\n"
             "c = http.client.HTTPConnection('x'); c.sock = socket.socket(socket.AF_UNIX); c.sock.connect(sys.argv[1])\n"
             "c.request('POST', '/api/v1/namespaces/default/pods/web-node1/ephemeralcontainers?container=x')\n"
             "print(c.getresponse().status)\n")
    answer = subprocess.run(["/usr/bin/python3", "-c", asker, node.socket], check=True, text=True, timeout=world.DEADLINE,
                            stdout=subprocess.PIPE, user=65534, group=65534, extra_groups=[])
    assert answer.stdout == "403\n"


def test_a_manifest_cannot_contain_ephemeral_containers(node):
    pod = specs.pod("web")
    pod["spec"]["ephemeralContainers"] = [{"name": "dbg", "image": specs.IMAGE}]
    path = node.path("web.yaml")
    answer = node.cli("validate", "-", input=yaml.safe_dump(pod))
    assert answer.returncode == 1 and "cannot be in a manifest" in answer.stdout + answer.stderr, path


# ---- pods of an API server ----

def add_ephemeral(member, name, *containers):
    """Sends the request of kubectl debug."""
    member.api.patch("pods", "default", name, {"spec": {"ephemeralContainers": list(containers)}}, subresource="ephemeralcontainers")


def ephemeral(name="dbg", script=specs.IDLE, **fields):
    return {"name": name, "image": specs.IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["/bin/sh", "-c", script],
            "terminationMessagePolicy": "File", "resources": {}, **fields}


def reported_state(member, name, container="dbg"):
    found = (member.reported(name) or {}).get("status", {}).get("ephemeralContainerStatuses", [])
    return next((one["state"] for one in found if one["name"] == container), {})


@pytest.mark.quick
def test_an_ephemeral_container_of_the_api_server_starts_and_is_reported(make_member):
    member = make_member()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    before = main_identity(member, "web")
    add_ephemeral(member, "web", ephemeral(targetContainerName="main", script="echo hi; exit 5"))
    member.wait_reported("web", lambda _: reported_state(member, "web").get("terminated", {}).get("exitCode") == 5, "its end is reported")
    add_ephemeral(member, "web", ephemeral("second", targetContainerName="main"))
    member.wait_reported("web", lambda _: "running" in reported_state(member, "web", "second"), "the second runs")
    assert main_identity(member, "web") == before
    reported = member.reported("web")["status"]
    assert [one["name"] for one in reported["ephemeralContainerStatuses"]] == ["dbg", "second"]
    assert reported["ephemeralContainerStatuses"][1]["containerID"].startswith("mainstay://")
    assert member.logged("web", "dbg") == ["hi"]
    assert os.readlink(f"/proc/{process(member, 'web', 'second')}/ns/pid") == os.readlink(f"/proc/{member.init('web')}/ns/pid")
    member.kill9()
    member.start()
    member.wait_running("web")
    wait(lambda: wait_state(member, "web", "second", "running"), "it keeps running")
    assert statuses(member, "web")["dbg"]["state"]["terminated"]["exitCode"] == 5
    assert main_identity(member, "web") == before


def test_an_ephemeral_container_added_while_no_agent_ran_starts_with_the_next_agent(make_member):
    member = make_member()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    before = main_identity(member, "web")
    member.kill9()
    add_ephemeral(member, "web", ephemeral())
    member.start()
    member.wait_reported("web", lambda _: "running" in reported_state(member, "web"), "it runs")
    assert main_identity(member, "web") == before


def test_pods_of_the_api_server_are_not_debugged_locally(make_member):
    member = make_member()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    answer = debug(member, "web", f"--image={specs.IMAGE}")
    assert answer.returncode == 1 and "use 'kubectl debug'" in answer.stderr


def test_the_mirror_pod_does_not_show_a_locally_added_ephemeral_container(make_member):
    member = make_member()
    member.launch(specs.pod("own"))
    name = f"own-{harness.NODE_NAME}"
    mirror = member.wait_reported_phase(name, "Running")
    start_debugger(member, "own")
    wait_state(member, "own", "dbg", "running")
    member.api.delete("pods", "default", name, grace=0)
    again = member.wait_reported(name, lambda pod: pod["metadata"]["uid"] != mirror["metadata"]["uid"] and
                                 pod["status"].get("phase") == "Running", "is a new mirror pod")
    assert "ephemeralContainers" not in again["spec"]
    assert "ephemeralContainerStatuses" not in again["status"]
    wait_state(member, "own", "dbg", "running")
