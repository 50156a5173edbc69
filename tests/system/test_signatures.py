# SPDX-License-Identifier: Apache-2.0
"""The signature policy: the images that may run, with signatures in the format of cosign, from registries, mirrors and
archives."""

import hashlib
import json
import os
import re
import subprocess
import tarfile

import cosign
import pytest
import specs
import world
from cosign import Key
from harness import waiting_state
from registry import BadRegistry, Blobs, DockerRegistry
from test_registry import pod
from world import wait

NAME = "team/busybox:1"
REPOSITORY = {"type": "matchRepository"}
ACCEPT, REJECT = [{"type": "insecureAcceptAnything"}], [{"type": "reject"}]


def signed(*keys, identity=REPOSITORY, **fields):
    """Requirements: one for each key."""
    return [{"type": "sigstoreSigned", "keyPath": key.public, **({"signedIdentity": identity} if identity else {}), **fields}
            for key in keys]


class Policy:
    """The test's own policy file."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "policy.json")

    def write(self, default=None, **transports):
        """Transports are given as {scope: requirements}; 'oci_archive' is that transport."""
        self.write_text(json.dumps({"default": default or REJECT, "transports": {
            name.replace("_", "-"): scopes for name, scopes in transports.items()}}))

    def write_text(self, text):
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(self.path + ".new", self.path)


@pytest.fixture(name="registry")
def fixture_registry(tmp_path, archive):
    registry = DockerRegistry(str(tmp_path))
    registry.push(f"docker-archive:{archive}", NAME)
    yield registry
    registry.stop()


@pytest.fixture(name="policy")
def fixture_policy(tmp_path):
    return Policy(str(tmp_path))


@pytest.fixture(name="key")
def fixture_key(tmp_path):
    return Key(str(tmp_path))


@pytest.fixture(name="other_key")
def fixture_other_key(tmp_path):
    return Key(str(tmp_path), "other")


@pytest.fixture(name="strict_node")
def fixture_strict_node(make_node, policy):
    """A node with that policy, and without any archive."""
    def make(registry, archive=None, **fields):
        return make_node(archive=archive, config={"mainstay": {
            "insecureRegistries": [registry.host] if registry else [], "signaturePolicyFile": policy.path, **fields}})
    return make


def wait_refused(node, name, *words, reason="ErrImagePull"):
    message = node.wait_waiting(name, reason)
    for word in ("SignatureValidationFailed", *words):
        assert word in message, message
    assert not node.find_init(name)
    return message


def spelled(port):
    """Spellings of the registry localhost:port by which a client can connect to it."""
    return [f"LOCALHOST:{port}", f"localhost:0{port}", f"LocalHost:00{port}"]


def aliases(port):
    """Other names of the loopback."""
    return [f"127.0.0.1:{port}", f"127.0.0.1:0{port}", f"127.7.7.7:{port}", f"[0::1]:{port}"]


def refused_names(port):
    """Names of this machine that libcurl or the resolver understands, but that no reference may have."""
    return [f"127.0.1:{port}", f"127.1:{port}", f"0x7f.0.0.1:{port}", f"0177.0.0.1:{port}", f"2130706433:{port}",
            f"[::ffff:7f00:1]:{port}", f"localhost.:{port}", f"127.0.0.1.:{port}"]


def store_files(node, directory):
    return os.listdir(os.path.join(node.state, "images", directory))


def wait_accepted(node, name):
    node.wait_running(name)
    assert world.cmdline(node.init(name))[0] == "/bin/sh"


# Registries

def test_no_spelling_of_a_registry_evades_its_scope(registry, policy, strict_node):
    policy.write(default=ACCEPT, docker={f"localhost:{registry.port}": REJECT})
    # Only the policy prevents the node from using the registry, under each of its names.
    node = strict_node(registry, insecureRegistries=spelled(registry.port) + aliases(registry.port))
    for i, host in enumerate(spelled(registry.port) + aliases(registry.port)):
        node.drop(pod(f"spelled-{i}", f"{host}/{NAME}"))
    for i, host in enumerate(refused_names(registry.port)):
        node.drop(pod(f"refused-{i}", f"{host}/{NAME}"))
    for i in range(len(spelled(registry.port) + aliases(registry.port))):
        wait_refused(node, f"spelled-{i}", f'"localhost:{registry.port}"', "reject")
    for i, host in enumerate(refused_names(registry.port)):
        assert host in node.wait_waiting(f"refused-{i}", "InvalidImageName")
        assert not node.find_init(f"refused-{i}")


def test_a_scope_and_a_signed_name_match_in_each_spelling(registry, policy, strict_node, key):
    cosign.sign(registry, NAME, key, reference=f"LOCALHOST:0{registry.port}/{NAME}")
    policy.write(docker={f"LOCALHOST:00{registry.port}": signed(key, identity={"type": "matchExact"})})
    node = strict_node(registry)
    for i, host in enumerate([f"localhost:{registry.port}", *spelled(registry.port)]):
        node.launch(pod(f"pod-{i}", f"{host}/{NAME}"))
        wait_accepted(node, f"pod-{i}")
    # The pods share one name of the image.
    assert [image["names"] for image in json.loads(node.get("/images")[1])["images"]] == [[f"localhost:{registry.port}/{NAME}"]]


def test_a_policy_that_names_a_scope_in_two_spellings_accepts_nothing(registry, policy, strict_node):
    policy.write(default=ACCEPT, docker={f"localhost:{registry.port}": ACCEPT, f"LOCALHOST:0{registry.port}": REJECT})
    node = strict_node(registry)
    node.drop(pod("web", f"localhost:{registry.port}/{NAME}"))
    assert "two spellings" in node.wait_waiting("web", "ErrImagePull")


def test_a_misspelt_setting_of_the_policy_does_not_accept_every_image(registry, policy, make_node):
    policy.write(default=REJECT)
    mainstay = {"insecureRegistries": [registry.host]}
    node = make_node(archive=None, start=False, config={"mainstay": {**mainstay, "signaturePolicy": policy.path}})
    node.drop(pod("web", f"{registry.host}/{NAME}"))
    node.start(ready=False)
    assert node.agent.wait(world.DEADLINE) != 0
    assert "mainstay.signaturePolicy: is not a field" in node.said() and "signaturePolicyFile" in node.said()
    node.write_config(mainstay={**mainstay, "signaturePolicyFile": policy.path})
    node.start()
    wait_refused(node, "web", "reject")


@pytest.mark.parametrize("kind", ["ecdsa", "ed25519"])
@pytest.mark.parametrize("sign", [cosign.sign, cosign.sign_bundle])
def test_a_signed_image_runs(registry, policy, strict_node, tmp_path, kind, sign):
    key = Key(str(tmp_path), kind=kind)
    sign(registry, NAME, key)
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    node.launch(pod("web", f"{registry.host}/{NAME}"))
    wait_accepted(node, "web")
    assert node.status("web")["imageID"].endswith(registry.digest(NAME))


def test_an_image_without_a_signature_is_refused(registry, policy, strict_node, key):
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    node.drop(pod("web", f"{registry.host}/{NAME}"))
    wait_refused(node, "web", registry.digest(NAME), policy.path, f'transports.docker."{registry.host}"[0]', "it is not signed")
    assert f'Failed to pull image "{registry.host}/{NAME}"' in node.cli("get", "events").stdout
    assert not store_files(node, "layers"), "its layers were fetched"
    wait_refused(node, "web", "Back-off pulling image", reason="ImagePullBackOff")
    cosign.sign(registry, NAME, key)
    wait_accepted(node, "web")


@pytest.mark.parametrize("sign", [cosign.sign, cosign.sign_bundle])
def test_an_image_that_another_key_has_signed_is_refused(registry, policy, strict_node, key, other_key, sign):
    sign(registry, NAME, other_key)
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    node.drop(pod("web", f"{registry.host}/{NAME}"))
    wait_refused(node, "web", "it is signed, but not by a key of this rule")


def test_a_signature_of_another_image_is_refused(registry, policy, strict_node, key):
    data = cosign.payload("sha256:" + "0" * 64, f"{registry.host}/team/busybox", mentions=registry.digest(NAME))
    manifest, blobs = cosign.signature_manifest([(data, key.sign(data))])
    cosign.push(registry, "team/busybox", cosign.signature_tag(registry.digest(NAME)), manifest, blobs)
    stolen = cosign.bundle(key, cosign.statement("sha256:" + "0" * 64))
    manifest, blobs = cosign.bundle_manifest(stolen, cosign.subject_of(registry.digest(NAME), 1))
    cosign.push(registry, "team/busybox", None, manifest, blobs)
    cosign.push(registry, "team/busybox", cosign.referrers_tag(registry.digest(NAME)), cosign.referrers_index([manifest]), [],
                cosign.INDEX_TYPE)
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    node.drop(pod("web", f"{registry.host}/{NAME}"))
    wait_refused(node, "web", "the signature is of another image, sha256:000")


def test_a_signature_must_name_the_image_as_the_policy_requires(registry, policy, strict_node, key):
    cosign.sign(registry, NAME, key)
    policy.write(docker={registry.host: signed(key, identity=None)})
    node = strict_node(registry)
    node.drop(pod("web", f"{registry.host}/{NAME}"))
    wait_refused(node, "web", f"it is signed as '{registry.host}/team/busybox'", "matchRepoDigestOrExact does not accept")
    cosign.sign(registry, NAME, key, reference=f"{registry.host}/{NAME}")
    wait_accepted(node, "web")


def test_a_bundle_is_accepted_for_the_digest_that_a_pod_names(registry, policy, strict_node, key):
    cosign.sign_bundle(registry, NAME, key)
    policy.write(docker={registry.host: signed(key, identity=None)})
    node = strict_node(registry)
    node.drop(pod("tag", f"{registry.host}/{NAME}"))
    wait_refused(node, "tag", "name the image by its digest, or use matchRepository")
    node.launch(pod("digest", f"{registry.host}/team/busybox@{registry.digest(NAME)}"))
    wait_accepted(node, "digest")


@pytest.mark.parametrize("rule,words", [
    ({"type": "reject"}, "reject"),
    ({"type": "signedBy", "keyType": "GPGKeys", "keyPath": "/nowhere"}, "signedBy is not supported"),
    ({"type": "sigstoreSigned", "fulcio": {}, "rekorPublicKeyPath": "/nowhere"}, "(fulcio, pki, rekor) are not supported"),
    ({"type": "sigstoreSigned", "keyPath": "/nowhere/key.pub"}, "/nowhere/key.pub: No such file"),
    ({"type": "sigstoreSigned", "keyData": "bm90IGEga2V5"}, "keyData: is not a public key in PEM"),
])
def test_a_rule_that_accepts_nothing_is_named(registry, policy, strict_node, rule, words):
    policy.write(default=ACCEPT, docker={f"{registry.host}/team": [rule]})
    node = strict_node(registry)
    node.drop(pod("web", f"{registry.host}/{NAME}"))
    wait_refused(node, "web", f'transports.docker."{registry.host}/team"[0]', words)


def test_all_rules_of_a_scope_must_be_met(registry, policy, strict_node, key, other_key):
    cosign.sign(registry, NAME, key)
    policy.write(docker={"": signed(key, other_key)})
    node = strict_node(registry)
    node.drop(pod("web", f"{registry.host}/{NAME}"))
    wait_refused(node, "web", 'transports.docker.""[1]')
    cosign.sign(registry, NAME, key, other_key)
    wait_accepted(node, "web")


@pytest.mark.parametrize("text,words", [
    ("{\n \"default\": [}", "policy.json: line 2, column 14"),
    ("{}", "policy.json: default is missing"),
    (None, "policy.json: No such file or directory"),
])
def test_no_image_is_pulled_while_the_policy_cannot_be_read(registry, policy, strict_node, text, words):
    if text:
        policy.write_text(text)
    node = strict_node(registry)
    node.drop(pod("web", f"{registry.host}/{NAME}"))
    wait_refused(node, "web", words)
    policy.write(default=ACCEPT)
    wait_accepted(node, "web")


def test_a_mirror_may_have_image_and_signature(registry, policy, make_node, key):
    """The policy for the name in the pod applies."""
    cosign.sign(registry, NAME, key, reference="registry.example.com/team/busybox")
    policy.write(docker={"registry.example.com/team": signed(key)})
    node = make_node(archive=None, config={"mainstay": {
        "signaturePolicyFile": policy.path,
        "registryMirrors": [{"registry": "registry.example.com", "mirrors": [f"http://{registry.host}"]}]}})
    node.launch(pod("web", f"registry.example.com/{NAME}"))
    wait_accepted(node, "web")
    node.drop(pod("other", f"registry.example.com/other/{NAME}"))
    wait_refused(node, "other", "default[0]: reject")


def push_index(registry, tag="multi", **annotations):
    """Pushes an index that leads to the image; returns its digest and that of the image."""
    manifest = subprocess.run(["skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{registry.host}/{NAME}"],
                              check=True, stdout=subprocess.PIPE).stdout
    index = cosign.compact({"schemaVersion": 2, "mediaType": cosign.INDEX_TYPE, "manifests": [
        {"mediaType": json.loads(manifest)["mediaType"], "digest": cosign.digest_of(manifest), "size": len(manifest),
         "platform": {"os": "linux", "architecture": specs.ARCHITECTURE}}], "annotations": annotations})
    cosign.push(registry, "team/busybox", tag, index, [], cosign.INDEX_TYPE)
    return cosign.digest_of(index), cosign.digest_of(manifest)


def test_the_signature_of_an_index_applies_to_its_images(registry, policy, strict_node, key):
    index, manifest = push_index(registry)
    cosign.sign(registry, "team/busybox:multi", key, digest=index)
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    node.launch(pod("web", f"{registry.host}/team/busybox:multi"))
    wait_accepted(node, "web")
    node.drop(pod("direct", f"{registry.host}/team/busybox@{manifest}"))
    wait_accepted(node, "direct")


def busybox_blobs(archive, tmp_path):
    """The image of the archive in memory."""
    layout = f"{tmp_path}/blobs"
    subprocess.run(["skopeo", "copy", f"docker-archive:{archive}", f"oci:{layout}:x"], check=True, capture_output=True)
    image = Blobs([{"etc/hello": b""}])
    image.blobs = {f"sha256:{name}": open(f"{layout}/blobs/sha256/{name}", "rb").read()  # pylint: disable=consider-using-with
                   for name in os.listdir(f"{layout}/blobs/sha256")}
    with open(f"{layout}/index.json", encoding="utf-8") as file:
        image.digest = json.load(file)["manifests"][0]["digest"]
    manifest = (cosign.MANIFEST_TYPE, image.blobs[image.digest])
    image.manifests = {"1": manifest, image.digest: manifest}
    return image


def test_bundles_are_found_by_the_referrers_api(archive, policy, strict_node, key, other_key, tmp_path):
    image = busybox_blobs(archive, tmp_path)
    rows = []
    for row in (other_key, key):
        manifest, blobs = cosign.bundle_manifest(cosign.bundle(row, cosign.statement(image.digest)),
                                                 cosign.subject_of(image.digest, 1))
        image.manifests[cosign.digest_of(manifest)] = (cosign.MANIFEST_TYPE, manifest)
        image.blobs.update({cosign.digest_of(data): data for data in blobs})
        rows.append(manifest)
    server = BadRegistry(image, lambda handler: f"/referrers/{image.digest}" in handler.path and
                         handler.answer(200, cosign.referrers_index(rows), Content_Type=cosign.INDEX_TYPE))
    try:
        policy.write(docker={server.host: signed(key)})
        node = strict_node(server)
        node.launch(pod("web", f"{server.host}/{NAME}"))
        wait_accepted(node, "web")
        assert not server.asked(cosign.referrers_tag(image.digest) + "'"), "the tag was requested as well"
    finally:
        server.stop()


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"manifests":{}}', b'{"manifests":[1,{"digest":"x"}]}',
                                    b'{"manifests":[' + b"[" * 100000])
def test_a_malformed_list_of_referrers_is_ignored(archive, policy, strict_node, key, tmp_path, answer):
    server = BadRegistry(busybox_blobs(archive, tmp_path), lambda handler: "/referrers/" in handler.path and
                         handler.answer(200, answer))
    try:
        policy.write(docker={server.host: signed(key)})
        node = strict_node(server)
        node.drop(pod("web", f"{server.host}/{NAME}"))
        wait_refused(node, "web", "it is not signed")
    finally:
        server.stop()


def damage_signatures(image, key, how):
    """Puts an image of signatures that does not verify next to the image."""
    data = cosign.payload(image.digest, "example.com/app")
    manifest, blobs = cosign.signature_manifest([(data, key.sign(data))] * (200 if how == "many" else 1))
    image.blobs.update({cosign.digest_of(blob): blob for blob in blobs})
    value = json.loads(manifest)
    layer = value["layers"][0]
    if how == "no signature":
        del layer["annotations"]
    elif how == "not base64":
        layer["annotations"]["dev.cosignproject.cosign/signature"] = "!"
    elif how == "long signature":
        layer["annotations"]["dev.cosignproject.cosign/signature"] = "A" * 500000
    elif how == "no payload":
        del image.blobs[layer["digest"]]
    elif how == "other payload":
        image.blobs[layer["digest"]] = data.replace(b"example.com", b"example.org")
    elif how == "long payload":
        layer.update(size=1 << 40, digest=image.add(b" " * 1000000 + image.digest.encode()))
    elif how == "long list":
        value["layers"] *= 3000
    elif how == "many others":
        value["layers"] = [{**layer, "digest": image.add(b"another image %d" % i)} for i in range(2500)]
    elif how == "no list":
        value["layers"] = {}
    manifest = b"{" if how == "not json" else cosign.compact(value)
    image.manifests[cosign.signature_tag(image.digest)] = (cosign.MANIFEST_TYPE, manifest)


@pytest.mark.parametrize("how", ["not json", "no list", "no signature", "not base64", "long signature", "no payload",
                                 "other payload", "long payload", "long list", "many", "many others"])
def test_hostile_signatures_are_not_accepted(archive, policy, strict_node, key, other_key, tmp_path, how):
    image = busybox_blobs(archive, tmp_path)
    damage_signatures(image, other_key if how in ("many", "long list") else key, how)
    server = BadRegistry(image)
    try:
        policy.write(docker={server.host: signed(key, identity={"type": "exactRepository",
                                                                "dockerRepository": "example.com/app"})})
        node = strict_node(server)
        node.drop(pod("web", f"{server.host}/{NAME}"))
        message = wait_refused(node, "web", image.digest)
        # Each attempt starts with the tag, and the next one may have started.
        assert len(server.asked("/blobs/")) < (600 if how == "many others" else 200) * len(server.asked("/manifests/1"))
        assert ("not all of its signatures were read" in message) == how.startswith(("many", "long list")), message
    finally:
        server.stop()


# Archives

def make_layout(archive, tmp_path, name):
    layout = f"{tmp_path}/layout"
    subprocess.run(["skopeo", "copy", f"docker-archive:{archive}", f"oci:{layout}:{name}"], check=True, capture_output=True)
    with open(f"{layout}/index.json", encoding="utf-8") as file:
        return layout, json.load(file)["manifests"][0]["digest"]


def pack(layout, path):
    with tarfile.open(path, "w") as tar:
        for name in ("oci-layout", "index.json", "blobs"):
            tar.add(os.path.join(layout, name), name)
    return path


@pytest.mark.parametrize("form", ["payload", "bundle"])
def test_an_archive_carries_its_signature(archive, policy, strict_node, key, other_key, tmp_path, form):
    layout, digest = make_layout(archive, tmp_path, specs.IMAGE)
    policy.write(oci_archive={"": signed(key)})
    node = strict_node(None)
    node.preload(pack(layout, f"{tmp_path}/unsigned.tar"), "app.tar")
    node.drop(pod("web", specs.IMAGE))
    wait_refused(node, "web", 'transports.oci-archive.""[0]', "it is not signed")
    if form == "payload":
        data = cosign.payload(digest, specs.IMAGE)
        cosign.sign_layout(layout, *cosign.signature_manifest([(data, key.sign(data))]),
                           annotations={"org.opencontainers.image.ref.name": cosign.signature_tag(digest)})
    else:
        cosign.sign_layout(layout, *cosign.bundle_manifest(cosign.bundle(key, cosign.statement(digest)),
                                                           cosign.subject_of(digest, 1)), artifactType=cosign.BUNDLE_TYPE)
    node.preload(pack(layout, f"{tmp_path}/signed.tar"), "app.tar")
    wait_accepted(node, "web")
    assert "cannot be used" not in node.cli("images").stdout
    policy.write(oci_archive={"": signed(other_key)})
    node.drop(pod("later", specs.IMAGE))
    wait_refused(node, "later", "not by a key of this rule")


def test_the_policy_of_archives_depends_on_their_format_and_path(archive, policy, strict_node, tmp_path):
    layout, _ = make_layout(archive, tmp_path, "example.com/layout:1")
    policy.write(docker_archive={"": ACCEPT})
    node = strict_node(None, archive)
    node.launch(pod("docker", specs.IMAGE))
    wait_accepted(node, "docker")
    node.preload(pack(layout, f"{tmp_path}/layout.tar"))
    node.drop(pod("oci", "example.com/layout:1"))
    wait_refused(node, "oci", "default[0]: reject")
    policy.write(docker_archive={"": ACCEPT}, oci_archive={os.path.join(node.state, "preload", "layout.tar"): ACCEPT})
    wait_accepted(node, "oci")


def test_an_image_keeps_the_policy_of_the_archive_that_brought_it(archive, policy, strict_node):
    policy.write(docker_archive={"": ACCEPT})
    node = strict_node(None, archive)
    node.launch(pod("first", specs.IMAGE))
    os.unlink(os.path.join(node.state, "preload", os.path.basename(archive)))
    wait(lambda: os.path.basename(archive) not in node.cli("images").stdout, "the archive is gone")
    node.launch(pod("second", specs.IMAGE))
    wait_accepted(node, "second")
    policy.write(docker={"": ACCEPT})
    node.drop(pod("third", specs.IMAGE))
    wait_refused(node, "third", "default[0]: reject")


# Images that are already in the store

def test_a_verified_image_starts_without_a_network(registry, policy, strict_node, key):
    cosign.sign(registry, NAME, key)
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    node.launch(pod("first", f"{registry.host}/{NAME}"))
    registry.stop()
    node.launch(pod("second", f"{registry.host}/{NAME}"))
    wait_accepted(node, "second")
    node.restart()
    node.launch(pod("third", f"{registry.host}/{NAME}"))
    wait_accepted(node, "third")


def test_a_start_of_a_verified_image_runs_no_other_process(registry, policy, strict_node, key, tmp_path):
    """A start compares the records; nothing is verified, and no registry is contacted."""
    cosign.sign(registry, NAME, key)
    policy.write(docker={registry.host: signed(key)})
    node, trace = strict_node(registry), str(tmp_path / "trace")
    node.launch(pod("first", f"{registry.host}/{NAME}"))
    with subprocess.Popen(["strace", "-qq", "-f", "-e", "trace=socket,execve", "-o", trace, "-p", str(node.agent.pid)]) as tracer:
        wait(lambda: "TracerPid:\t0" not in world.read(f"/proc/{node.agent.pid}/status"), "it is watched")
        node.launch(pod("second", f"{registry.host}/{NAME}"))
        tracer.terminate()
    text = world.read(trace)
    assert "execve" in text, "its children are watched, too"
    assert "AF_INET" not in text and "mainstay-image" not in text, text


def test_a_container_keeps_running_when_the_policy_changes_and_the_next_start_is_checked(registry, policy, strict_node, key,
                                                                                  other_key):
    cosign.sign(registry, NAME, key)
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    node.launch(pod("web", f"{registry.host}/{NAME}"))
    pid = node.init("web")
    policy.write(docker={registry.host: signed(other_key)})
    node.drop(pod("later", f"{registry.host}/{NAME}"))
    wait_refused(node, "later", "it is signed, but not by a key of this rule")
    assert node.init("web") == pid and world.is_alive(pid)
    cosign.sign(registry, NAME, key, other_key)
    wait_accepted(node, "later")


def test_a_restart_of_a_container_checks_the_policy(registry, policy, strict_node):
    policy.write(default=ACCEPT)
    node = strict_node(registry)
    node.launch(pod("web", f"{registry.host}/{NAME}"))
    policy.write(default=REJECT)
    os.kill(node.init("web"), 9)
    wait_refused(node, "web", "default[0]: reject")
    policy.write(default=ACCEPT)
    wait_accepted(node, "web")


def test_stored_signatures_are_checked_again_without_a_network(registry, policy, strict_node, key, other_key):
    cosign.sign(registry, NAME, key, other_key)
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    node.launch(pod("first", f"{registry.host}/{NAME}"))
    registry.stop()
    policy.write(docker={registry.host: signed(other_key)})
    node.launch(pod("second", f"{registry.host}/{NAME}"))
    wait_accepted(node, "second")
    policy.write(docker={registry.host: signed(other_key, identity={"type": "matchExact"})})
    node.drop(pod("third", f"{registry.host}/{NAME}"))
    wait_refused(node, "third", "matchExact does not accept")


def test_an_image_pulled_before_the_policy_existed_is_checked_at_its_registry(registry, policy, strict_node, key):
    policy.write(default=ACCEPT)
    node = strict_node(registry)
    node.launch(pod("first", f"{registry.host}/{NAME}"))
    before = len(store_files(node, "layers"))
    policy.write(docker={registry.host: signed(key)})
    node.drop(pod("second", f"{registry.host}/{NAME}"))
    wait_refused(node, "second", "it is not signed")
    cosign.sign(registry, NAME, key)
    wait_accepted(node, "second")
    assert len(store_files(node, "layers")) == before


def test_the_index_of_an_image_pulled_before_the_policy_existed_is_remembered(archive, registry, policy, strict_node, key):
    """The tag of the index has named a different image since then."""
    index, manifest = push_index(registry)
    policy.write(default=ACCEPT)
    node = strict_node(registry)
    node.launch(pod("first", f"{registry.host}/team/busybox:multi"))
    cosign.sign(registry, "team/busybox:multi", key, digest=index)
    registry.push_larger(archive, "team/busybox:multi")
    policy.write(docker={registry.host: signed(key)})
    node.restart()
    node.launch(pod("second", f"{registry.host}/team/busybox:multi"))
    wait_accepted(node, "second")
    assert node.status("second")["imageID"].endswith(manifest)


def forget_index(node):
    """Removes the index from the record, as in earlier versions, which recorded it only together with signatures."""
    for name in store_files(node, "verified"):
        path = os.path.join(node.state, "images", "verified", name)
        text = re.sub(r'"indexDigest":"[^"]*",', "", world.read(path).rstrip().rpartition("\n")[0]) + "\n"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{text}{hashlib.sha256(text.encode()).hexdigest()}\n")


@pytest.mark.parametrize("form", ["tag", "digest", "newer"])
def test_the_index_that_a_reference_names_is_used_if_none_was_recorded(registry, policy, strict_node, key, form):
    index, manifest = push_index(registry)
    name = f"team/busybox@{index}" if form == "digest" else "team/busybox:multi"
    policy.write(default=ACCEPT)
    node = strict_node(registry)
    node.launch(pod("first", f"{registry.host}/{name}"))
    forget_index(node)
    if form == "newer":
        index, _ = push_index(registry, version="2")
    policy.write(docker={registry.host: signed(key)})
    node.drop(pod("second", f"{registry.host}/{name}"))
    wait_refused(node, "second", manifest, "it is not signed")
    cosign.sign(registry, name, key, digest=index)
    wait_accepted(node, "second")
    registry.stop()
    policy.write(docker={registry.host: signed(key, identity={"type": "exactRepository",
                                                              "dockerRepository": f"{registry.host}/team/busybox"})})
    node.launch(pod("third", f"{registry.host}/{name}"))
    wait_accepted(node, "third")


def test_a_signed_index_that_does_not_list_the_image_is_not_accepted(archive, registry, policy, strict_node, key):
    policy.write(default=ACCEPT)
    node = strict_node(registry)
    node.launch(pod("first", f"{registry.host}/{NAME}"))
    digest = registry.digest(NAME)
    registry.push_larger(archive, NAME)
    index, _ = push_index(registry, tag="1")
    cosign.sign(registry, NAME, key, digest=index)
    policy.write(docker={registry.host: signed(key)})
    node.drop(pod("second", f"{registry.host}/{NAME}"))
    wait_refused(node, "second", digest, "it is not signed")


def test_a_pull_by_digest_keeps_the_recorded_index_of_an_image(registry, policy, strict_node, key, other_key):
    index, manifest = push_index(registry)
    cosign.sign(registry, "team/busybox:multi", other_key, digest=index)
    cosign.sign(registry, "team/busybox:multi", key, digest=manifest)
    subprocess.run(["skopeo", "copy", "--src-tls-verify=false", "--dest-tls-verify=false",
                    f"docker://{registry.host}/{NAME}", f"docker://{registry.host}/team/other:1"], check=True)
    cosign.sign(registry, "team/other:1", key, digest=manifest)
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    node.launch(pod("first", f"{registry.host}/team/busybox:multi"))
    answer = node.cli("images", "pull", f"{registry.host}/team/other@{manifest}")
    assert answer.returncode == 0, answer.stderr
    registry.stop()
    policy.write(docker={registry.host: signed(other_key)})
    node.launch(pod("second", f"{registry.host}/team/busybox:multi"))
    wait_accepted(node, "second")


def test_a_replaced_key_file_is_used_at_the_next_start(registry, policy, strict_node, key, other_key):
    cosign.sign(registry, NAME, key)
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    node.launch(pod("first", f"{registry.host}/{NAME}"))
    with open(key.public, "w", encoding="utf-8") as file:
        file.write(other_key.pem())
    node.drop(pod("second", f"{registry.host}/{NAME}"))
    wait_refused(node, "second", "not by a key of this rule")


def test_signatures_are_removed_with_their_image(registry, policy, strict_node, key):
    cosign.sign(registry, NAME, key)
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    node.launch(pod("web", f"{registry.host}/{NAME}"))
    assert store_files(node, "signatures") == store_files(node, "verified") == store_files(node, "records")
    node.remove("web")
    node.wait_gone("web")
    assert node.cli("images", "rm", f"{registry.host}/{NAME}").returncode == 0
    wait(lambda: not any(store_files(node, name) for name in ("records", "signatures", "verified")), "all is removed")


def test_a_damaged_signature_record_is_not_accepted(registry, policy, strict_node, key):
    """After any damage to the record the signatures are checked again."""
    cosign.sign(registry, NAME, key)
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    node.launch(pod("first", f"{registry.host}/{NAME}"))
    path = os.path.join(node.state, "images", "verified", store_files(node, "verified")[0])
    with open(path, "r+", encoding="utf-8") as file:
        text = file.read()
        file.seek(0)
        file.write(re.sub(r'"passed":\["....', '"passed":["0000', text))
    node.launch(pod("second", f"{registry.host}/{NAME}"))
    wait_accepted(node, "second")


# Pods of all kinds

def test_an_image_volume_is_checked_like_the_image_of_a_container(registry, policy, strict_node, archive, key):
    policy.write(docker={registry.host: signed(key)}, docker_archive={"": ACCEPT})
    node = strict_node(registry, archive)
    node.drop(specs.pod("web", specs.container(volumeMounts=[specs.mount("data", "/data")]),
                        volumes=[{"name": "data", "image": {"reference": f"{registry.host}/{NAME}"}}]))
    wait_refused(node, "web", 'volume "data"', "it is not signed", reason="ImagePullBackOff")
    cosign.sign(registry, NAME, key)
    wait_accepted(node, "web")


def test_an_api_server_pod_is_checked_like_a_static_pod(registry, policy, make_member, key):
    policy.write(docker={registry.host: signed(key)})
    member = make_member(config={"mainstay": {"insecureRegistries": [registry.host], "signaturePolicyFile": policy.path}})
    member.bind("web", specs.container(image=f"{registry.host}/{NAME}"))
    wait_refused(member, "web", "it is not signed")

    def says_why(pod):
        waiting = waiting_state(pod)
        return waiting.get("reason") in ("ErrImagePull", "ImagePullBackOff") and "SignatureValidationFailed" in waiting["message"]
    member.wait_reported("web", says_why, "reports why it does not run")
    cosign.sign(registry, NAME, key)
    member.wait_reported_phase("web", "Running")


def test_a_manual_pull_is_refused_with_the_rule(registry, policy, strict_node, key):
    policy.write(docker={registry.host: signed(key)})
    node = strict_node(registry)
    answer = node.cli("images", "pull", f"{registry.host}/{NAME}")
    assert answer.returncode != 0 and "SignatureValidationFailed" in answer.stderr and "it is not signed" in answer.stderr
