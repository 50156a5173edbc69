# SPDX-License-Identifier: Apache-2.0
"""Pods with images from a registry: pull policies, credentials, shared pulls, and a node without a network."""

import base64
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time

import harness
import pytest
import specs
import tool_images
import world
from registry import BadRegistry, Blobs, DockerRegistry
from world import wait


def assert_images_are_sound(node):
    answer = node.cli("images", "verify")
    assert answer.stdout == "all images are sound\n", answer.stderr


@pytest.fixture(name="registry")
def fixture_registry(tmp_path, archive):
    registry = DockerRegistry(str(tmp_path))
    registry.push(f"docker-archive:{archive}", "team/busybox:1")
    yield registry
    registry.stop()


@pytest.fixture(name="locked")
def fixture_locked(tmp_path, archive):
    """A registry with a password."""
    registry = DockerRegistry(str(tmp_path), "joe", "secret")
    registry.push(f"docker-archive:{archive}", "team/busybox:1")
    yield registry
    registry.stop()


@pytest.fixture(name="pulling_node")
def fixture_pulling_node(make_node):
    def make(registry, **fields):
        return make_node(archive=None, config={"mainstay": {"insecureRegistries": [registry.host], **fields}})
    return make


def pod(name, image, policy="IfNotPresent", **spec):
    return specs.pod(name, specs.container(image=image, imagePullPolicy=policy), **spec)


def secret(name, document, kind="kubernetes.io/dockerconfigjson", key=".dockerconfigjson"):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind,
            "data": {key: base64.b64encode(json.dumps(document).encode()).decode()}}


def reasons(node):
    return node.cli("get", "events").stdout


@pytest.mark.quick
def test_the_image_of_a_pod_is_pulled_and_the_pod_runs(registry, pulling_node):
    node = pulling_node(registry)
    node.launch(pod("web", f"{registry.host}/team/busybox:1"))
    assert node.status("web")["imageID"].endswith(registry.digest("team/busybox:1"))
    assert world.cmdline(node.init("web"))[0] == "/bin/sh"
    assert "Pulling" in reasons(node) and "Successfully pulled" in reasons(node)


def test_an_image_is_pulled_by_its_digest(registry, pulling_node):
    node = pulling_node(registry)
    node.launch(pod("web", f"{registry.host}/team/busybox@{registry.digest('team/busybox:1')}"))


def test_a_present_image_needs_no_registry_unless_the_policy_is_always(registry, pulling_node):
    node = pulling_node(registry)
    node.launch(pod("first", f"{registry.host}/team/busybox:1"))
    node.launch(pod("fixed", f"{registry.host}/team/busybox@{registry.digest('team/busybox:1')}", "Always"))
    registry.stop()
    node.launch(pod("second", f"{registry.host}/team/busybox:1"))
    node.launch(pod("third", f"{registry.host}/team/busybox:1", "Never"))
    node.drop(pod("fourth", f"{registry.host}/team/busybox:1", "Always"))
    assert registry.host in node.wait_waiting("fourth", "ImagePullBackOff")
    node.remove("fixed")
    node.wait_gone("fixed")


def test_a_present_image_needs_neither_name_server_nor_registry(registry, pulling_node, tmp_path):
    """On a node without a network, a request would hang until its timeout."""
    node, trace = pulling_node(registry), str(tmp_path / "trace")
    node.launch(pod("first", f"{registry.host}/team/busybox:1"))
    with subprocess.Popen(["strace", "-qq", "-f", "-e", "trace=socket,execve", "-o", trace, "-p", str(node.agent.pid)]) as tracer:
        wait(lambda: "TracerPid:\t0" not in world.read(f"/proc/{node.agent.pid}/status"), "it is watched")
        node.launch(pod("second", f"{registry.host}/team/busybox:1"))
        tracer.terminate()
    text = world.read(trace)
    assert "execve" in text, "its children are watched, too"
    assert "AF_INET" not in text and "mainstay-image" not in text, text


