# SPDX-License-Identifier: Apache-2.0
"""The machine as the kernel reports it: processes, control groups, mounts. Nothing here queries the agent."""

import collections
import os
import random
import re
import signal
import socket
import subprocess
import time

CGROUP = "/sys/fs/cgroup"
PORTS = range(22000, 32000)  # ports below those that the kernel chooses from
CLAIMS_MAX = 200
DEADLINE = 180.0  # seconds of a wait: a busy machine may need a minute for a second's work

_claims = collections.deque()


def read(path):
    """The text of a kernel file, or None if the file or its process is gone."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError, OSError):
        return None


def wait(predicate, what, deadline=DEADLINE):
    """Calls the function repeatedly until its result is true, and returns that; fails after the timeout. The longer
    the wait takes, the less often it checks, so that waiting tests leave the processors to the others."""
    start = time.monotonic()
    while True:
        value = predicate()
        if value:
            return value
        waited = time.monotonic() - start
        if waited > deadline:
            raise AssertionError(f"timeout after {deadline:g} s while waiting for: {what() if callable(what) else what}")
        time.sleep(min(0.3, max(0.03, waited / 4)))


# Processes

def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def cmdline(pid):
    """The words of a process's command line; empty for one that is gone."""
    text = read(f"/proc/{pid}/cmdline")
    return text.split("\0")[:-1] if text else []


def environ(pid):
    text = read(f"/proc/{pid}/environ") or ""
    return dict(item.split("=", 1) for item in text.split("\0") if "=" in item)


def status(pid, field):
    match = re.search(rf"^{field}:\s*(.*)$", read(f"/proc/{pid}/status") or "", re.M)
    return match.group(1) if match else None


def start_time(pid):
    """The start time of a process, which identifies the process together with the pid."""
    text = read(f"/proc/{pid}/stat")
    return int(text.rsplit(")", 1)[1].split()[19]) if text else None


class Process(int):
    """A pid together with the identity of its process: the suite uses up all pids of the machine within a minute, so
    that they are assigned again."""

    def __new__(cls, pid):
        process = super().__new__(cls, pid)
        process.started = start_time(pid)
        return process


def is_alive(pid):
    """Whether the process runs. A zombie counts as ended, and so does a process whose pid has been reused."""
    state = status(pid, "State")
    if isinstance(pid, Process) and start_time(pid) != pid.started:
        return False
    return state is not None and not state.startswith(("Z", "X"))


def memory_kib(pid, field):
    return int((status(pid, field) or "0 kB").split()[0])


def pss_kib(pid):
    """The memory of a process; shared memory counts proportionally."""
    text = read(f"/proc/{pid}/smaps_rollup")
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("Pss:")))


def is_container_init(pid):
    """Whether a process is PID 1 of a PID namespace that is not ours, and already executes the requested program: the
    runtime reports a container as started just before its own init executes that program. The name of the process
    changes a moment before its command line and its environment."""
    inner = (status(pid, "NSpid") or "").split()
    return len(inner) == 2 and inner[1] == "1" and not (status(pid, "Name") or "runc").startswith("runc") and bool(cmdline(pid))


def handles(pid, number):
    """Whether a process catches or ignores a signal. A shell does so once it has executed its 'trap'."""
    masks = [int(status(pid, field) or "0", 16) for field in ("SigCgt", "SigIgn")]
    return any(mask >> (number - 1) & 1 for mask in masks)


def cpu_ticks(pid):
    fields = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def wait_settled(pid, seconds=0.5):
    """Waits until a process has slept for this time; returns its number of voluntary switches."""
    seen = []

    def is_idle():
        seen.append((time.monotonic(), int(status(pid, "voluntary_ctxt_switches"))))
        start = min(at for at, switches in seen if switches == seen[-1][1])
        return seen[-1][0] - start > seconds

    wait(is_idle, "it sleeps")
    return seen[-1][1]


