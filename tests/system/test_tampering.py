# SPDX-License-Identifier: Apache-2.0
"""Tampering with a signed index, its manifests, its images and their deltas, on a stick or a server that anybody may
write to: the previous index stays in use, no unsigned byte gets into a container, and 'source status' names the
cause."""

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import stat
import tempfile
import threading

import deltas
import harness
import pytest
import registry
import specs
import world
from index_source import Index, Key, Nginx, Runnable, settings
from world import wait

NAME = "registry.invalid/team/app:1"
SCRIPT = "exec tail -f /version"
GROUPS = 4  # each group has a node, which sees its kinds one after the other


def image(version, *more):
    return Runnable({"version": f"{version}\n".encode()}, *more)


def app(name="app", script=SCRIPT, **metadata):
    return specs.pod(name, {**specs.container(script=script), "image": NAME}, metadata=metadata)


def layer_tar(blobs, i):
    return gzip.decompress(blobs.blobs[blobs.layers[i]])


def files_of(pid):
    """The digest of each file of a container's root file system, by path."""
    root, found = f"/proc/{pid}/root/", {}
    device = os.stat(root).st_dev
    for path, directories, names in os.walk(root):
        directories[:] = [name for name in directories if os.lstat(os.path.join(path, name)).st_dev == device]
        for name in (os.path.join(path, name) for name in names):
            if stat.S_ISREG(os.lstat(name).st_mode):
                with open(name, "rb") as file:
                    found[name] = hashlib.sha256(file.read()).hexdigest()
    return found


class Stage:
    """A node that runs index 100, and the directory that it reads, itself or from a server."""

    def __init__(self, scheme="file"):
        self.directory = tempfile.mkdtemp(prefix="mainstay-tampering-")
        self.key, self.stranger = Key(self.directory, "one"), Key(self.directory, "two")
        os.mkdir(os.path.join(self.directory, "public"))
        self.index = Index(os.path.join(self.directory, "public"), self.key)
        self.index.number = 99
        self.first = image("good")
        self.entry = self.index.add_image(self.first, NAME)
        self.write_good()
        self.server = Nginx(os.path.join(self.directory, "nginx"), self.index.directory) if scheme == "https" else None
        url, more = (self.server.url(), {"caFile": self.server.certificate}) if self.server else ("file://" + self.index.path, {})
        self.node = harness.Node(None, config={"mainstay": {"source": settings(url, [self.key], **more)}})
        self.node.wait_running("app")
        self.wait_in_use(self.index.number)
        self.init = self.node.init("app")
        self.files = files_of(self.init)

    def finish(self):
        self.node.write_config()
        self.node.restart()
        self.node.wait_gone("app")
        self.node.finish()
        if self.server:
            self.server.stop()
        shutil.rmtree(self.directory)

    def path(self, name):
        return os.path.join(self.index.directory, name)

    def write_good(self):
        return self.index.write({"app.yaml": app(labels={"number": str(self.index.number + 1)})}, images=[self.entry])["number"]

    def write_bad(self, images=None, **options):
        """Writes an index whose pods must never appear."""
        return self.index.write({"app.yaml": app(script=SCRIPT + " # evil"), "evil.yaml": app("evil")}, images=images or [self.entry], **options)

    def status(self):
        return self.node.cli("source", "status").stdout

    def condition(self):
        """The condition of the Node that 'source status' shows."""
        return self.node.node_condition("mainstay.io/SourceFailed")

    def wait_refused(self, words, kind):
        def is_refused(text):
            return ("SourceFailed" in text or "SourceRefused" in text) and all(word in text for word in words)
        for text in (lambda: self.condition()["reason"] + self.condition()["message"]), self.status:
            wait(lambda look=text: is_refused(look()), lambda: f"{kind}: it contains {words}: {self.status()}\n{self.node.said()[-3000:]}")

    def is_in_use(self, number):
        return f"index {number} of" in self.condition()["message"]

    def wait_in_use(self, number):
        wait(lambda: self.is_in_use(number), lambda: f"index {number} is in use: {self.status()}\n{self.node.said()[-3000:]}")

    def assert_nothing_changed(self, kind):
        assert sorted(pod["metadata"]["name"] for pod in self.node.pods()) == ["app-node1"] and self.node.init("app") == self.init, kind
        assert world.read(f"/proc/{self.init}/root/version") == "good\n" and files_of(self.init) == self.files, kind

    def assert_no_image(self, blobs, kind):
        assert not os.path.exists(os.path.join(self.node.state, "images", "records", blobs.digest[7:] + ".json")), kind

    def repair(self):
        """Writes another good index, so that the next kind is not mistaken for this one."""
        for name in ("index.json", "index.json.sig", "sha256", "images"):
            with contextlib.suppress(FileNotFoundError):
                path = self.path(name)
                if stat.S_ISDIR(os.lstat(path).st_mode):
                    shutil.rmtree(path)
                else:
                    os.unlink(path)
        self.index.add_image(self.first, NAME)
        self.wait_in_use(self.write_good())


