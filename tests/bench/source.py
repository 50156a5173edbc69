# SPDX-License-Identifier: Apache-2.0
"""A signed source: the agent's memory with it, compared with an agent that has the same pods in its directory; the time
from the insertion of a stick until pods run; the space of twelve releases of a 200 MB image on a stick, and the bytes
that a node fetches if it is two releases behind; and the additional start time of a pod whose Secret is encrypted."""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

import bare
import delta
import harness
import pulling
import registry
import specs
import world
from index_source import Index, Key, Nginx, Runnable, settings
from stick import Stick
from test_secrets import age, recipient, secret
from world import wait

PODS, SAMPLES, SETTLE = 5, 15, 20
RELEASES, BEHIND, STICKS = 12, 2, 3
IMAGE = "example.com/bench:x"


def pods(image=specs.IMAGE):
    return {f"web{i}.yaml": specs.pod(f"web{i}", {**specs.container(), "image": image}) for i in range(PODS)}


def measure_both(plain, sourced):
    """Medians of the PSS in MiB, measured alternately: shared memory counts equally in both. The source is fetched in
    the meantime."""
    for node in (plain, sourced):
        for i in range(PODS):
            node.wait_running(f"web{i}")
    time.sleep(SETTLE)
    sizes = {plain: [], sourced: []}
    for _ in range(SAMPLES):
        for node, found in sizes.items():
            found.append(world.pss_kib(node.agent.pid) / 1024)
        time.sleep(1)
    return [statistics.median(sizes[node]) for node in (plain, sourced)]


def node_of(nginx, key, archive=None):
    return harness.Node(archive, config={"mainstay": {"source": settings(nginx.url(), [key], caFile=nginx.certificate, interval="5s")}})


def end(*nodes):
    """Without their source, the pods stop."""
    for node in nodes:
        node.write_config()
        node.restart()
        node.finish()


def measure_memory(archive, directory, figures):
    root = os.path.join(directory, "memory")
    os.mkdir(root)
    key = Key(directory, "memory-key")
    index = Index(root, key)
    index.write(pods(IMAGE), images=[index.add_image(Runnable({"release": b"1\n"}), IMAGE)])
    nginx = Nginx(os.path.join(directory, "memory-nginx"), root)
    plain, sourced = harness.Node(archive), node_of(nginx, key)
    try:
        for name, manifest in pods().items():
            plain.drop(manifest, name)
        without, with_source = measure_both(plain, sourced)
        figures.add("agent PSS with a source of manifests and images, more than without", with_source - without, 0.3, "MiB")
        answers = [int(line[3]) + int(line[4]) for line in nginx.asked() if line[2] == "304"]
        figures.add("an index that has not changed: bytes of request and response", max(answers), 1024, "B")
    finally:
        end(sourced)
        plain.finish()
        nginx.stop()


def large_image(directory):
    """200 MB of the host's files, and busybox."""
    files, layers, path = pulling.host_files(), [], os.path.join(directory, "layer.tar")
    for _ in range(pulling.LAYERS):
        pulling.write_layer(path, files, delta.MEGABYTES * 1_000_000 // pulling.LAYERS)
        with open(path, "rb") as file:
            layers.append(file.read())
    os.unlink(path)
    return Runnable(*layers)


def archive_of(image, directory):
    """The same image as an archive, to be unpacked by mainstay-image alone."""
    layout = os.path.join(directory, "layout")
    blobs = os.path.join(layout, "blobs", "sha256")
    os.makedirs(blobs)
    for data in (image.manifest, *image.blobs.values()):
        with open(os.path.join(blobs, registry.digest_of(data).removeprefix("sha256:")), "wb") as file:
            file.write(data)
    row = {"mediaType": registry.MANIFEST_TYPE, "digest": image.digest, "size": len(image.manifest),
           "annotations": {"org.opencontainers.image.ref.name": IMAGE}}
    for name, document in ("oci-layout", {"imageLayoutVersion": "1.0.0"}), ("index.json", {"schemaVersion": 2, "manifests": [row]}):
        with open(os.path.join(layout, name), "w", encoding="utf-8") as file:
            json.dump(document, file)
    subprocess.run(["tar", "-cf", f"{layout}.tar", "-C", layout, "."], check=True)
    shutil.rmtree(layout)
    return f"{layout}.tar"


class LoopStick(Stick):
    """A file system in a file, whose pages are not in memory when it is mounted."""

    def __init__(self, directory, place, size):
        self.file = f"{directory}.img"
        with open(self.file, "wb") as file:
            file.truncate(size)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.file], check=True)
        super().__init__(directory, place, "-o", "loop", self.file)

    def forget(self):
        world.run("umount", self.directory)
        world.run("mount", "-o", "loop", self.file, self.directory)


