# SPDX-License-Identifier: Apache-2.0
"""A board with 128 MiB of memory: ten pods, and the import of an image of 50 MB. The agent, its programs, the runtimes, the
containers and the page cache of all of them share a control group with the memory that the kernel and systemd leave there."""

import os
import subprocess
import tarfile

import harness
import specs
import world

PODS, IMAGE_BYTES = 10, 50_000_000
BOARD_KIB = 97 * 1024  # what the kernel of such a board reports
LIMIT = 48 << 20
KIB = 1 << 10

# Joins the group $0, mounts the file $1 over /proc/meminfo, and executes the program.
JOIN = """echo $$ >"$0/cgroup.procs" && mount --bind "$1" /proc/meminfo && shift && exec "$@\""""


class Group:
    """Limits memory. The processes are in a child group, because in version 2 only leaf groups may contain
    processes."""

    def __init__(self, path):
        self.path = path
        self.directory = world.cgroup_directory(path, "memory")
        self.leaf = os.path.join(self.directory, "agent")
        self.is_v2 = world.cgroup_version() == 2
        os.mkdir(self.directory)
        if self.is_v2:
            self.write("cgroup.subtree_control", "".join(f"+{name} " for name in self.read("cgroup.controllers").split()))
            self.write("memory.max", LIMIT)
            self.write("memory.swap.max", 0)
        else:
            self.write("memory.limit_in_bytes", LIMIT)
        os.mkdir(self.leaf)

    def read(self, file):
        return world.read(os.path.join(self.directory, file))

    def write(self, file, value):
        with open(os.path.join(self.directory, file), "w", encoding="ascii") as target:
            target.write(str(value))

    def numbers(self, file):
        return {name: int(value) for name, value in (line.split() for line in self.read(file).splitlines())}

    def peak(self):
        return int(self.read("memory.peak" if self.is_v2 else "memory.max_usage_in_bytes"))

    def anonymous(self):
        return self.numbers("memory.stat")["anon" if self.is_v2 else "total_rss"]

    def killed(self):
        """The number of processes that the kernel killed because memory was exhausted, in this group or below."""
        if self.is_v2:
            return self.numbers("memory.events")["oom_kill"]
        found = [world.read(os.path.join(where, "memory.oom_control")) or "" for where, _, _ in os.walk(self.directory)]
        return sum(int(line.split()[1]) for text in found for line in text.splitlines() if line.startswith("oom_kill "))


class BoardNode(harness.Node):
    def __init__(self, archive):
        super().__init__(archive, start=False)
        self.group = Group(self.cgroup_root)
        self.cgroup_root += "/pods"
        self.write_config(evictionHard={"memory.available": "5%"})
        self.meminfo = os.path.join(self.directory, "meminfo")
        values = {"MemTotal": BOARD_KIB, "MemFree": BOARD_KIB // 5}
        with open("/proc/meminfo", encoding="ascii") as theirs, open(self.meminfo, "w", encoding="ascii") as ours:
            for line in theirs:
                name = line.split(":")[0]
                ours.write(f"{name}: {values[name]} kB\n" if name in values else line)
        self.start()

    def inside(self, *words):
        return ["unshare", "--mount", "sh", "-c", JOIN, self.group.leaf, self.meminfo, *words]

    def command(self):
        return self.inside(*super().command())

    def clean_up(self):
        super().clean_up()
        world.remove_cgroups(self.group.path)


def write_rootfs(path, content, archive_of_busybox):
    """A root file system as 'tar' writes it: busybox and a file of random bytes."""
    with open(content, "wb") as file:
        file.write(os.urandom(IMAGE_BYTES))
    with tarfile.open(path, "w") as tar:
        tar.add(archive_of_busybox, arcname="bin/busybox")
        tar.add(content, arcname="content")
    os.unlink(content)


def measure(archive, _arguments, figures):
    node = BoardNode(archive)
    try:
        pods = [specs.pod(f"pod{i}", specs.container(script="exec sleep 100000"), terminationGracePeriodSeconds=0) for i in range(PODS)]
        for pod in pods:
            node.drop(pod)
        for pod in pods:
            node.wait_running(pod["metadata"]["name"])
        name = f"board of 128 MiB, {PODS} pods"
        figures.add(f"{name}: memory while they start, with the page cache", node.group.peak() / KIB, LIMIT // KIB, "KiB")
        figures.add(f"{name}: memory of agent, shims and containers", node.group.anonymous() / KIB, 8 * KIB, "KiB")
        tar = os.path.join(node.directory, "large.tar")
        write_rootfs(tar, os.path.join(node.directory, "content"), "/bin/busybox")
        subprocess.run(node.inside(harness.program("mainstay"), "images", "import", tar, "--name", "large:1"), check=True,
                       env={**os.environ, "MAINSTAY_SOCKET": node.socket}, stdout=subprocess.DEVNULL)
        node.drop(specs.pod("large", {**specs.container(), "image": "docker.io/library/large:1", "imagePullPolicy": "Never",
                                      "command": ["/bin/busybox", "sleep", "100000"]}, terminationGracePeriodSeconds=0))
        for pod in [*pods, {"metadata": {"name": "large"}}]:
            node.wait_running(pod["metadata"]["name"])
        restarts = sum(node.status(pod["metadata"]["name"])["restartCount"] for pod in pods)
        figures.add(f"{name}, and an image of {IMAGE_BYTES // 1_000_000} MB imported: processes killed, containers restarted",
                    node.group.killed() + restarts, 0)
    finally:
        node.finish()
