# SPDX-License-Identifier: Apache-2.0
"""Deltas between images: an update is created from the old image's layers and a few bytes. If anything is wrong with a
delta, the image is pulled as if there were none."""

import glob
import gzip
import io
import json
import os
import random
import signal
import stat
import struct
import subprocess
import tarfile
import threading
import time
import urllib.request

import deltas
import harness
import pytest
import specs
from deltas import ADD_DATA, COPY, DATA, OPEN, SEEK, operation, pack
from registry import LAYER_TYPE, Blobs, DockerRegistry, digest_of
from sampling import some
from world import DEADLINE, cmdline, descriptors, pids, read, sockets_of_port, wait

RANDOM = random.Random(5).randbytes(300_000)
LIBRARY = RANDOM[:200_000]
PATCHED = LIBRARY[:1000] + b"\x00\x01\x02" + LIBRARY[1003:]
OLD = [{"etc/hello": b"old\n", "usr/lib/big": LIBRARY, "usr/lib/same": RANDOM[200_000:]}]
NEW = [{"etc/hello": b"new\n", "usr/lib/big": PATCHED, "usr/lib/same": RANDOM[200_000:], "usr/lib/more": b"more"}]
REPOSITORY = "team/app"


def layer_tar(image, i):
    return gzip.decompress(image.blobs[image.layers[i]])


def delta_of(old_files, new, i=0):
    """The blobs of a delta in which only layer 'i' differs."""
    return {new.layers[i]: deltas.tar_diff(old_files, layer_tar(new, i))}


