# SPDX-License-Identifier: Apache-2.0
"""Plain root file systems as images: mainstay images import ROOTFS --name NAME."""

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import tarfile

import deltas
import harness
import pytest
import specs
import world
from index_source import Runnable

BUSYBOX = "/bin/busybox"


def rootfs(*entries):
    """A tar with the machine's busybox and further entries, each with a name, a type and other fields."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(BUSYBOX, "bin/busybox")
        for name, kind, fields in entries:
            info = tarfile.TarInfo(name)
            info.type = kind
            data = fields.pop("data", b"")
            info.size = len(data)
            for key, value in fields.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def environment_of(node):
    return {**node.environment(), "MAINSTAY_SOCKET": node.socket}


def typed(node, line):
    """A shell command line in which the program has its path on this machine."""
    line = line.replace("mainstay images", harness.program("mainstay") + " images")
    return subprocess.run(["sh", "-c", line], env=environment_of(node), capture_output=True, text=True, check=False)


def imported(node, data, *words):
    return subprocess.run([harness.program("mainstay"), "images", "import", "-", *words], env=environment_of(node),
                          input=data, capture_output=True, check=False)


def run_pod(node, name, **fields):
    node.drop(specs.pod(name, {"name": "main", "imagePullPolicy": "Never", **fields}, restartPolicy="Never"))


def output_of(node, name, **fields):
    run_pod(node, name, **fields)
    node.wait_phase(name, "Succeeded")
    return node.logged(name)


def test_a_rootfs_from_standard_input_is_an_image(node):
    said = typed(node, "tar c -C / bin/busybox | mainstay images import - --name hello")
    assert said.returncode == 0, said.stderr
    assert said.stdout == os.path.join(node.state, "preload", "docker.io+library+hello=latest.tar") + "\n"
    assert output_of(node, "hello", image="hello", command=[BUSYBOX, "echo", "from a pipe"]) == ["from a pipe"]
    image, = (line.split() for line in node.cli("images", "--no-headers").stdout.splitlines() if "hello" in line)
    assert image[0] == "docker.io/library/hello:latest"


@pytest.mark.parametrize("compress", [["gzip", "-c"], ["zstd", "-c", "-q"]], ids=["gzip", "zstd"])
def test_a_compressed_rootfs_in_a_file_is_the_same_image(node, tmp_path, compress):
    plain, packed = tmp_path / "rootfs.tar", tmp_path / "rootfs.tar.packed"
    plain.write_bytes(rootfs())
    packed.write_bytes(subprocess.run([*compress, str(plain)], check=True, capture_output=True).stdout)
    archives = []
    for file, name in ((plain, "plain:1"), (packed, "plain:1"), (packed, "example.com/team/packed:2")):
        said = node.cli("images", "import", str(file), "--name", name)
        assert said.returncode == 0, said.stderr
        with open(said.stdout.strip(), "rb") as archive:
            archives.append(archive.read())
    assert archives[0] == archives[1], "the same file system is the same archive"
    assert output_of(node, "packed", image="example.com/team/packed:2", command=[BUSYBOX, "echo", "packed"]) == ["packed"]
    assert sorted(os.listdir(os.path.join(node.state, "preload")))[-2:] == [
        "docker.io+library+plain=1.tar", "example.com+team+packed=2.tar"]


def test_the_configuration_uses_the_syntax_of_podman_and_docker(node):
    said = imported(node, rootfs(("srv", tarfile.DIRTYPE, {"mode": 0o755})), "--name", "told",
                    "--config", 'ENTRYPOINT ["/bin/busybox", "sh", "-c"]',
                    "--change", "CMD=[\"pwd; echo $A; echo $B $C; id -u\"]",
                    "-c", "ENV A=first", "--config", "ENV=B='two words' C=\"x y\"", "--config", "Env A=second",
                    "--config", "WORKDIR /srv", "--config", "USER 1000:1000", "--config", "STOPSIGNAL SIGUSR1",
                    "--config", "EXPOSE 80 53/udp", "--config", "LABEL a=b", "--config", "VOLUME /data")
    assert said.returncode == 0, said.stderr
    assert output_of(node, "told", image="told") == ["/srv", "second", "two words x y", "1000"]
    config = json.loads(blob_of(said.stdout.decode().strip(), "config"))["config"]
    assert config["ExposedPorts"] == {"80/tcp": {}, "53/udp": {}}
    assert (config["Labels"], config["Volumes"], config["StopSignal"]) == ({"a": "b"}, {"/data": {}}, "SIGUSR1")


def blob_of(archive, key):
    with tarfile.open(archive) as tar:
        def read(name):
            return tar.extractfile(name).read()

        def blob(descriptor):
            return read("blobs/sha256/" + descriptor["digest"].split(":")[1])
        manifest = json.loads(blob(json.loads(read("index.json"))["manifests"][0]))
        return blob(manifest[key])


def test_the_configuration_may_be_an_object_of_the_image_specification(node):
    config = {"Entrypoint": [BUSYBOX, "env"], "Env": ["ONLY=this"], "WorkingDir": "/bin", "User": "5"}
    assert imported(node, rootfs(), "--name", "object", "--config", json.dumps(config)).returncode == 0
    assert "ONLY=this" in output_of(node, "object", image="object")


@pytest.mark.parametrize("change, says", [
    ("RUN true", "'RUN' is not one of CMD, ENTRYPOINT, ENV"),
    ("CMD", "CMD needs a value"),
    ('CMD ["/bin/sh"', "is not a JSON array"),
    ("CMD [1]", "element 0 is not a string"),
    ("ENV A", "'A' is not NAME=VALUE"),
    ("ENV A='b", "a quotation mark is not closed"),
    ("WORKDIR srv", "'srv' is not an absolute path"),
    ("WORKDIR /proc/self", "the working directory '/proc/self' is refused"),
    ("EXPOSE http", "'http' is not a port"),
    ("VOLUME data", "'data' is not an absolute path"),
    ('{"Cmd": "x"}', "Cmd"),
    ('{"Command": []}', "'Command' is not a member"),
    ("{", "--config"),
    ("", "is not one of CMD"),
])
def test_a_wrong_configuration_is_an_error_before_the_tar_is_read(node, change, says):
    said = imported(node, b"", "--name", "wrong", "--config", change)
    assert said.returncode == 1 and says in said.stderr.decode(), said.stderr
    assert_nothing_is_left(node)


def assert_nothing_is_left(node):
    assert [name for name in os.listdir(os.path.join(node.state, "preload")) if "=" in name or name.endswith(".part")] == []


HOSTILE = {
    "a_name_that_leaves": (rootfs(("../../../etc/evil", tarfile.REGTYPE, {"data": b"x"})), "leaves"),
    "a_hard_link_that_leaves": (rootfs(("bin/x", tarfile.LNKTYPE, {"linkname": "../../etc/shadow"})), "hard link"),
    "a_whiteout_of_the_parent": (rootfs((".wh...", tarfile.REGTYPE, {})), ".wh..."),
    "below_a_whiteout": (rootfs((".wh.x/y", tarfile.REGTYPE, {})), "is below a whiteout"),
    "a_long_name": (rootfs(("a/" * 3000, tarfile.DIRTYPE, {})), "entry 2"),
    "no_tar": (b"#!/bin/sh\necho hello\n" * 100, "is neither a tar nor one compressed with gzip or zstd"),
    "no_bytes": (b"", "contains no file"),
    "no_file": (b"\0" * 10240, "contains no file"),
    "a_cut_tar": (rootfs()[:100000], "tar"),
    "a_cut_gzip": (gzip.compress(rootfs())[:100000], "standard input"),
    "an_xz": (b"\xfd7zXZ\0" + b"\0" * 100, "compressed with xz"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_or_damaged_tar_is_refused_when_it_is_imported(node, name):
    data, says = HOSTILE[name]
    said = imported(node, data, "--name", "hostile")
    assert said.returncode == 1 and says in said.stderr.decode(), said.stderr
    assert b"standard input: " in said.stderr
    assert_nothing_is_left(node)


def test_a_compressed_bomb_ends_at_a_limit(node):
    """2 GiB of zeros, compressed to 64 KiB, are refused because of the ratio, long before the disk is full."""
    said = typed(node, "head -c 2147483648 /dev/zero | zstd -q -c | mainstay images import - --name bomb")
    assert said.returncode == 1 and "standard input: " in said.stderr, said
    assert_nothing_is_left(node)


def test_links_and_devices_of_a_rootfs_have_no_effect_outside_of_it(node, tmp_path):
    """A link to the host is a link within the container; a device node is left out; a set-user-ID bit stays within."""
    outside = tmp_path / "outside"
    outside.mkdir()
    data = rootfs(("out", tarfile.SYMTYPE, {"linkname": str(outside)}), ("out/file", tarfile.REGTYPE, {"data": b"x"}),
                  ("dev/sda", tarfile.BLKTYPE, {"devmajor": 8, "devminor": 0}))
    assert imported(node, data, "--name", "linked").returncode == 0
    run_pod(node, "linked", image="linked", command=[BUSYBOX, "true"])
    world.wait(lambda: node.pod("linked")["status"]["phase"] == "Succeeded" or "out" in node.complaints(), "the image ran or was refused")
    assert list(outside.iterdir()) == []


def test_image_archives_and_root_file_systems_are_distinguished(node, archive, tmp_path):
    said = node.cli("images", "import", archive, "--name", "wrong")
    assert said.returncode == 1 and "is an image archive, not a root file system: import it without --name" in said.stderr
    plain = tmp_path / "plain.tar"
    plain.write_bytes(rootfs())
    said = node.cli("images", "import", str(plain))
    assert said.returncode == 1 and "'mainstay images import --name' takes a root file system" in said.stderr


def test_import_returns_when_the_images_can_be_used(node, archive, tmp_path):
    for number in range(5):
        copy = shutil.copy(archive, tmp_path / f"copy-{number}.tar")
        said = node.cli("images", "import", copy)
        assert said.returncode == 0 and said.stdout == os.path.join(node.state, "preload", f"copy-{number}.tar") + "\n", said.stderr
        archives = json.loads(node.get("/images")[1])["archives"]
        assert [one for one in archives if one["file"] == f"copy-{number}.tar" and one["isRead"] and "error" not in one], archives


@pytest.mark.parametrize("content", [b"", b"no archive", b"\0" * 10240])
def test_archive_that_cannot_be_used_is_reported_and_not_kept(node, archive, tmp_path, content):
    (tmp_path / "wrong.tar").write_bytes(content)
    good = shutil.copy(archive, tmp_path / "good.tar")
    said = node.cli("images", "import", str(tmp_path / "wrong.tar"), good)
    assert said.returncode == 1 and "wrong.tar: " in said.stderr and said.stdout.endswith("/good.tar\n"), said
    kept = os.listdir(os.path.join(node.state, "preload"))
    assert "good.tar" in kept and "wrong.tar" not in kept
    shutil.copy(archive, tmp_path / "wrong.tar")
    assert node.cli("images", "import", str(tmp_path / "wrong.tar")).returncode == 0, "the name can be used again"


def test_archive_for_another_architecture_is_reported_and_not_kept(node, tmp_path):
    foreign = deltas.image_archive(str(tmp_path / "foreign.tar"), Runnable({"version": b"1\n"}, architecture="s390x"), "foreign:1")
    said = node.cli("images", "import", foreign)
    assert said.returncode == 1 and "s390x" in said.stderr, said
    assert "foreign.tar" not in os.listdir(os.path.join(node.state, "preload"))


@pytest.mark.parametrize("words, says", [
    (["-"], "needs --name"),
    (["x.tar", "--config", "CMD x"], "--config needs --name"),
    (["a.tar", "b.tar", "--name", "x"], "takes one root file system"),
])
def test_invalid_arguments_are_a_usage_error(node, words, says):
    said = node.cli("images", "import", *words)
    assert said.returncode == 2 and says in said.stderr


@pytest.mark.parametrize("name, says", [("Wrong Name", "Wrong Name"), ("a@sha256:" + "0" * 64, "cannot be chosen")])
def test_a_wrong_name_is_an_error(node, name, says):
    said = imported(node, rootfs(), "--name", name)
    assert said.returncode == 1 and says in said.stderr.decode()


def test_a_missing_file_and_a_directory_are_errors(node, tmp_path):
    for file in (tmp_path / "absent", tmp_path):
        said = node.cli("images", "import", str(file), "--name", "x")
        assert said.returncode == 1 and str(file) in said.stderr
    assert_nothing_is_left(node)


def test_an_import_that_is_killed_leaves_nothing_behind(node):
    with subprocess.Popen([harness.program("mainstay"), "images", "import", "-", "--name", "cut"], stdin=subprocess.PIPE,
                          env=environment_of(node)) as process:
        process.stdin.write(rootfs()[:200000])
        process.stdin.flush()
        world.wait(lambda: any("mainstay-image" in " ".join(world.cmdline(pid)) and "--name=docker.io/library/cut:latest" in world.cmdline(pid)
                               for pid in world.pids()), "the helper runs")
        process.kill()
        process.stdin.close()
    world.wait(lambda: not any("--name=docker.io/library/cut:latest" in world.cmdline(pid) for pid in world.pids()), "the helper has ended")
    assert_nothing_is_left(node)


def test_an_image_that_is_imported_again_replaces_the_first(node):
    for text in ("one", "two"):
        assert imported(node, rootfs(("text", tarfile.REGTYPE, {"data": text.encode()})), "--name", "again").returncode == 0
        assert output_of(node, f"again-{text}", image="again", command=[BUSYBOX, "cat", "/text"]) == [text]


def readme_commands():
    """The lines that a user types according to "The first pod" of the README, by the text before them."""
    with open(os.path.join(harness.TOP, "README.md"), encoding="utf-8") as file:
        section = re.search(r"^## The first pod\n(.*?)^## ", file.read(), re.M | re.S).group(1)
    return re.findall(r"^    # (.*)$", section, re.M)


def test_the_first_pod_of_the_readme_runs_as_typed_without_a_network(make_node, tmp_path):
    """The lines are unchanged, except that they contain the paths of this node instead of those of an installed one,
    and another port."""
    node, commands = make_node(archive=None), readme_commands()
    examples, port = tmp_path / "examples", world.free_port()
    examples.mkdir()
    with open(os.path.join(harness.TOP, "manifests", "hello.yaml"), encoding="utf-8") as file:
        (examples / "hello.yaml").write_text(file.read().replace("18080", str(port)))
    lines = [line.replace("/usr/share/doc/mainstay/examples", str(examples)).replace("/etc/kubernetes/manifests", node.manifests)
             .replace("18080", str(port)) for line in commands]
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("mainstay", "mainstay-image"):
        (tools / name).symlink_to(harness.program(name))
    environment = {**environment_of(node), "PATH": f"{tools}:{os.environ['PATH']}"}

    def type_line(start):
        line, = (line for line in lines if line.startswith(start))
        return subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, check=False)
    assert type_line("tar c").returncode == 0
    assert type_line("install").returncode == 0
    node.wait_running("hello")
    assert "1/1" in type_line("mainstay get pods").stdout
    world.wait(lambda: type_line("busybox wget").stdout == "Hello from Mainstay\n", "the pod answers")