def test_an_image_of_an_archive_is_used_even_if_the_policy_is_always(make_node):
    node = make_node()
    node.launch(pod("web", specs.IMAGE, "Always"))


def test_policy_always_gets_the_current_image_of_the_tag(registry, pulling_node, archive, tmp_path):
    node = pulling_node(registry)
    node.launch(pod("old", f"{registry.host}/team/busybox:1", "Always"))
    layout = f"{tmp_path}/layout"
    for words in (["skopeo", "copy", f"docker-archive:{archive}", f"oci:{layout}:x"],
                  ["umoci", "config", "--image", f"{layout}:x", "--config.env", "NEW=1"]):
        subprocess.run(words, check=True, capture_output=True)
    registry.push(f"oci:{layout}:x", "team/busybox:1")
    node.launch(pod("kept", f"{registry.host}/team/busybox:1"))
    node.launch(pod("new", f"{registry.host}/team/busybox:1", "Always"))
    assert "NEW" not in world.environ(node.init("kept"))
    assert world.environ(node.init("new"))["NEW"] == "1"
    assert node.status("new")["imageID"] != node.status("old")["imageID"]


def test_a_missing_tag_is_reported_and_used_when_it_appears(registry, pulling_node, archive):
    node = pulling_node(registry)
    node.drop(pod("web", f"{registry.host}/team/later:1"))
    message = node.wait_waiting("web", "ErrImagePull")
    assert f"registry '{registry.host}'" in message and "image '1' does not exist in repository 'team/later'" in message
    assert "Error: ErrImagePull" in reasons(node), "the first failure has a different reason"
    assert "Back-off pulling image" in node.wait_waiting("web", "ImagePullBackOff")
    registry.push(f"docker-archive:{archive}", "team/later:1")
    node.wait_running("web")


@pytest.mark.parametrize("kind,key", [("kubernetes.io/dockerconfigjson", ".dockerconfigjson"),
                                      ("kubernetes.io/dockercfg", ".dockercfg")])
def test_image_pull_secrets_authenticate(locked, pulling_node, kind, key):
    node = pulling_node(locked)
    node.drop(pod("web", f"{locked.host}/team/busybox:1", imagePullSecrets=[{"name": "pull"}]))
    assert "authentication is required" in node.wait_waiting("web", "ErrImagePull")
    assert "FailedToRetrieveImagePullSecret" in reasons(node)
    entry = {locked.host: {"auth": base64.b64encode(b"joe:secret").decode()}}
    node.drop(secret("pull", entry if key == ".dockercfg" else {"auths": entry}, kind, key), "secret.yaml")
    node.wait_running("web")
    assert "secret" not in open(node.stderr, encoding="utf-8").read().replace("ImagePullSecret", "").replace(
        "imagePullSecrets", "").replace("image pull secrets", "").replace("secret.yaml", "")


def test_a_wrong_password_is_reported(locked, pulling_node):
    node = pulling_node(locked)
    node.drop(secret("pull", {"auths": {locked.host: {"username": "joe", "password": "w0rng"}}}), "secret.yaml")
    node.drop(pod("web", f"{locked.host}/team/busybox:1", imagePullSecrets=[{"name": "pull"}]))
    message = node.wait_waiting("web", "ErrImagePull")
    assert "authentication failed" in message and "w0rng" not in message and "w0rng" not in node.said()


def test_the_nodes_auth_file_authenticates(locked, pulling_node, tmp_path):
    path = tmp_path / "auth.json"
    path.write_text(json.dumps({"auths": {locked.host: {"username": "joe", "password": "secret"}}}))
    node = pulling_node(locked, registryAuthFile=str(path))
    node.launch(pod("web", f"{locked.host}/team/busybox:1"))


def test_a_mirror_serves_images_of_docker_hub(registry, make_node, archive):
    registry.push(f"docker-archive:{archive}", "library/tool:2")
    node = make_node(archive=None, config={"mainstay": {"registryMirrors": [
        {"registry": "docker.io", "mirrors": [f"http://{registry.host}"]}]}})
    node.launch(pod("web", "tool:2"))


