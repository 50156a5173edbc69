# SPDX-License-Identifier: Apache-2.0
"""A machine that kubeadm turns into a node: its own network, mounts and host name, the usual paths, and a systemctl
that starts and stops the agent like the unit of mainstay-kubelet."""

import glob
import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

import harness
import world
import yaml
from control_plane import BRIDGE_MAC, with_parent
from world import wait

TOKEN = "abcdef.0123456789abcdef"
CERTIFICATE_KEY = 32 * "0f"
FIRST = "10.88.0.1"
ENDPOINT = f"{FIRST}:6443"
# Directories that are bound over the machine's own.
PATHS = {"kubernetes": "/etc/kubernetes", "cni": "/etc/cni", "networks": "/var/lib/cni", "kubelet": "/var/lib/kubelet",
         "etcd": "/var/lib/etcd", "state": "/var/lib/mainstay", "run": "/run/mainstay", "log": "/var/log"}
CONFIGURATION = os.path.join(harness.TOP, "packaging", "kubeadm.yaml")
DROP_IN = os.path.join(harness.TOP, "systemd", "kubelet.conf.in")
NETWORK = os.path.join(harness.TOP, "packaging", "cni", "99-mainstay.conflist")
# A property of this machine, not of Mainstay: cgroup v1.
IGNORED = ["SystemVerification"]

SYSTEMCTL = """#!/bin/sh
echo "$*" >>{calls}
stop() {{
    [ -e {pid} ] || return 0
    kill "$(cat {pid})" 2>/dev/null
    while kill -0 "$(cat {pid})" 2>/dev/null; do sleep 0.1; done
    rm {pid}
}}
start() {{
    {environment}
    setsid {command} </dev/null >>{log} 2>&1 &
    echo $! >{pid}
}}
case "$1" in
    status) echo "Loaded: loaded" ;;
    is-active) [ -e {pid} ] && echo active ;;
    start) start ;;
    stop) stop ;;
    restart) stop; start ;;
esac
exit 0
"""

_count = itertools.count(1)


