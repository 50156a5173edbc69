# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes control plane in a separate network namespace: etcd, kube-apiserver, kube-controller-manager and
kube-scheduler of MAINSTAY_KUBERNETES, each of which can be stopped, and the links of the nodes that join it."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time

import world
from api_certs import Authority, kubeconfig, openssl
from client import Client, Refused
from world import wait

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
NEEDED = (*PROGRAMS, "kubeadm", "kubectl", "agnhost")
ADDRESS = "10.77.0.1"
NETWORK = 16  # bits of the nodes' network
SERVICE = "10.96.0.1"  # of the service "kubernetes"
URL = f"https://{ADDRESS}:443"
ETCD = "http://127.0.0.1:2379"
BRIDGE = "nodes0"
# A separate hardware address: otherwise the bridge has the lowest one of its ports, changes it with them, and nodes
# send to the old one for ten seconds.
BRIDGE_MAC = "02:00:00:00:77:01"
READY_SECONDS = 120
NOT_READY_SECONDS = 32  # seconds after which a node that has not renewed its Lease is not ready; it renews every 13 s
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLUSTER_ROLE = os.path.join(TOP, "packaging", "cluster-role.yaml")


class Missing(Exception):
    """The programs are not installed."""


def programs():
    """The directory of the programs."""
    given = os.environ.get("MAINSTAY_KUBERNETES")
    if not given:
        raise Missing("The cluster suite needs MAINSTAY_KUBERNETES=DIR; DIR/bin has the programs of Kubernetes 1.36, "
                      "see tests/README.md.")
    directory = os.path.join(os.path.abspath(given), "bin")
    missing = [name for name in NEEDED if not os.access(os.path.join(directory, name), os.X_OK)]
    if missing:
        raise Missing(f"MAINSTAY_KUBERNETES={given}: {directory} has not got {', '.join(missing)}; see tests/README.md.")
    return directory


def with_parent(*words):
    """A command that is killed when this process ends, for whatever reason."""
    return ["setpriv", "--pdeathsig", "KILL", *words]


def make_namespace():
    """A network namespace that exists as long as the given process."""
    holder = subprocess.Popen(with_parent("unshare", "--net", "sleep", "infinity"), stdin=subprocess.DEVNULL)
    wait(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != os.readlink("/proc/self/ns/net") and
         world.cmdline(holder.pid)[:1] == ["sleep"], "a network namespace of the test's own")
    return holder