def test_one_pull_serves_all_waiting_pods(pulling_node):
    registry = BadRegistry(Blobs([{"bin/x": b"x" * 100000}]), lambda handler: time.sleep(0.3))
    try:
        node = pulling_node(registry)
        for i in range(50):
            node.drop(pod(f"web{i}", f"{registry.host}/team/app:latest"))
        for i in range(50):
            # The image has no /bin/sh: it has been pulled once the runtime refuses the command.
            wait(lambda name=f"web{i}": "bin/sh" in json.dumps(node.status(name)), f"web{i} has its image", 180)
        assert len(registry.asked("/manifests/")) == 1
        assert len(registry.asked("/blobs/")) == 2
    finally:
        registry.stop()


def test_a_hanging_registry_delays_no_other_pod(pulling_node, archive):
    end = threading.Event()
    registry = BadRegistry(Blobs([{}]), lambda handler: end.wait(600) and False)
    try:
        node = pulling_node(registry)
        node.preload(archive)
        for i in range(8):
            node.drop(pod(f"slow{i}", f"{registry.host}/team/app{i}:latest"))
        node.launch(specs.pod("quick"))
    finally:
        end.set()
        registry.stop()


def test_parallel_image_pulls_are_limited_by_the_setting(make_node):
    """The registry delays each request until it has seen the others."""
    end = threading.Event()
    registry = BadRegistry(Blobs([{"file": b"x"}]), lambda handler: end.wait(600) and False)
    try:
        node = make_node(config={"serializeImagePulls": False, "maxParallelImagePulls": 2,
                                 "mainstay": {"insecureRegistries": [registry.host]}})
        for i in range(4):
            node.drop(pod(f"web{i}", f"{registry.host}/team/app{i}:latest"))
        wait(lambda: len(json.loads(node.get("/images")[1])["pulls"]) == 4, "all four are requested")
        # A request that is not answered for twenty seconds is repeated.
        wait(lambda: len({path for _, path, _ in registry.asked("/manifests/")}) == 2, "two are requested from the registry")
        assert len({path for _, path, _ in registry.seen}) == 2
        end.set()
        wait(lambda: len({path for _, path, _ in registry.asked("/manifests/")}) == 4, "the others follow")
    finally:
        end.set()
        registry.stop()


def test_a_pull_under_way_is_listed(pulling_node):
    registry = BadRegistry(Blobs([{}]), lambda handler: time.sleep(60))
    try:
        node = pulling_node(registry)
        node.drop(pod("web", f"{registry.host}/team/app:latest"))
        wait(lambda: "Pulling image" in json.dumps(node.status("web")), "the pull is reported")
        assert "Pulling image" in node.cli("describe", "pod", "web").stdout
        assert json.loads(node.get("/images")[1])["pulls"][0]["reference"] == f"{registry.host}/team/app:latest"
    finally:
        registry.stop()


def test_a_watch_reports_the_progress_of_a_pull(pulling_node):
    pieces, end = 40, threading.Event()

    def drip(handler):
        data = image.blobs[image.layers[0]]
        if image.layers[0] not in handler.path:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        for i in range(pieces):
            handler.wfile.write(data[len(data) * i // pieces:len(data) * (i + 1) // pieces])
            handler.wfile.flush()
            if end.wait(1):  # progress is reported every two seconds, and is seen three times before the pull ends
                break
        return True

    image = Blobs([{"noise": os.urandom(1_000_000)}])
    registry = BadRegistry(image, drip)
    node = pulling_node(registry)
    with subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, "get", "pods", "-w"], text=True,
                          stdout=subprocess.PIPE, env=node.environment()) as client:
        try:
            node.drop(pod("web", f"{registry.host}/team/app:latest"))
            seen = []
            for line in client.stdout:
                percent = re.search(r"web-node1.* Pulling:(\d+)%", line)
                if percent and int(percent[1]) not in seen[-1:]:
                    seen.append(int(percent[1]))
                if len(seen) == 3:
                    break
            assert seen[0] < seen[1] < seen[2] <= 100, seen
            assert re.search(r"Pulling image: \d\.\d of 1\.0 MiB", node.cli("describe", "pod", "web").stdout)
        finally:
            end.set()
            client.kill()
            registry.stop()


