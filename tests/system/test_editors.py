# SPDX-License-Identifier: Apache-2.0
"""Files as editors and tools write them: an unchanged file restarts nothing, and a changed one restarts once. The tests
use the programs themselves if they are small packages of Debian, and otherwise repeat their system calls."""

import contextlib
import os
import pty
import shutil
import subprocess
import tempfile

import pytest
import specs
import world
from world import run, wait


def vim(*settings):
    def save(path, text):
        """Opens the file, replaces all lines with the text, and writes."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as new:
            new.write(text)
            new.flush()
            options = [word for setting in settings for word in ("-c", f"set {setting}")]
            # vim-tiny is "vi" only.
            run(shutil.which("vim") or "vi", "-N", "-u", "NONE", "-es", *options, "-c", f"%!cat {new.name}", "-c", "wq", path)
    return save


def nano(path, text):
    """Runs nano in a terminal: cuts all lines, reads the new ones in, writes, exits."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as new:
        new.write(text)
        new.flush()
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe("nano", ["nano", "--ignorercfiles", path], {**os.environ, "TERM": "xterm", "LC_ALL": "C"})
        said = b""

        def wait_said(word):
            nonlocal said
            while word not in said:
                said += os.read(terminal, 4096)
            said = b""
        wait_said(b"^X")
        os.write(terminal, b"\x1bT")  # cuts to the end
        os.write(terminal, b"\x12")
        wait_said(b"insert")
        os.write(terminal, f"{new.name}\r".encode())
        wait_said(b"Read")
        os.write(terminal, b"\x0f")
        wait_said(b"Write")
        os.write(terminal, b"\r")
        wait_said(b"Wrote")
        os.write(terminal, b"\x18")
        os.close(terminal)
        os.waitpid(pid, 0)


def sed(path, text):
    """Runs sed, which replaces the first line and deletes the others."""
    with tempfile.NamedTemporaryFile("w") as script:
        script.write("1c\\\n" + "\\\n".join(text.splitlines()) + "\n2,$d\n")
        script.flush()
        run("sed", "-i", "-f", script.name, path)


def sed_with_backup(path, text):
    with tempfile.NamedTemporaryFile("w") as script:
        script.write("1c\\\n" + "\\\n".join(text.splitlines()) + "\n2,$d\n")
        script.flush()
        run("sed", "-i.bak", "-f", script.name, path)


def copied(*words):
    """Copies a file of the same name from elsewhere by a program."""
    def save(path, text):
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, os.path.basename(path))
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            run(*words, source, path)
    return save


def redirect(path, text):
    """kubectl get -o yaml >FILE, tee: truncates the file, then writes it in pieces."""
    subprocess.run(["sh", "-c", 'while IFS= read -r line; do printf "%s\\n" "$line"; done >"$0"', path], input=text, text=True,
                   check=True)


def in_place(path, text):
    """VS Code, and scp: opens the file without truncating it, writes, truncates to the new length."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(fd, text.encode())
    os.ftruncate(fd, len(text.encode()))
    os.fsync(fd)
    os.close(fd)


def code(path, text):
    """VS Code: truncates the file when it opens it."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, text.encode())
    os.fdatasync(fd)
    os.close(fd)


def emacs(path, text):
    """Emacs: creates its lock and its automatic save, renames the file to a backup, writes a new file."""
    directory, name = os.path.split(path)
    lock, auto = f"{directory}/.#{name}", f"{directory}/#{name}#"
    os.symlink("user@host.1:1", lock)
    with open(auto, "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path, path + "~")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o644)
    os.unlink(auto)
    os.unlink(lock)


def emacs_by_copying(path, text):
    """backup-by-copying: the backup is a copy, and the file is truncated and written."""
    shutil.copy2(path, path + "~")
    code(path, text)


def ansible(path, text):
    """atomic_move(): writes a new file next to the old one, with its owner and mode, and renames it."""
    fd, temporary = tempfile.mkstemp(prefix=".ansible_tmp", suffix=os.path.basename(path), dir=os.path.dirname(path))
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
    shutil.copystat(path, temporary)
    os.chown(temporary, 0, 0)
    os.rename(temporary, path)
    os.utime(path)


def away_and_back(path, text):
    """Renames the file away, and puts another one in its place."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path, path + ".old")
    os.rename(path + ".new", path)
    os.unlink(path + ".old")


EDITORS = {
    "vim": vim("backupcopy=auto"),
    "vim with a backup by renaming": vim("backup", "writebackup", "backupcopy=no"),
    "vim with a backup by copying": vim("backup", "backupcopy=yes"),
    "vim without a backup": vim("nobackup", "nowritebackup"),
    "nano": nano,
    "sed -i": sed,
    "sed -i.bak": sed_with_backup,
    "rsync": copied("rsync", "--checksum"),
    "rsync --inplace": copied("rsync", "--checksum", "--inplace"),
    "rsync --backup": copied("rsync", "--checksum", "--backup"),
    "cp": copied("cp"),
    "cp --remove-destination": copied("cp", "--remove-destination"),
    "install": copied("install", "-m", "644"),
    "mv": copied("mv"),
    "scp": in_place,
    "a redirection": redirect,
    "VS Code": code,
    "emacs": emacs,
    "emacs with backup-by-copying": emacs_by_copying,
    "Ansible": ansible,
    "a file renamed away": away_and_back,
}


def manifest(node, word, label="0"):
    return specs.text(specs.pod("edited", specs.container(script=f"echo {word} >>/v/starts; {specs.IDLE}",
                                                          volumeMounts=[specs.mount("v", "/v")]),
                                metadata={"labels": {"edit": label}}, volumes=[specs.host_path("v", node.data)]))


@contextlib.contextmanager
def undisturbed():
    """An editor that removes a file and puts it back has a quarter of a second for that. The event wakes the agent, and
    on a busy machine an editor that is preempted between the two calls may run again too late."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def save(editor, path, text):
    with undisturbed():
        editor(path, text)
    with open(path, encoding="utf-8") as file:
        assert file.read() == text


@pytest.mark.parametrize("name", EDITORS)
def test_saving_a_file_in_an_editor_restarts_only_the_changed_containers_once(shared_node, name):
    node, path = shared_node, shared_node.path("edited.yaml")

    def starts():
        return (world.read(f"{node.data}/starts") or "").split()
    node.write(manifest(node, "one"), "edited.yaml")
    node.wait_running("edited")
    wait(lambda: starts() == ["one"], starts)
    init = node.init("edited")
    save(EDITORS[name], path, manifest(node, "one"))
    save(EDITORS[name], path, manifest(node, "one", "1"))
    node.wait_pod("edited", lambda pod: pod["metadata"]["labels"]["edit"] == "1", "has the label that was saved last")
    assert node.init("edited") == init and starts() == ["one"]
    save(EDITORS[name], path, manifest(node, "two", "2"))
    wait(lambda: starts()[1:], lambda: f"it runs what was saved: {node.said()[-3000:]}")
    node.wait_pod("edited", lambda pod: pod["metadata"]["labels"]["edit"] == "2", "has the label that was saved last")
    node.wait_running("edited")
    for left in os.listdir(node.manifests):
        os.unlink(node.path(left))
    node.wait_gone("edited")
    assert starts() == ["one", "two"]
    assert len(node.pods()) == 0
    os.unlink(f"{node.data}/starts")