# ---- how a file is tampered with ----

def flip(path, position=-1):
    with open(path, "r+b") as file:
        file.seek(position, os.SEEK_END if position < 0 else os.SEEK_SET)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))


def cut(path):
    os.truncate(path, os.path.getsize(path) - 1)


def empty(path):
    os.truncate(path, 0)


def longer(path):
    with open(path, "ab") as file:
        file.write(b" ")


def link(path):
    """Replaces the file by a link to the same bytes at another place."""
    target = os.path.join(path.split("/public/")[0], "target")
    shutil.copy(path, target)
    os.unlink(path)
    os.symlink(target, path)


def fifo(path):
    os.unlink(path)
    os.mkfifo(path)


def directory(path):
    os.unlink(path)
    os.mkdir(path)


def device(path):
    os.unlink(path)
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))


def socket(path):
    os.unlink(path)
    os.mknod(path, stat.S_IFSOCK | 0o666)


def other(path):
    """Replaces the content by another one of the same size."""
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(bytes(byte ^ 0xff for byte in data))


UNSIGNED = "the index: is not signed by one of the known keys"
LINKED = "Invalid cross-device link"
IRREGULAR = "is not a regular file"


# ---- the index and its signature ----

def of_index(tamper, *words):
    def act(stage):
        stage.write_bad(spoil=tamper)
        return words or (UNSIGNED,)
    return act


def of_signature(tamper, *words):
    return of_index(lambda path: tamper(path + ".sig"), *(words or ("signature",)))


def replaced(name, tamper, words):
    """A file next to the manifests, which no rename could replace with a directory."""
    def act(stage):
        stage.write_bad(key=stage.stranger)
        tamper(stage.path(name))
        return (words,)
    return act


def signed_by_a_stranger(stage):
    stage.write_bad(key=stage.stranger)
    return (UNSIGNED,)


def signature_of_another_index(stage):
    def spoil(path):
        with open(path + ".other", "w", encoding="utf-8") as file:
            file.write(world.read(path).replace("evil.yaml", "other.yaml"))
        stage.key.sign(path + ".other")
        os.rename(path + ".other.sig", path + ".sig")
    stage.write_bad(spoil=spoil)
    return (UNSIGNED,)


def missing_signature(stage):
    stage.write_bad(key=stage.stranger)
    os.unlink(stage.index.path + ".sig")
    return ("the signature of the index", "No such file or directory")


def missing_index(stage):
    os.unlink(stage.index.path)
    return ("No such file or directory",)


def changed_by_hand(**changes):
    """Changes the index as somebody without a key would."""
    def spoil(path):
        document = {**json.loads(world.read(path)), **changes}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
    return of_index(spoil)


def images_of_a_stranger(stage):
    evil = stage.index.add_image(image("evil"), NAME)
    return changed_by_hand(images=[evil])(stage)


# ---- signed, but not for here and now ----

def signed(words, **changes):
    def act(stage):
        stage.write_bad(**changes)
        return (words,)
    return act


def older(stage):
    stage.write_bad(number=stage.index.number - 5)
    return ("and an index with the number", "was verified before")


def same_number(stage):
    stage.index.number -= 1
    stage.write_bad()
    return ("has the number of an index that was verified before",)


def another_fleet(stage):
    stage.write_bad(fleet="banks")
    return ("is of the fleet 'banks', not of 'shops'",)


def another_document(data, words):
    def act(stage):
        stage.index.write_bytes(data)
        return (words,)
    return act