def test_an_agent_killed_during_a_pull_repeats_it(registry, pulling_node):
    node = pulling_node(registry)
    node.drop(pod("web", f"{registry.host}/team/busybox:1"))
    node.restart()
    node.wait_running("web")


# The command line

def names_of(node):
    listed = json.loads(node.get("/images")[1])["images"]
    return {name for image in listed if "usedAt" in image for name in image["names"]}


def test_images_are_listed_pulled_and_removed(registry, pulling_node):
    node = pulling_node(registry)
    image = f"{registry.host}/team/busybox:1"
    result = node.cli("images", "pull", image)
    assert result.returncode == 0 and result.stdout.strip() == registry.digest("team/busybox:1"), result.stderr
    for words in (["images"], ["images", "ls"], ["get", "images"]):
        assert image in node.cli(*words).stdout
    node.launch(pod("web", image, "Never"))
    assert "used by a pod" in node.cli("images", "rm", image).stderr
    node.remove("web")
    node.wait_gone("web")
    assert node.cli("images", "rm", image).returncode == 0
    wait(lambda: not names_of(node), "the image is gone")
    for directory in ("records", "layers", "blobs/sha256"):
        wait(lambda path=f"{node.state}/images/{directory}": not os.listdir(path), f"nothing is left in {directory}")
    assert node.cli("images", "rm", image).returncode == 1
    failed = node.cli("images", "pull", f"{registry.host}/team/nope:1")
    assert failed.returncode == 1 and "image '1' does not exist in repository 'team/nope'" in failed.stderr


def test_an_exported_image_runs_on_a_second_node(registry, pulling_node, make_node, tmp_path):
    node = pulling_node(registry)
    image, path = f"{registry.host}/team/busybox:1", str(tmp_path / "image.tar")
    assert node.cli("images", "pull", image).returncode == 0
    assert node.cli("images", "export", image, path).returncode == 0
    subprocess.run(["skopeo", "inspect", f"oci-archive:{path}"], check=True, capture_output=True)
    other = make_node(archive=None)
    assert other.cli("images", "import", path).returncode == 0
    other.launch(pod("web", image))
    assert "archive" in other.cli("images", "rm", image).stderr


def test_damage_in_the_store_is_found(registry, pulling_node):
    node = pulling_node(registry)
    assert node.cli("images", "pull", f"{registry.host}/team/busybox:1").returncode == 0
    assert "sound" in node.cli("images", "verify").stdout
    blobs = f"{node.state}/images/blobs/sha256"
    largest = max(os.listdir(blobs), key=lambda name: os.stat(f"{blobs}/{name}").st_size)
    with open(f"{blobs}/{largest}", "r+b") as file:
        file.seek(1000)
        file.write(b"xxxx")
    result = node.cli("images", "verify")
    assert result.returncode == 1 and largest in result.stdout


def layer_with(node, name):
    layers = f"{node.state}/images/layers"
    return next(f"{layers}/{layer}" for layer in os.listdir(layers) if os.path.lexists(f"{layers}/{layer}/{name}"))


DAMAGE = {
    "bin/busybox": (lambda path: os.truncate(path, 1000), None),  # it has hundreds of hard links
    "bin/sh": (os.unlink, "is missing"),
    "bin": (lambda path: os.chmod(path, 0o700), "differs in owner, mode or time"),
    "surplus": (lambda path: os.symlink("x", path), "is not part of the image"),
}


