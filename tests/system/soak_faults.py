# SPDX-License-Identifier: Apache-2.0
"""The disturbances of the soak test's node: programs are killed and frozen, the clock jumps, the disk is full, the
configuration changes, clients connect and disconnect."""

import os
import signal
import subprocess
import time

import harness
import world

HOUR, DAY, YEAR = 3600, 24 * 3600, 365 * 24 * 3600


class Sessions:
    """Clients of the local socket that stay connected for a while, and short commands whose result must be correct."""

    def __init__(self, soak):
        self.soak, self.clients, self.number = soak, [], 0

    def open(self, *words, output=subprocess.DEVNULL):
        node = self.soak.node
        self.clients.append(subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, *words], stdin=subprocess.DEVNULL,
                                             stdout=output, stderr=subprocess.DEVNULL, env=harness.Node.environment(node)))
        self.soak.count("sessions")

    def stay(self):
        words = self.soak.random.choice([("exec", "steady-idle", "--", "sleep", "1000"), ("get", "pods", "-w"), ("attach", "steady-idle"),
                                         ("get", "events", "-w"), ("logs", "-f", "mortal-counter"), ("logs", "-f", "steady-sides", "main")])
        self.open(*words)

    def follow(self):
        """The output of a follower goes to a file, which is checked after the follower has ended."""
        with open(self.path(), "w", encoding="utf-8") as file:
            self.open("logs", "-f", "steady-counter", output=file)

    def path(self):
        self.number += 1
        return os.path.join(self.soak.node.directory, f"followed.{self.number}")

    def close_one(self):
        if self.clients:
            self.end(self.clients.pop(self.soak.random.randrange(len(self.clients))))

    @staticmethod
    def end(client):
        client.kill()
        client.wait()

    def settle(self):
        while self.clients:
            self.end(self.clients.pop())
        self.check_followed()

    def check_followed(self):
        directory = self.soak.node.directory
        for name in os.listdir(directory):
            if name.startswith("followed."):
                path = os.path.join(directory, name)
                numbers = [int(line) for line in (world.read(path) or "").split("\n")[:-1]]
                assert numbers == list(range(numbers[0], numbers[-1] + 1)) if numbers else True, f"a follower read {numbers}"
                self.soak.count("lines followed", len(numbers))
                os.unlink(path)

    def execute(self):
        """Executes a command while no disturbance is active that could make it fail."""
        node = self.soak.node
        if self.soak.disk.is_full or not self.soak.is_answering() or not harness.is_running(node.pod("steady-idle")):
            return
        code = self.soak.random.randrange(256)
        done = node.cli("exec", "steady-idle", "--", "sh", "-c", f"echo {code}; exit {code}")
        assert (done.returncode, done.stdout) == (code, f"{code}\n"), f"exec: {done}\n{node.said()[-2000:]}"
        self.soak.count("commands executed")

    def actions(self):
        return [(4, self.stay), (2, self.follow), (4, self.close_one), (3, self.execute)]


class Processes:
    """Kills and freezes. The shims of pods that must keep their process are frozen, but not killed."""

    def __init__(self, soak):
        self.soak, self.frozen = soak, []

    # Victims

    def spared(self, pid):
        words = world.cmdline(pid)
        return any(uid in word for uid in self.soak.spared for word in words)

    def shims(self):
        return [pid for pid in self.soak.node.shims() if not self.spared(pid)]

    def programs(self, name):
        """The programs of this node that are usually short-lived."""
        found = {pid: world.cmdline(pid) for pid in world.pids()}
        return [pid for pid, words in found.items() if words and os.path.basename(words[0]) == name and
                any(self.soak.node.directory in word for word in words)]

    def wait_program(self, name):
        """The PID of a running program of that name, which an earlier action has requested; None if none appears in time."""
        end = time.monotonic() + 3
        while time.monotonic() < end:
            found = self.programs(name)
            if found:
                return self.soak.random.choice(found)
            time.sleep(0.01)
        return None

    # Kills

    def kill(self, pid, what):
        self.soak.excuse(world.cmdline(pid))
        world.kill_all([pid])
        self.soak.count(f"{what} killed")

    def kill_agent(self):
        if not self.soak.may_kill_agent:
            return
        node = self.soak.node
        node.kill9()
        self.soak.count("mainstayd killed")
        for _ in range(self.soak.random.randrange(3)):
            self.soak.churn.edit()
        node.start(ready=False)
        time.sleep(self.soak.random.choice([0, 0.5, 3]))

    def kill_shim(self):
        found = self.shims()
        if found:
            self.kill(self.soak.random.choice(found), "mainstay-shim")

    def kill_all(self):
        """Kills the agent and the shims together."""
        for pid in self.shims():
            self.kill(pid, "mainstay-shim")
        self.kill_agent()

    def kill_helper(self):
        """Kills a fork or a session of a shim, or a cleanup."""
        shims = self.soak.node.shims()
        found = [pid for pid in self.soak.node.shim_processes() if pid not in shims and not self.spared(pid)]
        if found:
            self.kill(self.soak.random.choice(found), "helper of a shim")

    def kill_program(self, name, cause):
        cause()
        pid = self.wait_program(name)
        if pid:
            time.sleep(self.soak.random.choice([0, 0, 0.02, 0.2]))
            if pid in self.programs(name):
                self.kill(pid, name)

    def kill_runc(self):
        self.kill_program("runc", self.soak.churn.add)

    def kill_image(self):
        self.kill_program("mainstay-image", self.soak.registry.pull)

    def kill_container(self):
        """Kills the shim of a pod that must run and is therefore started again."""
        pods = [pod for pod in self.soak.churn.pods.values() if pod.is_running()]
        if not pods or not self.soak.is_answering():
            return
        pod = self.soak.random.choice(pods)
        if self.soak.node.pod(pod.name) and (pid := self.soak.node.find_init(pod.name)):
            pod.excuse()
            world.kill_all([pid])
            self.soak.count("containers killed")

    # Freezes

    def freeze(self, pid, what, seconds):
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            return
        self.frozen.append(pid)
        self.soak.count(f"{what} frozen")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.soak.random.choice([self.soak.churn.add, self.soak.churn.edit, lambda: None])()
            time.sleep(1)
        self.thaw()

    def thaw(self):
        for pid in self.frozen:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.frozen.clear()

    def freeze_agent(self):
        self.freeze(self.soak.node.agent.pid, "mainstayd", self.soak.random.choice([0.1, 2, 10]))

    def freeze_shim(self):
        found = self.soak.node.shims()
        if found:
            pid = self.soak.random.choice(found)
            if not self.spared(pid):
                self.soak.excuse(world.cmdline(pid))
            self.freeze(pid, "mainstay-shim", self.soak.random.choice([0.1, 2, 5]))

    def freeze_program(self):
        name, cause = self.soak.random.choice([("runc", self.soak.churn.add), ("mainstay-image", self.soak.registry.pull)])
        cause()
        pid = self.wait_program(name)
        if pid:
            self.soak.excuse(world.cmdline(pid))
            self.freeze(pid, name, self.soak.random.choice([0.5, 5]))

    def settle(self):
        self.thaw()

    def actions(self):
        return [(3, self.kill_agent), (2, self.kill_shim), (0.5, self.kill_all), (1, self.kill_helper), (3, self.kill_runc),
                (3, self.kill_image), (2, self.kill_container), (1, self.freeze_agent), (1, self.freeze_shim), (1, self.freeze_program)]


