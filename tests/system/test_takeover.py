# SPDX-License-Identifier: Apache-2.0
"""The table of SECURITY.md: the privileges of an attacker who takes over a process that reads untrusted data. Each row
is tried from within the process, which is of a build without sanitizers."""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import harness
import layered_image
import log_copier
import pytest
import specs
import takeover
import world

# A path of the node does not exist if the root directory is another one.
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
        subprocess.run(["ninja", "-C", takeover.SHIPPED, "--quiet", "mainstayd", "mainstay-shim", "mainstay-image", "mainstay-secret", "mainstay-api"],
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
    assert process.poll() is None, "it is not affected"
    process.kill()
    process.wait()


def expect(found, may=()):
    """Asserts that everything is refused with one of the usual errors or those in 'may'."""
    wrong = {what: outcome for what, outcome in found.items() if outcome not in DENIED | set(may)}
    assert not wrong


def permitted(pid):
    """The capabilities of a process, including those that it could regain."""
    return int(world.status(pid, "CapPrm"), 16) | int(world.status(pid, "CapInh"), 16)


def open_files(pid):
    """The paths of all files and directories that a process has open, except the files that this test gave it for messages."""
    ours = {os.readlink(f"/proc/self/fd/{fd}") for fd in (1, 2)}
    return {path for path in world.descriptors(pid).values() if path.startswith("/") and not path.startswith("/memfd:")} - \
        {"/dev/null", *ours}


def children(pid):
    return [int(word) for word in (world.read(f"/proc/{pid}/task/{pid}/children") or "").split()]


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


def test_taken_over_log_copier_can_access_only_the_logs_of_its_pod(copied, tool, secrets, bystander):
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
        memory = taken.try_memory(64)
        assert set(memory.values()) <= {"ENOMEM", "EPERM"}, memory
        assert taken.outcome("sendmsg", 3, 0, 0) == "EPERM", "sendmsg could address other sockets"
        assert taken.outcome("fcntl", 3, 8, bystander) == "EPERM", "F_SETOWN"
    assert permitted(pid) == int(world.status(pid, "CapBnd"), 16) == 0
    assert open_files(pid) == {logs[0]}
    pipes = [{path for path in world.descriptors(copied.init(name)).values() if path.startswith("pipe:")} for name in ("web", "other")]
    held = {path for path in world.descriptors(pid).values() if path.startswith("pipe:")}
    assert pipes[0] and pipes[0] <= held and not held & pipes[1]
    assert copied.status("web")["restartCount"] == 0


def test_taken_over_log_copier_can_only_forge_log_texts(copied, tool):
    """The log copier writes arbitrary text into the log; the exit code of the container and the result of its probe do
    not change."""
    copied.launch(specs.pod("ends", specs.container(
        script="trap 'exit 7' USR1; echo ready; while :; do sleep 0.1; done",
        readinessProbe={"exec": {"command": ["sh", "-c", "echo not ready; exit 1"]}, "periodSeconds": 1}), restartPolicy="Never"))
    world.wait(lambda: "ready" in copied.logged("ends"), "it has set its trap")
    pid, log = log_copier.find(copied, "ends"), f"{copied.log_directory('ends')}/main/0.log"
    fd = next(fd for fd, path in world.descriptors(pid).items() if path == log)
    with takeover.Takeover(tool, pid) as taken:
        assert taken.outcome("write", fd, b"2026-01-01T00:00:00Z stdout F a lie\n", 36) == "allowed"
        os.kill(copied.init("ends"), signal.SIGUSR1)
    pod = copied.wait_pod("ends", lambda pod: pod["status"]["phase"] == "Failed", "has ended")
    state = harness.container_status(pod)["state"]["terminated"]
    assert state["exitCode"] == 7 and not state["startedAt"].startswith("2026-01-01")
    assert not harness.container_status(pod)["ready"]
    assert "a lie" in copied.cli("logs", "ends").stdout


def take_over_copier(copied, tool):
    """Takes the log copier over; returns None while the one that sent junk is ending."""
    try:
        return takeover.Takeover(tool, log_copier.find(copied, "web"))
    except takeover.Gone:
        return None


def test_invalid_data_of_a_taken_over_log_copier_affects_only_itself(copied, tool):
    """The log copier sends junk to the shim, whose pod continues."""
    before = copied.init("web"), copied.shim("web")
    for length in (1, 40, 200, 5000):
        with world.wait(lambda: take_over_copier(copied, tool), "the copier of the output is taken over") as taken:
            sockets = [fd for fd, path in world.descriptors(taken.pid).items() if path.startswith("socket:")]
            _, junk = taken.call("getrandom", bytearray(64), 64, 0)
            with contextlib.suppress(takeover.Gone):
                for fd in sockets:
                    taken.call("write", fd, junk.hex()[:1000], length)
    assert (copied.init("web"), copied.shim("web")) == before
    lines = copied.cli("logs", "web").stdout.count("again")
    world.wait(lambda: copied.cli("logs", "web").stdout.count("again") > lines, "its output is copied again")
    assert copied.status("web")["restartCount"] == 0


# Sessions

@contextlib.contextmanager
def session(node, *words):
    """The process that copies for a client, once it has copied something."""
    client = subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert client.stdout.readline()
        tasks = [pid for pid in children(node.shim("web")) if os.getpgid(pid) == pid]
        found = [pid for task in tasks for pid in [task, *children(task)] if world.status(pid, "Seccomp") == "2"
                 and world.status(pid, "Name") == "mainstay-shim"]
        assert len(found) == 1, found
        yield found[0]
    finally:
        client.kill()
        client.wait()


@pytest.mark.parametrize("words", [("exec", "-i", "web", "--", "sh", "-c", "echo hello; exec cat"), ("attach", "web")], ids=["exec", "attach"])
def test_taken_over_session_can_access_only_its_client_and_its_command(copied, tool, secrets, bystander, words):
    with session(copied, *words) as pid:
        with takeover.Takeover(tool, pid) as taken:
            expect(taken.try_files([*secrets, f"{copied.log_directory('web')}/main/0.log", f"{copied.state}/token.key"]))
            expect(taken.try_writes([copied.state, copied.run, copied.log_directory("web"), "/tmp", "/dev/shm", "/sys/fs/cgroup"]))
            expect(try_attributes(taken, secrets[-1]))
            expect(taken.try_network())
            expect(taken.try_processes(bystander))
            expect(taken.try_fork())
            expect(taken.try_machine())
            memory = taken.try_memory(128)
            assert set(memory.values()) <= {"ENOMEM", "EPERM"}, memory
            assert "0" not in world.status(pid, "Uid").split()
        assert permitted(pid) == int(world.status(pid, "CapBnd"), 16) == 0 and not open_files(pid)
    world.wait(lambda: not world.is_alive(pid), "the session ends with its client")
    assert copied.status("web")["restartCount"] == 0


def test_invalid_data_of_a_taken_over_session_affects_only_itself(copied, tool):
    before = copied.init("web"), copied.shim("web")
    with session(copied, "exec", "-i", "web", "--", "sh", "-c", "echo hello; exec cat") as pid:
        sockets = [fd for fd, path in world.descriptors(pid).items() if path.startswith("socket:")]
        with takeover.Takeover(tool, pid) as taken:
            _, junk = taken.call("getrandom", bytearray(64), 64, 0)
            with contextlib.suppress(takeover.Gone):
                for fd in sockets:
                    for length in (1, 40, 200, 5000):
                        taken.call("write", fd, junk.hex()[:1000], length)
    assert (copied.init("web"), copied.shim("web")) == before
    assert copied.cli("exec", "web", "--", "echo", "again").stdout == "again\n"


# mainstay-image

FILES = 20000


@pytest.fixture(name="large", scope="session")
def fixture_large(tmp_path_factory):
    """An archive that takes a while."""
    layer = layered_image.tar({f"data/{i}": os.urandom(64) * 64 for i in range(FILES)})
    return layered_image.save(str(tmp_path_factory.mktemp("large") / "large.tar"), "docker.io/library/large:1", [layer, layer])


def run_helper(*words, **options):
    return subprocess.run([takeover.shipped_program("mainstay-image"), *words], check=True, text=True, stdout=subprocess.PIPE,
                          **options).stdout


# The program runs as under systemd: without chroot(), and with write access only to its own directories.
IN_UNIT = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", """mount --bind "$1" "$1"
mount -o remount,bind,ro /
shift
exec setpriv --bounding-set=-sys_chroot -- "$@"
"""]


@contextlib.contextmanager
def unpacking(store, archive, of_layer, in_unit=False):
    """The process that unpacks an image, or the one for a layer of it: stopped, and continued at the end."""
    digest = re.search("sha256:[0-9a-f]{64}", run_helper("index", "--store", store, archive)).group(0)
    process = subprocess.Popen([*([*IN_UNIT, "sh", store] if in_unit else []), takeover.shipped_program("mainstay-image"), "unpack",
                                "--store", store, "--digest", digest, archive], stdin=subprocess.PIPE)
    process.stdin.write(b"{}")
    process.stdin.close()
    try:
        found = []
        while not found:
            assert process.poll() is None, "it ended before it was stopped"
            if world.status(process.pid, "Seccomp") == "2":
                found = children(process.pid) if of_layer else [process.pid]
        os.kill(found[0], signal.SIGSTOP)
        yield found[0]
        os.kill(found[0], signal.SIGCONT)
        assert process.wait(world.DEADLINE) == 0, "it succeeds as if nothing had happened"
    finally:
        process.kill()
        process.wait()


def try_in_store(taken):
    """Tries to create devices, which needs no path of the node."""
    return {"make a disk": taken.outcome("mknodat", takeover.AT_FDCWD, "tmp/disk", 0o60600, os.makedev(8, 0)),
            "make a terminal": taken.outcome("mknodat", takeover.AT_FDCWD, "tmp/terminal", 0o20600, os.makedev(1, 1))}


def expect_store_only(pid, store, archive):
    """Asserts that its open files are those of the store and the archive. Paths are below its root directory."""
    beneath = {path for path in open_files(pid) if path != archive and not path.startswith(store)}
    assert not {path for path in beneath if not os.path.exists(store + path)}, beneath


@pytest.mark.parametrize("of_layer", [False, True], ids=["image", "layer"])
def test_taken_over_extraction_can_access_only_the_image_store(tmp_path, tool, large, secrets, bystander, of_layer):
    store = str(tmp_path / "store")
    with unpacking(store, large, of_layer) as pid:
        with takeover.Takeover(tool, pid) as taken:
            expect(taken.try_files([*secrets, large]))
            expect(taken.try_writes(["/etc", "/run", "/dev/shm", "/sys/fs/cgroup", str(tmp_path)]))
            expect(try_attributes(taken, secrets[-1]))
            expect(taken.try_network())
            expect(taken.try_processes(bystander))
            assert taken.try_fork() == {"fork": "allowed"}, "it forks for the layers"
            expect(taken.try_machine())
            expect_limited(taken)
            expect(try_in_store(taken))
            assert taken.outcome("fcntl", 1, 8, bystander) == "EPERM", "F_SETOWN"
            assert taken.outcome("ioctl", 1, 0xC0045877, 0) == "EPERM", "FIFREEZE"
            expect_store_only(pid, store, large)
        assert not permitted(pid) & ~sum(1 << bit for bit in (0, 1, 3, 4, 21, 31)), "for owners, modes and attributes"
    assert len(os.listdir(os.path.join(store, "layers"))) > 0


def expect_limited(taken):
    memory = {**taken.try_memory(320), **taken.try_memory(640)}
    assert memory.pop("320 MiB of shared memory") == "allowed", "shared memory does not count as data"
    assert set(memory.values()) <= {"ENOMEM", "EPERM"}, memory


def test_taken_over_extraction_in_the_unit_can_change_only_the_writable_paths_of_the_agent(tmp_path, tool, large, secrets):
    """In the unit its root directory is that of the node."""
    store = str(tmp_path / "store")
    os.mkdir(store)
    with unpacking(store, large, of_layer=False, in_unit=True) as pid:
        assert os.readlink(f"/proc/{pid}/root") == "/"
        with takeover.Takeover(tool, pid) as taken:
            expect(taken.try_files([*secrets, large]))
            expect(taken.try_writes(["/etc", "/run", "/sys/fs/cgroup", str(tmp_path)]), may={"EROFS"})
            expect(try_attributes(taken, secrets[-1]), may={"EROFS"})
            assert taken.outcome("fchmodat", takeover.AT_FDCWD, store, 0o700) == "allowed"


@contextlib.contextmanager
def listing(store, archive):
    """The process that lists the images of an archive, confined. It cannot end before the block does: nothing reads its
    output."""
    output, full = os.pipe()
    os.set_blocking(full, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(full, b"." * 4096)
    os.set_blocking(full, True)
    process = subprocess.Popen([takeover.shipped_program("mainstay-image"), "index", "--store", store, archive], stdout=full)
    os.close(full)
    try:
        world.wait(lambda: world.status(process.pid, "Seccomp") == "2", "it is confined")
        yield process.pid
        with open(output, "rb", closefd=False) as rest:
            assert b"sha256:" in rest.read()
        assert process.wait(world.DEADLINE) == 0, "it succeeds as if nothing had happened"
    finally:
        os.close(output)
        process.kill()
        process.wait()


def test_taken_over_document_reader_can_access_only_the_image_store(tmp_path, tool, large, secrets, bystander):
    store = str(tmp_path / "store")
    with listing(store, large) as pid:
        with takeover.Takeover(tool, pid) as taken:
            expect(taken.try_files([*secrets, large]))
            expect(taken.try_writes(["/etc", "/run", "/dev/shm", "/sys/fs/cgroup", str(tmp_path)]))
            expect(try_attributes(taken, secrets[-1]))
            expect(taken.try_network())
            expect(taken.try_processes(bystander))
            assert taken.try_fork() == {"fork": "allowed"}
            expect(taken.try_machine())
            expect_limited(taken)
            expect(try_in_store(taken))
            expect_store_only(pid, store, large)
        assert permitted(pid) == 0


# mainstay-api

@pytest.fixture(name="api")
def fixture_api(copied):
    """The PID of the process that parses client data; it is nobody here."""
    port = world.free_port()
    process = subprocess.Popen([takeover.shipped_program("mainstay-api"), "--socket", copied.socket, "--listen", f"127.0.0.1:{port}",
                                "--user", "nobody"], stdin=subprocess.DEVNULL)
    try:
        world.wait(lambda: world.status(process.pid, "Seccomp") == "2", "mainstay-api is confined")
        yield process.pid
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def listening(mode):
    """The path of a local socket."""
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as server:
        os.chmod(directory, 0o755)
        path = os.path.join(directory, "socket")
        server.bind(path)
        server.listen()
        os.chmod(path, mode)
        yield path


def expect_limited_api(taken):
    memory = {**taken.try_memory(512), **taken.try_memory(1024)}
    assert memory.pop("512 MiB of shared memory") == "allowed", "shared memory does not count as data"
    assert set(memory.values()) <= {"ENOMEM", "EPERM"}, memory


def test_taken_over_node_api_can_access_no_file_and_no_process(api, copied, tool, secrets, bystander):
    with takeover.Takeover(tool, api) as taken:
        expect(taken.try_files([*secrets, f"{copied.log_directory('web')}/main/0.log"]))
        expect(taken.try_writes([copied.state, copied.run, "/tmp", "/dev/shm", "/sys/fs/cgroup"]))
        expect(try_attributes(taken, secrets[-1]))
        network = taken.try_network()
        assert network.pop("a socket for local") == "allowed", "it needs a socket to the agent"
        expect(network)
        with listening(0o600) as private, listening(0o666) as anybodys:
            assert taken.try_connection(private) == "EACCES"
            assert taken.try_connection(anybodys) == "allowed"
        expect(taken.try_processes(bystander))
        expect(taken.try_fork())
        expect(taken.try_machine())
        expect_limited_api(taken)
    assert permitted(api) == 0 and not open_files(api)


@pytest.fixture(name="signer")
def fixture_signer():
    """The pid of the process that has the serving key, and its socket to the agent."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen([takeover.shipped_program("mainstay-api"), "--signer", "--user", "nobody"], stdin=theirs)
    theirs.close()
    try:
        world.wait(lambda: world.status(process.pid, "Seccomp") == "2", "the signer is confined")
        yield process.pid
    finally:
        ours.close()
        process.kill()
        process.wait()


def test_taken_over_signer_can_access_only_its_keys(signer, tool, secrets, bystander):
    with takeover.Takeover(tool, signer) as taken:
        expect(taken.try_files(secrets))
        expect(taken.try_writes(["/tmp", "/dev/shm", "/sys/fs/cgroup"]))
        expect(try_attributes(taken, secrets[-1]))
        expect(taken.try_network())
        expect(taken.try_processes(bystander))
        expect(taken.try_fork())
        expect(taken.try_machine())
        expect_limited_api(taken)
    assert permitted(signer) == 0 and not open_files(signer)


@pytest.fixture(name="opener")
def fixture_opener():
    """The pid of a process that decrypts values of Secrets; its request has not arrived yet."""
    with subprocess.Popen([takeover.shipped_program("mainstay-secret")], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        world.wait(lambda: world.status(process.pid, "Seccomp") == "2", "it is confined")
        yield process.pid
        process.kill()


def test_taken_over_secret_helper_can_access_only_its_pipes(opener, tool, secrets, bystander):
    with takeover.Takeover(tool, opener) as taken:
        expect(taken.try_files(secrets))
        expect(taken.try_writes(["/tmp", "/dev/shm", "/sys/fs/cgroup"]))
        expect(try_attributes(taken, secrets[-1]))
        expect(taken.try_network())
        expect(taken.try_processes(bystander))
        expect(taken.try_fork())
        expect(taken.try_machine())
        memory = taken.try_memory(128)
        assert set(memory.values()) <= {"ENOMEM", "EPERM"}, memory
    assert permitted(opener) == 0 and world.status(opener, "NoNewPrivs") == "1" and not open_files(opener)