def read_alone(stick):
    stick.forget()
    started = time.monotonic()
    for path, _, names in os.walk(stick.directory):
        for name in names:
            subprocess.run(["cat", os.path.join(path, name)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - started


def unpack_alone(helper, directory, archive):
    store = tempfile.mkdtemp(dir=directory)
    started = time.monotonic()
    delta.unpack(helper, store, archive)
    took = time.monotonic() - started
    shutil.rmtree(store)
    return took


def run_from(stick, key, image):
    """A node with an empty store: from the mount of the stick until all of its pods run."""
    node = harness.Node(config={"mainstay": {"source": settings(f"file://{stick.place}/index.json", [key], interval="1h")}})
    fifo, index = bare.StartFifo(node.data), Index(stick.directory, key)
    named = [f"web{i}" for i in range(PODS)]
    documents = {f"{name}.yaml": bare.measured_pod(node, name) for name in named}
    for document in documents.values():
        document["spec"]["containers"][0]["image"] = IMAGE
    index.write(documents, images=[index.add_image(image, IMAGE)])
    try:
        stick.forget()
        started = time.monotonic()
        stick.plug()
        return fifo.wait_for(named, 600) - started
    finally:
        stick.pull()
        end(node)


def measure_stick(arguments, directory, figures):
    key, image = Key(directory, "stick-key"), large_image(directory)
    archive, ours, others = archive_of(image, directory), [], []
    for i in range(STICKS):
        os.mkdir(place := os.path.join(directory, f"place{i}"))
        stick = LoopStick(os.path.join(directory, f"stick{i}"), place, 2 * os.stat(archive).st_size + (64 << 20))
        try:
            ours.append(run_from(stick, key, image))
            others.append(read_alone(stick) + unpack_alone(f"{arguments.build}/agent/mainstay-image", directory, archive))
        finally:
            stick.remove()
            os.unlink(stick.file)
    figures.compare(f"{PODS} pods with a 200 MB image run from a stick, over reading it and unpacking alone", ours, others, 1.2)


class Releases:
    """A 200 MB image, each version of which changes one package of 4 MB, as 'source sign' writes them to a USB stick."""

    def __init__(self, build, directory, key):
        self.cli, self.directory, self.key = f"{build}/agent/mainstay", os.path.join(directory, "releases"), key
        self.root = os.path.join(self.directory, "root")
        os.makedirs(os.path.join(self.directory, "manifests"))
        self.files, self.package = delta.choose_files()
        self.image_bytes = 0

    def sign(self, number):
        archive = delta.make_archive(self.directory, "x", self.files, self.package, number)
        self.image_bytes = os.stat(archive).st_size
        # Its program is missing: the image is only fetched.
        pod = specs.pod("web", {**specs.container(script=f"# {number}"), "image": IMAGE}, restartPolicy="Never")
        with open(os.path.join(self.directory, "manifests", "web.yaml"), "w", encoding="utf-8") as file:
            file.write(specs.text(pod))
        subprocess.run([self.cli, "source", "sign", f"{self.directory}/manifests", self.root, "--key", self.key.path, "--fleet", "shops", "--from", archive,
                        "--cache", f"{self.directory}/cache"], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(f"{self.directory}/x")
        os.unlink(archive)

    def bytes_on_stick(self):
        return sum(os.stat(os.path.join(path, name)).st_size for path, _, names in os.walk(self.root) for name in names)


def helper_peak(node):
    """The peak memory of one mainstay-image process of the node, in MiB; 0 if there is none."""
    peaks = [0]
    for pid in world.pids():
        if os.path.basename((world.cmdline(pid) or [""])[0]) == "mainstay-image" and node.is_ours(pid):
            try:
                peaks.append(int(world.status(pid, "VmHWM").split()[0]) / 1024)
            except (OSError, ValueError, AttributeError, StopIteration):
                continue
    return max(peaks)


def take(node, number):
    """Waits until the index is in use; returns the peak of mainstay-image."""
    end_at, peak = time.monotonic() + 600, 0
    while f"index {number} of" not in node.cli("source", "status").stdout:
        assert time.monotonic() < end_at, node.said()[-2000:]
        peak = max(peak, helper_peak(node))
    return peak


def measure_releases(arguments, directory, figures):
    key = Key(directory, "releases-key")
    releases = Releases(arguments.build, directory, key)
    releases.sign(1)
    nginx = Nginx(os.path.join(directory, "releases-nginx"), releases.root)
    node = node_of(nginx, key)
    try:
        peak = take(node, 1)
        for number in range(2, RELEASES + 1):
            releases.sign(number)
            if number == RELEASES - BEHIND:
                peak = max(peak, take(node, number))
                node.stop()
        figures.add(f"a stick with {RELEASES} releases of a 200 MB image, over one image", releases.bytes_on_stick() / releases.image_bytes, 1.3, "x")
        before = len(nginx.asked())
        node.start()
        peak = max(peak, take(node, RELEASES))
        fetched = sum(int(line[4]) for line in nginx.asked()[before:])
        figures.add(f"a node that is {BEHIND} releases behind: bytes fetched, of the image's", 100 * fetched / releases.image_bytes, 15, "%")
        figures.add("mainstay-image while a node takes these: peak of its memory", peak, 24, "MiB")
    finally:
        end(node)
        nginx.stop()


def add_secret(pod, name, use):
    """The Secret as a variable of the pod, or as a volume."""
    spec = pod["spec"]
    if use == "variable":
        spec["containers"][0]["env"].append({"name": "WORD", "valueFrom": {"secretKeyRef": {"name": name, "key": "word"}}})
    else:
        spec["containers"][0]["volumeMounts"].append({"name": "secret", "mountPath": "/secret"})
        spec["volumes"].append({"name": "secret", "secret": {"secretName": name}})


def measure_secrets(archive, arguments, figures):
    """Measured alternately: a pod with a variable or a volume from an unencrypted Secret, and from an encrypted one,
    each decrypted for the first time."""
    node = harness.Node(archive)
    try:
        fifo, mine = bare.StartFifo(node.data), recipient(node)
        took = {(use, kind): [] for use in ("variable", "volume") for kind in ("clear", "sealed")}
        for i in range(arguments.samples):
            for (use, kind), found in took.items():
                name = f"{use}-{kind}{i}"
                value = age("a value", mine).decode() if kind == "sealed" else "a value"
                document = secret(name, word=value)
                if kind == "clear":
                    del document["metadata"]["annotations"]
                node.drop(specs.text(document), f"secret-{name}.yaml")
                wait(lambda name=name: name in node.cli("get", "secrets").stdout, "the Secret is known")
                pod = bare.measured_pod(node, name)
                add_secret(pod, name, use)
                found.append(bare.start(node, fifo, pod))
                node.remove(name)
                node.wait_gone(name)
        for use in ("variable", "volume"):
            later = statistics.median(took[use, "sealed"]) - statistics.median(took[use, "clear"])
            figures.add(f"a pod with a {use} of an encrypted Secret starts later than with one in clear", later * 1000, 5, "ms", samples=arguments.samples)
    finally:
        node.finish()


def measure(archive, arguments, figures):
    directory = tempfile.mkdtemp(prefix="mainstay-bench-source-")
    try:
        measure_memory(archive, directory, figures)
        measure_secrets(archive, arguments, figures)
        measure_stick(arguments, directory, figures)
        measure_releases(arguments, directory, figures)
    finally:
        shutil.rmtree(directory)