class World:
    """A store, and a registry that has the old image and then the new one with a delta."""

    def __init__(self, directory, serve, old=None, new=None):
        self.store = os.path.join(str(directory), "store")
        self.old, self.new = old or Blobs(OLD), new or Blobs(NEW)
        self.registry = serve(self.old)
        self.delta = None

    def pull_old(self):
        status, said, _ = self.pull(self.old, "old")
        assert status == 0, said
        return self

    def offer(self, parts=None, annotated=True, **options):
        self.delta = deltas.artifact(self.old, self.new, delta_of(OLD[0], self.new) if parts is None else parts, **options)
        deltas.offer(self.new, self.delta, annotated=annotated)
        return self

    def spawn(self, image, tag, behave=None):
        self.registry.image, self.registry.behave, self.registry.sent = image, behave, 0
        self.registry.seen.clear()
        image.manifests[tag] = image.manifests["latest"]
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [harness.program("mainstay-image"), "pull", "--store", self.store, self.name(tag)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdin.write(json.dumps({"insecureRegistries": [self.registry.host]}))
        process.stdin.close()
        process.stdin = None
        return process

    def name(self, tag):
        return f"{self.registry.host}/{REPOSITORY}:{tag}"

    def pull(self, image, tag, behave=None):
        """Pulls the new image; returns exit status, output and the registry."""
        process = self.spawn(image, tag, behave)
        out, error = process.communicate(timeout=DEADLINE)
        assert "Sanitizer" not in error, error
        return process.returncode, out + error, self.registry

    def pull_new(self, behave=None):
        return self.pull(self.new, "new", behave)

    def content(self, path):
        """The content of a file in the new image."""
        chain = chain_ids(self.new)[-1]
        with open(f"{self.store}/layers/{chain}/{path}", "rb") as file:
            return file.read()

    def expect_new(self, files=None):
        for name, data in (files or NEW[0]).items():
            assert self.content(name) == data, name
        assert not os.listdir(f"{self.store}/partial"), "the delta was kept"
        assert not os.listdir(f"{self.store}/tmp")

    def expect_old(self):
        chain = chain_ids(self.old)[-1]
        for name, data in OLD[0].items():
            with open(f"{self.store}/layers/{chain}/{name}", "rb") as file:
                assert file.read() == data, name


def chain_ids(image):
    config = json.loads(image.blobs[deltas.config_digest(image)])
    chains = []
    for diff_id in config["rootfs"]["diff_ids"]:
        chains.append(digest_of(f"{chains[-1]} {diff_id}".encode()) if chains else diff_id)
    return [chain[7:] for chain in chains]


@pytest.fixture(name="world")
def fixture_world(tmp_path, serve):
    return World(tmp_path, serve)


def expect_delta(world, result, files=None):
    status, said, registry = result
    assert status == 0 and '"info":"pulling a delta' in said, said
    assert "warning" not in said, said
    for layer in json.loads(world.delta)["layers"]:
        if layer["mediaType"] == deltas.TAR_DIFF_TYPE:
            assert registry.asked(layer["digest"])
            assert not registry.asked(layer["annotations"][deltas.PREFIX + "to"]), "the layer was fetched as well"
    world.expect_new(files)


def expect_whole(world, result, *words, files=None):
    """Asserts that the image was pulled without the delta, and that the output contains the reason."""
    status, said, registry = result
    assert status == 0, said
    for word in words:
        assert word in said, said
    assert any(registry.asked(layer) for layer in world.new.layers)
    world.expect_new(files)


# Found and applied

@pytest.mark.parametrize("annotated", [True, False], ids=["annotated", "plain"])
def test_an_update_is_pulled_as_a_delta(world, annotated):
    world.pull_old().offer(annotated=annotated)
    result = world.pull_new()
    expect_delta(world, result)
    world.expect_old()
    assert result[2].sent < len(world.new.blobs[world.new.layers[0]]) / 10


def test_a_delta_is_found_among_the_referrers_of_the_image(world):
    world.pull_old().offer()
    listed = deltas.referrers(world.delta)
    del world.new.manifests[world.new.digest.replace(":", "-")]

    def behave(handler):
        path, _, query = handler.path.partition("?")
        if path != f"/v2/{REPOSITORY}/referrers/{world.new.digest}":
            return False
        assert query == f"artifactType={deltas.ARTIFACT_TYPE}"
        return handler.answer(200, listed, Content_Type=deltas.INDEX_TYPE)
    expect_delta(world, world.pull_new(behave))


def test_the_first_pull_of_a_repository_requests_no_delta(world):
    world.offer()
    status, said, registry = world.pull_new()
    assert status == 0 and "delta" not in said
    assert not registry.asked("/referrers/") and not registry.asked("/manifests/sha256-")


def test_a_delta_whose_base_image_is_present_is_used(world):
    world.pull_old().offer()
    other = deltas.artifact(world.old, world.new, {world.new.layers[0]: b"for another image"}, base="sha256:" + "1" * 64)
    deltas.offer(world.new, other, world.delta)
    expect_delta(world, world.pull_new())


def test_a_delta_of_a_delta_is_applied(world, serve):
    world.pull_old().offer()
    expect_delta(world, world.pull_new())
    newest = [{**NEW[0], "etc/hello": b"newest\n"}]
    world.old, world.new = world.new, Blobs(newest)
    world.offer(parts=delta_of(NEW[0], world.new))
    expect_delta(world, world.pull_new(), newest[0])


def test_a_blob_that_is_larger_than_its_layer_is_not_fetched(world):
    parts = {world.new.layers[0]: pack(operation(DATA, RANDOM * 3))}
    world.pull_old().offer(parts=parts)
    expect_whole(world, world.pull_new())


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_layers_on_top_of_a_changed_one_are_unpacked_again(tmp_path, serve, stored):
    """The delta does not contain these layers: their blobs are in the store, or are fetched."""
    top = {"top/file": RANDOM[:50_000]}
    world = World(tmp_path, serve, Blobs([OLD[0], top]), Blobs([NEW[0], top]))
    world.pull_old().offer()
    if not stored:
        os.unlink(f"{world.store}/blobs/sha256/{world.new.layers[1][7:]}")
    status, said, registry = world.pull_new()
    assert status == 0 and "pulling a delta" in said, said
    assert bool(registry.asked(world.new.layers[1])) is not stored
    world.expect_new(top)


def test_sources_are_the_visible_files_of_the_base_layers(tmp_path, serve):
    """Replaced and hidden files, hard links, and paths through symbolic links."""
    def tar(*members):
        path = tmp_path / "layer.tar"
        with tarfile.open(path, "w") as out:
            for name, kind, link, data in members:
                member = tarfile.TarInfo(name)
                member.type, member.linkname, member.size = kind, link, len(data)
                out.addfile(member, io.BytesIO(data))
        return path.read_bytes()
    file, directory, hard, soft = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE
    text = {name: RANDOM[i * 1000:i * 1000 + 900] for i, name in enumerate(["a", "b", "low", "gone", "way"])}
    lower = tar(("usr", directory, "", b""), ("usr/lib", directory, "", b""), ("lib", soft, "usr/lib", b""),
                ("a", file, "", b"x" * 900), ("b", file, "", text["b"]), ("linked", hard, "b", b""),
                ("gone", file, "", text["gone"]), ("dir", directory, "", b""), ("dir/low", file, "", text["low"]))
    upper = tar(("a", file, "", text["a"]), (".wh.gone", file, "", b""), ("lib/way", file, "", text["way"]))
    old = Blobs([{}, {}])
    new_tar = tar(*[(name, file, "", text[source]) for name, source in
                    (("n1", "a"), ("n2", "b"), ("n3", "low"), ("n4", "gone"), ("n5", "way"), ("n6", "way"))])
    replace_layers(old, [lower, upper])
    new = Blobs([{}])
    replace_layers(new, [new_tar])
    sources = ["a", "linked", "dir/low", "gone", "lib/way", "usr/lib/way"]
    out, at = b"", 0
    for (_, start, size), source in zip(deltas.offsets(new_tar), sources):
        out += operation(DATA, new_tar[at:start]) + operation(OPEN, source.encode()) + operation(COPY, 400)
        out += operation(SEEK, 400) + operation(ADD_DATA, bytes(500))
        at = start + size
    world = World(tmp_path, serve, old, new)
    world.pull_old().offer(parts={new.layers[0]: pack(out + operation(DATA, new_tar[at:]))})
    expect_delta(world, world.pull_new(), {"n1": text["a"], "n4": text["gone"], "n5": text["way"]})


def file_of(tar, name):
    start, size = next((start, size) for other, start, size in deltas.offsets(tar) if other == name)
    return tar[start:start + size]


def replace_layers(image, tars):
    """Gives the image these layers."""
    packed = [gzip.compress(tar, 1, mtime=0) for tar in tars]
    manifest = json.loads(image.manifest)
    config = json.loads(image.blobs[manifest["config"]["digest"]])
    config["rootfs"]["diff_ids"] = [digest_of(tar) for tar in tars]
    text = deltas.document(config)
    manifest["config"].update(digest=image.add(text), size=len(text))
    for row, data in zip(manifest["layers"], packed):
        row.update(digest=image.add(data), size=len(data))
    image.layers = [digest_of(data) for data in packed]
    image.manifest = deltas.document(manifest)
    image.digest = digest_of(image.manifest)
    image.manifests = {image.digest: (deltas.MANIFEST_TYPE, image.manifest),
                       "latest": (deltas.MANIFEST_TYPE, image.manifest)}


def test_a_delta_that_tar_diff_made_is_applied(tmp_path, serve):
    directory = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tar-diff")

    def load(name):
        with open(os.path.join(directory, name), "rb") as file:
            return file.read()
    old, new = Blobs([{}]), Blobs([{}])
    replace_layers(old, [gzip.decompress(load("old.tar.gz"))])
    replace_layers(new, [gzip.decompress(load("new.tar.gz"))])
    world = World(tmp_path, serve, old, new)
    world.pull_old().offer(parts={new.layers[0]: load("new.tardiff")})
    expect_delta(world, world.pull_new(), {"usr/bin/alias": file_of(layer_tar(new, 0), "usr/bin/prog")})


# Not applied

@pytest.mark.parametrize("lost", ["image", "layer"])
def test_without_the_old_image_the_layers_are_pulled(world, lost):
    world.pull_old().offer()
    if lost == "image":
        os.unlink(f"{world.store}/blobs/sha256/{deltas.config_digest(world.old)[7:]}")
    else:
        os.rename(f"{world.store}/layers/{chain_ids(world.old)[0]}", f"{world.store}/elsewhere")
    expect_whole(world, world.pull_new(), "pulling whole layers, the delta cannot be used", "not in the store")


def operations(*what):
    return pack(b"".join(what))


BROKEN = {
    "another tar": (lambda: deltas.tar_diff(OLD[0], Blobs.tar(OLD[0])), "its DiffID is"),
    "no delta": (lambda: b"something else", "it is not a tar-diff"),
    "nothing": (lambda: b"", "it is not a tar-diff"),
    "no zstd": (lambda: deltas.MAGIC + b"\x28\xb5\x2f\xfdxxxxxxxxxx", ""),
    "truncated": (lambda: deltas.tar_diff(OLD[0], Blobs.tar(NEW[0]))[:-200], ""),
    "an unknown operation": (lambda: operations(bytes([9, 1, 0])), "unknown operation 9"),
    "a long number": (lambda: operations(bytes([DATA] + [0xff] * 11)), "more than 64 bits"),
    "data without an end": (lambda: operations(bytes([DATA]) + deltas.varint(1000) + b"x"), "ends within an operation"),
    "too much": (lambda: operations(operation(OPEN, b"etc/hello"), operation(COPY, 1 << 40)), "makes more than"),
    "a missing file": (lambda: operations(operation(OPEN, b"etc/nothing"), operation(COPY, 1)), "cannot be opened"),
    "a directory": (lambda: operations(operation(OPEN, b"etc"), operation(COPY, 1)), "cannot be opened"),
    "a short file": (lambda: operations(operation(OPEN, b"etc/hello"), operation(COPY, 100)), "is too short"),
    "a far position": (lambda: operations(operation(OPEN, b"etc/hello"), operation(SEEK, (1 << 64) - 1)), "seeks beyond"),
    "no file": (lambda: operations(operation(COPY, 1)), "before it opens one"),
    "the parent": (lambda: operations(operation(OPEN, b"../../../records"), operation(COPY, 1)), ""),
    "a hidden parent": (lambda: operations(operation(OPEN, b"etc/../../x"), operation(COPY, 1)), ""),
    "an absolute path": (lambda: operations(operation(OPEN, b"/etc/passwd"), operation(COPY, 1)), "cannot be opened"),
    "a long path": (lambda: operations(operation(OPEN, b"x" * 5000), operation(COPY, 1)), "with 5000 bytes"),
    "no path": (lambda: operations(operation(OPEN, b""), operation(COPY, 1)), "with 0 bytes"),
    "a path with a NUL": (lambda: operations(operation(OPEN, b"etc\0hello"), operation(COPY, 1)), "with a NUL"),
}


@pytest.mark.parametrize("fault", some(BROKEN, 3))
def test_a_broken_delta_is_reported_and_the_layers_are_pulled(world, fault):
    make, words = BROKEN[fault]
    world.pull_old().offer(parts={world.new.layers[0]: make()})
    expect_whole(world, world.pull_new(), '"warning":"the delta cannot be applied, pulling whole layers', words)
    world.expect_old()


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../secret"])
def test_a_link_in_the_old_image_does_not_lead_to_the_host(tmp_path, serve, target):
    (tmp_path / "secret").write_bytes(b"secret")
    path = tmp_path / "old.tar"
    with tarfile.open(path, "w") as tar:
        member = tarfile.TarInfo("link")
        member.type, member.linkname = tarfile.SYMTYPE, target
        tar.addfile(member)
    old, new = Blobs([{}]), Blobs(NEW)
    replace_layers(old, [path.read_bytes()])
    world = World(tmp_path, serve, old, new)
    world.pull_old().offer(parts={new.layers[0]: operations(operation(OPEN, b"link"), operation(COPY, 1))})
    expect_whole(world, world.pull_new(), "the base's file 'link' cannot be opened")


@pytest.mark.parametrize("fault", ["damaged", "missing", "cut"])
def test_a_blob_that_the_registry_damaged_is_reported_and_the_layers_are_pulled(world, fault):
    world.pull_old().offer()
    part = json.loads(world.delta)["layers"][-1]["digest"]
    data = world.new.blobs[part]

    def behave(handler):
        if part not in handler.path:
            return False
        if fault == "missing":
            return handler.answer(404)
        return handler.answer(200, data[:-1] + b"x" if fault == "damaged" else data[:-10])
    result = world.pull_new(behave)
    expect_whole(world, result, "the delta cannot be applied")


def test_documents_of_an_abandoned_delta_are_ignored(tmp_path, serve):
    layers = [NEW[0], *[{f"top{i}": RANDOM[i:60_000 + i]} for i in range(6)]]
    old = [OLD[0], *[{f"top{i}": RANDOM[:60_000]} for i in range(6)]]
    world = World(tmp_path, serve, Blobs(old), Blobs(layers))
    parts = {layer: pack(operation(DATA, layer_tar(world.new, i)[:100 + i])) for i, layer in enumerate(world.new.layers)}
    world.pull_old().offer(parts=parts)
    blobs, whole = [digest_of(part) for part in parts.values()], threading.Event()

    def behave(handler):
        if any(layer in handler.path for layer in world.new.layers):
            whole.set()
        if blobs[0] in handler.path:
            return handler.answer(404)
        if any(blob in handler.path for blob in blobs[1:]):
            # These blobs keep the fetchers busy until the layers are being unpacked.
            whole.wait(30)
            time.sleep(0.5)
        return False
    expect_whole(world, world.pull_new(behave), "the delta cannot be applied", files=layers[-1])


def other_fetchers(process, port):
    """The fetchers of a pull, except the one that has a connection from this port."""
    sockets = sockets_of_port(port)
    assert sockets
    children = [pid for pid in pids() if f"\nPPid:\t{process.pid}\n" in (read(f"/proc/{pid}/status") or "")]
    return [pid for pid in children if not sockets & set(descriptors(pid).values())]


@pytest.mark.parametrize("during", ["document", "layer"])
def test_the_reply_for_an_abandoned_document_is_ignored(world, during):
    """An idle fetcher dies, and the pull does not wait for the fetcher that requests the document."""
    world.pull_old().offer()
    later = "/sha256-" if during == "document" else json.loads(world.delta)["layers"][-1]["digest"]
    process, is_late, is_answered = [], threading.Event(), threading.Event()

    def behave(handler):
        if "/referrers/" in handler.path:
            wait(lambda: process, "the test knows the process")
            os.kill(other_fetchers(process[0], handler.client_address[1])[0], signal.SIGKILL)
            is_late.wait(DEADLINE)
            handler.answer(404)
            is_answered.set()
            return True
        if later in handler.path:
            is_late.set()
            is_answered.wait(DEADLINE)
            time.sleep(0.5)
        return False
    process.append(world.spawn(world.new, "new", behave))
    with process[0]:
        out, error = process[0].communicate(timeout=DEADLINE)
    expect_delta(world, (process[0].returncode, out + error, world.registry))


@pytest.mark.parametrize("fault", ["no json", "another image", "no base", "a foreign type", "a wrong digest"])
def test_a_broken_artifact_is_reported_and_the_layers_are_pulled(world, fault):
    world.pull_old().offer(annotated=False)
    manifest = json.loads(world.delta)
    if fault == "another image":
        manifest["annotations"][deltas.PREFIX + "target"] = world.old.digest
    elif fault == "no base":
        del manifest["annotations"][deltas.PREFIX + "source-config"]
    elif fault == "a foreign type":
        manifest["layers"][-1]["mediaType"] = "application/x-unknown"
    text = b"{" if fault == "no json" else deltas.document(manifest)
    world.new.manifests[world.new.digest.replace(":", "-")] = (deltas.INDEX_TYPE, deltas.document({
        "schemaVersion": 2, "mediaType": deltas.INDEX_TYPE, "manifests": [
            {"mediaType": deltas.MANIFEST_TYPE, "artifactType": deltas.ARTIFACT_TYPE, "digest": digest_of(text),
             "size": len(text)}]}))
    world.new.manifests[digest_of(text)] = (deltas.MANIFEST_TYPE, b"{}" if fault == "a wrong digest" else text)
    expect_whole(world, world.pull_new(), '"warning":"pulling whole layers, the delta cannot be used')


@pytest.mark.parametrize("answer", [500, 403, 200])
def test_an_image_is_pulled_from_a_registry_that_cannot_list_referrers(world, answer):
    world.pull_old()

    def behave(handler):
        return "/referrers/" in handler.path and handler.answer(answer, b"no index")
    status, said, _ = world.pull_new(behave)
    assert status == 0, said
    world.expect_new()


@pytest.mark.parametrize("when", ["arriving", "applied"])
def test_an_interrupted_update_keeps_the_old_image_complete_and_is_repeated(world, when):
    hang, asked = threading.Event(), threading.Event()
    world.pull_old().offer()
    part = json.loads(world.delta)["layers"][-1]["digest"]
    data = world.new.blobs[part]

    def behave(handler):
        if part not in handler.path or asked.is_set():
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:len(data) // 2 if when == "arriving" else len(data) - 1])
        handler.wfile.flush()
        asked.set()
        hang.wait(300)
        return True
    with world.spawn(world.new, "new", behave) as process:
        assert asked.wait(DEADLINE)
        partial = f"{world.store}/partial/{part[7:]}.*"
        wait(lambda: any(os.stat(path).st_size > 0 for path in glob.glob(partial)), "a part of it has arrived")
        process.send_signal(signal.SIGKILL)
    hang.set()
    wait(lambda: not any(world.store in cmdline(pid) for pid in pids()), "its fetchers have ended")
    world.expect_old()
    assert not os.path.exists(f"{world.store}/layers/{chain_ids(world.new)[0]}")
    assert subprocess.run([harness.program("mainstay-image"), "sweep", "--store", world.store], check=False).returncode == 0
    expect_delta(world, world.pull_new())
    world.expect_old()


def test_a_layer_of_zstd_chunked_is_read_as_zstd(world):
    """The layer has a separate frame for each file, and skippable frames with data for readers of that format: the
    table of contents and, at the end, its position."""
    def compress(part):
        return subprocess.run(["zstd", "-c"], input=part, check=True, capture_output=True).stdout

    def skipped(part):
        return struct.pack("<II", 0x184D2A50, len(part)) + part
    tar = layer_tar(world.new, 0)
    parts = [compress(tar[:512]), compress(tar[512:150_000]), compress(tar[150_000:]),
             skipped(compress(b'{"version":1,"entries":[]}')), skipped(b"\0" * 40 + b"GNUlInUx")]
    manifest = json.loads(world.new.manifest)
    data, offset = b"".join(parts), len(b"".join(parts[:3]))
    manifest["layers"][0].update(
        digest=world.new.add(data), size=len(data), mediaType=LAYER_TYPE.replace("+gzip", "+zstd"),
        annotations={"io.github.containers.zstd-chunked.manifest-position": f"{offset + 8}:{len(parts[3]) - 8}:26:1",
                     "io.github.containers.zstd-chunked.manifest-checksum": digest_of(parts[3][8:])})
    world.new.manifests["latest"] = (deltas.MANIFEST_TYPE, deltas.document(manifest))
    status, said, registry = world.pull_new()
    assert status == 0, said
    assert registry.asked(digest_of(data))
    world.expect_new()


# mainstay images diff

def make(tmp_path, old, new, store=None):
    """The output of mainstay-image."""
    result = subprocess.run([harness.program("mainstay-image"), "diff", "--store", str(store or tmp_path / "scratch"), old, new],
                            check=False, capture_output=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def unpack_delta(data, tmp_path):
    """The artifact's manifest, and its blobs."""
    path = tmp_path / "made.delta"
    path.write_bytes(data)
    with tarfile.open(path) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar if member.isreg()}
    entry, = json.loads(files["index.json"])["manifests"]
    return files[f"blobs/sha256/{entry['digest'][7:]}"], {digest_of(data): data for data in files.values()}


MADE = {
    "patched files": (OLD, NEW),
    "an added layer": (OLD, [*OLD, {"added": RANDOM[:5000]}]),
    "a changed lower layer": ([OLD[0], {"top": RANDOM[:9000]}], [NEW[0], {"top": RANDOM[:9000]}]),
    "moved files": (OLD, [{"etc/hello": b"x", "opt/lib/big": PATCHED, "opt/same": RANDOM[200_000:]}]),
    "replaced and hidden files": (
        [{"a": RANDOM[:9000], "d/b": RANDOM[9000:20000]}, {"a": RANDOM[20000:30000], ".wh.d": b""}],
        [{"a": RANDOM[20000:30000], "d/b": RANDOM[9000:20000], "e": RANDOM[:9000]}]),
    "inserted and removed bytes": (OLD, [{"usr/lib/big": LIBRARY[:50000] + b"inserted" + LIBRARY[50100:], "z": bytes(100000)}]),
    "empty layers": ([{}], [{}, {"a": b""}]),
    "long names": ([{"d" * 90 + "/" + "e" * 120: LIBRARY}], [{"d" * 90 + "/" + "e" * 120: PATCHED, "f": b"f"}]),
}


@pytest.mark.parametrize("case", MADE)
def test_a_created_delta_gives_the_new_image(tmp_path, serve, case):
    world = World(tmp_path, serve, Blobs(MADE[case][0]), Blobs(MADE[case][1]))
    old = deltas.image_archive(tmp_path / "old.tar", world.old)
    new = deltas.image_archive(tmp_path / "new.tar", world.new)
    manifest, blobs = unpack_delta(make(tmp_path, old, new), tmp_path)
    document = json.loads(manifest)
    assert document["artifactType"] == deltas.ARTIFACT_TYPE and document["subject"]["digest"] == world.new.digest
    whole = [layer for layer in document["layers"] if layer["mediaType"] == deltas.TAR_DIFF_TYPE]
    assert all(blobs[layer["digest"]].startswith(deltas.MAGIC) for layer in whole)
    world.pull_old()
    path = str(tmp_path / "made.delta")
    listed = subprocess.run([harness.program("mainstay-image"), "index", "--store", world.store, path], check=True,
                            capture_output=True)
    image, = json.loads(listed.stdout)["images"]
    assert image["isDelta"] and image["digest"] == world.new.digest and not image.get("refusal"), image
    done = subprocess.run([harness.program("mainstay-image"), "unpack", "--store", world.store, "--digest",
                           world.new.digest, "--name", "example.com/x:1", path], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for chain, files in zip(chain_ids(world.new), MADE[case][1]):
        for name, data in files.items():
            with open(f"{world.store}/layers/{chain}/{name}", "rb") as file:
                assert file.read() == data, name


def test_a_delta_of_stored_images_equals_that_of_their_archives(world, tmp_path):
    world.pull_old()
    status, said, _ = world.pull_new()
    assert status == 0, said
    old = deltas.image_archive(tmp_path / "old.tar", world.old, world.name("old"))
    new = deltas.image_archive(tmp_path / "new.tar", world.new, world.name("new"))
    made = make(tmp_path, world.name("old"), world.name("new"), world.store)
    assert made == make(tmp_path, old, new) == make(tmp_path, old, world.name("new"), world.store)
    assert len(made) < len(world.new.blobs[world.new.layers[0]]) / 10
    assert not os.listdir(f"{world.store}/tmp")


def test_images_that_cannot_be_compared_are_reported(tmp_path, archive, world):
    new = deltas.image_archive(tmp_path / "new.tar", world.new)
    world.pull_old().offer()
    assert world.pull_new()[0] == 0
    delta = deltas.archive(tmp_path / "delta.tar", world.delta, world.new.blobs)
    for old, other, words in ((new, archive, "has no manifest"), (f"{tmp_path}/nothing", new, "cannot be opened"),
                              ("nothing", new, "not in the store"), (new, delta, "itself a delta"),
                              (new, world.name("new"), "only the unpacked layers")):
        result = subprocess.run([harness.program("mainstay-image"), "diff", "--store", world.store, old, other],
                                check=False, capture_output=True)
        assert result.returncode != 0 and words in result.stderr.decode(), result.stderr
        assert result.stdout == b""


# Nodes

def busybox(directory, name, **files):
    """An OCI archive whose image can run, with a layer of these files."""
    base = f"{directory}/base.tar"
    subprocess.run([os.path.join(os.path.dirname(__file__), "..", "make-image"), "x", base, "--format", "oci"], check=True)
    layout = f"{directory}/layout-{name}"
    subprocess.run(["skopeo", "copy", f"oci-archive:{base}", f"oci:{layout}:x"], check=True, capture_output=True)
    tar = f"{directory}/layer.tar"
    deltas.write_tar(tar, files)
    subprocess.run(["umoci", "raw", "add-layer", "--image", f"{layout}:x", tar], check=True, capture_output=True)
    path = f"{directory}/{name}.tar"
    subprocess.run(["skopeo", "copy", f"oci:{layout}:x", f"oci-archive:{path}:example.com/team/app:{name}"], check=True,
                   capture_output=True)
    return path


@pytest.fixture(name="versions")
def fixture_versions(tmp_path):
    """Two archives and the delta between them, made at the command line without an agent."""
    old = busybox(tmp_path, "1", version=b"1\n", library=LIBRARY)
    new = busybox(tmp_path, "2", version=b"2\n", library=PATCHED)
    delta = str(tmp_path / "2.delta")
    subprocess.run([harness.program("mainstay"), "images", "diff", old, new, delta], check=True)
    assert os.stat(delta).st_size < os.stat(new).st_size / 10
    return old, new, delta


def reader(name, image, policy="IfNotPresent"):
    """A pod that logs its version, and the content of its library."""
    return specs.pod(name, specs.container(image=image, imagePullPolicy=policy,
                                           script="cat /version; sha256sum < /library; sleep 100000"))


def expect_version(node, name, version, library):
    wait(lambda: len(node.logged(name)) >= 2, lambda: f"pod '{name}' has printed its version")
    assert node.logged(name)[0].strip() == version
    assert node.logged(name)[1].split()[0] == digest_of(library)[7:]


def test_a_delta_in_preload_updates_a_pod(make_node, versions, tmp_path):
    old, _, delta = versions
    node = make_node(archive=old)
    node.launch(reader("one", "example.com/team/app:1"))
    expect_version(node, "one", "1", LIBRARY)
    assert node.cli("images", "import", delta).returncode == 0
    node.launch(reader("two", "example.com/team/app:2"))
    expect_version(node, "two", "2", PATCHED)
    answer = node.cli("images", "verify")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    failed = node.cli("images", "export", "example.com/team/app:2", str(tmp_path / "exported"))
    assert failed.returncode != 0 and "a delta" in failed.stderr and not os.path.exists(tmp_path / "exported")


def push(registry, source, name):
    return registry.push(f"oci-archive:{source}", name)


@pytest.fixture(name="registry")
def fixture_registry(tmp_path):
    registry = DockerRegistry(str(tmp_path))
    yield registry
    registry.stop()


def request(method, url, data=None, kind="application/octet-stream"):
    call = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": kind})
    with urllib.request.urlopen(call, timeout=DEADLINE) as answer:
        return answer.headers


def push_delta(registry, repository, delta, tmp_path):
    """Pushes the artifact and the index under the tag, like a client does with a registry without the referrers API."""
    manifest, blobs = unpack_delta(open(delta, "rb").read(), tmp_path)  # pylint: disable=consider-using-with
    base = f"http://{registry.host}/v2/{repository}"
    document = json.loads(manifest)
    for row in [*document["layers"], document["config"]]:
        place = request("POST", f"{base}/blobs/uploads/", b"")["Location"]
        place += ("&" if "?" in place else "?") + f"digest={row['digest']}"
        request("PUT", place, blobs[row["digest"]])
    request("PUT", f"{base}/manifests/{digest_of(manifest)}", manifest, deltas.MANIFEST_TYPE)
    request("PUT", f"{base}/manifests/{document['subject']['digest'].replace(':', '-')}", deltas.referrers(manifest),
            deltas.INDEX_TYPE)
    return [row for row in document["layers"] if row["mediaType"] == deltas.TAR_DIFF_TYPE]


@pytest.mark.parametrize("damage", [False, True], ids=["sound", "damaged"])
def test_a_node_updates_a_pod_with_a_delta_of_a_registry(make_node, registry, versions, tmp_path, damage):
    old, new, delta = versions
    image = push(registry, old, "team/app:1")
    push(registry, new, "team/app:2")
    layer, = push_delta(registry, "team/app", delta, tmp_path)
    if damage:
        path = os.path.join(tmp_path, "registry/docker/registry/v2/blobs/sha256", layer["digest"][7:9], layer["digest"][7:], "data")
        with open(path, "r+b") as file:
            file.seek(layer["size"] // 2)
            file.write(b"damage")
    node = make_node(archive=None, config={"mainstay": {"insecureRegistries": [registry.host]}})
    node.launch(reader("one", image))
    expect_version(node, "one", "1", LIBRARY)
    node.launch(reader("two", f"{registry.host}/team/app:2"))
    expect_version(node, "two", "2", PATCHED)
    assert node.status("two")["imageID"].endswith(registry.digest("team/app:2"))
    assert "pulling a delta" in node.said()
    assert ("the delta cannot be applied, pulling whole layers" in node.said()) is damage
    answer = node.cli("images", "verify")
    assert answer.returncode == 0, answer.stdout


def test_a_delta_in_preload_whose_base_is_missing_is_reported_and_the_image_pulled(make_node, registry, tmp_path):
    old = busybox(tmp_path, "1", version=b"1\n", library=LIBRARY)
    new = busybox(tmp_path, "2", version=b"2\n", library=PATCHED)
    image = push(registry, new, "team/app:2")
    delta = deltas_with_name(tmp_path, old, new, image)
    node = make_node(archive=None, config={"mainstay": {"insecureRegistries": [registry.host]}})
    assert node.cli("images", "import", delta).returncode == 0
    node.launch(reader("two", image))
    expect_version(node, "two", "2", PATCHED)
    assert "the image that the delta is based on is not in the store" in node.said()
    assert "Cannot apply delta " in node.said()


def deltas_with_name(tmp_path, old, new, name):
    """The delta, under the name that the image has in the registry."""
    manifest, blobs = unpack_delta(make(tmp_path, old, new), tmp_path)
    return deltas.archive(tmp_path / "named.delta", manifest, blobs, name)


def test_a_broken_delta_in_preload_is_reported_and_waits_for_an_image(make_node, versions, tmp_path):
    old, new, delta = versions
    manifest, blobs = unpack_delta(open(delta, "rb").read(), tmp_path)  # pylint: disable=consider-using-with
    layer = next(row for row in json.loads(manifest)["layers"] if row["mediaType"] == deltas.TAR_DIFF_TYPE)
    blobs[layer["digest"]] = blobs[layer["digest"]][:-6] + b"damage"
    broken = deltas.archive(tmp_path / "broken.delta", manifest, blobs, "example.com/team/app:2")
    node = make_node(archive=old)
    node.launch(reader("one", "example.com/team/app:1"))
    assert node.cli("images", "import", broken).returncode == 0
    node.drop(reader("two", "example.com/team/app:2"))
    wait(lambda: "Cannot apply delta " in node.said(), lambda: f"it is reported: {node.said()[-2000:]}")
    assert "is damaged: its digest is" in node.said()
    node.drop(reader("three", "example.com/team/app:2", policy="Never"))
    node.wait_waiting("three", "ErrImageNeverPull")
    assert node.cli("images", "import", new).returncode == 0
    node.wait_running("two")
    expect_version(node, "two", "2", PATCHED)
    expect_version(node, "one", "1", LIBRARY)


def test_a_delta_is_applied_again_after_the_agent_is_killed_meanwhile(make_node, versions):
    old, _, delta = versions
    node = make_node(archive=old)
    node.launch(reader("one", "example.com/team/app:1"))
    records = set(os.listdir(f"{node.state}/images/records"))

    def has_begun():
        """Whether the delta is being applied, or has been applied if this check is late."""
        words = [cmdline(pid) for pid in pids()]
        return any("unpack" in line and f"--store={node.state}/images" in line for line in words) or \
            set(os.listdir(f"{node.state}/images/records")) != records
    assert node.cli("images", "import", delta).returncode == 0
    node.drop(reader("two", "example.com/team/app:2"))
    wait(has_begun, "the delta is being applied")
    node.kill9()
    node.start()
    node.wait_running("two")
    expect_version(node, "two", "2", PATCHED)
    expect_version(node, "one", "1", LIBRARY)


def test_the_command_line_refuses_incomplete_arguments(make_node):
    node = make_node(archive=None)
    assert "needs two images" in node.cli("images", "diff", "one").stderr
    failed = node.cli("images", "diff", "one", "two", f"{node.data}/out")
    assert failed.returncode != 0 and "not in the store" in failed.stderr and not os.path.exists(f"{node.data}/out")
    os.mknod(f"{node.data}/null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    assert node.cli("images", "diff", "one", "two", f"{node.data}/null").returncode != 0
    assert node.cli("images", "export", "one", f"{node.data}/null").returncode != 0
    assert stat.S_ISCHR(os.stat(f"{node.data}/null").st_mode), "a device was removed"
