# SPDX-License-Identifier: Apache-2.0
"""The first process of a PID namespace that the containers of a pod share."""

import os
import re

import harness
import specs
import world

OVERFLOW_ID = 65534


def find(node, name):
    shim = str(node.shim(name))
    (pid,) = [pid for pid in world.pids()
              if world.status(pid, "PPid") == shim and world.status(pid, "Name") == "mainstay-pause"]
    return pid


def expect_nothing_of_the_node(node, secret, **fields):
    """A container may trace the process and see its root directory, and can make it execute anything. 'secret' is a new
    file of the node."""
    secret.write_text("of the node")
    secret.chmod(0o600)
    tracer = specs.container(securityContext={"capabilities": {"add": ["SYS_PTRACE"]}})
    node.launch(specs.pod("traced", tracer, shareProcessNamespace=True, **fields))
    expect_no_way_to_the_node(node, secret)
    pid = find(node, "traced")
    expected = {**{name: "0" * 16 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}, "NoNewPrivs": "1", "Seccomp": "1"}
    assert {name: world.status(pid, name) for name in expected} == expected
    assert re.search("^Groups:[ \t]*$", world.read(f"/proc/{pid}/status"), re.M)
    ids = {int(number) for name in ("Uid", "Gid") for number in world.status(pid, name).split()}
    assert len(ids) == 1 and ids.pop() % 65536 == OVERFLOW_ID
    assert os.listdir(f"/proc/{pid}/root") == [] and sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1"]
    assert os.readlink(f"/proc/{pid}/fd/0").startswith("pipe:") and os.readlink(f"/proc/{pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
    expect_no_file_of_the_node(node, pid)


def expect_no_way_to_the_node(node, secret):
    """The attempts of the container are made first: they must fail regardless of the state of the process."""
    def attempt(command):
        return node.cli("exec", "traced", "--", "sh", "-c", command)
    programs = [harness.program(name) for name in ("mainstayd", "mainstay-shim", "mainstay")]
    before = [os.stat(path) for path in programs]
    for command in ("chmod 6777 /proc/1/exe", "chown 1:1 /proc/1/exe", "chmod 000 /proc/1/exe"):
        attempt(command)
    written = attempt("echo x >>/proc/1/exe").returncode
    after = [os.stat(path) for path in programs]
    for path, status in zip(programs, before):
        os.chmod(path, status.st_mode & 0o7777)  # other tests start them
    assert [(status.st_mode, status.st_uid, status.st_mtime_ns) for status in after] == \
        [(status.st_mode, status.st_uid, status.st_mtime_ns) for status in before]
    assert written != 0
    assert attempt("cat /proc/1/environ").stdout == ""
    for command in (f"cat /proc/1/root{secret}", f"echo changed >/proc/1/root{secret}"):
        assert attempt(command).returncode != 0
    assert secret.read_text() == "of the node"


def expect_no_file_of_the_node(node, pid):
    """Checks the program and the variables of the process: a container can only change a file in memory that no other
    process has."""
    assert world.read(f"/proc/{pid}/environ") == "" and world.cmdline(pid) == ["mainstay-pause"]
    assert os.readlink(f"/proc/{pid}/exe") == "/memfd:mainstay-pause (deleted)"
    mapped = {line.split(maxsplit=5)[5] for line in world.read(f"/proc/{pid}/maps").splitlines() if len(line.split()) > 5}
    assert mapped <= {"/memfd:mainstay-pause (deleted)", "[stack]", "[vvar]", "[vvar_vclock]", "[vdso]", "[vsyscall]"}
    assert world.is_alive(pid)
