# SPDX-License-Identifier: Apache-2.0
"""A small layer, in each compression and type of archive, with each single bit changed and truncated before each byte:
it is refused and leaves nothing, unless the unpacked files are the same."""

import concurrent.futures
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile

import harness
import pytest
import specs
import world
from sampling import some

CONTENT = b"what the file holds\n"
PACK = {"none": lambda data: data,
        "gzip": lambda data: gzip.compress(data, mtime=0),
        "zstd": lambda data: subprocess.run(["zstd", "-19", "--check", "-c"], input=data, check=True, capture_output=True).stdout}
SUFFIX = {"none": "", "gzip": "+gzip", "zstd": "+zstd"}


def digest(data):
    return hashlib.sha256(data).hexdigest()


def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def small_layer():
    """A small layer with as few final blocks as a tar may have."""
    return tar({"content": CONTENT})[:512 * 4]


class Image:
    """An archive as a function of the bytes of its layer."""

    def __init__(self, form, packing):
        self.form, self.packing = form, packing
        layer = small_layer()
        self.blob = PACK[packing](layer)
        self.config = json.dumps({"architecture": specs.ARCHITECTURE, "os": "linux", "config": {"Cmd": ["x"]},
                                  "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest(layer)]}}).encode()
        kind = "application/vnd.oci.image."
        self.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
            "config": {"mediaType": kind + "config.v1+json", "digest": "sha256:" + digest(self.config), "size": len(self.config)},
            "layers": [{"mediaType": kind + "layer.v1.tar" + SUFFIX[packing], "digest": "sha256:" + digest(self.blob),
                        "size": len(self.blob)}]}).encode()
        self.index = json.dumps({"schemaVersion": 2, "manifests": [
            {"mediaType": kind + "manifest.v1+json", "digest": "sha256:" + digest(self.manifest), "size": len(self.manifest),
             "annotations": {"org.opencontainers.image.ref.name": "x"}}]}).encode()

    def archive(self, blob):
        if self.form == "docker":
            return tar({"manifest.json": json.dumps([{"Config": "config.json", "RepoTags": ["x:1"], "Layers": ["layer.tar"]}]).encode(),
                        "config.json": self.config, "layer.tar": blob})
        return tar({"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": self.index,
                    **{"blobs/sha256/" + digest(data): data for data in (self.config, self.manifest)},
                    "blobs/sha256/" + digest(self.blob): blob})


def run_helper(*words):
    return subprocess.run([harness.program("mainstay-image"), *words], check=False, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=world.DEADLINE)


class Whole:
    """The correct image, with which the unpacked files of damaged ones are compared."""

    def __init__(self, image, directory):
        self.image, self.directory = image, str(directory)
        path = self.write("whole", image.blob)
        said = run_helper("index", "--store", f"{self.directory}/whole/store", path)
        self.digest = json.loads(said.stdout)["images"][0]["digest"]
        assert self.unpack("same", image.blob) == (0, {"content": CONTENT}, 1)

    def write(self, name, blob):
        os.mkdir(f"{self.directory}/{name}")
        path = f"{self.directory}/{name}/image.tar"
        with open(path, "wb") as file:
            file.write(self.image.archive(blob))
        return path

    def unpack(self, name, blob):
        """Unpacks the image; returns the exit status, the files of layers and the number of records afterwards."""
        path, store = self.write(name, blob), f"{self.directory}/{name}/store"
        done = run_helper("unpack", "--store", store, f"--digest={self.digest}", "--name=x", path)
        held = {}
        for where, _, names in os.walk(f"{store}/layers"):
            for below in names:
                with open(os.path.join(where, below), "rb") as file:
                    held[below] = file.read()
        records = len(os.listdir(f"{store}/records")) if os.path.isdir(f"{store}/records") else 0
        assert done.returncode == 0 or (done.returncode == 1 and done.stderr), f"{done}"
        shutil.rmtree(f"{self.directory}/{name}")
        return done.returncode, held, records

    def judge(self, what):
        """The problem, or None. A layer that is refused must leave nothing. Only bytes that no digest covers may be
        changed: the header of a compressed layer in an archive of docker."""
        name, blob = what
        found = self.unpack(name, blob)
        is_free = self.image.form == "docker" and self.image.packing != "none"
        if found == (1, {}, 0) or (is_free and found == (0, {"content": CONTENT}, 1)):
            return None
        return f"{name}: {found}"


def damages(blob, packing):
    """The bytes with each bit changed, and truncated before each byte; in an uncompressed tar only one bit of each byte
    is changed."""
    for at in range(len(blob)):
        yield f"cut-{at}", blob[:at]
        for bit in [at % 8] if packing == "none" else range(8):
            yield f"bit-{at}-{bit}", blob[:at] + bytes([blob[at] ^ 1 << bit]) + blob[at + 1:]


@pytest.mark.parametrize("form,packing", some([(form, packing) for packing in PACK for form in ("oci", "docker")], 3))
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long), 0], ids=["each", "some"])
def test_a_layer_is_refused_whichever_bit_is_changed(tmp_path, form, packing, step):
    whole = Whole(Image(form, packing), tmp_path)
    tried = list(damages(whole.image.blob, packing))
    tried = tried[::step or len(tried) // 12]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [one for one in pool.map(whole.judge, tried) if one]
    print(f"{len(tried)} damaged layers")
    assert len(tried) >= 12 and not wrong, wrong[:20]
