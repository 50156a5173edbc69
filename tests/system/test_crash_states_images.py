# SPDX-License-Identifier: Apache-2.0
"""A power cut while an image is imported, pulled or removed, in any order that the disk may choose: from every such
state of the image store a new agent runs its pods from complete layers, and fetches missing ones again."""

import filecmp
import io
import json
import os
import stat
import tarfile

import crash_states
import deltas
import harness
import pytest
import specs
import world
from registry import BadRegistry, Blobs, digest_of
from sampling import some

ARCHIVED = "docker.io/library/archived:1"
APPLETS = ("sh", "sleep")
# In the kernel's version 3: cap_net_raw, permitted and effective.
CAPABILITY = b"\x01\x00\x00\x02\x00\x20\x00\x00" + b"\x00" * 12
FILE, DIRECTORY, HARD, SOFT, PIPE = (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE)


class Image(Blobs):
    """An image whose layers have entries (name, type, what); 'what' has the data or the target, and the mode, owner or
    attributes."""

    @staticmethod
    def tar(files):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for i, (name, kind, what) in enumerate(files):
                member = tarfile.TarInfo(name)
                data = what.get("data", b"")
                member.type, member.size, member.linkname = kind, len(data), what.get("to", "")
                member.mode = what.get("mode", 0o755 if kind == DIRECTORY else 0o644)
                member.uid = member.gid = what.get("owner", 0)
                member.mtime = 1700000000 + i
                member.pax_headers = {f"SCHILY.xattr.{key}": value.decode("utf-8", "surrogateescape")
                                      for key, value in what.get("xattrs", {}).items()}
                tar.addfile(member, io.BytesIO(data))
        return buffer.getvalue()


def base_layer():
    """Files that a pod needs to run, and files that the next layers hide or link to."""
    with open("/bin/busybox", "rb") as file:
        program = file.read()
    directories = [(name, DIRECTORY, {}) for name in ("./", "bin", "dev", "etc", "etc/old", "opt", "proc", "sys", "tmp")]
    return [*directories, ("bin/busybox", FILE, {"data": program, "mode": 0o755}),
            *((f"bin/{name}", HARD, {"to": "bin/busybox"}) for name in APPLETS),
            ("etc/passwd", FILE, {"data": b"root:x:0:0:root:/root:/bin/sh\n"}), ("etc/old/one", FILE, {"data": b"1"}),
            ("opt/shared", FILE, {"data": b"shared" * 20000}), ("opt/hidden", FILE, {"data": b"hidden"})]


def upper_layer(word):
    """The upper layer, with one entry of each kind that a layer may have."""
    return [("./", DIRECTORY, {}), ("etc", DIRECTORY, {}), ("etc/word", FILE, {"data": word.encode() * 30000}),
            ("etc/empty", FILE, {}), ("etc/again", HARD, {"to": "etc/word"}), ("etc/link", SOFT, {"to": "word"}),
            ("etc/old", DIRECTORY, {}), ("etc/old/.wh..wh..opq", FILE, {}), ("etc/old/two", FILE, {"data": b"2"}),
            ("opt", DIRECTORY, {"mode": 0o1777, "owner": 1000}), ("opt/copy", HARD, {"to": "opt/shared"}),
            ("opt/.wh.hidden", FILE, {}), ("opt/pipe", PIPE, {"mode": 0o600}),
            ("opt/own", FILE, {"data": b"own", "mode": 0o4755, "owner": 1000,
                               "xattrs": {"user.word": b"said", "security.capability": CAPABILITY}})]


# Recorded operations

class RecordedImages(crash_states.Recorded):
    """The store of an agent that has one image from an archive and one from a registry, which share a layer."""

    calls = f"{crash_states.CALLS},{crash_states.ATTRIBUTE_CALLS}"

    def __init__(self, directory):
        base = base_layer()
        archive = deltas.image_archive(os.path.join(directory, "archived.tar"), Image([base, upper_layer("archived")]), ARCHIVED)
        self.is_cut_off = False
        self.registry = BadRegistry(Image([base, upper_layer("pulled"), [("./", DIRECTORY, {}), ("top", FILE, {})]]),
                                    lambda handler: self.is_cut_off and handler.answer(503))
        self.pulled = f"{self.registry.host}/team/pulled:latest"
        super().__init__(run_images, archive, directory, RecordedImages.make)

    def make(self):
        return harness.Node(self.archive, {"mainstay": {"insecureRegistries": [self.registry.host]}}, start=False)

    def is_kept(self, path):
        return path.split("/")[0] == "images"

    def describe_missing(self, end, chosen):
        """Describes the operations that the power cut has undone."""
        missing = sorted(set(range(end)) - self.log.certain(end) - chosen)
        return [(i, self.log.operations[i][0], *(word for word in self.log.operations[i][1:] if isinstance(word, str)))
                for i in missing][:40]

    def pods(self):
        return {name: specs.pod(name, specs.container(image=image))
                for name, image in (("archived", ARCHIVED), ("pulled", self.pulled))}


def run_images(recorded):
    """Records an import, a pull, a removal, and the same pull again; a running pod shows that its image is certainly
    there."""
    node, pods = recorded.node, recorded.pods()
    recorded.mark()
    node.launch(pods["archived"])
    node.launch(pods["pulled"])
    recorded.mark(synced="pulled")
    node.remove("pulled")
    node.wait_gone("pulled")
    recorded.mark()
    removed = node.cli("images", "rm", recorded.pulled)
    assert removed.returncode == 0, removed.stderr
    world.wait(lambda: len(os.listdir(f"{node.state}/images/layers")) == 2, "its layers are removed")
    world.wait(lambda: not os.listdir(f"{node.state}/images/tmp"), "nothing of them is left")
    node.launch(pods["pulled"])
    recorded.mark(synced="pulled")


