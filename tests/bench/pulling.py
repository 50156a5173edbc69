# SPDX-License-Identifier: Apache-2.0
"""A pull of an image with ten layers from a registry on loopback: the time until all layers are synced, relative to
that of other tools, alternately with each; and during the pull, the agent's memory and the start of pods.

Each pull writes to a new file system: if files were removed in the last minutes, ext4 examines each of their inodes
before it allocates one, which takes longer than everything else."""

import contextlib
import json
import os
import random
import shutil
import subprocess
import tarfile
import tempfile
import time

import bare
import harness
import world
from registry import MANIFEST_TYPE, DockerRegistry

LAYERS = 10
SAMPLES = 3
MEANWHILE = 4  # pulls in which pods start
NAME = "bench/big:1"


def host_files():
    """The host's own files, which resemble the content of images, in the same order on each run."""
    found = []
    for directory, _, names in os.walk("/usr"):
        found += [path for path in (os.path.join(directory, name) for name in sorted(names))
                  if os.path.isfile(path) and not os.path.islink(path) and os.stat(path).st_size < 20_000_000]
    found.sort()
    random.Random(1).shuffle(found)
    return found


def write_layer(path, files, size):
    """Moves files from the list to the layer until it has this size."""
    directories, done = set(), 0
    with tarfile.open(path, "w") as tar:
        while files and done < size:
            file = files.pop()
            name = file.lstrip("/")
            parts = name.split("/")[:-1]
            for depth in range(1, len(parts) + 1):
                directory = "/".join(parts[:depth])
                if directory not in directories:
                    directories.add(directory)
                    member = tarfile.TarInfo(directory)
                    member.type, member.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(member)
            tar.add(file, arcname=name, recursive=False)
            done += os.stat(file).st_size


