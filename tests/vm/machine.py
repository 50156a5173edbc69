# SPDX-License-Identifier: Apache-2.0
"""An emulated machine with control groups of version 2, and systemd as PID 1 unless its command line names another init."""

import base64
import os
import re
import shlex
import shutil
import socket
import subprocess
import time

BOOT_DEADLINE = 1800
COMMAND_DEADLINE = 600
SNAPSHOT = "running"
# For boot(): slots for disks that are plugged in and pulled out.
SLOTS = [word for number in (1, 2) for word in ("-device", f"pcie-root-port,id=slot{number},chassis={number},slot={number}")]

# The emulator for each of Debian's architectures, with arguments for the kernel. Features that are slow under emulation
# and not needed here are disabled: page tables of five levels, other clocks than the TSC. On a busy host the emulated
# timer may tick too late for the kernel's check of it. One thread emulates both processors: with two, a kernel that
# patches its code sometimes executes a breakpoint that it has already replaced.
ARCHITECTURE = os.environ.get("MAINSTAY_VM_ARCHITECTURE", "amd64")
# The code name of the Debian release on the machine.
RELEASE = os.environ.get("MAINSTAY_VM_RELEASE", "trixie")
EMULATORS = {
    "amd64": (["qemu-system-x86_64", "-M", "q35", "-cpu", "max,la57=off"], "console=ttyS0 no_timer_check tsc=reliable"),
    "arm64": (["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a72"], "console=ttyAMA0"),
    "armhf": (["qemu-system-arm", "-M", "virt,highmem=off", "-cpu", "cortex-a15"], "console=ttyAMA0"),
}