def listed(words, count=1, **row):
    """The index lists a file with these members."""
    return signed(words, files=[{"name": "a.yaml", "size": 1, "sha256": "0" * 64, **row}] * count)


def sized(change, words):
    """The size of a manifest differs from the one in the index, which is signed."""
    def act(stage):
        data = specs.text(app("evil")).encode()
        digest = hashlib.sha256(data).hexdigest()
        with open(stage.index.blob(digest), "wb") as file:
            file.write(data)
        stage.write_bad(files=[{"name": "evil.yaml", "size": len(data) + change, "sha256": digest}])
        return ("evil.yaml", words)
    return act


# ---- manifests ----

def of_manifest(tamper, words):
    def act(stage):
        def spoil(path):
            row = next(one for one in json.loads(world.read(path))["files"] if one["name"] == "evil.yaml")
            tamper(stage.index.blob(row["sha256"]))
        stage.write_bad(spoil=spoil)
        return ("evil.yaml", words)
    return act


def swapped_manifests(stage):
    def spoil(path):
        first, second = (stage.index.blob(row["sha256"]) for row in json.loads(world.read(path))["files"])
        os.rename(first, first + ".away")
        os.rename(second, first)
        os.rename(first + ".away", second)
    stage.write_bad(spoil=spoil)
    return (".yaml",)


def broken_manifest(stage):
    stage.index.write({"evil.yaml": app("evil"), "x.yaml": b"kind: Pod\napiVersion: v1\n"})
    return ("source/x.yaml",)


# ---- images ----

def blob_path(stage, blobs, which):
    digest = {"manifest": blobs.digest, "config": json.loads(blobs.manifest)["config"]["digest"],
              "first layer": blobs.layers[0], "last layer": blobs.layers[-1]}[which]
    return stage.index.image_blob(digest)


def of_blob(which, tamper, words=NAME):
    """Each kind has its own image, so that a partial download of an earlier one is not resumed. Its configuration differs,
    too."""
    def act(stage):
        blobs = Runnable({"version": os.urandom(8).hex().encode()})
        entry = stage.index.add_image(blobs, NAME)
        stage.write_bad(images=[entry], spoil=lambda path: tamper(blob_path(stage, blobs, which)))
        return (NAME, words, blobs)
    return act


def wrong_image(change, words=NAME):
    """An image that a holder of the key has signed by mistake."""
    def act(stage):
        blobs = image("wrong")
        entry = stage.index.add_image(blobs, NAME)
        change(stage.index, entry, entry["platforms"][0])
        stage.write_bad(images=[entry])
        return (words,)
    return act


def set_platform(**members):
    return lambda index, entry, platform: platform.update(members)


def set_blob(which, **members):
    return lambda index, entry, platform: platform["blobs"][which].update(members)


def other_digest(index, entry, platform):
    wrong = image("other")
    index.add_image(wrong, NAME)
    platform["digest"] = wrong.digest  # the index has the size and blobs of the other image


def not_an_image(index, entry, platform):
    index.add_blob(b"{}")
    platform.update(digest=registry.digest_of(b"{}"), size=2)


def wrong_architecture(index, entry, platform):
    foreign = Runnable({"version": b"far\n"}, architecture="s390x")
    index.add_image(foreign, NAME)
    entry["platforms"] = [foreign.row()]


# ---- deltas ----

def of_delta(tamper):
    """The image has a layer that is missing: with a good delta it would be made from the one that the node has."""
    def act(stage):
        blobs = image("evil" + os.urandom(4).hex())
        parts = {blobs.layers[1]: deltas.tar_diff({"version": b"good\n"}, layer_tar(blobs, 1))}
        delta = deltas.artifact(stage.first, blobs, parts)
        entry = stage.index.add_image(blobs, NAME, [(stage.first, delta)])
        os.unlink(stage.index.image_blob(blobs.layers[1]))
        row = entry["platforms"][0]["deltas"][0]
        tamper(stage.index, row, [stage.index.image_blob(one["digest"]) for one in row["blobs"]])
        stage.write_bad(images=[entry])
        return (NAME, "No such file or directory", blobs)
    return act


# ---- directories ----

