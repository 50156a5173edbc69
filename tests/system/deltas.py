# SPDX-License-Identifier: Apache-2.0
"""Deltas between images for tests, written by hand as tar-diff and oci-delta define them: the operations of a tar-diff,
and the artifact around them."""

import io
import json
import subprocess
import tarfile

from registry import INDEX_TYPE, MANIFEST_TYPE, digest_of, document

ARTIFACT_TYPE = "application/vnd.io.github.containers.oci-delta.v1"
TAR_DIFF_TYPE = "application/vnd.tar-diff"
EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
PREFIX = "io.github.containers.delta."
MAGIC = b"tardf1\n\0"
DATA, OPEN, COPY, ADD_DATA, SEEK = range(5)


def varint(number):
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes([*out, number])


def operation(kind, what):
    """One operation; 'what' is its data or its size."""
    if isinstance(what, int):
        return bytes([kind]) + varint(what)
    return bytes([kind]) + varint(len(what)) + what


def pack(operations):
    """A tar-diff that contains operations, which are already joined."""
    return MAGIC + subprocess.run(["zstd", "-c"], input=operations, check=True, capture_output=True).stdout


def offsets(tar):
    """The name, position and size of each regular file in a tar."""
    with tarfile.open(fileobj=io.BytesIO(tar)) as members:
        return [(member.name, member.offset_data, member.size) for member in members if member.isreg() and member.size]


def tar_diff(old_files, new_tar):
    """The tar-diff that makes the tar; files that are equal or have the same length are made from old files of the same
    name."""
    out, at = [], 0
    for name, start, size in offsets(new_tar):
        old, new = old_files.get(name, b""), new_tar[start:start + size]
        if len(old) != size:
            continue
        out += [operation(DATA, new_tar[at:start]), operation(OPEN, name.encode())]
        if old == new:
            out.append(operation(COPY, size))
        else:
            out.append(operation(ADD_DATA, bytes((a - b) % 256 for a, b in zip(new, old))))
        at = start + size
    out.append(operation(DATA, new_tar[at:]))
    return pack(b"".join(out))


def config_digest(image):
    return json.loads(image.manifest)["config"]["digest"]


def artifact(old, new, parts, base=None):
    """The manifest of a delta. 'parts' contains the blobs by the layer that each of them makes; the blobs are added to
    the image."""
    def layer(kind, data, content, **more):
        return {"mediaType": kind, "digest": new.add(data), "size": len(data),
                "annotations": {PREFIX + "content": content, **{PREFIX + key: value for key, value in more.items()}}}
    manifest = json.loads(new.manifest)
    config = manifest["config"]
    layers = [layer(MANIFEST_TYPE, new.manifest, "image-manifest"),
              layer(config["mediaType"], new.blobs[config["digest"]], "image-config"),
              layer("application/x-unknown", b"signed", "cosign-signature")]
    layers += [layer(TAR_DIFF_TYPE, data, "image-layer", to=to) for to, data in parts.items()]
    left_out = [row["digest"] for row in manifest["layers"] if row["digest"] not in parts]
    return document({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE, "artifactType": ARTIFACT_TYPE,
        "config": {"mediaType": EMPTY_TYPE, "digest": new.add(b"{}"), "size": 2}, "layers": layers,
        "subject": {"mediaType": MANIFEST_TYPE, "digest": new.digest, "size": len(new.manifest)},
        "annotations": {PREFIX + "target": new.digest, PREFIX + "source": old.digest,
                        PREFIX + "source-config": base or config_digest(old), PREFIX + "reused": json.dumps(left_out)}})


def referrers(*artifacts, annotated=True):
    """The index that lists deltas, as a registry returns it or as it is stored under a tag."""
    return document({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [
        {"mediaType": MANIFEST_TYPE, "artifactType": ARTIFACT_TYPE, "digest": digest_of(one), "size": len(one),
         **({"annotations": json.loads(one)["annotations"]} if annotated else {})} for one in artifacts]})


def offer(image, *artifacts, annotated=True):
    """Puts deltas into the image's registry, under the tag that replaces the referrers API in registries without it."""
    for one in artifacts:
        image.manifests[digest_of(one)] = (MANIFEST_TYPE, one)
    image.manifests[image.digest.replace(":", "-")] = (INDEX_TYPE, referrers(*artifacts, annotated=annotated))


def archive(path, manifest, blobs, name=None):
    """The delta as a file, as oci-delta writes it."""
    entry = {"mediaType": MANIFEST_TYPE, "digest": digest_of(manifest), "size": len(manifest)}
    if name:
        entry["annotations"] = {"org.opencontainers.image.ref.name": name}
    needed = {row["digest"] for row in [*json.loads(manifest)["layers"], json.loads(manifest)["config"]]}
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
             **{f"blobs/sha256/{digest[7:]}": blobs[digest] for digest in sorted(needed)},
             f"blobs/sha256/{digest_of(manifest)[7:]}": manifest,
             "index.json": document({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry]})}
    write_tar(path, files)
    return str(path)


def image_archive(path, image, name=None):
    """The whole image as an OCI archive."""
    entry = {"mediaType": MANIFEST_TYPE, "digest": image.digest, "size": len(image.manifest)}
    if name:
        entry["annotations"] = {"org.opencontainers.image.ref.name": name}
    write_tar(path, {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
                     **{f"blobs/sha256/{digest[7:]}": data for digest, data in image.blobs.items()},
                     f"blobs/sha256/{image.digest[7:]}": image.manifest,
                     "index.json": document({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry]})})
    return str(path)


def write_tar(path, files):
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
