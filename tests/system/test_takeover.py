# SPDX-License-Identifier: Apache-2.0
"""The table of SECURITY.md: what strangers have who take over a process that reads what they write. Each row is tried from inside
of the process, of a build without sanitizers."""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess

import harness
import layered_image
import log_copier
import pytest
import specs
import takeover
import world

# A path of the node does not exist where the root directory is another one.
DENIED = {"EPERM", "EACCES", "ENOENT"}


@pytest.fixture(scope="session", name="tool")
def fixture_tool(tmp_path_factory):
    return takeover.compile_tool(tmp_path_factory.mktemp("takeover"))


@pytest.fixture(scope="session", name="shipped", autouse=True)
def fixture_shipped():
    """The build that is shipped, made if it is missing or old."""
    if "MAINSTAY_SHIPPED" in os.environ:
        return
    launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    with open(f"/tmp/mainstay-shipped-{os.getuid()}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["cmake", "-G", "Ninja", "-S", harness.TOP, "-B", takeover.SHIPPED, "-DCMAKE_BUILD_TYPE=Release",
                        "-DMAINSTAY_TESTS=OFF", *launcher], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "CC": "gcc"})
        subprocess.run(["ninja", "-C", takeover.SHIPPED, "--quiet", "mainstayd", "mainstay-shim", "mainstay-image", "mainstay-api"],
                       check=True)


@pytest.fixture(name="secrets")
def fixture_secrets(tmp_path):
    """Files of root on the node."""
    os.chmod(tmp_path, 0o755)
    path = tmp_path / "secret"
    path.write_text("of the node")
    path.chmod(0o600)
    return ["/etc/shadow", "/etc/passwd", "/proc/1/environ", str(path)]


@pytest.fixture(name="bystander")
def fixture_bystander():
    """A process of root."""
    process = subprocess.Popen(["sleep", "3600"])
    yield process.pid
    assert process.poll() is None, "it has not been harmed"
    process.kill()
    process.wait()


def expect(found, **others):
    """Everything is refused, except what 'others' name with their own outcomes."""
    wrong = {what: outcome for what, outcome in found.items()
             if (outcome not in DENIED if what not in others else outcome != others[what])}
    assert not wrong


def try_attributes(taken, path):
    """Changes of a file that need no descriptor."""
    return {
        "change the mode of a file": taken.outcome("fchmodat", takeover.AT_FDCWD, path, 0o6777),
        "change the owner of a file": taken.outcome("fchownat", takeover.AT_FDCWD, path, 1, 1, 0),
        "change the attributes of a file": taken.outcome("setxattr", path, "trusted.taken-over", "x", 1, 0),
        "change the times of a file": taken.outcome("utimensat", takeover.AT_FDCWD, path, 0, 0),
        "rename a file": taken.outcome("renameat2", takeover.AT_FDCWD, path, takeover.AT_FDCWD, path + ".new", 0),
        "remove a file": taken.outcome("unlinkat", takeover.AT_FDCWD, path, 0),
    }


# The log copier

@pytest.fixture(name="copied")
def fixture_copied(archive, image_store):
    node = takeover.ShippedNode(archive, store=image_store)
    try:
        node.launch(specs.pod("other", specs.container(script="echo private; exec sleep 3600")))
        node.launch(specs.pod("web", specs.container(script="echo hello; while true; do echo again; sleep 0.1; done")))
        yield node
    finally:
        node.finish()


def test_taken_over_log_copier_has_the_logs_of_its_pod_only(copied, tool, secrets, bystander):
    pid = log_copier.find(copied, "web")
    logs = [f"{copied.log_directory(name)}/main/0.log" for name in ("web", "other")]
    with takeover.Takeover(tool, pid) as taken:
        expect(taken.try_files([*secrets, *logs, f"{copied.state}/token.key"]))
        expect(taken.try_writes([copied.state, copied.run, copied.log_directory("web"), "/tmp", "/dev/shm", "/sys/fs/cgroup"]))
        expect(try_attributes(taken, secrets[-1]))
        expect(taken.try_network())
        expect(taken.try_processes(bystander))
        expect(taken.try_fork())
        expect(taken.try_machine())
        memory = taken.try_memory(128)
        assert set(memory.values()) <= {"ENOMEM", "EPERM"}, memory
        assert taken.outcome("sendmsg", 3, 0, 0) == "EPERM", "it would name other sockets"
        assert taken.outcome("fcntl", 3, 8, bystander) == "EPERM", "F_SETOWN"
    files = {path for path in world.descriptors(pid).values() if path.startswith("/")}
    assert files <= {"/dev/null", logs[0]}
    assert copied.status("web")["restartCount"] == 0


def test_junk_of_a_taken_over_log_copier_harms_only_itself(copied, tool):
    """What it sends to the shim, whose pod lives on."""
    before = copied.init("web"), copied.shim("web")
    for length in (1, 40, 200, 5000):
        pid = log_copier.find(copied, "web")
        sockets = [fd for fd, path in world.descriptors(pid).items() if path.startswith("socket:")]
        with takeover.Takeover(tool, pid) as taken:
            _, junk = taken.call("getrandom", bytearray(64), 64, 0)
            with contextlib.suppress(takeover.Gone):
                for fd in sockets:
                    taken.call("write", fd, junk.hex()[:1000], length)
    assert (copied.init("web"), copied.shim("web")) == before
    lines = copied.cli("logs", "web").stdout.count("again")
    world.wait(lambda: copied.cli("logs", "web").stdout.count("again") > lines, "its output is copied again")
    assert copied.status("web")["restartCount"] == 0


# mainstay-image

FILES = 20000


