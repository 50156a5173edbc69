# SPDX-License-Identifier: Apache-2.0
"""A node for a test: its own directories, an agent in them, and the check that the test leaves nothing behind."""

import http.client
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import specs
import world
from world import wait

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("MAINSTAY_BUILD", os.path.join(TOP, "build-test")))
# Another OCI runtime than the default one of the configuration.
RUNTIME = os.environ.get("MAINSTAY_RUNTIME")
NODE_NAME = "node1"
# A search for leaks takes as long as the work of the programs; only the suites in C perform it.
ENDS_WITH_ITS_WORK = ("mainstay", "mainstay-image", "mainstay-launch", "mainstay-plugins", "mainstay-secret", "mainstay-shim")

_count = itertools.count(1)


def program(name):
    return os.path.join(BUILD, "agent", name)


def is_sanitized():
    """Whether the build is sanitized: its allocator keeps freed memory and pads allocations."""
    with open(program("mainstayd"), "rb") as file:
        return b"__asan_init" in file.read()


def copy_tree(source, target):
    """Copies a tree with its hard links, owners and times."""
    subprocess.run(["cp", "-a", source, target], check=True)


class SocketConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=world.DEADLINE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Node:
    """One agent and its directories. Names of pods are taken with and without the node's suffix."""

    node_name = NODE_NAME

    def __init__(self, archive=None, config=None, start=True, store=None):
        """Puts an image archive into preload/; 'store' contains an agent's result for it, so that nothing must be
        imported."""
        self.directory = tempfile.mkdtemp(prefix="mainstay-system-")
        os.chmod(self.directory, 0o711)  # users of pods must be able to traverse it, like /run
        for name in ("manifests", "state", "run", "log", "staging", "data"):
            path = os.path.join(self.directory, name)
            os.mkdir(path)
            setattr(self, name, path)
        self.cgroup_root = f"/mainstay-test-{os.getpid()}-{next(_count)}"
        self.socket = os.path.join(self.run, "mainstay.sock")
        self.stderr = os.path.join(self.directory, "agent.stderr")
        self.config = os.path.join(self.directory, "config.yaml")
        self.archive = archive
        self.own_mounts = {self.run, os.path.join(self.directory, "kubelet")}
        self.agent = None
        for name in ENDS_WITH_ITS_WORK:
            with open(os.path.join(self.directory, f"{name}.asan"), "w", encoding="ascii") as file:
                file.write("detect_leaks=0")
        self.write_config(**(config or {}))
        if archive:
            self.preload(archive)
        if store:
            copy_tree(store, os.path.join(self.state, "images"))
        if start:
            self.start()

    # The agent

    def write_config(self, **fields):
        document = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
                    "cgroupRoot": self.cgroup_root,
                    "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
                    # Independent of the free space on this machine's disk.
                    "evictionHard": {"memory.available": "100Mi"}, **fields}
        if RUNTIME:
            document["mainstay"] = {"runtime": RUNTIME, **document.get("mainstay", {})}
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(specs.text(document))

    def environment(self):
        reports = os.path.join(self.directory, "sanitizer")
        return {**os.environ, "PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin",
                "ASAN_OPTIONS": f"log_path={reports}:quarantine_size_mb=4:allocator_release_to_os_interval_ms=100:"
                                f"include_if_exists={self.directory}/%b.asan",
                "UBSAN_OPTIONS": f"log_path={reports}:print_stacktrace=1"}

    def command(self):
        return [program("mainstayd"), "--config", self.config, "--manifest-dir", self.manifests,
                "--state-dir", self.state, "--run-dir", self.run, "--log-dir", self.log,
                "--kubelet-dir", os.path.join(self.directory, "kubelet"), "--node-name", self.node_name]

    def spawn(self, **options):
        """Starts a process of the agent, which the test manages itself."""
        with open(self.stderr, "a", encoding="utf-8") as stderr:
            return subprocess.Popen(self.command(), env=self.environment(), cwd=self.directory,
                                    stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, **options)

    def start(self, ready=True):
        self.agent = self.spawn()
        if ready:
            wait(self.is_ready, lambda: f"the agent is ready; its log:\n{self.said()}")

    def is_ready(self):
        assert self.agent.poll() is None, self.describe_agent_exit()
        try:
            return self.get("/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def describe_agent_exit(self):
        return "\n".join([f"the agent ended with {self.agent.returncode}; it said:", self.said()[-4000:],
                          *self.sanitizer_reports()])

    def kill9(self):
        self.agent.kill()
        self.agent.wait()

    def restart(self, ready=True):
        """Kills the agent by SIGKILL and starts a new one."""
        self.kill9()
        self.start(ready)

    def stop(self):
        """Ends the agent by SIGTERM; returns its exit status."""
        self.agent.terminate()
        return self.agent.wait(world.DEADLINE)

    def said(self):
        return world.read(self.stderr) or ""

    def complaints(self):
        """All errors that the agent reports: at the command line and in its log."""
        return self.cli("get", "pods", "-A").stdout + self.cli("get", "pods", "-A").stderr + self.said()

    # Manifests

    def path(self, file):
        return os.path.join(self.manifests, file)

    def stage(self, content):
        """A file outside the directory that is ready to be renamed into it."""
        if isinstance(content, dict):
            content = specs.text(content)
        if isinstance(content, str):
            content = content.encode()
        fd, path = tempfile.mkstemp(dir=self.staging)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
        return path

    def drop(self, content, file=None):
        """Renames a manifest into place; without 'file' it is named after the pod."""
        file = file or content["metadata"]["name"] + ".yaml"
        os.rename(self.stage(content), self.path(file))
        return file

    def write(self, content, file):
        """Writes in place, like a simple editor."""
        with open(self.path(file), "w", encoding="utf-8") as out:
            out.write(specs.text(content) if isinstance(content, dict) else content)

    def remove(self, name):
        os.unlink(self.path(name if name.endswith(".yaml") else name + ".yaml"))

    def preload(self, archive, name=None):
        """Makes an image archive available, by rename."""
        directory = os.path.join(self.state, "preload")
        os.makedirs(directory, exist_ok=True)
        target = os.path.join(directory, name or os.path.basename(archive))
        try:
            os.link(archive, target + ".part")
        except OSError:
            shutil.copy(archive, target + ".part")
        os.rename(target + ".part", target)

    # Reports of the agent

    def get(self, path):
        """The objects in a reply of the agent. A reply that was cut or that did not arrive is requested again: the
        agent allows a request ten seconds, and this machine may be slower."""
        for _ in range(3):
            try:
                return self.get_once(path)
            except (http.client.IncompleteRead, ConnectionResetError, BrokenPipeError):
                continue
        return self.get_once(path)

    def get_once(self, path):
        connection = SocketConnection(self.socket)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except OSError:
            assert self.agent.poll() is None, self.describe_agent_exit()
            raise
        finally:
            connection.close()

    def cli(self, *words, **options):
        return subprocess.run([program("mainstay"), "--socket", self.socket, *words], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=world.DEADLINE,
                              env=self.environment(), **options)

    def pods(self):
        status, body = self.get("/pods")
        assert status == 200, body
        return json.loads(body).get("items") or []

    def node_object(self):
        """The Node. It is read without starting the command line program, so that it may be read again and again."""
        status, body = self.get("/node")
        assert status == 200, body
        return json.loads(body)

    def node_condition(self, kind):
        return next(one for one in self.node_object()["status"]["conditions"] if one["type"] == kind)

    def pod(self, name, namespace="default"):
        for pod in self.pods():
            metadata = pod["metadata"]
            if metadata["name"] in (name, f"{name}-{self.node_name}") and metadata["namespace"] == namespace:
                return pod
        return None

    def status(self, name, container="main"):
        """The status of a container of any kind; {} while there is none."""
        return container_status(self.pod(name), container)

    def wait_pod(self, name, predicate, what, deadline=world.DEADLINE):
        """Waits until the pod exists and is in the required state; returns it."""
        def find_pod():
            pod = self.pod(name)
            return pod if pod and predicate(pod) else None
        return wait(find_pod, lambda: self.describe_pod(name, what), deadline)

    def describe_pod(self, name, what):
        """The status first: a long text may be cut when it is shown."""
        pod = self.pod(name) or {}
        dump = self.get("/debug/dump")[1]
        return (f"{name}: {what}; its status is:\n{json.dumps(pod.get('status'))}\nthe log of the agent:\n{self.said()[-4000:]}\n"
                f"the agent's state is:\n{dump[-8000:]}\nthe pod is:\n{json.dumps(pod)}")

    def wait_running(self, name, deadline=world.DEADLINE):
        return self.wait_pod(name, is_running, "is running", deadline)

    def wait_phase(self, name, phase, deadline=world.DEADLINE):
        return self.wait_pod(name, lambda pod: pod["status"].get("phase") == phase, f"is {phase}", deadline)

    def wait_gone(self, name, deadline=world.DEADLINE):
        wait(lambda: not self.pod(name), lambda: f"{name} is gone; it is {self.pod(name)}", deadline)

    def wait_waiting(self, name, reason, container="main", deadline=world.DEADLINE, says=""):
        """Waits for a waiting state with a reason, and with a text in its message; returns the message, because a
        second query could find the next attempt. ErrImagePull becomes ImagePullBackOff, permanently and with the same
        cause, when the second pull has failed: a second later."""
        reasons = (reason, "ImagePullBackOff") if reason == "ErrImagePull" else (reason,)

        def is_so(pod):
            state = waiting_state(pod, container)
            return state.get("reason") in reasons and says in state.get("message", "")
        pod = self.wait_pod(name, is_so, f"waits, {reason}: {says}", deadline)
        return waiting_state(pod, container).get("message", "")

    def wait_restarts(self, name, count, container="main", deadline=world.DEADLINE):
        """Waits until a container runs after at least this number of restarts; returns its status."""
        pod = self.wait_pod(name, lambda pod: any(
            status["name"] == container and status["restartCount"] >= count and "running" in status["state"]
            for status in pod["status"].get("containerStatuses", [])), f"runs, restarted {count} times", deadline)
        return container_status(pod, container)

    def launch(self, pod):
        """Drops a pod and waits until it runs and has set its traps; returns it as reported."""
        self.drop(pod)
        reported = self.wait_running(pod["metadata"]["name"])
        self.wait_traps(pod)
        return reported

    def wait_traps(self, pod):
        """Waits until the scripts of a pod that runs have set their traps for SIGTERM: until then a shell that is PID 1
        ignores the signal."""
        name, spec = pod["metadata"]["name"], pod["spec"]
        if not spec.get("hostPID") and not spec.get("shareProcessNamespace"):
            for container in spec["containers"]:
                if specs.sets_trap(container):
                    self.wait_trap(name, container["name"])

    def wait_trap(self, name, container="main"):
        wait(lambda: self.has_trap(name, container),
             lambda: f"{name}/{container} has set its trap; the log of the agent:\n{self.said()[-4000:]}")

    def has_trap(self, name, container="main"):
        """Whether the container's script handles SIGTERM; a container that does not run has no trap to set."""
        if "running" not in self.status(name, container).get("state", {}):
            return True
        pid = self.find_init(name, container)
        return pid is not None and world.handles(pid, signal.SIGTERM)

    # State of the system

    def cgroup_of(self, pod, container=None):
        directory = {"Guaranteed": "", "Burstable": "/burstable", "BestEffort": "/besteffort"}
        below = f"/{container_id(pod, container)}" if container else ""
        return f"{self.cgroup_root}/kubepods{directory[pod['status']['qosClass']]}/pod{pod['metadata']['uid']}{below}"

    def pod_cgroup(self, name):
        return self.cgroup_of(self.pod(name))

    def container_id(self, name, container="main"):
        return container_id(self.pod(name), container)

    def container_cgroup(self, name, container="main"):
        return self.cgroup_of(self.pod(name), container)

    def find_init(self, name, container="main"):
        """The first process of a container, by its control group; None if there is none."""
        pod = self.pod(name)
        if "containerID" not in container_status(pod, container):
            return None
        inits = [pid for pid in world.cgroup_pids(self.cgroup_of(pod, container)) if world.is_container_init(pid)]
        assert len(inits) <= 1, f"{name} has more than one init process: {inits}"
        return inits[0] if inits else None

    def init(self, name, container="main"):
        return wait(lambda: self.find_init(name, container), f"{name}/{container} has a process")

    def shim(self, name):
        """The pid of the pod's shim, by its command line."""
        uid = self.pod(name)["metadata"]["uid"]

        def find():
            found = [pid for pid in self.shims() if any(uid in word for word in world.cmdline(pid))]
            return found[0] if len(found) == 1 else None
        # A child of the shim has the shim's command line until it executes its own program.
        return wait(find, f"{name} has exactly one shim")

    def shim_processes(self):
        """The shims, their sessions, and forked children that have not executed a program yet."""
        words = {world.Process(pid): world.cmdline(pid) for pid in world.pids() if self.is_ours(pid)}
        return {pid for pid, line in words.items() if line and "mainstay-shim" in line[0] and line[1] not in ("prepare", "usage")}

    def shims(self):
        """The shims that hold pods or clean up after one. (Not counted: the process that prepares the common directory
        when the agent starts, and the process that measures volumes, whose command line contains all pods.)"""
        return world.without_children(sorted(self.shim_processes()))

    def is_ours(self, pid):
        return any(self.directory in word for word in world.cmdline(pid)) and world.is_alive(pid)

    def is_left(self, pid):
        """Whether a process of this node is left. Not counted: the agent, its child that waits for the disk and exits by
        itself, and processes that exit in the meantime."""
        words = world.cmdline(pid)
        if pid == self.agent.pid or not any(self.directory in word for word in words) or not world.is_alive(pid):
            return False
        return int(world.status(pid, "PPid") or 0) != self.agent.pid or words != world.cmdline(self.agent.pid)

    def log_directory(self, name):
        metadata = self.pod(name)["metadata"]
        return os.path.join(self.log, "pods", f"{metadata['namespace']}_{metadata['name']}_{metadata['uid']}")

    def log_lines(self, name, container="main", attempt=0):
        """The complete lines of a container's log file, as they are on disk. A line that is still being written is left
        out."""
        text = world.read(os.path.join(self.log_directory(name), container, f"{attempt}.log"))
        return (text or "").split("\n")[:-1]

    def logged(self, name, container="main", attempt=0):
        """The messages in a container's log, without their times and streams."""
        return [line.split(" ", 3)[3] for line in self.log_lines(name, container, attempt)]

    # The end

    def finish(self):
        """Removes all pods, stops the agent, and fails unless nothing is left. Cleans up in any case."""
        problems = []
        try:
            problems += self.remove_all()
        except (AssertionError, OSError, http.client.HTTPException) as error:
            problems.append(str(error))
        problems += self.end_agent()
        problems += self.sanitizer_reports()
        said = self.said()
        self.clean_up()
        assert not problems, "\n".join(problems) + f"\nthe log of the agent:\n{said[-6000:]}"

    def remove_all(self):
        if self.agent is None or self.agent.poll() is not None:
            self.start()
        for entry in os.scandir(self.manifests):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
        wait(lambda: not self.pods(), lambda: f"all pods are gone; there are {json.dumps(self.pods())[:4000]}", 180)
        return self.wait_no_leftovers()

    def wait_no_leftovers(self):
        """Waits until nothing is left; returns the findings of the last check. A leftover may disappear at any moment,
        so it is not described by a second check."""
        left = []

        def is_clean():
            left[:] = self.find_leftovers()
            return not left
        try:
            wait(is_clean, "nothing is left")
        except AssertionError:
            pass
        return left

    def leftovers(self):
        return list(self.find_leftovers())

    def drain(self):
        """Drains the node, whose agent has ended; returns the log of the draining agent. After that nothing is left of
        any pod; a program of the agent that was killed may end later, and so may its child that waits for the disk."""
        done = self.run_drain()
        assert done.returncode == 0, done.stderr
        left = [what for what in self.leftovers() if not re.match(r"process \d+ \['[^']*/(mainstay-image|mainstayd)'", what)]
        assert not left, left
        left = self.wait_no_leftovers()
        assert not left, left
        return done.stderr

    def run_drain(self):
        return subprocess.run([*self.command(), "--drain"], env=self.environment(), timeout=world.DEADLINE, check=False,
                              stderr=subprocess.PIPE, text=True)

    def find_leftovers(self):
        """Leftovers that should have gone with the last pod; cheap checks come first."""
        for directory in (f"{self.run}/pods", f"{self.state}/pods", f"{self.log}/pods", f"{self.log}/containers"):
            if os.path.isdir(directory):
                yield from (f"file {directory}/{name}" for name in os.listdir(directory))
        yield from (f"cgroup {path}" for path in world.cgroups_below(self.cgroup_root) if "/pod" in path)
        yield from (f"mount {mount['at']}" for mount in world.mounts()
                    if self.directory in mount["at"] and mount["at"] not in self.own_mounts)
        yield from (f"process {pid} {world.cmdline(pid)} in a cgroup" for pid in world.pids_of_root(self.cgroup_root)
                    if pid != self.agent.pid and world.is_alive(pid))
        yield from (f"process {pid} {world.cmdline(pid)}" for pid in world.pids() if self.is_left(pid))

    def end_agent(self):
        if self.agent.poll() is not None:
            return [f"the agent had ended with {self.agent.returncode}"]
        try:
            status = self.stop()
        except subprocess.TimeoutExpired:
            self.kill9()
            return ["the agent did not end on SIGTERM"]
        return [] if status == 0 else [f"the agent ended with status {status}"]

    def sanitizer_reports(self):
        """The reports of sanitizers. A process that is killed during its search for leaks leaves a line that is not a
        report."""
        names = [name for name in os.listdir(self.directory) if name.startswith("sanitizer.")]
        said = [world.read(os.path.join(self.directory, name)) for name in names] + [self.said()]
        return [text for text in said if re.search(r"Sanitizer:|runtime error:", text)]

    def clean_up(self):
        """Cleans up by force, so that the failure of one test does not cause that of the next."""
        if self.agent and self.agent.poll() is None:
            self.kill9()
        for _ in range(500):
            found = [pid for pid in world.pids() if self.is_ours(pid)] + world.pids_of_root(self.cgroup_root)
            if not [pid for pid in found if world.is_alive(pid)]:
                break
            world.kill_all(found)
            signal.sigtimedwait([], 0.01)
        for mount in reversed(world.mounts()):
            if self.directory in mount["at"]:
                subprocess.run(["umount", "--lazy", mount["at"]], check=False)
        for _ in range(100):
            try:
                world.remove_cgroups(self.cgroup_root)
                break
            except OSError:
                signal.sigtimedwait([], 0.01)
        shutil.rmtree(self.directory, ignore_errors=True)


def is_running(pod):
    """Whether all containers run and the pod reports this."""
    statuses = pod["status"].get("containerStatuses", [])
    return pod["status"].get("phase") == "Running" and len(statuses) == len(pod["spec"]["containers"]) and \
        all("running" in status["state"] for status in statuses)


def waiting_state(pod, name="main"):
    """The waiting state of a container; {} while it does not wait."""
    return container_status(pod, name).get("state", {}).get("waiting", {})


def container_status(pod, name="main"):
    """The status of a container of any kind; {} while there is none."""
    status = (pod or {}).get("status", {})
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for one in status.get(kind, []):
            if one["name"] == name:
                return one
    return {}


def container_id(pod, name="main"):
    return container_status(pod, name)["containerID"].removeprefix("mainstay://")


def condition(pod, kind):
    return next(c for c in pod["status"]["conditions"] if c["type"] == kind)