def images_of_another_index(stage):
    shutil.copytree(stage.path("images"), stage.path("images.first"))
    entry = stage.index.add_image(image("evil"), NAME)

    def spoil(path):
        shutil.rmtree(stage.path("images"))
        os.rename(stage.path("images.first"), stage.path("images"))
    stage.write_bad(images=[entry], spoil=spoil)
    return (NAME, "No such file or directory")


def manifests_of_another_index(stage):
    shutil.copytree(stage.path("sha256"), stage.path("sha256.first"))

    def spoil(path):
        shutil.rmtree(stage.path("sha256"))
        os.rename(stage.path("sha256.first"), stage.path("sha256"))
    stage.write_bad(spoil=spoil)
    return (".yaml", "No such file or directory")


def linked_directory(name, words):
    """The directory is a link to one with the same bytes."""
    def act(stage):
        entry = stage.index.add_image(image("evil" + os.urandom(4).hex()), NAME)

        def spoil(path):
            target = os.path.join(stage.directory, os.urandom(4).hex())
            os.rename(stage.path(name), target)
            os.symlink(target, stage.path(name))
        stage.write_bad(images=[entry], spoil=spoil)
        return (words,)
    return act


ZERO = "0" * 64
KINDS = {
    "index: a byte was changed": of_index(lambda path: flip(path, 20)),
    "index: a byte was added": of_index(longer),
    "index: cut": of_index(cut),
    "index: half": of_index(lambda path: os.truncate(path, 99)),
    "index: empty": of_index(empty),
    "index: a link": of_index(link, "index.json: " + LINKED),
    "index: a FIFO": of_index(fifo, "index.json: " + IRREGULAR),
    "index: a directory": replaced("index.json", directory, "index.json: " + IRREGULAR),
    "index: a device": of_index(device, "index.json: " + IRREGULAR),
    "index: missing": missing_index,
    "index: a number raised by hand": changed_by_hand(number=1 << 40),
    "index: a fleet changed by hand": changed_by_hand(fleet="shops "),
    "index: an expiry changed by hand": changed_by_hand(expires="2099-01-01T00:00:00Z"),
    "index: keys added by hand": changed_by_hand(keys=["MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw="]),
    "index: images added by hand": images_of_a_stranger,
    "signature: a byte was changed": of_signature(lambda path: flip(path, 9), UNSIGNED),
    "signature: cut": of_signature(cut),
    "signature: empty": of_signature(empty),
    "signature: a link": of_signature(link, "index.json.sig: " + LINKED),
    "signature: a FIFO": of_signature(fifo, "index.json.sig: " + IRREGULAR),
    "signature: a directory": replaced("index.json.sig", directory, "index.json.sig: " + IRREGULAR),
    "signature: missing": missing_signature,
    "signature: of a stranger": signed_by_a_stranger,
    "signature: of another index": signature_of_another_index,
    "signed: older": older,
    "signed: the same number": same_number,
    "signed: another fleet": another_fleet,
    "signed: expired": signed("has expired at 2001-01-01T00:00:00Z", expires="2001-01-01T00:00:00Z"),
    "signed: another format": signed("format: must be 1", format=2),
    "signed: a word": another_document(b"hello", "the index: is not a JSON object"),
    "signed: too large": another_document(b" " * 1100000, "File too large"),
    "signed: a negative number": signed("number: ", number=-200),
    "signed: a number in quotes": signed("number: ", number="200000"),
    "signed: an expiry that is none": signed("expires: ", expires="soon"),
    "signed: files that are no list": signed("files: ", files={"a.yaml": 1}),
    "signed: keys that are none": signed("keys[0]: must be a public key", keys=["abc"]),
    "name: leads out": listed("name: must be the name of a manifest", name="../../evil.yaml"),
    "name: with a slash": listed("name: must be the name of a manifest", name="a/b.yaml"),
    "name: absolute": listed("name: must be the name of a manifest", name="/etc/kubernetes/manifests/evil.yaml"),
    "name: hidden": listed("name: must be the name of a manifest", name=".evil.yaml"),
    "name: of no manifest": listed("name: must be the name of a manifest", name="evil.sh"),
    "name: with a newline": listed("name: must be the name of a manifest", name="a\n.yaml"),
    "name: twice": listed("files: a.yaml occurs twice", count=2),
    "digest: missing": listed("sha256: ", sha256=None),
    "digest: cut": listed("sha256: ", sha256=ZERO[1:]),
    "digest: leads out": listed("sha256: ", sha256="../" * 20 + "evil"),
    "digest: in capitals": listed("sha256: ", sha256="A" * 64),
    "size: below zero": listed("size: ", size=-1),
    "size: zero": listed("size: ", size=0),
    "size: huge": listed("size: ", size=1 << 60),
    "size: a byte less": sized(-1, "File too large"),
    "size: a byte more": sized(1, "evil.yaml"),
    "manifest: a byte was changed": of_manifest(lambda path: flip(path, 5), "does not match its digest in the index"),
    "manifest: cut": of_manifest(cut, "does not match its digest in the index"),
    "manifest: longer": of_manifest(longer, "File too large"),
    "manifest: empty": of_manifest(empty, "evil.yaml"),
    "manifest: missing": of_manifest(os.unlink, "No such file or directory"),
    "manifest: a link": of_manifest(link, LINKED),
    "manifest: a FIFO": of_manifest(fifo, IRREGULAR),
    "manifest: a directory": of_manifest(directory, IRREGULAR),
    "manifest: a device": of_manifest(device, IRREGULAR),
    "manifest: of another file": swapped_manifests,
    "manifest: signed and broken": broken_manifest,
    **{f"image, {which}: {words}": of_blob(which, tamper) for which, kinds in {
        "last layer": {"a byte was changed": flip, "cut": cut, "empty": empty, "longer": longer, "missing": os.unlink, "a link": link, "a FIFO": fifo,
                       "a directory": directory, "a device": device, "a socket": socket, "other bytes": other},
        "manifest": {"a byte was changed": flip, "cut": cut, "a link": link, "a FIFO": fifo, "other bytes": other},
        "config": {"a byte was changed": flip, "longer": longer, "missing": os.unlink, "a device": device, "other bytes": other},
    }.items() for words, tamper in kinds.items()},
    "image, signed: another digest": wrong_image(other_digest),
    "image, signed: a wrong size": wrong_image(lambda index, entry, platform: platform.update(size=platform["size"] + 1)),
    "image, signed: a layer without a name": wrong_image(lambda index, entry, platform: platform["blobs"].pop()),
    "image, signed: a config without a name": wrong_image(lambda index, entry, platform: platform["blobs"].pop(0)),
    "image, signed: a wrong size of a layer": wrong_image(lambda index, entry, platform: platform["blobs"][-1].update(size=platform["blobs"][-1]["size"] + 1)),
    "image, signed: a wrong type": wrong_image(set_platform(mediaType=registry.INDEX_TYPE)),
    "image, signed: not an image": wrong_image(not_an_image),
    "image, signed: a wrong architecture": wrong_image(wrong_architecture),
    "image, signed: a digest leads out": wrong_image(set_platform(digest="sha256:../../../../../../../etc/passwd"), "digest: must be"),
    "image, signed: a digest of a layer leads out": wrong_image(set_blob(-1, digest="sha256:" + "../" * 21 + "x"), "digest: must be"),
    "image, signed: a digest in capitals": wrong_image(set_platform(digest="sha256:" + "A" * 64), "digest: must be"),
    "image, signed: another algorithm": wrong_image(set_platform(digest="sha512:" + ZERO * 2), "digest: must be"),
    "image, signed: a short name": wrong_image(lambda index, entry, platform: entry.update(name="app:1"), "name: must be written as"),
    "image, signed: no platform": wrong_image(lambda index, entry, platform: entry.update(platforms=[]), "platforms: must be"),
    "image, signed: a size below zero": wrong_image(set_platform(size=-1), "size: must be"),
    "image, signed: a huge size": wrong_image(set_platform(size=1 << 60), "size: must be"),
    "image, signed: the name of a path": wrong_image(lambda index, entry, platform: entry.update(name="../../etc/passwd"), "images[0]: name"),
    "image, signed: a list as its name": wrong_image(lambda index, entry, platform: entry.update(name=[NAME]), "images[0]: name"),
    "delta: its manifest was changed": of_delta(lambda index, row, paths: flip(index.image_blob(row["digest"]), 30)),
    "delta: a part was changed": of_delta(lambda index, row, paths: flip(paths[-1])),
    "delta: a part was cut": of_delta(lambda index, row, paths: cut(paths[-1])),
    "delta: a part is missing": of_delta(lambda index, row, paths: os.unlink(paths[-1])),
    "delta: a part is a FIFO": of_delta(lambda index, row, paths: fifo(paths[-1])),
    "delta: signed, of a wrong size": of_delta(lambda index, row, paths: row.update(size=row["size"] + 1)),
    "delta: signed, of another base": of_delta(lambda index, row, paths: row.update(base="sha256:" + ZERO)),
    "directories: images of another index": images_of_another_index,
    "directories: manifests of another index": manifests_of_another_index,
    "directories: images are a link": linked_directory("images", NAME),
    "directories: manifests are a link": linked_directory("sha256", ".yaml"),
}


