# SPDX-License-Identifier: Apache-2.0
"""A real kubelet with its own containerd, in one directory, for comparisons and measurements with the agent."""

import glob
import os
import shutil
import signal
import subprocess
import tarfile

import specs
import world

PAUSE = "localhost/pause:1"
NAMESPACE = "k8s.io"  # containerd's namespace for the images and containers of a kubelet
CONTAINERD = """version = 2
root = "{0}/root"
state = "{0}/state"
[grpc]
address = "{0}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{1}"
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".cni]
conf_dir = "{0}/cni"
bin_dir = "/usr/lib/cni"
"""
# Settings that a kubelet makes for the whole machine.
SYSCTLS = ("kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxbytes", "kernel/keys/root_maxkeys",
           "vm/overcommit_memory", "vm/panic_on_oom")


class Missing(Exception):
    """A required program is not installed."""


def find_kubelet():
    """The path of the kubelet; other programs that are needed must only exist."""
    kubelet = os.path.join(os.path.abspath(os.environ.get("MAINSTAY_KUBERNETES", "/nonexistent")), "bin", "kubelet")
    missing = [] if os.access(kubelet, os.X_OK) else [f"{kubelet} (MAINSTAY_KUBERNETES)"]
    missing += [f"{name} (Debian's package {package})" for name, package in
                (("containerd", "containerd"), ("ctr", "containerd"), ("skopeo", "skopeo"), ("umoci", "umoci"))
                if not shutil.which(name)]
    if missing:
        raise Missing(f"A real kubelet needs programs that are missing: {', '.join(missing)}.")
    return kubelet


def run(*words):
    done = subprocess.run(words, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}"
    return done.stdout


class RealKubelet:
    """'enter' is a command prefix that enters namespaces; 'fields' are added to the configuration and 'words' to the
    command line. The directory is the path in those namespaces."""

    def __init__(self, directory, archives, enter=(), words=(), **fields):
        self.directory, self.enter = directory, list(enter)
        self.program = find_kubelet()
        self.sysctls = {name: world.read(f"/proc/sys/{name}") for name in SYSCTLS}
        self.socket = f"{directory}/containerd.sock"
        self.log = open(f"{directory}/log", "ab")  # pylint: disable=consider-using-with
        self.kubelet = None
        self.write("containerd.toml", CONTAINERD.format(directory, PAUSE))
        self.write("kubelet.yaml", specs.text(self.configuration(**fields)))
        self.words = ["--config", f"{directory}/kubelet.yaml", "--root-dir", f"{directory}/kubelet", "--cert-dir",
                      f"{directory}/pki", *words]
        self.containerd = self.spawn("containerd", "--config", f"{directory}/containerd.toml")
        self.wait_for_containerd()
        self.load(archives)

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            file.write(text)

    def configuration(self, **fields):
        return {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
                "containerRuntimeEndpoint": f"unix://{self.socket}", "cgroupDriver": "cgroupfs", "failSwapOn": False,
                "failCgroupV1": False, "enableServer": False, "authentication": {"webhook": {"enabled": False}},
                "authorization": {"mode": "AlwaysAllow"}, "podLogsDir": f"{self.directory}/logs",
                "imageGCHighThresholdPercent": 100, "evictionHard": {"memory.available": "100Mi"}, **fields}

    def spawn(self, *words):
        return subprocess.Popen([*self.enter, *words], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def said(self):
        return world.read(f"{self.directory}/log") or ""

    # containerd

    def ctr(self, *words):
        return run(*self.enter, "ctr", "--address", self.socket, "--namespace", NAMESPACE, *words)

    def wait_for_containerd(self):
        def answers():
            return subprocess.run([*self.enter, "ctr", "--address", self.socket, "version"], check=False,
                                  capture_output=True).returncode == 0
        world.wait(answers, self.said)

    def load(self, archives):
        """Loads the images, and a sandbox image with the content of the first one, whose program only waits."""
        layout = f"{self.directory}/layout"
        for archive in archives:
            self.ctr("images", "import", archive)
        run("skopeo", "copy", f"docker-archive:{archives[0]}", f"oci:{layout}:1")
        run("umoci", "config", "--image", f"{layout}:1", "--config.entrypoint", "sleep", "--config.cmd", "1000000")
        with tarfile.open(f"{layout}.tar", "w") as tar:
            tar.add(layout, arcname=".")
        self.ctr("images", "import", "--base-name", PAUSE.split(":", maxsplit=1)[0], f"{layout}.tar")

    def shims(self):
        return [pid for pid in world.pids() if "containerd-shim" in "".join(world.cmdline(pid)[:1])
                and self.socket in world.cmdline(pid)]

    # The kubelet

    def start(self):
        self.kubelet = self.spawn(self.program, *self.words)

    def pid(self, process):
        """The process of the program itself, not its parent, which enters a PID namespace for it and waits for it."""
        while world.cmdline(process.pid)[:1] == ["nsenter"]:
            children = (world.read(f"/proc/{process.pid}/task/{process.pid}/children") or "").split()
            if not children:
                return process.pid
            if world.cmdline(int(children[0]))[:1] != ["nsenter"]:
                return int(children[0])
        return process.pid

    def stop(self, number=signal.SIGTERM):
        if self.kubelet and self.kubelet.poll() is None:
            os.kill(self.pid(self.kubelet), number)
            self.kubelet.wait(30)
        self.kubelet = None

    # The end

    def finish(self):
        """Ends the kubelet, containerd and all containers; the caller removes the directory, mounts and control
        groups."""
        try:
            self.stop(signal.SIGKILL)
            for container in self.ctr("containers", "list", "--quiet").split():
                subprocess.run([*self.enter, "ctr", "--address", self.socket, "--namespace", NAMESPACE, "tasks", "delete",
                                "--force", container], check=False, capture_output=True)
            world.wait(lambda: not self.shims(), "the shims of containerd ended")
            os.kill(self.pid(self.containerd), signal.SIGTERM)
            self.containerd.wait(30)
        finally:
            self.log.close()
            self.restore()

    def restore(self):
        """Restores the settings of the machine, and removes the links to logs that the kubelet creates at a fixed
        path."""
        for name, text in self.sysctls.items():
            if text is not None and world.read(f"/proc/sys/{name}") != text:
                with open(f"/proc/sys/{name}", "w", encoding="utf-8") as file:
                    file.write(text)
        for link in glob.glob("/var/log/containers/*"):
            if os.path.islink(link) and os.readlink(link).startswith(self.directory):
                os.unlink(link)