class Clock:
    """Sets the clock, or lets hours pass."""

    def __init__(self, soak):
        self.soak, self.passed = soak, 0

    def set(self):
        shift = self.soak.random.choice([HOUR, -HOUR, DAY, -DAY, 2 * YEAR, DAY - int(time.time())])
        self.soak.node.write_clock(self.passed + shift, self.passed)
        self.soak.count("clock set")

    def let_pass(self):
        self.passed += self.soak.random.choice([60, 600, 3600])
        self.settle()
        self.soak.count("hours passed")

    def settle(self):
        self.soak.node.write_clock(self.passed, self.passed)

    def actions(self):
        return [(2, self.set), (1, self.let_pass)]


class Disk:
    """The file system of the state directory is filled, by bytes or by files, and freed."""

    def __init__(self, soak):
        self.soak, self.is_full = soak, False
        self.path = os.path.join(soak.node.state, "filler")

    def fill(self):
        if self.is_full:
            return self.settle()
        self.is_full = True
        for pod in self.soak.all_pods():
            pod.excuse_from_start()
        os.makedirs(self.path, exist_ok=True)
        by_bytes = self.soak.random.random() < 0.6
        self.soak.count("full disks" if by_bytes else "disks without inodes")
        try:
            with open(os.path.join(self.path, "bytes"), "wb", buffering=0) as file:
                while by_bytes:
                    file.write(bytes(4096))
            for i in range(1 << 30):
                os.close(os.open(f"{self.path}/{i}", os.O_CREAT | os.O_WRONLY))
        except OSError:
            pass
        return None

    def settle(self):
        self.is_full = False
        if os.path.isdir(self.path):
            for entry in list(os.scandir(self.path)):
                os.unlink(entry.path)
            os.rmdir(self.path)

    def actions(self):
        return [(2, self.fill), (2, self.settle)]


class Configuration:
    """Changes settings that take effect when the agent is restarted."""

    CHOICES = {"crashLoopBackOff": [{"maxContainerRestartPeriod": "1s"}, {"maxContainerRestartPeriod": "2s"}],
               "serializeImagePulls": [True, False], "podPidsLimit": [-1, 1000], "eventRecordQPS": [50, 5],
               "imageGCHighThresholdPercent": [85, 95], "imageMinimumGCAge": ["2m", "1m"]}

    def __init__(self, soak):
        self.soak = soak
        self.fields = {name: values[0] for name, values in self.CHOICES.items()}

    def change(self):
        if not self.soak.may_kill_agent:
            return
        name = self.soak.random.choice(sorted(self.CHOICES))
        self.fields[name] = self.soak.random.choice(self.CHOICES[name])
        self.soak.write_config()
        node = self.soak.node
        if self.soak.random.random() < 0.5:
            node.kill9()
        else:
            # An agent that has just been started does not wait for the signal yet.
            waits = int(world.status(node.agent.pid, "SigBlk") or "0", 16) >> (signal.SIGTERM - 1) & 1
            status = node.stop()
            assert status == 0 or (status == -signal.SIGTERM and not waits), f"the agent ended with {status} on SIGTERM\n{node.said()[-4000:]}"
        node.start(ready=False)
        self.soak.count("configurations")

    def settle(self):
        self.soak.write_config()

    def actions(self):
        return [(1, self.change)]
