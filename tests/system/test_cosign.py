# SPDX-License-Identifier: Apache-2.0
"""An image that cosign 3 itself has signed and saved, from a registry and from an archive. cosign-3/README.md describes
how it was created."""

import json
import os

import cosign
import pytest
import specs
import world
from registry import BadRegistry, Blobs
from test_signatures import ACCEPT, Policy, pack

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cosign-3")
KEYS = ["payload", "bundle"]
REPOSITORY = "registry.example.com/team/app"


def read(*names):
    with open(os.path.join(DIRECTORY, *names), "rb") as file:
        return file.read()


def signed_image():
    """The content of the registry after 'cosign sign'."""
    image = Blobs([{}])
    image.blobs = {f"sha256:{name}": read("layout", "blobs", "sha256", name)
                   for name in os.listdir(f"{DIRECTORY}/layout/blobs/sha256")}
    rows = {row["annotations"]["kind"].rsplit("/", 1)[1]: row["digest"]
            for row in json.loads(read("layout", "index.json"))["manifests"]}
    image.digest = rows["image"]
    image.manifests = {digest: (cosign.MANIFEST_TYPE, data) for digest, data in image.blobs.items() if b'"layers":' in data
                       or b'"layers": ' in data}
    image.manifests["1"] = image.manifests[image.digest]
    image.manifests[cosign.signature_tag(image.digest)] = image.manifests[rows["sigs"]]
    image.manifests[cosign.referrers_tag(image.digest)] = (cosign.INDEX_TYPE, read("referrers.json"))
    return image


def rule(path, key):
    """A rule for the image. Only a payload contains the repository that was signed."""
    return [{"type": "sigstoreSigned", "keyPath": path, "signedIdentity": {
        "type": "exactRepository", "dockerRepository": REPOSITORY} if key == "payload" else {"type": "matchRepository"}}]


@pytest.fixture(name="verdict")
def fixture_verdict(make_node, tmp_path, archive):
    """Runs a pod with the image as a volume under a rule for registries and archives in OCI format. Returns the content
    of its file, or the reason of the refusal."""
    def verdict(requirements, image=None, layout=None):
        policy = Policy(str(tmp_path))
        policy.write(docker={"": requirements}, oci_archive={"": requirements}, docker_archive={"": ACCEPT})
        server = BadRegistry(image) if image else None
        try:
            node = make_node(archive=archive, config={"mainstay": {
                "signaturePolicyFile": policy.path,
                **({"registryMirrors": [{"registry": "registry.example.com", "mirrors": [f"http://{server.host}"]}]}
                   if server else {})}})
            if layout:
                node.preload(layout)
            reference = f"{REPOSITORY}@{signed_image().digest}"
            node.drop(specs.pod("app", specs.container(volumeMounts=[specs.mount("app", "/app")]), volumes=[
                {"name": "app", "image": {"reference": reference, "pullPolicy": "IfNotPresent"}}]))

            def decided():
                message = (node.status("app") or {}).get("state", {}).get("waiting", {}).get("message", "")
                if "SignatureValidationFailed" in message:
                    return message
                return node.find_init("app") and world.read(f"/proc/{node.init('app')}/root/app/etc/hello")
            return world.wait(decided, lambda: f"the image is accepted or refused: {node.status('app')}")
        finally:
            if server:
                server.stop()
    return verdict


@pytest.mark.parametrize("key", KEYS)
def test_an_image_that_cosign_signed_in_a_registry_is_accepted(verdict, key):
    assert verdict(rule(f"{DIRECTORY}/{key}.pub", key), signed_image()) == "hello\n"


@pytest.mark.parametrize("key", KEYS)
def test_an_archive_that_cosign_saved_has_its_signatures(verdict, tmp_path, key):
    layout = pack(f"{DIRECTORY}/layout", str(tmp_path / "saved.tar"))
    assert verdict(rule(f"{DIRECTORY}/{key}.pub", key), layout=layout) == "hello\n"


@pytest.mark.parametrize("key", KEYS)
def test_an_image_that_cosign_signed_with_other_keys_is_refused(verdict, tmp_path, key):
    other = cosign.Key(str(tmp_path), "other")
    assert "it is signed, but not by a key of this rule" in verdict(rule(other.public, key), signed_image())


def test_an_attestation_of_cosign_is_not_a_signature(verdict):
    image = signed_image()
    del image.manifests[cosign.signature_tag(image.digest)]
    message = verdict(rule(f"{DIRECTORY}/payload.pub", "payload"), image)
    assert "its predicate is 'https://slsa.dev/provenance/v1', not a signature" in message


def test_signature_of_cosign_with_an_ed25519_key_is_refused(verdict):
    """The signature is of type Ed25519ph (RFC 8032), which 'cosign verify' refuses as well."""
    assert "it is signed, but not by a key of this rule" in verdict(rule(f"{DIRECTORY}/ed25519.pub", "ed25519"), signed_image())
