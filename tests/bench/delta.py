# SPDX-License-Identifier: Apache-2.0
"""An update of a 200 MB image with one changed package, using a delta instead of the whole archive: the bytes that a node
receives, and the time until the new image is synced. Each import writes to a new file system that contains the old
image."""

import os
import random
import subprocess
import tempfile
import time

import pulling

MEGABYTES = 200
PACKAGE_BYTES = 4_000_000
SAMPLES = 5


def add_files(layout, directory, files, changed, version):
    """A layer with the files; those of the package have a new version: a new head, and a twentieth of the bytes."""
    dice = random.Random(version)
    tree = os.path.join(directory, "tree")
    for file in files:
        target = tree + file
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(file, "rb") as source:
            data = bytearray(source.read())
        if file in changed:
            for _ in range(len(data) // 20):
                data[dice.randrange(len(data))] ^= 0x55
            data[:0] = b"version %d\n" % version
        with open(target, "wb") as out:
            out.write(data)
    tar = os.path.join(directory, "layer.tar")
    subprocess.run(["tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "-cf", tar, "-C", tree, "."], check=True)
    subprocess.run(["umoci", "raw", "add-layer", "--image", layout, tar], check=True)
    subprocess.run(["rm", "-rf", tree, tar], check=True)


def packaged_bytes(file):
    """The size of the file, or 0 if it is too large to be one of several files."""
    size = os.stat(file).st_size
    return size if size < PACKAGE_BYTES // 4 else 0


def choose_files():
    """The image's files, and those of one package among them: neighbours in one or a few directories."""
    files, size = [], 0
    for file in pulling.host_files():
        if size >= MEGABYTES * 1_000_000:
            break
        files.append(file)
        size += os.stat(file).st_size
    by_directory = {}
    for file in files:
        by_directory.setdefault(os.path.dirname(file), []).append(file)
    package, size = [], 0
    groups = sorted(by_directory.values(), key=lambda group: -sum(map(packaged_bytes, group)))
    for file in (file for group in groups for file in group if packaged_bytes(file)):
        if size < PACKAGE_BYTES:
            package.append(file)
            size += os.stat(file).st_size
    return files, set(package)


def make_archive(directory, name, files, changed, version=2):
    layout, archive = f"{directory}/{name}", f"{directory}/{name}.tar"
    subprocess.run(["umoci", "init", "--layout", layout], check=True)
    subprocess.run(["umoci", "new", "--image", f"{layout}:x"], check=True)
    add_files(f"{layout}:x", directory, files, changed, version)
    subprocess.run(["skopeo", "copy", f"oci:{layout}:x", f"oci-archive:{archive}:example.com/bench:{name}"], check=True,
                   capture_output=True)
    return archive


def digest(helper, store, archive):
    listed = subprocess.run([helper, "index", "--store", store, archive], check=True, stdout=subprocess.PIPE, text=True).stdout
    return listed.split('"digest":"')[1].split('"')[0]


def unpack(helper, store, archive):
    subprocess.run([helper, "unpack", "--store", store, "--digest", digest(helper, store, archive), archive], check=True)


def take(helper, directory, old, archive):
    with pulling.file_system(directory, MEGABYTES) as to:
        unpack(helper, f"{to}/store", old)
        subprocess.run(["sync", "-f", to], check=True)
        started = time.monotonic()
        unpack(helper, f"{to}/store", archive)
        return time.monotonic() - started


def measure(_, arguments, figures):
    helper = f"{arguments.build}/agent/mainstay-image"
    with tempfile.TemporaryDirectory(prefix="mainstay-bench-") as directory:
        files, package = choose_files()
        old = make_archive(directory, "old", files, set())
        new = make_archive(directory, "new", files, package)
        delta = f"{directory}/delta"
        with open(delta, "wb") as out:
            subprocess.run([helper, "diff", "--store", f"{directory}/scratch", old, new], check=True, stdout=out)
        figures.add("one package of a 200 MB image changed: bytes of the delta, of the image's",
                    100 * os.stat(delta).st_size / os.stat(new).st_size, 10, "%")
        ours, whole = [], []
        for _ in range(SAMPLES):
            ours.append(take(helper, directory, old, delta))
            whole.append(take(helper, directory, old, new))
        figures.compare("the same: delta imported, over the whole image imported", ours, whole, 1.0)
