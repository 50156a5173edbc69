# SPDX-License-Identifier: Apache-2.0
"""mainstay.dev/progress-deadline-seconds of pods: a revision that is not ready in time is rolled back
to the last ready one, exactly once, regardless of restarts of the agent."""

import glob
import os
import random
import signal

import failing
import pytest
import specs
import world
from harness import is_running
from registry import DockerRegistry
from world import run, wait

ROLLED_BACK = "mainstay.dev/rolled-back"
POINTS = ["mainstayd:rollout.write", "mainstayd:rollout.written"]


def web(version, script=specs.IDLE, seconds=3, image=specs.IMAGE, **fields):
    annotations = {"mainstay.dev/progress-deadline-seconds": str(seconds)} if seconds else {}
    return specs.pod("web", specs.container(script=script, image=image, env=[{"name": "VERSION", "value": version}]),
                     metadata={"annotations": annotations}, **fields)


def noted(node, version, script, **fields):
    """Each start of a container appends the version to a file, before it sets its trap."""
    pod = web(version, f"echo {version} >>/v/starts; {script}", volumes=[specs.host_path("v", node.data)], **fields)
    pod["spec"]["containers"][0]["volumeMounts"] = [specs.mount("v", "/v")]
    return pod


def starts(node):
    return world.read(os.path.join(node.data, "starts")).split()


def version_of(pod):
    return {env["name"]: env["value"] for env in pod["spec"]["containers"][0]["env"]}["VERSION"]


def why(pod):
    return pod["metadata"].get("annotations", {}).get(ROLLED_BACK, "")


def wait_version(node, version, rolled_back=False):
    return node.wait_pod("web", lambda pod: version_of(pod) == version and is_running(pod) and bool(why(pod)) == rolled_back,
                         f"runs version {version}")


def record(node):
    found = glob.glob(f"{node.state}/rollouts/*/record")
    return world.read(found[0]).splitlines() if found else [""] * 12


def wait_good(node):
    """Waits until the revision in the manifest counts as good."""
    wait(lambda: node.is_ready() and record(node)[4] and record(node)[4] == record(node)[6], lambda: f"it counts as good: {record(node)}")


def wait_trap(node, version):
    """Waits until the container of that version has set its trap: from then on it stops at once, and has recorded its
    start if it records starts."""
    def has_trap():
        pid = node.find_init("web")
        return pid and world.environ(pid).get("VERSION") == version and world.handles(pid, signal.SIGTERM)
    wait(has_trap, f"the container of version {version} has set its trap")


def run_good(node, pod):
    node.drop(pod)
    wait_version(node, version_of(pod))
    wait_good(node)
    wait_trap(node, version_of(pod))


def wait_beside(node, name):
    """Waits until another pod, which is added now, runs: by then everything that was due immediately has happened."""
    node.drop(specs.pod(name))
    node.wait_running(name)


def test_a_revision_that_is_not_ready_in_time_is_rolled_back_once(node):
    run_good(node, noted(node, "1", specs.IDLE))
    node.drop(noted(node, "2", "exit 1", seconds=10))  # long enough for a first attempt
    pod = wait_version(node, "1", rolled_back=True)
    assert why(pod).startswith("Rolled back: revision 2 of web.yaml did not become ready within 10s: container main: "), why(pod)
    assert why(pod) in node.said() and "PodRollback" in node.cli("get", "events").stdout
    answer = node.cli("rollout", "status", "pod/web")
    assert answer.returncode == 1 and f'error: pod "web" exceeded its progress deadline: {why(pod)}' in answer.stderr
    wait_trap(node, "1")
    before = starts(node)
    assert before[0] == before[-1] == "1" and "2" in before
    node.restart()
    wait_version(node, "1", rolled_back=True)
    wait_beside(node, "later")
    assert starts(node) == before and node.said().count("restoring the last ready revision") == 1
    node.drop(noted(node, "3", specs.IDLE, seconds=600))  # a slow start is not tested here
    wait_version(node, "3")
    answer = node.cli("rollout", "status", "pod/web")
    assert answer.returncode == 0 and answer.stdout.endswith('pod "web" successfully rolled out\n'), answer
    wait_good(node)


def test_another_bad_edit_is_rolled_back_to_the_same_revision(node):
    run_good(node, web("1"))
    for number, version in (2, "2"), (3, "3"):
        node.drop(web(version, "exit 1"))
        wait(lambda: f"revision {number} of web.yaml" in why(node.pod("web") or {"metadata": {}}), f"version {version} is rolled back")
        wait_version(node, "1", rolled_back=True)
    node.drop(web("1"))
    wait_version(node, "1")


def test_an_edit_that_replaces_the_pod_is_rolled_back(node):
    run_good(node, web("1"))
    node.drop(web("2", "exit 1", hostPID=True))
    pod = wait_version(node, "1", rolled_back=True)
    assert not pod["spec"].get("hostPID")


