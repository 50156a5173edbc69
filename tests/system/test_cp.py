# SPDX-License-Identifier: Apache-2.0
"""mainstay cp: files into a container and out of it."""

import hashlib
import io
import os
import stat
import subprocess
import tarfile

import harness
import pytest
import specs
import world


@pytest.fixture(scope="module", name="busy")
def fixture_busy(shared_node):
    shared_node.launch(specs.pod("web", specs.container(), specs.container("side")))
    return shared_node


def inside(node, path, container="main"):
    return f"/proc/{node.init('web', container)}/root{path}"


def make_tree(top):
    """A directory with files of all kinds."""
    (top / "deep" / "er").mkdir(parents=True)
    (top / "deep" / "er" / "data").write_bytes(os.urandom(100000))
    (top / "empty").write_text("")
    (top / "empty dir").mkdir()
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    (top / "link").symlink_to("deep/er/data")
    (top / "dangling").symlink_to("/no/such/file")
    (top / "-n name\nwith all").write_text("odd")


def picture(top):
    """The tree by name: kind, permissions of the owner, content."""
    found = {}
    for directory, names, files in os.walk(top):
        for name in names + files:
            path = os.path.join(directory, name)
            mode = os.lstat(path).st_mode
            content = os.readlink(path) if stat.S_ISLNK(mode) else None
            if stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(path, top)] = (stat.S_IFMT(mode), content, not stat.S_ISREG(mode) or mode & 0o700)
    return found


def cp(node, source, target, *options):
    answer = node.cli("cp", *options, str(source), str(target))
    assert answer.returncode == 0, answer.stderr
    return answer