def wait_idle(node, name):
    """Waits until neither the shell nor its sleep reads another file."""
    def is_idle():
        pids = world.cgroup_pids(node.container_cgroup(name))
        return [world.cmdline(pid)[:1] for pid in pids].count(["sleep"]) == 1 and \
            all((world.status(pid, "State") or "").startswith("S") for pid in pids)
    world.wait(is_idle, f"{name} waits")


@pytest.mark.parametrize("way", ["registry", "archive"])
def test_damage_in_a_layer_is_found_and_repaired(registry, pulling_node, make_node, way):
    if way == "registry":
        node = pulling_node(registry)
        node.launch(pod("web", f"{registry.host}/team/busybox:1"))
    else:
        node = make_node()
        node.launch(specs.pod("web"))
    wait_idle(node, "web")
    assert_images_are_sound(node)
    top = layer_with(node, "bin/busybox")
    before = {name: os.lstat(f"{top}/{name}") for name in DAMAGE if os.path.lexists(f"{top}/{name}")}
    with open(f"{top}/bin/busybox", "rb") as file:
        contents = file.read()
    for name, (damage, _) in DAMAGE.items():
        damage(f"{top}/{name}")
    for verb in ("verify", "repair"):
        result = node.cli("images", verb)
        assert result.returncode == 1
        assert result.stdout.count(" differs in contents") == 1
        for name, (_, what) in DAMAGE.items():
            assert not what or f"'{name}' {what}" in result.stdout, result.stdout + result.stderr
    assert_images_are_sound(node)
    for name, was in before.items():
        now = os.lstat(f"{top}/{name}")
        assert (now.st_mode, now.st_uid, now.st_size, now.st_mtime_ns) == (was.st_mode, was.st_uid, was.st_size, was.st_mtime_ns)
    with open(f"{top}/bin/busybox", "rb") as file:
        assert file.read() == contents
    assert not os.path.lexists(f"{top}/surplus")
    assert node.status("web")["restartCount"] == 0
    node.launch(pod("next", node.status("web")["image"]))


def test_a_missing_layer_is_restored_by_a_repair(registry, pulling_node):
    node = pulling_node(registry)
    assert node.cli("images", "pull", f"{registry.host}/team/busybox:1").returncode == 0
    top = layer_with(node, "bin/busybox")
    shutil.rmtree(top)
    assert "is missing" in node.cli("images", "repair").stdout
    assert os.path.exists(f"{top}/bin/busybox")
    assert_images_are_sound(node)


@pytest.mark.parametrize("rounds", [1, pytest.param(5, marks=pytest.mark.long)])
def test_removing_images_during_pulls_keeps_shared_layers(registry, archive, pulling_node, tmp_path,
                                                                                rounds):
    """All of them share the first layer."""
    names = ["a", "b", "c"]
    for name in names:
        layout = f"{tmp_path}/{name}"
        subprocess.run(["skopeo", "copy", f"docker-archive:{archive}", f"oci:{layout}:x"], check=True, capture_output=True)
        file = tmp_path / f"{name}.file"
        file.write_bytes(os.urandom(500_000))
        subprocess.run(["umoci", "insert", "--image", f"{layout}:x", str(file), f"/{name}"], check=True, capture_output=True)
        registry.push(f"oci:{layout}:x", f"team/{name}:1")
    node, end = pulling_node(registry), threading.Event()
    node.drop(pod("kept", f"{registry.host}/team/a:1"))

    def prune():
        while not end.is_set():
            node.cli("images", "prune")

    pruner = threading.Thread(target=prune)
    pruner.start()
    try:
        for _ in range(rounds):
            for name in names:
                result = node.cli("images", "pull", f"{registry.host}/team/{name}:1")
                # A late request fails because the image was removed; that is not damage.
                assert result.returncode == 0 or "Sanitizer" not in result.stderr
    finally:
        end.set()
        pruner.join()
    node.wait_running("kept")
    # Images that the last prune must remove may still be arriving.
    wait(lambda: node.cli("images", "verify").stdout == "all images are sound\n",
         lambda: f"all images are sound: {node.cli('images', 'verify')}")
    for name in names:
        node.launch(pod(f"last-{name}", f"{registry.host}/team/{name}:1"))
    assert_images_are_sound(node)


