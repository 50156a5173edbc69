# SPDX-License-Identifier: Apache-2.0
"""The pods that may use a private image that is already on the node (imagePullCredentialsVerificationPolicy)."""

import glob
import os

import pytest
import specs
from registry import DockerRegistry
from test_registry import pod, secret
from world import wait

NAME = "team/busybox:1"


@pytest.fixture(name="locked")
def fixture_locked(tmp_path, archive):
    registry = DockerRegistry(str(tmp_path), "joe", "secret")
    registry.push(f"docker-archive:{archive}", NAME)
    yield registry
    registry.stop()


@pytest.fixture(name="open_registry")
def fixture_open_registry(tmp_path, archive):
    registry = DockerRegistry(str(tmp_path))
    registry.push(f"docker-archive:{archive}", NAME)
    yield registry
    registry.stop()


@pytest.fixture(name="make_private")
def fixture_make_private(make_node):
    """A node on which a pod with the Secret 'right' has pulled the image."""
    def make(registry, archive=None, **config):
        node = make_node(archive=archive, config={"mainstay": {"insecureRegistries": [registry.host]}, **config})
        for name, password in (("right", "secret"), ("copy", "secret"), ("wrong", "guess")):
            document = {"auths": {registry.host: {"username": "joe", "password": password}}}
            if name == "copy":
                document["extra"] = {}
            node.drop(secret(name, document), f"secret-{name}.yaml")
        node.launch(pod("first", f"{registry.host}/{NAME}", imagePullSecrets=[{"name": "right"}]))
        return node
    return make


def use(node, registry, name, *secrets, policy="IfNotPresent"):
    node.drop(pod(name, f"{registry.host}/{NAME}", policy, imagePullSecrets=[{"name": one} for one in secrets]))


def pulled_events(node, name):
    return [line for line in node.cli("get", "events").stdout.splitlines() if name in line and "Pulling" in line]


def test_a_pod_without_credentials_does_not_get_a_private_image_of_another_pod(locked, make_private):
    node = make_private(locked)
    use(node, locked, "bare")
    assert "authentication" in node.wait_waiting("bare", "ErrImagePull")
    use(node, locked, "wrong", "wrong")
    assert "authentication failed" in node.wait_waiting("wrong", "ErrImagePull")
    use(node, locked, "never", policy="Never")
    assert "is not present with pull policy of Never" in node.wait_waiting("never", "ErrImageNeverPull")
    assert not node.find_init("bare") and not node.find_init("wrong") and not node.find_init("never")


def test_an_image_that_was_stored_in_another_spelling_is_found(open_registry, make_private):
    node = make_private(open_registry)
    host = f"localhost:{open_registry.port}"
    node.launch(pod("old", f"{host}/{NAME}"))
    node.stop()
    index = os.path.join(node.state, "images", "index.json")
    with open(index, encoding="utf-8") as file:
        text = file.read()
    assert host in text
    with open(index, "w", encoding="utf-8") as file:
        file.write(text.replace(host, f"LOCALHOST:0{open_registry.port}"))
    open_registry.stop()
    node.start()
    for i, name in enumerate([host, f"LOCALHOST:0{open_registry.port}"]):
        node.launch(pod(f"new-{i}", f"{name}/{NAME}", "Never"))


def test_a_damaged_access_record_gives_no_access_to_a_private_image(locked, make_private):
    node = make_private(locked)
    (record,) = glob.glob(os.path.join(node.state, "images", "verified", "*.json"))
    with open(record, "r+b") as file:
        content = bytearray(file.read())
        content[len(content) // 2] ^= 1
        file.seek(0)
        file.write(content)
    use(node, locked, "bare")
    assert "authentication" in node.wait_waiting("bare", "ErrImagePull")
    use(node, locked, "never", policy="Never")
    assert "is not present with pull policy of Never" in node.wait_waiting("never", "ErrImageNeverPull")
    use(node, locked, "second", "right")
    node.wait_running("second")


def test_a_pod_with_the_same_secret_needs_no_registry(locked, make_private):
    node = make_private(locked)
    use(node, locked, "other", "copy")
    node.wait_running("other")
    assert pulled_events(node, "other"), "another Secret is not verified"
    locked.stop()
    for name, one in (("second", "right"), ("third", "copy")):
        use(node, locked, name, one)
        node.wait_running(name)
    node.restart()
    use(node, locked, "fourth", "right", policy="Never")
    node.wait_running("fourth")
    use(node, locked, "fifth")
    assert locked.host in node.wait_waiting("fifth", "ErrImagePull")


def test_an_image_without_credentials_is_available_to_every_pod(open_registry, make_private):
    node = make_private(open_registry)
    open_registry.stop()
    use(node, open_registry, "bare")
    node.wait_running("bare")


@pytest.mark.parametrize("config,may", [
    ({"imagePullCredentialsVerificationPolicy": "NeverVerify"}, True),
    ({"imagePullCredentialsVerificationPolicy": "NeverVerifyPreloadedImages"}, False),
    ({"imagePullCredentialsVerificationPolicy": "NeverVerifyAllowlistedImages",
      "preloadedImagesVerificationAllowlist": ["HOST/team/*"]}, True),
    ({"imagePullCredentialsVerificationPolicy": "NeverVerifyAllowlistedImages",
      "preloadedImagesVerificationAllowlist": ["HOST/team/busybox"]}, True),
    ({"imagePullCredentialsVerificationPolicy": "NeverVerifyAllowlistedImages",
      "preloadedImagesVerificationAllowlist": ["HOST/other/*"]}, False),
    ({"imagePullCredentialsVerificationPolicy": "AlwaysVerify"}, False),
])
def test_the_policy_decides_which_images_are_verified(locked, make_private, config, may):
    listed = [name.replace("HOST", locked.host) for name in config.get("preloadedImagesVerificationAllowlist", [])]
    node = make_private(locked, **{**config, **({"preloadedImagesVerificationAllowlist": listed} if listed else {})})
    use(node, locked, "bare")
    if may:
        node.wait_running("bare")
    else:
        node.wait_waiting("bare", "ErrImagePull")


def test_archive_images_are_available_to_every_pod_unless_all_images_are_verified(locked, make_private, make_node, archive):
    node = make_private(locked, archive)
    node.launch(pod("web", specs.IMAGE))
    strict = make_node(config={"imagePullCredentialsVerificationPolicy": "AlwaysVerify"})
    strict.drop(pod("web", specs.IMAGE, "Never"))
    strict.wait_waiting("web", "ErrImageNeverPull")


def test_access_record_is_removed_with_the_image(locked, make_private):
    node = make_private(locked)
    node.remove("first")
    node.wait_gone("first")
    assert node.cli("images", "rm", f"{locked.host}/{NAME}").returncode == 0
    wait(lambda: f"{locked.host}/{NAME}" not in node.cli("images").stdout, "the image is removed")
    use(node, locked, "bare")
    node.wait_waiting("bare", "ErrImagePull")
