# SPDX-License-Identifier: Apache-2.0
"""Signatures of images as cosign 2 and cosign 3 make and store them, made with openssl: cosign itself is not in Debian
12 (cosign-3/ has an image that it signed). The format is that of cosign's SIGNATURE_SPEC.md and BUNDLE_SPEC.md, and the
JSON is the same as cosign's byte by byte."""

import base64
import hashlib
import json
import os
import subprocess
import tempfile
import urllib.parse
import urllib.request

from world import DEADLINE

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
PAYLOAD_TYPE = "application/vnd.dev.cosign.simplesigning.v1+json"
BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
STATEMENT_TYPE = "application/vnd.in-toto+json"
SIGN_PREDICATE = "https://sigstore.dev/cosign/sign/v1"


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Key:
    """A key pair: 'ecdsa' is P-256, which 'cosign generate-key-pair' uses; 'ed25519' and every curve of openssl are
    possible, too."""

    def __init__(self, directory, name="cosign", kind="ecdsa"):
        self.kind = kind
        self.private = os.path.join(directory, name + ".key")
        self.public = os.path.join(directory, name + ".pub")
        words = ["-algorithm", "ed25519"] if kind == "ed25519" else [
            "-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{'P-256' if kind == 'ecdsa' else kind}"]
        subprocess.run(["openssl", "genpkey", *words, "-out", self.private], check=True, capture_output=True)
        subprocess.run(["openssl", "pkey", "-in", self.private, "-pubout", "-out", self.public], check=True,
                       capture_output=True)

    def pem(self):
        with open(self.public, encoding="utf-8") as file:
            return file.read()

    def sign(self, data):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            words = ["pkeyutl", "-sign", "-rawin", "-inkey", self.private, "-in", file.name]
            if self.kind != "ed25519":
                words = ["dgst", "-sha256", "-sign", self.private, file.name]
            return subprocess.run(["openssl", *words], check=True, capture_output=True).stdout


def payload(digest, reference, **annotations):
    """The payload that cosign 2 signs; 'reference' is the repository, unless --sign-container-identity gives a name
    with a tag."""
    return compact({"critical": {"identity": {"docker-reference": reference},
                                 "image": {"docker-manifest-digest": digest},
                                 "type": "cosign container image signature"}, "optional": annotations or None})


def signature_manifest(rows):
    """The image with the tag 'sha256-<hex>.sig', made of (payload, signature) pairs, and its blobs."""
    config = compact({"architecture": "", "created": "0001-01-01T00:00:00Z", "history": [{"created": "0001-01-01T00:00:00Z"}],
                      "os": "", "rootfs": {"type": "layers", "diff_ids": [digest_of(data) for data, _ in rows]}, "config": {}})
    manifest = compact({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
        "config": {"mediaType": CONFIG_TYPE, "size": len(config), "digest": digest_of(config)},
        "layers": [{"mediaType": PAYLOAD_TYPE, "size": len(data), "digest": digest_of(data),
                    "annotations": {"dev.cosignproject.cosign/signature": base64.b64encode(signature).decode()}}
                   for data, signature in rows]})
    return manifest, [config, *(data for data, _ in rows)]


def statement(digest, predicate=SIGN_PREDICATE, name=None):
    subject = {"digest": {"sha256": digest.split(":")[1]}}
    if name:
        subject["name"] = name
    return compact({"_type": "https://in-toto.io/Statement/v1", "subject": [subject], "predicateType": predicate,
                    "predicate": {}})


def encode_dsse(data):
    return b"DSSEv1 %d %s %d %s" % (len(STATEMENT_TYPE), STATEMENT_TYPE.encode(), len(data), data)