def test_an_edit_that_cannot_replace_the_pod_is_rolled_back_without_a_restart(node):
    run_good(node, web("1"))
    pid = node.init("web")
    bad = web("2", image="missing:1", hostPID=True)
    bad["spec"]["containers"][0]["imagePullPolicy"] = "Never"
    node.drop(bad)
    pod = wait_version(node, "1", rolled_back=True)
    assert "missing:1" in why(pod)
    assert node.init("web") == pid and pod["status"]["containerStatuses"][0]["restartCount"] == 0


def test_revision_started_before_a_deadline_was_set_counts_as_good(node):
    node.launch(web("1", seconds=None))
    assert not os.path.exists(f"{node.state}/rollouts")
    node.drop(web("2", "exit 1"))
    wait_version(node, "1", rolled_back=True)
    node.remove("web")
    node.wait_gone("web")
    wait(lambda: not glob.glob(f"{node.state}/rollouts/*"), "its history is gone")


def test_a_first_revision_is_not_rolled_back(node):
    node.drop(web("1", "exit 1", seconds=1))
    node.wait_waiting("web", "CrashLoopBackOff")
    wait_beside(node, "later")
    assert "Rolled back" not in node.said()
    node.drop(web("2", seconds=600))  # a slow machine may have run the first revision long enough to count as good
    wait_version(node, "2")


def test_a_broken_manifest_keeps_the_rolled_back_revision(node):
    run_good(node, web("1"))
    node.drop(web("2", "exit 1"))
    wait_version(node, "1", rolled_back=True)
    wait_trap(node, "1")  # for a moment the pod is the first revision again, but its container is the second one
    pid = node.init("web")
    node.drop("kind: Pod\nspec: [", "web.yaml")
    wait(lambda: "web.yaml" in node.cli("get", "pods").stderr, "the file is broken")
    node.restart()
    wait_version(node, "1", rolled_back=True)
    node.drop(web("2", "exit 1"))
    wait_beside(node, "later")
    wait_version(node, "1", rolled_back=True)
    assert node.init("web") == pid


def test_damaged_history_stops_no_pod(node):
    run_good(node, web("1"))
    pid = node.init("web")
    path, = glob.glob(f"{node.state}/rollouts/*/record")
    node.kill9()
    with open(path, "r+b") as file:
        file.write(b"x")
    node.start()
    wait_version(node, "1")
    assert node.init("web") == pid and "is damaged, setting it aside" in node.said()
    assert os.path.exists(f"{path}.damaged")


# ---- images ----

@pytest.fixture(name="registry")
def fixture_registry(archive, tmp_path):
    layout = f"{tmp_path}/oci"
    run("skopeo", "copy", f"docker-archive:{archive}", f"oci:{layout}:x")
    registry = DockerRegistry(str(tmp_path))
    for tag in ("1", "2"):
        (tmp_path / f"file{tag}").write_bytes(os.urandom(1000))
        run("umoci", "insert", "--image", f"{layout}:x", str(tmp_path / f"file{tag}"), f"/file{tag}")
        registry.push(f"oci:{layout}:x", f"team/web:{tag}")
    yield registry
    registry.stop()


@pytest.mark.slow
def test_rollback_keeps_the_image_and_needs_no_registry(make_clocked_node, registry):
    node = make_clocked_node({"mainstay": {"insecureRegistries": [registry.host]}})

    def image(tag):
        return f"{registry.host}/team/web:{tag}"

    def policy(pod):
        pod["spec"]["containers"][0]["imagePullPolicy"] = "Always"
        return pod
    run_good(node, policy(web("1", image=image(1), seconds=60)))
    # The new pod runs but is not ready: the old image is unused for a while, and would be pruned if it were not kept.
    node.drop(not_ready(policy(web("2", image=image(2), seconds=60))))
    node.wait_pod("web", lambda pod: version_of(pod) == "2" and "running" in pod["status"]["containerStatuses"][0]["state"],
                  "the new revision runs")
    registry.stop()
    assert node.cli("images", "prune").returncode == 0
    node.let_pass(60)
    pod = wait_version(node, "1", rolled_back=True)
    assert pod["spec"]["containers"][0]["image"] == image(1)


def images_files(node):
    """The files that the container's image has. For a moment the pod is already the one after the rollback, while its
    container is the one that still stops."""
    root = f"/proc/{node.find_init('web')}/root"
    return [os.path.exists(f"{root}/file{number}") for number in (1, 2)]