# The kinds that are also tried with a server. It sends only bytes, so special files and links are left out; so are most
# correctly signed documents, which are read in the same way from a stick.
OF_BYTES = ("index: ", "signature: ", "signed: older", "signed: the same number", "signed: another fleet", "signed: expired", "signed: too large", "size: a byte",
            "manifest: ", "image, last layer: ", "image, manifest: ", "image, config: ", "delta: ", "directories: ")
HTTPS_KINDS = [kind for kind in KINDS if kind.startswith(OF_BYTES) and not kind.endswith((" link", " directory"))]
IN_HTTPS = {"No such file or directory": "404", IRREGULAR: "404", "File too large": "the response is larger than"}


def in_https(words):
    for local, remote in IN_HTTPS.items():
        words = remote if local in words else words
    return words


@pytest.fixture(scope="module", name="stages")
def fixture_stages():
    """A stage for each scheme, when it is needed."""
    made = {}

    def stage(scheme):
        if scheme not in made:
            made[scheme] = Stage(scheme)
        return made[scheme]

    yield stage
    for one in made.values():
        one.finish()


@pytest.mark.parametrize("scheme,kind", [pytest.param(scheme, kind, marks=pytest.mark.xdist_group(f"tampering-{scheme}-{i % GROUPS}"))
                                         for scheme, kinds in (("file", KINDS), ("https", HTTPS_KINDS)) for i, kind in enumerate(kinds)])