class ControlPlane:
    """Starts all programs. A control plane that another process has started is used through its directory: everything
    except start and stop works there as well."""

    def __init__(self, directory=None):
        self.bin = programs()
        self.is_owner = directory is None
        self.directory = directory or tempfile.mkdtemp(prefix="mainstay-cluster-")
        self.running = {}
        self.was_interrupted = False
        if self.is_owner:
            try:
                self.set_up()
            except BaseException:
                self.remove()
                raise
        with open(self.path("state.json"), encoding="utf-8") as file:
            self.net = json.load(file)["net"]
        self.authority = Authority(self.directory)
        self.client = self.make_client("admin")
        if self.is_owner:
            try:
                self.come_up()
            except BaseException:
                self.remove()
                raise

    def path(self, *names):
        return os.path.join(self.directory, *names)

    # The namespace and the credentials

    def set_up(self):
        os.chmod(self.directory, 0o711)
        self.holder = make_namespace()
        self.net = f"/proc/{self.holder.pid}/ns/net"
        with open(self.path("state.json"), "w", encoding="utf-8") as file:
            json.dump({"net": self.net}, file)
        for words in (("link", "set", "lo", "up"), ("address", "add", f"{SERVICE}/32", "dev", "lo"),
                      ("link", "add", BRIDGE, "address", BRIDGE_MAC, "type", "bridge"),
                      ("address", "add", f"{ADDRESS}/{NETWORK}", "dev", BRIDGE), ("link", "set", BRIDGE, "up"),
                      ("route", "add", "default", "dev", BRIDGE)):
            self.inside("ip", *words)
        self.authority = Authority(self.directory, alt=f"IP:{ADDRESS},IP:127.0.0.1,IP:{SERVICE},DNS:localhost,"
                                                       "DNS:kubernetes.default.svc")
        self.authority.server("apiserver")
        self.authority.issue("kubelet-client", "/CN=kube-apiserver-kubelet-client")
        self.make_kubeconfig("admin", "/O=system:masters/CN=admin")
        self.make_kubeconfig("kube-controller-manager", "/CN=system:kube-controller-manager")
        self.make_kubeconfig("kube-scheduler", "/CN=system:kube-scheduler")
        openssl("genrsa", "-out", self.path("sa.key"), "2048")
        openssl("rsa", "-in", self.path("sa.key"), "-pubout", "-out", self.path("sa.pub"))

    @contextlib.contextmanager
    def lock(self):
        """Admits one process at a time, because the CA keeps files and numbers are assigned."""
        with open(self.path("lock"), "w", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def make_kubeconfig(self, name, subject, path=None):
        """Makes a kubeconfig for a user with a separate certificate."""
        with self.lock():
            cert, key = self.authority.issue(name, subject)
        return kubeconfig(path or self.path(f"{name}.kubeconfig"), URL, self.authority.cert, cert, key)

    def make_client(self, name):
        return Client(self.net, ADDRESS, self.authority.cert, self.path(f"{name}.crt"), self.path(f"{name}.key"))

    def next_number(self):
        """A number that is unique for each node, even across processes."""
        with self.lock():
            number = int(world.read(self.path("number")) or "1") + 1
            with open(self.path("number"), "w", encoding="utf-8") as file:
                file.write(str(number))
        return number

    # The programs

    def commands(self):
        name = self.path
        leader = ["--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s"]
        return {
            "etcd": ["--data-dir", name("etcd"), "--unsafe-no-fsync", "--listen-client-urls", ETCD,
                     "--advertise-client-urls", ETCD, "--listen-peer-urls", "http://127.0.0.1:2380",
                     "--initial-advertise-peer-urls", "http://127.0.0.1:2380",
                     "--initial-cluster", "default=http://127.0.0.1:2380"],
            "kube-apiserver": [
                f"--etcd-servers={ETCD}", "--bind-address=0.0.0.0", "--secure-port=443", f"--advertise-address={ADDRESS}",
                f"--tls-cert-file={name('apiserver.crt')}", f"--tls-private-key-file={name('apiserver.key')}",
                f"--client-ca-file={self.authority.cert}", f"--service-account-key-file={name('sa.pub')}",
                f"--service-account-signing-key-file={name('sa.key')}",
                "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/16",
                "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
                "--enable-bootstrap-token-auth", "--allow-privileged=true",
                f"--kubelet-client-certificate={name('kubelet-client.crt')}",
                f"--kubelet-client-key={name('kubelet-client.key')}",
                "--kubelet-preferred-address-types=InternalIP,Hostname"],
            "kube-controller-manager": [
                f"--kubeconfig={name('kube-controller-manager.kubeconfig')}", f"--root-ca-file={self.authority.cert}",
                f"--service-account-private-key-file={name('sa.key')}",
                f"--cluster-signing-cert-file={self.authority.cert}", f"--cluster-signing-key-file={self.authority.key}",
                "--use-service-account-credentials", "--controllers=*,bootstrapsigner,tokencleaner",
                "--bind-address=127.0.0.1", f"--node-monitor-grace-period={NOT_READY_SECONDS}s",
                "--node-monitor-period=2s", *leader],
            "kube-scheduler": [f"--kubeconfig={name('kube-scheduler.kubeconfig')}", "--bind-address=127.0.0.1",
                               "--leader-elect=false"],
        }

    def start(self, *names):
        """Starts programs; without names all of them. Returns before they are ready."""
        for name in names or PROGRAMS:
            if name in self.running:
                continue
            with open(self.path(f"{name}.log"), "a", encoding="utf-8") as log:
                self.running[name] = subprocess.Popen(
                    with_parent("nsenter", f"--net={self.net}", os.path.join(self.bin, name), *self.commands()[name]),
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory, start_new_session=True)

    def stop(self, *names, kill=False):
        """Stops programs; without names all of them, in the order in which none waits for another."""
        for name in names or reversed(PROGRAMS):
            process = self.running.pop(name, None)
            if not process:
                continue
            self.was_interrupted |= name in ("etcd", "kube-apiserver")
            if not kill:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)  # an API server that has lost etcd does not end by itself
            process.kill()
            process.wait()

    def restart(self, *names):
        self.stop(*names)
        self.start(*names)

    def revive(self):
        """Restarts programs that have exited because they could not reach another one; elsewhere a node agent does
        that."""
        ended = [name for name, process in self.running.items() if process.poll() is not None]
        for name in ended:
            del self.running[name]
        if ended:
            time.sleep(1)
            self.start(*ended)

    def make_whole(self):
        """Restores the control plane after a test that stopped programs. Clients that lost their watches request each
        of them again after up to a minute: a scheduler that has its pods again, but not its nodes, refuses the pods.
        Therefore the clients are started again."""
        self.start()
        self.wait_ready()
        if self.was_interrupted:
            self.restart("kube-controller-manager", "kube-scheduler")
            self.was_interrupted = False
        self.wait_manager()

    def is_ready(self):
        self.revive()
        try:
            return self.client.do("GET", "/readyz", parse=False) == b"ok"
        except (OSError, Refused):
            self.client.close()
            return False

    def wait_ready(self):
        wait(self.is_ready, lambda: f"the API server is ready; its log:\n{self.said('kube-apiserver')}", READY_SECONDS)

    def come_up(self):
        self.start()
        self.wait_ready()
        self.kubectl("apply", "-f", CLUSTER_ROLE)
        self.kubectl("create", "clusterrolebinding", "kubelet-api-admin", "--clusterrole=system:kubelet-api-admin",
                     "--user=kube-apiserver-kubelet-client")
        self.wait_manager()

    def wait_manager(self):
        """Waits for the account that the controller manager creates in each namespace."""
        wait(lambda: self.revive() or self.client.get("serviceaccounts", "default", "default"), "a controller manager that works",
             READY_SECONDS)

    def said(self, name):
        return (world.read(self.path(f"{name}.log")) or "")[-4000:]

    # Contents of etcd

    def snapshot(self, name="snapshot"):
        """A copy of etcd's data. The API server waits in the meantime."""
        self.stop("etcd")
        shutil.rmtree(self.path(name), ignore_errors=True)
        shutil.copytree(self.path("etcd"), self.path(name))
        self.start("etcd")
        self.wait_ready()

    def restore(self, name="snapshot"):
        """Restores everything: objects, and the versions that are assigned next."""
        names = list(self.running)
        self.stop()
        shutil.rmtree(self.path("etcd"))
        shutil.copytree(self.path(name), self.path("etcd"))
        self.start(*[one for one in PROGRAMS if one in names])
        self.wait_ready()

    # Administration

    def inside(self, *words, check=True):
        """Runs a program in the network namespace; returns its output."""
        done = subprocess.run(["nsenter", f"--net={self.net}", *words], check=False, text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert not check or done.returncode == 0, f"{words} ended with {done.returncode}: {done.stderr}"
        return done.stdout

    def kubectl(self, *words, check=True):
        return self.inside(os.path.join(self.bin, "kubectl"), f"--kubeconfig={self.path('admin.kubeconfig')}",
                           f"--cache-dir={self.path('kubectl-cache')}", *words, check=check)

    def link(self, pid, number):
        """Connects a process's network namespace like a node's; returns its address."""
        address = f"10.77.{number // 250}.{number % 250 + 1}"
        name = f"node{number}"
        self.inside("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        self.inside("ip", "link", "set", name, "master", BRIDGE, "up")
        node = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip"]
        for words in (("link", "set", "lo", "up"), ("address", "add", f"{address}/{NETWORK}", "dev", "eth0"),
                      ("link", "set", "eth0", "up"), ("route", "add", "default", "via", ADDRESS)):
            subprocess.run([*node, *words], check=True)
        return address

    # The end

    def finish(self):
        """Stops everything; fails if anything is left."""
        self.remove()
        problems = [f"process {pid} {world.cmdline(pid)}" for pid in world.pids()
                     if any(self.directory in word for word in world.cmdline(pid)) and world.is_alive(pid)]
        if os.path.exists(self.directory):
            problems.append(f"directory {self.directory}")
        assert not problems, "\n".join(problems)

    def remove(self):
        self.stop()
        if hasattr(self, "holder"):
            self.holder.kill()
            self.holder.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