# Image garbage collection

def push_with_a_file(registry, archive, tmp_path, name, size):
    """Pushes a separate image: that of the archive with one more file."""
    layout = f"{tmp_path}/{name}"
    subprocess.run(["skopeo", "copy", f"docker-archive:{archive}", f"oci:{layout}:x"], check=True, capture_output=True)
    rootfs = tmp_path / f"{name}.tree"
    rootfs.mkdir()
    (rootfs / name).write_bytes(os.urandom(size))
    subprocess.run(["umoci", "insert", "--image", f"{layout}:x", str(rootfs / name), f"/{name}"], check=True,
                   capture_output=True)
    registry.push(f"oci:{layout}:x", f"team/{name}:1")


@pytest.mark.parametrize("is_volume", [False, True])
def test_an_adopted_container_keeps_its_image_although_the_tag_moved(registry, archive, pulling_node, tmp_path, is_volume):
    def user(name):
        if not is_volume:
            return pod(name, f"{registry.host}/team/old:1", "Always")
        container = specs.container(image=f"{registry.host}/team/busybox:1", volumeMounts=[specs.mount("v", "/v")])
        return specs.pod(name, container, volumes=[
            {"name": "v", "image": {"reference": f"{registry.host}/team/old:1", "pullPolicy": "Always"}}])

    push_with_a_file(registry, archive, tmp_path, "old", 512)
    old = registry.digest("team/old:1")
    node = pulling_node(registry)
    node.launch(user("first"))
    push_with_a_file(registry, archive, tmp_path, "new", 512)
    registry.push(f"oci:{tmp_path}/new:x", "team/old:1")
    node.launch(user("second"))
    node.restart()
    node.wait_running("first")
    refused = node.cli("images", "rm", old)
    assert refused.returncode != 0 and "used by a pod" in refused.stderr, (refused, node.said()[-2000:])
    assert node.cli("images", "prune").returncode == 0
    path = f"/proc/{node.init('first')}/root{'/v' if is_volume else ''}"
    assert os.path.exists(f"{path}/old") and not os.path.exists(f"{path}/new")
    node.remove("first")
    node.wait_gone("first")
    assert node.cli("images", "rm", old).returncode == 0, "it is not used"
    assert world.is_alive(node.init("second"))


def test_image_that_is_not_used_for_its_maximum_age_is_removed(registry, archive, make_node, tmp_path):
    for name in ("a", "b", "c"):
        push_with_a_file(registry, archive, tmp_path, name, 512)
    a, b, c = (f"{registry.host}/team/{name}:1" for name in ("a", "b", "c"))
    node = make_node(archive=None, config={"imageMinimumGCAge": "1s", "imageMaximumGCAge": "4s",
                                           "mainstay": {"insecureRegistries": [registry.host]}})
    node.launch(pod("web", a))
    node.launch(pod("other", b))
    assert node.cli("images", "pull", c).returncode == 0
    wait(lambda: names_of(node) == {a, b}, lambda: f"the image that nothing uses is gone: {names_of(node)}\n{node.said()[-3000:]}")
    node.remove("other")
    node.wait_gone("other")
    wait(lambda: names_of(node) == {a}, lambda: f"the image of the ended pod is gone: {names_of(node)}\n{node.said()[-3000:]}")
    assert world.is_alive(node.init("web"))
    node.restart()
    node.wait_running("web")
    # The agent may have died before the removal was on disk; then it is repeated.
    wait(lambda: names_of(node) == {a}, lambda: f"it stays gone: {names_of(node)}\n{node.said()[-3000:]}")