def test_tampering_is_reported_and_changes_nothing(stages, scheme, kind):
    stage = stages(scheme)
    *words, = KINDS[kind](stage)
    blobs = words.pop() if isinstance(words[-1], Runnable) else None
    stage.wait_refused([in_https(one) for one in words] if scheme == "https" else words, kind)
    stage.assert_nothing_changed(kind)
    if blobs:
        stage.assert_no_image(blobs, kind)
    stage.repair()
    stage.assert_nothing_changed(kind)


def test_table_has_at_least_sixty_kinds_of_tampering():
    assert len(KINDS) >= 60 and len(HTTPS_KINDS) >= 40


@pytest.mark.parametrize("scheme", ["file", "https"])
def test_blob_that_changes_between_two_reads_is_used_only_as_signed(scheme):
    """Good and bad bytes alternate all the time: a program that checks one reading and uses another one is deceived."""
    stage = Stage(scheme)
    big = os.urandom(2_000_000)
    blobs = Runnable({"version": b"good\n", "big": big})
    entry = stage.index.add_image(blobs, NAME)
    path, ends = stage.index.image_blob(blobs.layers[1]), threading.Event()
    with open(path, "rb") as file:
        good = file.read()

    def change():
        with open(path, "r+b", buffering=0) as file:
            while not ends.is_set():
                for data in (bytes(byte ^ 0xff for byte in good), good):
                    file.seek(0)
                    file.write(data)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        number = stage.index.write({"app.yaml": app(script=SCRIPT + " # changing")}, images=[entry])["number"]
        for _ in range(4):
            said = stage.node.said().count("Cannot fetch image")
            wait(lambda said=said: stage.is_in_use(number) or stage.node.said().count("Cannot fetch image") > said, "used, or refused")
    finally:
        ends.set()
        thread.join()
    stage.wait_in_use(number)
    wait(lambda: stage.node.init("app") not in (None, stage.init), "the container is the new one")
    with open(f"/proc/{stage.node.init('app')}/root/big", "rb") as file:
        assert file.read() == big
    stage.finish()