def descriptors(pid):
    """The open descriptors of a process, and their targets."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            pass
    return found


def zombies_of(pid):
    children = (read(f"/proc/{pid}/task/{pid}/children") or "").split()
    return [int(child) for child in children if (status(child, "State") or "").startswith("Z")]


def kill_all(found):
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def is_listening(port):
    try:
        socket.create_connection(("127.0.0.1", port), 60).close()
        return True
    except ConnectionRefusedError:
        return False


def sockets_of_port(port, state=None):
    """The TCP sockets of the machine at a local port, in all states or in one, as descriptors() names them."""
    lines = [line.split() for line in (read("/proc/net/tcp") or "").splitlines()[1:]]
    return {f"socket:[{words[9]}]" for words in lines if words[1].endswith(f":{port:04X}") and state in (None, words[3])}


def free_port():
    """A free port on loopback for a server that will be started soon. A socket whose name contains the number claims
    it, so that no other test gets it in the meantime."""
    while True:
        port, claim = random.choice(PORTS), socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0mainstay-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
            break
        except OSError:
            claim.close()
    _claims.append(claim)
    if len(_claims) > CLAIMS_MAX:
        _claims.popleft().close()
    return port


# Control groups

def cgroup_version():
    return 2 if os.path.exists(f"{CGROUP}/cgroup.controllers") else 1


def cgroup_directory(path, controller="pids"):
    return CGROUP + path if cgroup_version() == 2 else f"{CGROUP}/{controller}{path}"


def hierarchies():
    if cgroup_version() == 2:
        return [CGROUP]
    return [entry.path for entry in os.scandir(CGROUP) if entry.is_dir(follow_symlinks=False)]


def cgroup_value(path, controller, file):
    text = read(f"{cgroup_directory(path, controller)}/{file}")
    return None if text is None else text.strip()


def cgroup_pids(path):
    """All processes in the group and in those below it."""
    found = []
    for directory, _, _ in os.walk(cgroup_directory(path)):
        found += [Process(pid) for pid in (read(f"{directory}/cgroup.procs") or "").split()]
    return found


def oldest_process(path):
    """The oldest process in the group and in those below it; None if there is none. It need not have the lowest pid,
    because numbers start again."""
    found = [pid for pid in cgroup_pids(path) if pid.started is not None]
    return min(found, key=lambda pid: (pid.started, pid), default=None)


def enter_cgroup(path, pid):
    """Moves a process into the group, in every hierarchy."""
    for hierarchy in hierarchies():
        os.makedirs(hierarchy + path, exist_ok=True)
        try:
            with open(f"{hierarchy}{path}/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(pid))
        except OSError as error:
            if not hierarchy.endswith("cpuset"):  # a new cpuset has no processors
                raise AssertionError(f"{hierarchy}{path}: {error}") from error


def cgroups_below(path):
    """Every group below this one, in any hierarchy, the deepest first."""
    found = []
    for hierarchy in hierarchies():
        for directory, _, _ in os.walk(hierarchy + path, topdown=False):
            if directory != hierarchy + path:
                found.append(directory)
    return found


def remove_cgroups(path):
    for hierarchy in hierarchies():
        for directory, _, _ in os.walk(hierarchy + path, topdown=False):
            try:
                os.rmdir(directory)
            except FileNotFoundError:
                pass


def without_children(found):
    """The processes whose parent is not one of them, except those that have ended in the meantime."""
    parents = {pid: status(pid, "PPid") for pid in found}
    return [pid for pid, parent in parents.items() if parent and int(parent) not in parents]


def pids_of_root(path):
    """The processes in the group and in those below it, in any hierarchy."""
    return [Process(pid) for pid in pids() if re.search(rf":{re.escape(path)}(/|$)", read(f"/proc/{pid}/cgroup") or "", re.M)]


# Mounts

def mounts(pid="self"):
    """Mount point, file system and options of each mount that a process sees."""
    found = []
    for line in (read(f"/proc/{pid}/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        found.append({"root": fields[3], "at": fields[4], "options": fields[5].split(","),
                      "tags": fields[6:], "type": right.split()[0], "super": right.split()[2].split(",")})
    return found


def mount_at(pid, path):
    """The topmost mount at the path, or None."""
    found = [mount for mount in mounts(pid) if mount["at"] == path]
    return found[-1] if found else None


def run(*command):
    subprocess.run(command, check=True)