def make_image(directory, megabytes):
    layout, files = f"{directory}/layout", host_files()
    subprocess.run(["umoci", "init", "--layout", layout], check=True)
    subprocess.run(["umoci", "new", "--image", f"{layout}:x"], check=True)
    for _ in range(LAYERS):
        write_layer(f"{directory}/layer.tar", files, megabytes * 1_000_000 // LAYERS)
        subprocess.run(["umoci", "raw", "add-layer", "--image", f"{layout}:x", f"{directory}/layer.tar"], check=True)
    os.unlink(f"{directory}/layer.tar")
    return f"oci:{layout}:x"


class Ways:
    """Each pulls and unpacks the image into an empty directory."""

    def __init__(self, registry, build):
        self.registry, self.build = registry, build

    def start_ours(self, to):
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [f"{self.build}/agent/mainstay-image", "pull", "--store", to, f"{self.registry.host}/{NAME}"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        process.stdin.write(json.dumps({"insecureRegistries": [self.registry.host]}).encode())
        process.stdin.close()
        return process

    def ours(self, to):
        assert self.start_ours(to).wait() == 0

    def curl(self, to):
        base = f"http://{self.registry.host}/v2/{NAME.split(':')[0]}"
        manifest = subprocess.run(["curl", "-sf", "-H", f"Accept: {MANIFEST_TYPE}", f"{base}/manifests/1"], check=True,
                                  stdout=subprocess.PIPE).stdout
        for layer in json.loads(manifest)["layers"]:
            target = f"{to}/{layer['digest']}"
            os.mkdir(target)
            with subprocess.Popen(["curl", "-sf", f"{base}/blobs/{layer['digest']}"], stdout=subprocess.PIPE) as curl:
                subprocess.run(["tar", "-xz", "-C", target], stdin=curl.stdout, check=True)
        subprocess.run(["sync", "-f", to], check=True)

    def skopeo(self, to):
        subprocess.run(["skopeo", "copy", "--src-tls-verify=false", f"docker://{self.registry.host}/{NAME}",
                        f"oci:{to}/layout:x"], check=True, capture_output=True)
        subprocess.run(["umoci", "unpack", "--image", f"{to}/layout:x", f"{to}/bundle"], check=True, capture_output=True)
        subprocess.run(["sync", "-f", to], check=True)

    def podman(self, to):
        subprocess.run(["podman", "--storage-driver", "overlay", "--root", f"{to}/root", "--runroot", f"{to}/run", "pull", "-q",
                        "--tls-verify=false", f"{self.registry.host}/{NAME}"], check=True, capture_output=True)
        subprocess.run(["sync", "-f", to], check=True)
        subprocess.run(["umount", f"{to}/root/overlay"], check=False, capture_output=True)  # podman leaves it mounted


@contextlib.contextmanager
def file_system(directory, megabytes):
    """An empty file system in a file, mounted."""
    image, to = f"{directory}/disk", tempfile.mkdtemp(dir=directory)
    with open(image, "wb") as file:
        file.truncate(max(2 << 30, megabytes * 5_000_000))
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", image], check=True)
    subprocess.run(["mount", "-o", "loop,noinit_itable", image, to], check=True)
    try:
        yield to
    finally:
        # Children of the measured process may exit a moment later.
        world.wait(lambda: subprocess.run(["umount", to], check=False, capture_output=True).returncode == 0,
                   lambda: f"{to} is unmounted")
        os.rmdir(to)
        os.unlink(image)


def take(way, directory, megabytes):
    with file_system(directory, megabytes) as to:
        started = time.monotonic()
        way(to)
        return time.monotonic() - started


def compare(ways, directory, megabytes, figures):
    others = [("curl | tar in a row", ways.curl, 1.0), ("skopeo copy and umoci unpack", ways.skopeo, 0.5)]
    if shutil.which("podman"):
        others.append(("podman pull", ways.podman, 0.6))
    times, ours = {name: [] for name, _, _ in others}, []
    for _ in range(SAMPLES):
        for name, way, _ in others:
            ours.append(take(ways.ours, directory, megabytes))
            times[name].append(take(way, directory, megabytes))
    for name, _, goal in others:
        figures.compare(f"pull and unpack, over {name}", ours, times[name], goal)


def starts_meanwhile(ways, directory, archive, figures):
    """Starts of pods whose image is present, while another image is pulled."""
    node = harness.Node(archive)
    try:
        fifo, count, quiet, busy = bare.StartFifo(node.data), 0, [], []

        def start():
            nonlocal count
            count += 1
            took = bare.start(node, fifo, bare.measured_pod(node, f"pod{count}"))
            node.remove(f"pod{count}")
            node.wait_gone(f"pod{count}")
            return took

        start()
        for _ in range(MEANWHILE):
            subprocess.run(["sync", "-f", directory], check=True)
            quiet += [start() for _ in range(5)]
            with ways.start_ours(tempfile.mkdtemp(dir=directory)) as pull:
                while pull.poll() is None:
                    busy.append(start())
                assert pull.returncode == 0
        figures.compare("a pod's start while an image is pulled, over one without a pull", busy, quiet, 1.2)
    finally:
        node.finish()


def resident(pid):
    return int(world.status(pid, "VmRSS").split()[0]) / 1024


def agent_memory(registry, figures):
    """The agent only starts the image helper and reads its progress."""
    node = harness.Node(None, {"mainstay": {"insecureRegistries": [registry.host]}})
    try:
        before = most = resident(node.agent.pid)
        with subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, "images", "pull",
                               f"{registry.host}/{NAME}"], stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                most = max(most, resident(node.agent.pid))
                time.sleep(0.02)
            assert process.returncode == 0
        figures.add("the agent's memory during a pull, more than before", most - before, 1, "MiB")
    finally:
        node.finish()


def measure(archive, arguments, figures):
    with tempfile.TemporaryDirectory(prefix="mainstay-bench-") as directory:
        registry = DockerRegistry(directory)
        try:
            registry.push(make_image(directory, arguments.megabytes), NAME)
            ways = Ways(registry, arguments.build)
            compare(ways, directory, arguments.megabytes, figures)
            starts_meanwhile(ways, directory, archive, figures)
            agent_memory(registry, figures)
        finally:
            registry.stop()