class Machine:
    """A machine whose disk is a copy-on-write file over the disk of all machines, and remains when the power is cut."""

    def __init__(self, directory, disk, kernel, ramdisk, memory="1G", arguments=""):
        self.directory, self.kernel, self.ramdisk, self.memory = directory, kernel, ramdisk, memory
        self.arguments, self.environment = arguments, {}
        self.disk, self.console = self.path("disk.qcow2"), self.path("console")
        self.process = self.channel = None
        self.count, self.rest = 0, b""
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", disk, self.disk], check=True)

    def command(self):
        emulator, words = EMULATORS[ARCHITECTURE]
        return [*emulator, "-accel", "tcg,thread=single", "-smp", "2",
                "-m", self.memory, "-nodefaults", "-nographic", "-no-reboot",
                "-kernel", self.kernel, "-initrd", self.ramdisk,
                # Mitigations of processor faults are slow under emulation, too.
                "-append", f"root=/dev/vda rw quiet panic=-1 mitigations=off net.ifnames=0 {words} "
                f"systemd.default_device_timeout_sec=600 {self.arguments}",
                # A power cut kills the machine only: the host keeps all that the machine has written.
                "-drive", f"file={self.disk},if=virtio,format=qcow2,cache=unsafe",
                "-serial", f"file:{self.console}", "-monitor", f"unix:{self.path('monitor')},server=on,wait=off",
                # The machine waits until the test is connected: a resume does not change the channel.
                "-device", "virtio-serial-pci", "-chardev", f"socket,id=channel,path={self.path('channel')},server=on,wait=on",
                "-device", "virtserialport,chardev=channel,name=channel", "-device", "virtio-rng-pci"]

    def path(self, name):
        return os.path.join(self.directory, name)

    def boot(self, *options):
        """Returns when the machine executes commands."""
        for name in "channel", "monitor":
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
        self.process = subprocess.Popen([*self.command(), *options], stdin=subprocess.DEVNULL, env={**os.environ, **self.environment})
        end = time.monotonic() + BOOT_DEADLINE
        self.channel = self.connect("channel", end)
        self.run("true", deadline=end - time.monotonic())

    def connect(self, name, end):
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(self.path(name))
                return connection
            except OSError:
                connection.close()
                assert self.process.poll() is None and time.monotonic() < end, self.console_tail()
                time.sleep(0.05)

    def command_monitor(self, command):
        """Sends a command to the emulator; returns its answer."""
        with self.connect("monitor", time.monotonic() + COMMAND_DEADLINE) as monitor:
            monitor.settimeout(COMMAND_DEADLINE)
            monitor.sendall(f"{command}\n".encode())
            answer = b""
            while answer.count(b"(qemu) ") < 2:
                chunk = monitor.recv(65536)
                assert chunk, f"the emulator ended at '{command}'"
                answer += chunk
            return answer.decode(errors="replace")

    def plug(self, path, name, slot=1, options=""):
        """Plugs a disk into one of SLOTS; returns its device."""
        device = f"/dev/disk/by-id/virtio-{name}"
        end = time.monotonic() + COMMAND_DEADLINE
        for command in (f"drive_add 0 if=none,id={name},format=raw,cache=unsafe{options},file={path}",
                        f"device_add virtio-blk-pci,drive={name},id={name}-device,serial={name},bus=slot{slot}"):
            # Refused until the previous disk has been removed.
            while re.search("Error|Duplicate|not supported", answer := self.command_monitor(command)):
                assert time.monotonic() < end, answer
                time.sleep(0.2)
        self.wait(f"test -b {device}", f"the disk {name} is there")
        return device

    def pull(self, name):
        self.command_monitor(f"device_del {name}-device")
        self.wait(f"! test -e /dev/disk/by-id/virtio-{name}", f"the disk {name} is out")

    def sleep(self, pass_time):
        """Suspends to RAM (ACPI S3), calls 'pass_time' while the machine sleeps, and wakes it."""
        self.run("setsid bash -c 'sleep 1; echo mem >/sys/power/state' >/dev/null 2>&1 </dev/null &")
        end = time.monotonic() + COMMAND_DEADLINE
        while "suspended" not in self.command_monitor("info status"):
            assert time.monotonic() < end, "the machine does not sleep:\n" + self.run("dmesg | tail -n 30")
            time.sleep(0.2)
        pass_time()
        self.command_monitor("system_wakeup")
        self.run("true")

    def suspend(self):
        """Saves the memory to the disk and terminates the machine."""
        with self.connect("monitor", time.monotonic() + COMMAND_DEADLINE) as monitor:
            monitor.sendall(f"savevm {SNAPSHOT}\nquit\n".encode())
            self.process.wait(COMMAND_DEADLINE)
        self.forget()

    def resume(self, disk):
        """Continues as a copy of the machine that was suspended with this disk."""
        shutil.copy(disk, self.disk)
        self.boot("-loadvm", SNAPSHOT)

    def console_tail(self):
        """The last output of the machine's console."""
        with open(self.console, encoding="utf-8", errors="replace") as file:
            return file.read()[-6000:]

    def ask(self, script, deadline=COMMAND_DEADLINE):
        """Runs a bash script in the machine; returns its exit status and its output."""
        self.count += 1
        number = f"{self.count}"
        self.channel.sendall(f"{number} {base64.b64encode(script.encode()).decode()}\n".encode())
        end = time.monotonic() + deadline
        while True:
            line = self.read_line(end, script)
            if line[:1] == [number]:
                output = base64.b64decode(line[2]).decode(errors="replace") if len(line) > 2 else ""
                return int(line[1]), output

    def read_line(self, end, script):
        while b"\n" not in self.rest:
            self.channel.settimeout(max(0.01, end - time.monotonic()))
            try:
                chunk = self.channel.recv(65536)
            except TimeoutError:
                chunk = b""
            assert chunk, f"'{script}' did not return; output of the console:\n{self.console_tail()}"
            self.rest += chunk
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode(errors="replace").split(" ")

    def run(self, script, deadline=COMMAND_DEADLINE):
        """Runs a script that must succeed; returns its output."""
        status, output = self.ask(script, deadline)
        assert status == 0, f"'{script}' exited with {status}:\n{output}"
        return output

    def wait(self, script, what, deadline=COMMAND_DEADLINE):
        """Repeats a script until it succeeds; returns its output."""
        end = time.monotonic() + deadline
        while True:
            started = time.monotonic()
            status, output = self.ask(script, deadline)
            if status == 0:
                return output
            assert time.monotonic() < end, f"timed out, expected: {what}\n{output}\n{self.state()}"
            # Leaves the machine an equal amount of time for its own work.
            time.sleep(time.monotonic() - started)

    def state(self):
        return self.ask("mainstay get pods -A; journalctl -u mainstay -n 60 --no-pager -o cat")[1]

    def write(self, path, text):
        self.run(f"mkdir -p $(dirname {shlex.quote(path)}) && base64 -d >{shlex.quote(path)}.new "
                 f"<<<{base64.b64encode(text.encode()).decode()} && mv {shlex.quote(path)}.new {shlex.quote(path)}")

    def cut_power(self):
        self.process.kill()
        self.forget()

    def power_off(self, deadline=COMMAND_DEADLINE):
        """Shuts the machine down in an orderly way by systemd."""
        self.channel.sendall(f"0 {base64.b64encode(b'systemctl poweroff').decode()}\n".encode())
        self.process.wait(deadline)
        self.forget()

    def forget(self):
        self.process.wait()
        if self.channel:
            self.channel.close()
        self.process = self.channel = None
        self.rest = b""

    def end(self):
        if self.process:
            self.cut_power()
