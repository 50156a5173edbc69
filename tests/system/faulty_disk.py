# SPDX-License-Identifier: Apache-2.0
"""A disk of a node that is full, slow or broken: system calls of the agent and of all programs that it starts, on files
below the node's directories, wait for this process (seccomp_unotify(2)), which lets them succeed, fail or wait.

    faulty_disk.py SOCKET COMMAND...    executes the command under a filter, whose descriptor it sends there
"""

import array  # noqa: F401 send_fds() loads it, which must not wait for the receiver  pylint: disable=unused-import
import ctypes
import fcntl
import os
import platform
import select
import socket
import struct
import sys
import threading

# Numbers of x86-64.
WRITES = {"write": 1, "pwrite64": 18, "writev": 20, "sendfile": 40, "fallocate": 285, "copy_file_range": 326, "ftruncate": 77}
NAMES = {"openat": 257, "mkdirat": 258, "linkat": 265, "symlinkat": 266, "renameat": 264, "renameat2": 316,
         "open": 2, "mkdir": 83, "link": 86, "symlink": 88, "rename": 82, "openat2": 437}
SYNCS = {"fsync": 74, "fdatasync": 75, "syncfs": 306}
READS = {"read": 0, "pread64": 17, "readv": 19, "getdents64": 217}
NUMBERS = {**WRITES, **NAMES, **SYNCS, **READS}
CALLS = {number: name for name, number in NUMBERS.items()}

# The arguments of a call that hold its new name: the descriptor of the directory, or None, and the path.
NEW_NAMES = {"openat": (0, 1), "openat2": (0, 1), "mkdirat": (0, 1), "linkat": (2, 3), "symlinkat": (1, 2), "renameat": (2, 3),
             "renameat2": (2, 3), "open": (None, 0), "mkdir": (None, 0), "link": (None, 1), "symlink": (None, 1),
             "rename": (None, 1)}

AUDIT_ARCH_X86_64 = 0xc000003e
ALLOW, NOTIFY = 0x7fff0000, 0x7fc00000
SYS_SECCOMP, SET_MODE_FILTER, NEW_LISTENER = 317, 1, 8
RECEIVE, SEND, CONTINUE = 0xc0502100, 0xc0182101, 1
NOTICE, ANSWER = "=QIIiIQ6Q", "=QqiI"


def install(names):
    """Installs the filter for this process and all its descendants; returns its descriptor."""
    assert platform.machine() == "x86_64", "the system call numbers are those of x86-64"
    numbers = [NUMBERS[name] for name in names]
    code = [(0x20, 0, 0, 4), (0x15, 1, 0, AUDIT_ARCH_X86_64), (0x06, 0, 0, ALLOW), (0x20, 0, 0, 0)]
    code += [(0x15, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    code += [(0x06, 0, 0, ALLOW), (0x06, 0, 0, NOTIFY)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *words) for words in code))
    program = ctypes.create_string_buffer(struct.pack("=H6xQ", len(code), ctypes.addressof(text)))
    fd = ctypes.CDLL(None, use_errno=True).syscall(SYS_SECCOMP, SET_MODE_FILTER, NEW_LISTENER, program)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return fd


class Call:
    def __init__(self, notice):
        self.id, self.pid, _, number, _, _, *self.arguments = struct.unpack(NOTICE, notice)
        self.name = CALLS[number]

    def link(self, name):
        try:
            return os.readlink(f"/proc/{self.pid}/{name}")
        except OSError:
            return ""

    def memory(self, address, size):
        try:
            with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
                memory.seek(address)
                return memory.read(size)
        except (OSError, ValueError, OverflowError):
            return b""

    def text(self, address):
        return os.fsdecode(self.memory(address, 4096).split(b"\0")[0])

    @property
    def path(self):
        """The file that the call writes, syncs or reads, or the name that it creates; "" if the process is gone."""
        if self.name not in NEW_NAMES:
            return self.link(f"fd/{self.arguments[2 if self.name == 'copy_file_range' else 0] & 0xffffffff}")
        at, where = NEW_NAMES[self.name]
        name = self.text(self.arguments[where])
        fd = -100 if at is None else ctypes.c_int(self.arguments[at] & 0xffffffff).value
        return os.path.normpath(os.path.join(self.link("cwd" if fd == -100 else f"fd/{fd}"), name)) if name else ""

    def needs_space(self, path):
        """Whether the call may create a new name or write into a file; replacing a name needs no space."""
        if self.name in READS:
            return False
        if self.name not in NEW_NAMES:
            return os.path.isfile(path) or self.name in SYNCS
        return self.makes_name() and not os.path.lexists(path)

    def makes_name(self):
        """Whether the call creates a name: all calls do except an open() without O_CREAT."""
        if self.name == "openat2":
            return bool(int.from_bytes(self.memory(self.arguments[2], 8), sys.byteorder) & os.O_CREAT)
        flags = {"open": 1, "openat": 2}.get(self.name)
        return flags is None or bool(self.arguments[flags] & os.O_CREAT)


class FaultyDisk:
    """For a Node that has not been started. 'rule' is called for each of the calls on files below the state, run and
    log directories: None lets the call continue, a negative number is the error with which it fails, and a positive one
    is the number of seconds that it waits."""

    def __init__(self, node, *names):
        self.node, self.rule = node, lambda call, path: None
        self.failed = []  # calls and their paths
        self.waiting = {}  # the descriptors of the filters of calls that wait
        self.tops = tuple(f"{path}/" for path in (node.state, node.run, node.log))
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.address = os.path.join(node.directory, "faults")
        self.socket.bind(self.address)
        self.socket.listen()
        words = node.command
        node.command = lambda: [sys.executable, os.path.abspath(__file__), self.address, ",".join(names), *words()]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        while True:
            for fd, events in poll.poll():
                if fd == self.socket.fileno():
                    connection, _ = self.socket.accept()
                    with connection:
                        _, (listener,), _, _ = socket.recv_fds(connection, 1, 1)
                    poll.register(listener, select.POLLIN)
                elif events & select.POLLIN:
                    self.handle(fd)
                else:  # no process is left with this filter
                    poll.unregister(fd)
                    os.close(fd)

    def handle(self, fd):
        notice = bytearray(struct.calcsize(NOTICE))
        try:
            fcntl.ioctl(fd, RECEIVE, notice)
        except OSError:
            return  # the process has been killed
        call = Call(bytes(notice))
        path = call.path
        verdict = self.rule(call, path) if path.startswith(self.tops) else None
        if verdict is not None and verdict > 0:
            self.waiting[call] = fd
            timer = threading.Timer(verdict, self.answer_late, (call,))
            timer.daemon = True
            timer.start()
        else:
            if verdict:
                self.failed.append((call.name, path))
            self.answer(fd, call, verdict or 0)

    def answer_late(self, call):
        fd = self.waiting.pop(call, None)
        if fd is not None:
            self.answer(fd, call, 0)

    def mend(self):
        """From now on every call succeeds, including those that already wait."""
        self.rule = lambda call, path: None
        for call in list(self.waiting):
            self.answer_late(call)

    @staticmethod
    def answer(fd, call, error):
        try:
            fcntl.ioctl(fd, SEND, struct.pack(ANSWER, call.id, 0, error, 0 if error else CONTINUE))
        except OSError:
            pass  # the process has been killed in the meantime


def main():
    address, names, *words = sys.argv[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(address)
        fd = install(names.split(","))
        socket.send_fds(connection, [b"x"], [fd])
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