@pytest.fixture(scope="module", name="recorded")
def fixture_recorded(tmp_path_factory):
    recorded = RecordedImages(str(tmp_path_factory.mktemp("recorded")))
    yield recorded
    recorded.registry.stop()


# Contents of the disk

def layers_of(tree):
    """{layer: {path in it: its known attributes}}."""
    layers, top = {}, "images/layers/"
    for path, data in tree.items():
        if path.startswith(top):
            layer, _, below = path.removeprefix(top).partition("/")
            layers.setdefault(layer, {})[below] = (data, tree.attributes.get(path), tree.links.get(path))
    return layers


def records_of(tree):
    return {path: json.loads(data.split(b"\n")[0]) for path, data in tree.items() if path.startswith("images/records/")}


def wrong_parts(tree, whole):
    """Published files with unexpected content."""
    layers, sound = layers_of(tree), layers_of(whole)
    for layer, entries in layers.items():
        yield from (f"layer {layer}: {path}" for path in entries.keys() | sound[layer].keys()
                    if entries.get(path) != sound[layer].get(path))
    blobs = {path: data for path, data in tree.items() if path.startswith("images/blobs/sha256/")}
    yield from (path for path, data in blobs.items() if digest_of(data)[7:] != os.path.basename(path))
    for path, record in records_of(tree).items():
        yield from (f"{path} without {layer}" for layer in record["layers"] if layer not in layers)
        yield from (f"{path} with a name that is not in the index" for _ in (0,)
                    if os.path.basename(path)[:64] not in tree.get("images/index.json", b"").decode())


@pytest.mark.slow
def test_no_crash_state_contains_an_incomplete_published_file(recorded):
    end = len(recorded.log.operations)
    whole, count = recorded.tree(end, set(range(end))), 0
    assert len(layers_of(whole)) == 4 and len(records_of(whole)) == 2
    for place, _, synced in recorded.states(8):
        tree = recorded.tree(*place)
        wrong = list(wrong_parts(tree, whole))
        assert not wrong, f"after {place[0]} operations, without {recorded.describe_missing(*place)}: {wrong}"
        assert not synced or records_of(tree) == records_of(whole), f"after {place[0]} operations an image is missing"
        count += 1
    assert count > 1000


# The machine that starts with such a disk

def describe(path):
    """Everything that a container may see of one file except its data."""
    st = os.lstat(path)
    return (stat.filemode(st.st_mode), st.st_uid, st.st_gid, st.st_rdev, None if stat.S_ISCHR(st.st_mode) else st.st_mtime_ns,
            st.st_size if stat.S_ISREG(st.st_mode) else None, None if stat.S_ISDIR(st.st_mode) else st.st_nlink,
            os.readlink(path) if stat.S_ISLNK(st.st_mode) else None,
            sorted((name, os.getxattr(path, name, follow_symlinks=False)) for name in os.listxattr(path, follow_symlinks=False)))


def tree_of(top):
    return {os.path.relpath(os.path.join(directory, name), top)
            for directory, *both in os.walk(top) for names in both for name in names}


def differing_data(whole, found):
    """The files whose data is incomplete."""
    files = [name for name in tree_of(whole) if stat.S_ISREG(os.lstat(os.path.join(whole, name)).st_mode)]
    return [name for name in files if not os.path.isfile(os.path.join(found, name)) or not filecmp.cmp(
        os.path.join(whole, name), os.path.join(found, name), shallow=False)]


def expect_whole(recorded, images):
    """Asserts that the layers are complete and that the pulled blobs exist; a blob of an imported layer may also have
    been pulled, if the pull came first."""
    whole, found = f"{recorded.images}/layers", f"{images}/layers"
    assert len(os.listdir(whole)) == 4
    assert tree_of(whole) == tree_of(found)
    for name in tree_of(whole):
        assert describe(os.path.join(whole, name)) == describe(os.path.join(found, name)), name
    assert not differing_data(whole, found)
    assert not differing_data(f"{recorded.images}/blobs", f"{images}/blobs")


def boot(recorded, tree, manifests, synced):
    node = recorded.make()
    recorded.is_cut_off = synced == "pulled"
    try:
        crash_states.write(tree, node.state)
        for pod in recorded.pods().values():
            node.drop(pod)
        node.start()
        for name in recorded.pods():
            node.wait_running(name)
        expect_whole(recorded, f"{node.state}/images")
        said = node.cli("images", "verify")
        assert said.stdout == "all images are sound\n", said.stdout + said.stderr
    finally:
        recorded.is_cut_off = False
        node.finish()


def test_the_replay_of_all_operations_gives_the_unpacked_image(recorded, tmp_path):
    """Otherwise the generated states would not be possible states of a disk."""
    everything = set(range(len(recorded.log.operations)))
    crash_states.write(recorded.tree(len(everything), everything), str(tmp_path))
    expect_whole(recorded, f"{tmp_path}/images")
    assert {stat.S_IFMT(os.lstat(os.path.join(directory, name)).st_mode) for directory, *both in os.walk(tmp_path)
            for names in both for name in names} == {stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR}


@pytest.mark.parametrize("part", some(range(8), 8))
def test_pods_run_complete_images_after_a_power_cut_during_unpacking(recorded, part):
    recorded.try_states(2, part, boot)