class Machine:
    """The first machine has the bridge that others are linked to. 'archives' are the only images that it
    can get, because the bridge leads to no other network. 'release' has the kubeadm and kubectl that are installed initially."""

    def __init__(self, name, archives, release, first=None):
        self.name = name
        self.release = None
        self.etcd = None
        self.directory = tempfile.mkdtemp(prefix="mainstay-kubeadm-")
        os.chmod(self.directory, 0o711)
        number = next(_count)
        self.cgroup_root = f"/mainstay-kubeadm-{os.getpid()}-{number}"
        self.address = f"10.88.0.{number}" if first else FIRST
        for key in PATHS:
            os.makedirs(self.path(key))
        os.makedirs(self.path("state", "preload"))
        for archive in {os.path.basename(one): one for one in archives}.values():
            os.link(archive, self.path("state", "preload", os.path.basename(archive)))
        self.holder = subprocess.Popen(with_parent("unshare", "--net", "--uts", "--mount", "--propagation", "private",
                                                   "sleep", "infinity"), stdin=subprocess.DEVNULL)
        wait(lambda: world.cmdline(self.holder.pid)[:1] == ["sleep"], "namespaces of the machine's own")
        for key, path in PATHS.items():
            os.makedirs(path, exist_ok=True)
            self.inside("mount", "--bind", self.path(key), path)
        with open(self.path("hosts"), "w", encoding="utf-8") as file:
            file.write(f"127.0.0.1 localhost\n{self.address} {name}\n")
        self.inside("mount", "--bind", self.path("hosts"), "/etc/hosts")
        self.inside("hostname", name)
        self.inside("ip", "link", "set", "lo", "up")
        self.connect(first, number)
        self.install()
        self.use(release)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def connect(self, first, number):
        self.inside("sysctl", "-qw", "net.ipv4.ip_forward=1")
        if first is None:
            self.inside("ip", "link", "add", "eth0", "address", BRIDGE_MAC, "type", "bridge")
        else:
            first.inside("ip", "link", "add", f"m{number}", "type", "veth", "peer", "name", "eth0",
                         "netns", str(self.holder.pid))
            first.inside("ip", "link", "set", f"m{number}", "master", "eth0", "up")
        self.inside("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.inside("ip", "link", "set", "eth0", "up")
        self.inside("ip", "route", "add", "default", "dev", "eth0")

    def install(self):
        """Installs the programs, and systemctl with the settings of the unit's drop-in."""
        os.mkdir(self.path("bin"))
        for name in ("kubelet", "mainstayd"):
            os.symlink(harness.program(name), self.path("bin", name))
        os.mkdir(self.path("cni", "net.d"))
        shutil.copy(NETWORK, self.path("cni", "net.d"))
        unit = world.read(DROP_IN)
        files = re.findall("^EnvironmentFile=-(.+)$", unit, re.M)
        command = re.findall("^ExecStart=(.+)$", unit, re.M)[-1].split("/", 1)[1].split(" ", 1)
        text = SYSTEMCTL.format(calls=self.path("systemctl.calls"), pid=self.path("agent.pid"), log=self.path("agent.log"),
                                environment="\n    ".join(f"[ ! -e {file} ] || . {file}" for file in files),
                                command=self.path("bin", os.path.basename(command[0])) + " " + command[1])
        with open(self.path("bin", "systemctl"), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path("bin", "systemctl"), 0o755)

    def use(self, release):
        """Switches to another release like an upgrade of the packages."""
        for name in ("kubeadm", "kubectl"):
            if self.release:
                os.unlink(self.path("bin", name))
            os.symlink(release.program(name), self.path("bin", name))
        self.release = release

    def words(self, *words):
        return ["nsenter", f"--target={self.holder.pid}", "--net", "--uts", "--mount", *words]

    def environment(self):
        reports = self.path("sanitizer")
        return {**os.environ, "PATH": f"{self.path('bin')}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin",
                "KUBECONFIG": "/etc/kubernetes/admin.conf", "ASAN_OPTIONS": f"log_path={reports}",
                "UBSAN_OPTIONS": f"log_path={reports}:print_stacktrace=1"}

    def inside(self, *words, check=True, timeout=60):
        done = subprocess.run(self.words(*words), check=False, text=True, timeout=timeout, env=self.environment()
                              if hasattr(self, "holder") else None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert not check or done.returncode == 0, \
            (f"{shlex.join(words)} ended with {done.returncode}: {done.stdout[-6000:]}\n"
             f"the log of the agent:\n{self.said()[-6000:]}\n{self.container_logs()}")
        return done.stdout

    def said(self):
        return world.read(self.path("agent.log")) or ""

    def container_logs(self):
        """The end of each log file."""
        paths = sorted(glob.glob(self.path("log", "pods", "*", "*", "*.log")))
        return "\n".join(f"{path}:\n{(world.read(path) or '')[-1500:]}" for path in paths)

    # kubeadm

    def start_etcd(self):
        """Starts an etcd at a path that kubeadm does not use; returns its URL."""
        url = "http://127.0.0.1:2379"
        self.etcd = subprocess.Popen(
            self.words(self.release.program("etcd"), f"--data-dir={self.path('external-etcd')}", f"--listen-client-urls={url}",
                       f"--advertise-client-urls={url}", "--listen-peer-urls=http://127.0.0.1:2380",
                       f"--log-outputs={self.path('external-etcd.log')}"), stdin=subprocess.DEVNULL)
        health = (self.release.program("etcdctl"), f"--endpoints={url}", "endpoint", "health")
        wait(lambda: "is healthy" in self.inside(*health, check=False),
             lambda: world.read(self.path("external-etcd.log")), 60)
        return url

    def errors_without(self, name, *words):
        """The checks that fail if a check that packaging/kubeadm.yaml ignores is not ignored."""
        documents = list(yaml.safe_load_all(world.read(self.path("kubeadm.yaml"))))
        for one in documents:
            for part in (one.get("nodeRegistration"), one.get("apply"), one.get("node")):
                if part and name in part["ignorePreflightErrors"]:
                    part["ignorePreflightErrors"].remove(name)
        with open(self.path("unignored.yaml"), "w", encoding="utf-8") as file:
            yaml.safe_dump_all(documents, file)
        said = self.inside("kubeadm", *words, "--config", self.path("unignored.yaml"), check=False, timeout=120)
        found = re.findall(r"\[ERROR (\S+)\]", said)
        assert found, f"kubeadm {' '.join(words)} named no check without {name}: {said[-4000:]}"
        return found

    def write_configuration(self, joins_control_plane=False, etcd=None):
        """Writes the shipped file with additions for this machine. 'etcd' is the URL of an etcd outside of the
        cluster."""
        documents = list(yaml.safe_load_all(world.read(CONFIGURATION)))
        endpoint = {"advertiseAddress": self.address, "bindPort": 6443}
        for document in documents:
            if document["kind"] == "UpgradeConfiguration":
                for what in ("apply", "node"):
                    document[what]["ignorePreflightErrors"] += IGNORED
                    document[what]["patches"] = {"directory": self.path("patches")}
                continue
            node = document["nodeRegistration"]
            node["name"] = self.name
            node["ignorePreflightErrors"] += IGNORED
            node["kubeletExtraArgs"] = [{"name": "node-ip", "value": self.address},
                                        {"name": "node-labels", "value": "test.mainstay.dev/kubeadm=yes"}]
            document["patches"] = {"directory": self.path("patches")}
            if document["kind"] == "InitConfiguration":
                document.update(localAPIEndpoint=endpoint, bootstrapTokens=[{"token": TOKEN}], certificateKey=CERTIFICATE_KEY)
            else:
                document["discovery"] = {"bootstrapToken": {"apiServerEndpoint": ENDPOINT, "token": TOKEN,
                                                            "unsafeSkipCAVerification": True}}
                if joins_control_plane:
                    document["controlPlane"] = {"localAPIEndpoint": endpoint, "certificateKey": CERTIFICATE_KEY}
        documents.append({"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration",
                          "kubernetesVersion": self.release.version, "controlPlaneEndpoint": ENDPOINT,
                          **({"etcd": {"external": {"endpoints": [etcd]}}} if etcd else {})})
        with open(self.path("kubeadm.yaml"), "w", encoding="utf-8") as file:
            yaml.safe_dump_all(documents, file)
        os.makedirs(self.path("patches"), exist_ok=True)
        with open(self.path("patches", "kubeletconfiguration+merge.yaml"), "w", encoding="utf-8") as file:
            yaml.safe_dump({"cgroupRoot": self.cgroup_root, "cgroupDriver": "cgroupfs",
                            "evictionHard": {"memory.available": "10Mi"}}, file)
        return self.path("kubeadm.yaml")

    def kubeadm(self, *words, timeout=480):
        return self.inside("kubeadm", *words, timeout=timeout)

    def kubectl(self, *words):
        return self.inside("kubectl", *words)

    def mainstay(self, *words):
        return self.inside(harness.program("mainstay"), *words)

    def drain(self):
        """Performs the documented steps after 'kubeadm reset'."""
        return self.inside("mainstayd", "--drain", timeout=180)

    def processes(self):
        """The processes of pods."""
        return [pid for pid in world.pids_of_root(self.cgroup_root) if world.is_alive(pid)]

    def reports(self):
        texts = [world.read(self.path(name)) for name in os.listdir(self.directory) if name.startswith("sanitizer")]
        return [text for text in texts if text and re.search(r"Sanitizer:|runtime error:", text)]

    def finish(self):
        """Kills the processes; returns the sanitizers' reports."""
        problems = self.reports()
        pid = world.read(self.path("agent.pid"))
        if pid and world.is_alive(int(pid)):
            os.kill(int(pid), signal.SIGKILL)
        for _ in range(500):
            found = [one for one in world.pids() if any(self.directory in word for word in world.cmdline(one))
                     and one != os.getpid()] + world.pids_of_root(self.cgroup_root)
            found += [one for one in world.pids() if one != self.holder.pid and self.is_in_namespace(one)]
            if not [one for one in found if world.is_alive(one)]:
                break
            world.kill_all(found)
            signal.sigtimedwait([], 0.01)
        if self.etcd:
            self.etcd.wait()
        self.holder.kill()
        self.holder.wait()
        for _ in range(100):
            try:
                world.remove_cgroups(self.cgroup_root)
                break
            except OSError:
                signal.sigtimedwait([], 0.01)
        shutil.rmtree(self.directory, ignore_errors=True)
        return problems

    def is_in_namespace(self, pid):
        try:
            return os.readlink(f"/proc/{pid}/ns/net") == os.readlink(f"/proc/{self.holder.pid}/ns/net")
        except OSError:
            return False