@pytest.fixture(name="large", scope="session")
def fixture_large(tmp_path_factory):
    """An archive that takes a while."""
    layer = layered_image.tar({f"data/{i}": os.urandom(64) * 64 for i in range(FILES)})
    return layered_image.save(str(tmp_path_factory.mktemp("large") / "large.tar"), "docker.io/library/large:1", [layer, layer])


def children(pid):
    return [int(word) for word in (world.read(f"/proc/{pid}/task/{pid}/children") or "").split()]


def run_helper(*words, **options):
    return subprocess.run([takeover.shipped_program("mainstay-image"), *words], check=True, text=True, stdout=subprocess.PIPE,
                          **options).stdout


@contextlib.contextmanager
def unpacking(store, archive, of_layer):
    """The process that unpacks an image, or the one for a layer of it: stopped, and continued at the end."""
    digest = re.search("sha256:[0-9a-f]{64}", run_helper("index", "--store", store, archive)).group(0)
    process = subprocess.Popen([takeover.shipped_program("mainstay-image"), "unpack", "--store", store, "--digest", digest, archive],
                               stdin=subprocess.PIPE)
    process.stdin.write(b"{}")
    process.stdin.close()
    try:
        found = []
        while not found:
            assert process.poll() is None, "it has ended before it was caught"
            if world.status(process.pid, "Seccomp") == "2":
                found = children(process.pid) if of_layer else [process.pid]
        os.kill(found[0], signal.SIGSTOP)
        yield found[0]
        os.kill(found[0], signal.SIGCONT)
        assert process.wait(world.DEADLINE) == 0, "it ends well, as if nothing had happened"
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("of_layer", [False, True], ids=["image", "layer"])
def test_taken_over_extraction_has_the_image_store_only(tmp_path, tool, large, secrets, bystander, of_layer):
    store = str(tmp_path / "store")
    with unpacking(store, large, of_layer) as pid:
        with takeover.Takeover(tool, pid) as taken:
            expect(taken.try_files([*secrets, large]))
            expect(taken.try_writes(["/etc", "/run", "/dev/shm", "/sys/fs/cgroup", str(tmp_path)]))
            expect(try_attributes(taken, secrets[-1]))
            expect(taken.try_network())
            expect(taken.try_processes(bystander))
            assert taken.try_fork() == {"fork": "allowed"}, "for the layers"
            expect(taken.try_machine())
            memory = taken.try_memory(1024)
            assert set(memory.values()) <= {"ENOMEM", "EPERM"}, memory
            assert taken.outcome("mknodat", takeover.AT_FDCWD, "tmp/disk", 0o60600, os.makedev(8, 0)) in DENIED
            assert taken.outcome("mknodat", takeover.AT_FDCWD, "tmp/terminal", 0o20600, os.makedev(1, 1)) in DENIED
            assert taken.outcome("fcntl", 1, 8, bystander) == "EPERM", "F_SETOWN"
            assert taken.outcome("ioctl", 1, 0xC0045877, 0) == "EPERM", "FIFREEZE"
            capabilities = int(world.status(pid, "CapEff"), 16)
        assert not capabilities & ~sum(1 << bit for bit in (0, 1, 3, 4, 21, 31)), "what owners, modes and attributes need"
    assert len(os.listdir(os.path.join(store, "layers"))) > 0


def caught_reader(store, archive):
    """A process that lists the images of an archive, confined and stopped; None if it has ended before."""
    process = subprocess.Popen([takeover.shipped_program("mainstay-image"), "index", "--store", store, archive],
                               stdout=subprocess.DEVNULL)
    while process.poll() is None and world.status(process.pid, "Seccomp") != "2":
        pass
    if process.poll() is None:
        os.kill(process.pid, signal.SIGSTOP)
        if world.status(process.pid, "State").startswith(("T", "R", "S", "D")):
            return process
    process.wait()
    return None


def test_taken_over_reader_of_documents_has_no_capability(tmp_path, tool, large, secrets, bystander):
    process = world.wait(lambda: caught_reader(str(tmp_path / "store"), large), "it is caught")
    try:
        with takeover.Takeover(tool, process.pid) as taken:
            expect(taken.try_files(secrets))
            expect(try_attributes(taken, secrets[-1]))
            expect(taken.try_network())
            expect(taken.try_processes(bystander))
            assert int(world.status(process.pid, "CapPrm"), 16) == 0
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait(world.DEADLINE) == 0
    finally:
        process.kill()
        process.wait()


# mainstay-api

@pytest.fixture(name="api")
def fixture_api(copied):
    """The pid of the process that parses what clients send; it is nobody here."""
    port = world.free_port()
    process = subprocess.Popen([takeover.shipped_program("mainstay-api"), "--socket", copied.socket, "--listen", f"127.0.0.1:{port}",
                                "--user", "nobody"], stdin=subprocess.DEVNULL)
    try:
        world.wait(lambda: world.status(process.pid, "Seccomp") == "2", "mainstay-api is confined")
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_taken_over_api_has_no_file_and_no_process(api, copied, tool, secrets, bystander):
    with takeover.Takeover(tool, api) as taken:
        expect(taken.try_files([*secrets, f"{copied.log_directory('web')}/main/0.log"]))
        expect(taken.try_writes([copied.state, copied.run, "/tmp", "/dev/shm", "/sys/fs/cgroup"]))
        expect(try_attributes(taken, secrets[-1]))
        network = taken.try_network()
        assert network.pop("a socket for local") == "allowed", "to the agent"
        expect(network)
        expect(taken.try_processes(bystander))
        expect(taken.try_fork())
        expect(taken.try_machine())
        assert int(world.status(api, "CapPrm"), 16) == 0