def test_image_garbage_collection_removes_the_oldest_unused_images(registry, archive, make_node, tmp_path):
    for name in ("a", "b", "c", "d", "e"):
        push_with_a_file(registry, archive, tmp_path, name, 8000 * 512)
    node = make_node(archive=None, start=False, config={
        "imageGCHighThresholdPercent": 60, "imageGCLowThresholdPercent": 45, "imageMinimumGCAge": "1ms",
        "mainstay": {"insecureRegistries": [registry.host]}})
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", node.state], check=True)
    try:
        node.start()
        node.launch(pod("web", f"{registry.host}/team/a:1"))
        for name in ("b", "c", "d", "e"):
            assert node.cli("images", "pull", f"{registry.host}/team/{name}:1").returncode == 0
        wait(lambda: f"{registry.host}/team/b:1" not in names_of(node), "the oldest unused image is gone")
        left = wait(lambda: names_of(node), "some are left")
        assert f"{registry.host}/team/a:1" in left and f"{registry.host}/team/e:1" in left
        assert world.is_alive(node.init("web"))
        assert "damaged" not in node.cli("images", "verify").stdout
        assert node.cli("images", "prune").returncode == 0
        wait(lambda: names_of(node) == {f"{registry.host}/team/a:1"}, "only used images are left")
        node.remove("web")
        node.wait_gone("web")
    finally:
        node.stop()
        subprocess.run(["umount", "-l", node.state], check=False)