def bundle(key, data):
    """The form in which cosign 3 stores a statement: a DSSE envelope, and a hint to the key."""
    hint = base64.b64encode(hashlib.sha256(key.pem().encode()).digest()).decode()
    return compact({"mediaType": BUNDLE_TYPE, "verificationMaterial": {"publicKey": {"hint": hint}},
                    "dsseEnvelope": {"payload": base64.b64encode(data).decode(), "payloadType": STATEMENT_TYPE,
                                     "signatures": [{"sig": base64.b64encode(key.sign(encode_dsse(data))).decode()}]}})


def bundle_manifest(data, subject):
    """The manifest of a bundle that refers to the image, whose descriptor is 'subject', and its blobs."""
    empty = b"{}"
    manifest = compact({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE, "artifactType": BUNDLE_TYPE,
        "config": {"mediaType": EMPTY_TYPE, "size": len(empty), "digest": digest_of(empty)},
        "layers": [{"mediaType": BUNDLE_TYPE, "size": len(data), "digest": digest_of(data)}], "subject": subject,
        "annotations": {"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": SIGN_PREDICATE}})
    return manifest, [empty, data]


def referrers_index(manifests):
    """The list of the referrers of an image: a response of the referrers API, or the index with the tag 'sha256-<hex>'.
    cosign uses the type of the configuration as the type of the artifact."""
    return compact({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [
        {"mediaType": MANIFEST_TYPE, "size": len(data), "digest": digest_of(data), "artifactType": EMPTY_TYPE}
        for data in manifests]})


def signature_tag(digest):
    return digest.replace(":", "-") + ".sig"


def referrers_tag(digest):
    return digest.replace(":", "-")


def request(method, url, data=None, media_type="application/octet-stream"):
    headers = {"Content-Type": media_type} if data is not None else {}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=DEADLINE) as answer:
        return answer.headers


def push_blob(registry, repository, data):
    base = f"http://{registry.host}/v2/{repository}"
    where = request("POST", f"{base}/blobs/uploads/", b"")["Location"]
    where = urllib.parse.urljoin(base, where)
    request("PUT", f"{where}{'&' if '?' in where else '?'}digest={digest_of(data)}", data)


def push(registry, repository, name, manifest, blobs, media_type=MANIFEST_TYPE):
    """Puts an image of signatures into a registry without a password, under a tag or its digest."""
    for data in blobs:
        push_blob(registry, repository, data)
    request("PUT", f"http://{registry.host}/v2/{repository}/manifests/{name or digest_of(manifest)}", manifest, media_type)


def sign(registry, name, *keys, digest=None, reference=None):
    """The effect of 'cosign sign --key' of version 2 on 'team/app:1'."""
    repository = name.split(":")[0].split("@")[0]
    digest = digest or registry.digest(name)
    data = payload(digest, reference or f"{registry.host}/{repository}")
    manifest, blobs = signature_manifest([(data, key.sign(data)) for key in keys])
    push(registry, repository, signature_tag(digest), manifest, blobs)


def subject_of(digest, size, media_type=MANIFEST_TYPE):
    return {"mediaType": media_type, "digest": digest, "size": size}


def sign_bundle(registry, name, *keys):
    """The effect of version 3, at a registry without the referrers API."""
    repository, digest = name.split(":")[0], registry.digest(name)
    manifests = []
    for key in keys:
        manifest, blobs = bundle_manifest(bundle(key, statement(digest)), subject_of(digest, 1))
        push(registry, repository, None, manifest, blobs)
        manifests.append(manifest)
    push(registry, repository, referrers_tag(digest), referrers_index(manifests), [], INDEX_TYPE)


def sign_layout(layout, manifest, blobs, **descriptor):
    """Puts an image of signatures into an OCI layout next to the image that it signs."""
    for data in (manifest, *blobs):
        with open(os.path.join(layout, "blobs", "sha256", digest_of(data).split(":")[1]), "wb") as file:
            file.write(data)
    path = os.path.join(layout, "index.json")
    with open(path, encoding="utf-8") as file:
        index = json.load(file)
    index["manifests"].append({"mediaType": MANIFEST_TYPE, "digest": digest_of(manifest), "size": len(manifest), **descriptor})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(index, file)
