# SPDX-License-Identifier: Apache-2.0
"""A process that an attacker has taken over: system calls are made from within it (system-calls.c), with exactly its
credentials, capabilities, namespaces, filters, limits and descriptors. For processes of a build without sanitizers
(SHIPPED), because sanitizers need more privileges."""

import contextlib
import ctypes
import errno
import os
import socket
import struct
import subprocess

import harness
import specs

SHIPPED = os.path.abspath(os.environ.get("MAINSTAY_SHIPPED", os.path.join(harness.TOP, f"build-shipped-{specs.ARCHITECTURE}")))
AT_FDCWD = -100
MAP_SHARED_ANONYMOUS = 0x21


class ShippedNode(harness.Node):
    """A node that uses the shipped build of the programs."""

    def command(self):
        return [shipped_program("mainstayd"), *super().command()[1:]]


def shipped_program(name):
    return os.path.join(SHIPPED, "agent", name)


def compile_tool(directory):
    tool = os.path.join(str(directory), "system-calls")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "system-calls.c")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-o", tool, source], check=True)
    return tool


def call_number(name):
    library = ctypes.CDLL("libseccomp.so.2")
    number = library.seccomp_syscall_resolve_name(name.encode())
    assert number >= 0, f"{name} is a system call of this machine"
    return number


class Gone(Exception):
    """The process was killed for the call, or had ended before."""


class Takeover:
    """Stops a process and acts in its place. The process continues at the end."""

    def __init__(self, tool, pid):
        self.pid = int(pid)
        self.tool = subprocess.Popen([tool, str(self.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.tool.stdout.readline() != "attached\n":
            self.__exit__()
            raise Gone

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.tool.stdin.close()
        self.tool.wait()
        self.tool.stdout.close()

    def call(self, name, *arguments):
        """Makes a system call; returns the result of the kernel, and the bytes of a bytearray among the arguments. A
        text is passed as the address of a string, and bytes as the address of their copy."""
        words = [str(call_number(name))]
        for argument in arguments:
            if isinstance(argument, str):
                assert " " not in argument and "\n" not in argument
                words.append("=" + argument)
            elif isinstance(argument, bytearray):
                words.append(f"@{len(argument)}")
            elif isinstance(argument, bytes):
                words.append("#" + argument.hex())
            else:
                words.append(str(int(argument)))
        try:
            self.tool.stdin.write(" ".join(words) + "\n")
            self.tool.stdin.flush()
        except BrokenPipeError:
            raise Gone(name) from None
        answer = self.tool.stdout.readline().split()
        if not answer or answer[0] == "gone":
            raise Gone(name)
        return int(answer[0]), bytes.fromhex(answer[1]) if len(answer) > 1 else b""

    def outcome(self, name, *arguments):
        """"allowed", or the name of the error."""
        result, _ = self.call(name, *arguments)
        return errno.errorcode[-result] if -4096 < result < 0 else "allowed"

    def read_file(self, path):
        """The beginning of a file, or the name of the error."""
        fd, _ = self.call("openat", AT_FDCWD, path, os.O_RDONLY | os.O_CLOEXEC, 0)
        if fd < 0:
            return errno.errorcode[-fd]
        n, content = self.call("read", fd, bytearray(64), 64)
        self.call("close", fd)
        return content[:n]

    # The system calls that an attacker tries. Each function returns the outcomes by attempt.

    def try_files(self, paths):
        return {f"read {path}": "allowed" if isinstance(found := self.read_file(path), bytes) else found for path in paths}

    def try_writes(self, directories):
        found = {}
        for directory in directories:
            path = f"{directory}/taken-over"
            found[f"write in {directory}"] = self.outcome("openat", AT_FDCWD, path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if os.path.exists(path):
                os.unlink(path)
        return found

    def try_network(self):
        families = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6, "netlink": socket.AF_NETLINK, "packet": socket.AF_PACKET,
                    "local": socket.AF_UNIX}
        return {f"a socket for {name}": self.outcome("socket", family, socket.SOCK_RAW if name in ("packet", "netlink")
                                                     else socket.SOCK_STREAM, 0) for name, family in families.items()}

    def try_connection(self, path):
        """Tries to connect to a local socket."""
        fd, _ = self.call("socket", socket.AF_UNIX, socket.SOCK_STREAM, 0)
        address = struct.pack("H", socket.AF_UNIX) + path.encode() + b"\0"
        found = self.outcome("connect", fd, address, len(address))
        self.call("close", fd)
        return found

    def try_processes(self, other):
        """'other' is a process of root that survives if everything is correct."""
        return {
            "signal another process": self.outcome("kill", other, 0),
            "signal a process by a descriptor": self.outcome("pidfd_open", other, 0),
            "trace another process": self.outcome("ptrace", 0x4206, other, 0, 0),  # PTRACE_SEIZE
            "read the memory of another process": self.outcome("process_vm_readv", other, 0, 0, 0, 0, 0),
            "execute a program": self.outcome("execve", "/bin/false", 0, 0),
        }

    def try_fork(self):
        result, _ = self.call("clone", 17, 0, 0, 0, 0)  # SIGCHLD: the child dies at the breakpoint after the call
        return {"fork": errno.errorcode[-result] if result < 0 else "allowed"}

    def try_machine(self):
        return {
            "mount": self.outcome("mount", "none", "/mnt", "tmpfs", 0, 0),
            "unmount": self.outcome("umount2", "/mnt", 0),
            "make a user namespace": self.outcome("unshare", 0x10000000),
            "make a mount namespace": self.outcome("unshare", 0x20000),
            "change the root directory": self.outcome("chroot", "/"),
            "make a device": self.outcome("mknodat", AT_FDCWD, "/dev/shm/taken-over", 0o20600, os.makedev(1, 1)),
            "load a module": self.outcome("init_module", 0, 0, ""),
            "load a BPF program": self.outcome("bpf", 5, 0, 0),
            "set the clock": self.outcome("clock_settime", 0, 0),
            "restart the machine": self.outcome("reboot", 0, 0, 0, 0),
            "read the kernel's log": self.outcome("syslog", 3, bytearray(16), 16),
            "use keys of the kernel": self.outcome("keyctl", 0, -3, 0, 0, 0),
            "watch events of the kernel": self.outcome("perf_event_open", 0, 0, -1, -1, 0),
            "become root": self.outcome("setresuid" + suffix_of_ids(), 0, 0, 0),
            "open files by number": self.outcome("open_by_handle_at", AT_FDCWD, 0, 0),
            "use io_uring": self.outcome("io_uring_setup", 1, bytearray(128)),
        }

    def try_memory(self, mebibytes):
        """Allocates more memory than the limit of the process."""
        size = mebibytes << 20
        private, _ = self.call(map_name(), 0, size, 3, 0x22, -1, 0)
        shared, _ = self.call(map_name(), 0, size, 3, MAP_SHARED_ANONYMOUS, -1, 0)
        code, _ = self.call(map_name(), 0, 4096, 7, 0x22, -1, 0)
        return {name: errno.errorcode[-result] if -4096 < result < 0 else "allowed"
                for name, result in ((f"{mebibytes} MiB of memory", private), (f"{mebibytes} MiB of shared memory", shared),
                                     ("memory for code", code))}


def suffix_of_ids():
    return "32" if struct.calcsize("P") == 4 else ""


def map_name():
    return "mmap2" if struct.calcsize("P") == 4 else "mmap"