def test_an_archive_that_appears_during_a_pull_is_used(make_node, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts the call and sends nothing
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        archive = str(tmp_path / "app.tar")
        subprocess.run([os.path.join(harness.TOP, "tests", "make-image"), f"{host}/team/app:1", archive], check=True)
        node = make_node(archive=None, config={"mainstay": {"insecureRegistries": [host]}})
        node.drop(specs.pod("waits", {**specs.container(), "image": f"{host}/team/app:1"}))
        silent.settimeout(world.DEADLINE)
        with silent.accept()[0]:
            node.preload(archive)
            node.wait_running("waits")
        assert "Failed to pull" not in node.cli("get", "events").stdout, "the pull was not waited for"


@pytest.mark.parametrize("auth", ["unpadded", "wins"])
def test_auth_needs_no_padding_and_wins_over_username_and_password(locked, pulling_node, auth):
    encoded = base64.b64encode(b"joe:secret").decode()
    entry = {"auth": encoded.rstrip("=")} if auth == "unpadded" else {"auth": encoded, "username": "eve", "password": "wrong"}
    assert auth != "unpadded" or entry["auth"] != encoded, "the value has padding to remove"
    node = pulling_node(locked)
    node.drop(secret("pull", {"auths": {locked.host: entry}}), "secret.yaml")
    node.drop(pod("web", f"{locked.host}/team/busybox:1", imagePullSecrets=[{"name": "pull"}]))
    node.wait_running("web")


UNUSABLE = {
    "absent": (None, 'Secret "pull": it does not exist'),
    "of another type": ({"type": "Opaque"}, "its type is 'Opaque', not 'kubernetes.io/dockerconfigjson'"),
    "without auths": ({"data": {".dockerconfigjson": base64.b64encode(b'{"a": {}}').decode()}}, "its value has no object 'auths'"),
    "an entry without an object": ({"data": {".dockerconfigjson": base64.b64encode(b'{"auths": {"r\\n.example": 1}}').decode()}},
                                   "is not an object"),
    "with a wrong auth": ({"data": {".dockerconfigjson": base64.b64encode(b'{"auths": {"r.example": {"auth": "!"}}}').decode()}},
                          "its 'auth' for 'r.example' is not the Base64 of user:password"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_pull_secret_that_cannot_be_used_is_named_with_the_reason(locked, pulling_node, case):
    fields, words = UNUSABLE[case]
    node = pulling_node(locked)
    if fields:
        node.drop({**secret("pull", {"auths": {}}), **fields}, "secret.yaml")
    node.drop(pod("web", f"{locked.host}/team/busybox:1", imagePullSecrets=[{"name": "pull"}]))
    message = node.wait_waiting("web", "ErrImagePull")
    assert words in message and "authentication is required" in message, message


def test_pull_secrets_are_named_as_each_pod_names_them(locked, pulling_node):
    """Two Secrets have the same value, so that one pull serves both pods; a third does not exist."""
    node = pulling_node(locked)
    for name in ("left", "right"):
        node.drop(secret(name, {"auths": {locked.host: {"auth": "hunter2"}}}), f"secret-{name}.yaml")
        node.drop(pod(name, f"{locked.host}/team/busybox:1", imagePullSecrets=[{"name": "gone"}, {"name": name}]))
    for name, other in (("left", "right"), ("right", "left")):
        message = node.wait_waiting(name, "ErrImagePull")
        assert f'Secret "{name}": its \'auth\' for' in message and 'Secret "gone": it does not exist' in message, message
        assert other not in message and "hunter2" not in message, message
    assert "hunter2" not in node.said()


def test_last_of_two_equal_members_of_a_pull_secret_is_used(locked, pulling_node):
    text = f'{{"auths": {{}}, "auths": {{"{locked.host}": {{"username": "joe", "password": "secret"}}}}}}'
    node = pulling_node(locked)
    node.drop({**secret("pull", {}), "data": {".dockerconfigjson": base64.b64encode(text.encode()).decode()}}, "secret.yaml")
    node.launch(pod("web", f"{locked.host}/team/busybox:1", imagePullSecrets=[{"name": "pull"}]))


@pytest.mark.parametrize("reference", [{}, {"name": ""}])
def test_a_pull_secret_without_a_name_is_ignored(locked, pulling_node, reference):
    node = pulling_node(locked)
    node.drop(pod("web", f"{locked.host}/team/busybox:1", imagePullSecrets=[reference]))
    message = node.wait_waiting("web", "ErrImagePull")
    assert "authentication is required" in message and '""' not in message, message
    assert "FailedToRetrieveImagePullSecret" not in reasons(node)


def test_an_unusable_archive_image_is_not_reported_as_pulled(make_node, tmp_path):
    path = os.path.join(str(tmp_path), "foreign.tar")
    with open(path, "wb") as file:
        file.write(tool_images.windows_image("example.com/foreign:1"))
    node = make_node(archive=path)
    node.drop(pod("web", "example.com/foreign:1"))
    words = 'Failed to load image "example.com/foreign:1": foreign.tar: the image is for windows/'
    world.wait(lambda: words in reasons(node), lambda: f"it is reported as an event: {reasons(node)}")
    assert "Back-off loading image" in node.wait_waiting("web", "ImagePullBackOff")
    assert "Failed to pull" not in reasons(node)


def test_images_are_listed_by_their_current_names(make_node, tmp_path):
    """Two archives with the same tag are imported one after the other, and again."""
    node, digests = make_node(archive=None), {}
    for which in ("first", "second"):
        with open(os.path.join(str(tmp_path), f"{which}.tar"), "wb") as file:
            file.write(tool_images.docker_save("example.com/app:1", process=tool_images.say(f"echo {which}; sleep 100000")))

    def names():
        return {image["digest"]: image["names"] for image in json.loads(node.cli("images", "-o", "json").stdout)["items"]}
    for which, other in (("first", "second"), ("second", "first"), ("first", "second")):
        node.preload(os.path.join(str(tmp_path), f"{which}.tar"))
        old = os.path.join(node.state, "preload", f"{other}.tar")
        if os.path.exists(old):
            os.unlink(old)
        world.wait(lambda which=which: f"{which}.tar" in node.cli("images").stdout, "its archive is listed")
        if which not in digests:
            node.drop(pod(which, "example.com/app:1"))
            node.wait_running(which)
            digests[which] = node.status(which)["imageID"].rpartition("@")[2]
        world.wait(lambda which=which: names().get(digests[which]) == ["example.com/app:1"], lambda: f"it has the name: {names()}")
        assert all(not found for digest, found in names().items() if digest != digests[which]), names()