def test_a_tree_is_copied_in_and_out_unchanged(busy, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    make_tree(tree)
    cp(busy, tree, "web:/tmp", "-c", "main")
    assert picture(inside(busy, "/tmp/tree")) == picture(tree), "copied into an existing directory"
    cp(busy, tree, "default/web:/tmp/other", "-c", "side")
    assert picture(inside(busy, "/tmp/other", "side")) == picture(tree), "copied under another name"
    cp(busy, "web:/tmp/tree", tmp_path / "back", "-c", "main")
    assert picture(tmp_path / "back") == picture(tree)
    (tmp_path / "here").mkdir()
    cp(busy, "web:/tmp/tree", tmp_path / "here", "-c", "main")
    assert picture(tmp_path / "here" / "tree") == picture(tree)


def test_a_file_is_copied_both_ways_and_replaces_an_existing_one(busy, tmp_path):
    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_text("two")
    cp(busy, tmp_path / "a", "web:/tmp/file", "-c", "main")
    cp(busy, tmp_path / "b", "web:/tmp/file", "-c", "main")
    assert world.read(inside(busy, "/tmp/file")) == "two"
    cp(busy, "web:/tmp/file", tmp_path / "a", "-c", "main")
    assert (tmp_path / "a").read_text() == "two"


def test_a_failed_copy_is_an_error(busy, tmp_path):
    (tmp_path / "a").write_text("one")
    for words, said in ((["/no/such", "web:/tmp"], "No such file"), (["web:/no/such", tmp_path / "x"], "exit code"),
                        ([tmp_path / "a", "web:/no/such/place"], "exit code"), ([tmp_path / "a", "missing:/tmp"], "not found"),
                        (["web:/tmp/tree", "/no/such/place/x"], "No such file"), (["web:/tmp/file", "web:/tmp/x"], "must be in a pod"),
                        (["web:/", tmp_path], "as a whole")):
        answer = busy.cli("cp", "-c", "main", *map(str, words))
        assert answer.returncode != 0, words
        assert said in answer.stderr, words
    assert not (tmp_path / "x").exists()


class Liar:
    """A pod whose tar prints the given data."""

    def __init__(self, node):
        self.node = node
        node.launch(specs.pod("liar"))
        self.root = f"/proc/{node.init('liar')}/root"
        os.unlink(f"{self.root}/bin/tar")
        with open(f"{self.root}/bin/tar", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\ncat /lie\n")
        os.chmod(f"{self.root}/bin/tar", 0o755)

    def says(self, *entries):
        with tarfile.open(f"{self.root}/lie", "w") as tar:
            for info, data in entries:
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def entry(name, data=b"", kind=tarfile.REGTYPE, link="", mode=0o644):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info, data


def test_a_malicious_tar_writes_nowhere_else(node, tmp_path):
    liar = Liar(node)
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "here").mkdir()
    for number, lie in enumerate((
            [entry("x/../../outside/evil", b"evil")], [entry("/etc/evil", b"evil")], [entry("y/evil", b"evil")],
            [entry("x", kind=tarfile.DIRTYPE, mode=0o755), entry("x/l", kind=tarfile.SYMTYPE, link=str(outside)), entry("x/l/evil", b"evil")],
            [entry("x", kind=tarfile.SYMTYPE, link=str(outside)), entry("x/evil", b"evil")],
            [entry("x", kind=tarfile.DIRTYPE, mode=0o755), entry("x/h", kind=tarfile.LNKTYPE, link="/etc/hostname")])):
        liar.says(*lie)
        target = tmp_path / "here" / f"t{number}"
        node.cli("cp", "liar:/x", str(target))
        assert not list(outside.iterdir()), lie
        assert not os.path.exists("/etc/evil") and not (tmp_path / "here" / "y").exists()
    assert not (tmp_path / "here" / "t5" / "h").exists()


def test_devices_and_set_user_id_bits_are_not_copied(node, tmp_path):
    liar = Liar(node)
    liar.says(entry("x", kind=tarfile.DIRTYPE, mode=0o755), entry("x/null", kind=tarfile.CHRTYPE),
              entry("x/pipe", kind=tarfile.FIFOTYPE), entry("x/su", b"su", mode=0o6755))
    answer = node.cli("cp", "liar:/x", str(tmp_path / "t"))
    assert answer.returncode == 0, answer.stderr
    assert os.listdir(tmp_path / "t") == ["su"]
    assert os.stat(tmp_path / "t" / "su").st_mode & 0o7000 == 0
    assert "skipping" in answer.stderr


def test_control_characters_of_a_container_are_made_visible(node, tmp_path):
    liar = Liar(node)
    for lie in (entry("y\033[2J\nroot#"), entry("x/p\033[2J\nroot#", kind=tarfile.FIFOTYPE)):
        liar.says(lie)
        answer = node.cli("cp", "liar:/x", str(tmp_path / "t"))
        assert "?[2J root#" in answer.stderr and "\033" not in answer.stderr
        assert len(answer.stderr.splitlines()) == 1


def test_an_image_without_tar_is_an_error(node, tmp_path):
    liar = Liar(node)
    os.unlink(f"{liar.root}/bin/tar")
    answer = node.cli("cp", "liar:/x", str(tmp_path / "t"))
    assert (answer.returncode, answer.stderr) == (
        1, "error: the image of container main has no program tar, which cp needs\n")


def test_completion_offers_pods_and_containers(busy):
    script = os.path.join(harness.TOP, "packaging", "completion", "mainstay.bash")

    def complete(*words):
        line = ("source \"$1\"; shift; PATH=\"$1:$PATH\"; shift; COMP_WORDS=(mainstay \"$@\"); COMP_CWORD=$#; _mainstay; "
                "printf '%s\\n' \"${COMPREPLY[@]}\"")
        answer = subprocess.run(["bash", "-c", line, "bash", script, os.path.join(harness.BUILD, "agent"), *words], check=True,
                                env={**busy.environment(), "MAINSTAY_SOCKET": busy.socket}, text=True, stdout=subprocess.PIPE, timeout=world.DEADLINE)
        return sorted(answer.stdout.split())
    for command in ("exec", "logs"):
        assert complete(command, "") == ["web-node1"]
    assert complete("delete", "pod", "w") == ["web-node1"]
    assert complete("top", "pods", "") == ["web-node1"]
    assert complete("exec", "web", "-c", "") == ["main", "side"]
    assert "web-node1:" in complete("cp", "web")
    assert {"configmaps", "events", "pods", "secrets"} <= set(complete("get", ""))
    assert {"exec", "cp", "top", "delete", "get", "describe", "logs"} <= set(complete(""))


def replace_program(node, pod, name, script):
    """Replaces the program in the container by this script."""
    answer = node.cli("exec", "-i", pod, "--", "sh", "-c", f"rm /bin/{name} && cat > /bin/{name} && chmod 755 /bin/{name}",
                      input="#!/bin/sh\n" + script)
    assert answer.returncode == 0, answer.stderr


def test_programs_of_the_container_do_not_write_to_the_terminal_of_the_administrator(node, tmp_path):
    node.launch(specs.pod("evil"))
    replace_program(node, "evil", "test", "printf '\\033]0;owned\\007'\nexit 1\n")
    replace_program(node, "evil", "tar", "cat > /dev/null\nprintf 'caf\\303\\251 \\033[2J\\000\\nlast\\007' >&2\nexit 3\n")
    (tmp_path / "f").write_text("x")
    answer = node.cli("cp", str(tmp_path / "f"), "evil:/tmp/")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.splitlines() == ["caf\u00e9 ?[2J?", "last?", "error: tar in the container ended with exit code 3"]
    replace_program(node, "evil", "tar", "printf 'no\\033[2J\\n' >&2\nexit 3\n")
    answer = node.cli("cp", "evil:/etc/passwd", str(tmp_path / "out"))
    assert "no?[2J\n" in answer.stderr and "\033" not in answer.stderr