def wait_rollback_to_the_first_image(node, bad, move):
    """The image has /file1, and the image to which the tag is moved later also /file2."""
    node.drop(bad)
    wait(lambda: node.pod("web") and version_of(node.pod("web")) == "2" and images_files(node) == [True, True],
         "the new revision runs")
    move()
    assert node.cli("images", "prune").returncode == 0
    node.let_pass(60)
    pod = wait_version(node, "1", rolled_back=True)
    wait(lambda: images_files(node) == [True, False], lambda: f"the first image is used again, not {images_files(node)}")
    return pod


def not_ready(pod):
    pod["spec"]["containers"][0]["readinessProbe"] = {"exec": {"command": ["false"]}}
    return pod


@pytest.mark.slow
def test_rollback_restores_the_image_although_its_tag_was_moved(make_clocked_node, registry):
    node = make_clocked_node({"mainstay": {"insecureRegistries": [registry.host]}})
    name = f"{registry.host}/team/web:latest"

    def move_tag(tag):
        run("skopeo", "copy", "--src-tls-verify=false", "--dest-tls-verify=false", f"docker://{registry.host}/team/web:{tag}",
            f"docker://{name}")

    def revision(version):
        pod = web(version, image=name, seconds=60)
        pod["spec"]["containers"][0]["imagePullPolicy"] = "Always"
        return pod
    move_tag(1)
    run_good(node, revision("1"))
    digest = node.status("web")["imageID"]
    move_tag(2)
    pod = wait_rollback_to_the_first_image(node, not_ready(revision("2")), registry.stop)
    assert pod["spec"]["containers"][0]["image"] == f"{name}@{digest}"
    pid = node.init("web")
    node.restart()
    wait_version(node, "1", rolled_back=True)
    assert node.init("web") == pid
    restarts = node.status("web")["restartCount"]
    os.kill(pid, signal.SIGKILL)
    node.wait_restarts("web", restarts + 1)
    assert not os.path.exists(f"/proc/{node.init('web')}/root/file2")


@pytest.mark.slow
def test_rollback_restores_the_image_although_its_archive_was_replaced(make_clocked_node, registry, tmp_path):
    node, name = make_clocked_node(), "example.com/team/app:latest"

    def replace(tag):
        path = f"{tmp_path}/app{tag}.tar"
        run("skopeo", "copy", "--src-tls-verify=false", f"docker://{registry.host}/team/web:{tag}", f"docker-archive:{path}:{name}")
        node.preload(path, "app.tar")
    replace(1)
    run_good(node, web("1", image=name, seconds=60))
    replace(2)
    wait(lambda: len(node.cli("images").stdout.split("app.tar")) > 1, "the archive is read")
    wait_rollback_to_the_first_image(node, not_ready(web("2", image=name, seconds=60)), lambda: None)


# ---- an agent that dies ----

@pytest.fixture(name="failing_node")
def fixture_failing_node(archive):
    node = failing.FailingNode(archive)
    yield node
    node.arm({})
    node.finish()


@pytest.mark.parametrize("passes", range(4))
@pytest.mark.parametrize("point", POINTS)
def test_an_agent_that_dies_at_a_write_rolls_back_once(failing_node, point, passes):
    node = failing_node
    node.arm({point: f"{passes}*off->1*panic" if passes else "1*panic"})
    run_good(node, noted(node, "1", specs.IDLE))
    node.drop(noted(node, "2", "exit 1"))
    wait_version(node, "1", rolled_back=True)
    assert node.hits()[point] > passes and node.n_deaths == 1
    wait_trap(node, "1")
    before = starts(node)
    wait_beside(node, "later")
    node.restart()
    wait_version(node, "1", rolled_back=True)
    assert starts(node) == before, "neither runs twice, and the bad one is not tried again"


def test_a_history_that_cannot_be_written_does_not_prevent_a_rollback(failing_node):
    node = failing_node
    run_good(node, web("1"))
    node.arm({"mainstayd:rollout.write": "return(EIO)"})
    node.drop(web("2", "exit 1"))
    wait_version(node, "1", rolled_back=True)
    assert "Cannot write the rollout of pod 'default/web-node1'" in node.said()


def pause(chance, most):
    """A random delay, so that the interruption comes at any time."""
    signal.sigtimedwait([], chance.uniform(0, most))


def test_random_kills_do_not_prevent_a_rollback(node):
    seed = int(os.environ.get("MAINSTAY_SEED", random.randrange(1 << 32)))
    print(f"MAINSTAY_SEED={seed}")
    chance = random.Random(seed)
    run_good(node, noted(node, "1", specs.IDLE, seconds=4))
    node.drop(noted(node, "2", "exit 1", seconds=4))
    for _ in range(4):
        pause(chance, 1.5)
        node.kill9()
        node.start()
    wait_version(node, "1", rolled_back=True)
    wait_trap(node, "1")
    before = starts(node)
    for _ in range(3):
        pause(chance, 0.5)
        node.kill9()
        node.start()
        wait_version(node, "1", rolled_back=True)
    assert starts(node) == before
