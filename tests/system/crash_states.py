# SPDX-License-Identifier: Apache-2.0
"""The possible contents of a disk after a power cut: the writes of a program below a directory are recorded, and each
state that they could have left is reproduced, with the method of ALICE (Pillai et al., 2014). Only writes that were
followed by an fsync of the file or of its directory are certain to be on the disk; any part of the others may be."""

import ast
import collections
import os
import random
import re
import signal
import stat

import harness
import world

CALLS = ("openat,open,creat,write,pwrite64,writev,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,symlinkat,"
         "link,linkat,ftruncate,truncate,fallocate,copy_file_range,sendfile,fsync,fdatasync,syncfs,sync")
# Further attributes of an image's layers.
ATTRIBUTE_CALLS = "mknodat,mknod,fchmod,fchmodat,chmod,fchown,fchownat,chown,lchown,utimensat,fsetxattr,setxattr,lsetxattr,fremovexattr"
LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)(.*)$")
UNFINISHED = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
DESCRIPTOR = re.compile(r"^(?:AT_FDCWD|\d+)<(.*)>$")
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


def command(trace, *words, calls=CALLS):
    """The command under a recorder that is not its parent, so that it can be signalled and waited for as if there were
    no recorder."""
    return ["strace", "-D", "-f", "-y", "-s", "10000000", "-e", f"trace={calls}", "-e", "signal=none", "-o", trace, *words]


def finished_calls(trace):
    """The calls of a trace in the order in which they returned: the number of the line, and the call."""
    pending = {}
    with open(trace, encoding="utf-8", errors="surrogateescape") as file:
        for number, line in enumerate(file.read().split("\n")[:-1]):
            if match := UNFINISHED.match(line):
                pending[match.group(1)] = match.group(2)
            elif match := RESUMED.match(line):
                if match.group(1) in pending:
                    yield number, f"{match.group(1)} {pending.pop(match.group(1))}{match.group(2)}"
            else:
                yield number, line


def count_lines(trace):
    with open(trace, "rb") as file:
        return file.read().count(b"\n")


def split(arguments):
    """The arguments of a call; text in quotes or brackets is one argument."""
    words, word, depth, rest = [], "", 0, arguments
    while rest:
        if match := TEXT.match(rest):
            word, rest = word + match.group(0), rest[match.end():]
            continue
        character, rest = rest[0], rest[1:]
        depth += (character in "[{<") - (character in "]}>")
        if character == "," and depth == 0:
            words.append(word.strip())
            word = ""
        else:
            word += character
    return [*words, word.strip()]


def text(word):
    assert not word.endswith("..."), f"the recorder truncated {word[:80]}"
    return ast.literal_eval("b" + word)


class Directory:
    def __init__(self):
        self.entries = {}


# A file that is not a regular one: ("link", its target), or ("node", (type and mode, device)).
Special = collections.namedtuple("Special", "kind what")


class File:
    def __init__(self, special=None):
        self.special = special


class Tree(dict):
    """The contents of a directory, parents first: {path: bytes, a Special, or None for a directory}. For a file with
    several names, 'links' maps each further name to the first one; 'attributes' has {path: {"owner", "mode", "times",
    or an extended attribute's name: value}} with the attributes that were set."""

    def __init__(self):
        super().__init__()
        self.links, self.attributes = {}, {}

    def only(self, is_kept):
        kept = Tree()
        for path in filter(is_kept, self):
            kept[path] = self[path]
            for own, mine in ((kept.links, self.links), (kept.attributes, self.attributes)):
                if path in mine:
                    own[path] = mine[path]
        return kept

    def key(self):
        """A key that is equal for equal trees."""
        return hash(tuple(self.items())), repr(self.links), repr(self.attributes)


class Recording:
    """Operations in their order. Each is a tuple: ("bind", directory, name, node), ("unbind", directory, name),
    ("move", directory, name, new directory, new name, node), ("swap", directory, name, new directory, new name, node,
    new node), ("data", file, offset or None at the end, bytes), ("cut", file, length), ("attribute", node, name, value,
    or None if it was removed). For each operation, 'synced' contains the number of operations after which it is
    certainly on the disk, and 'lines' its line in the trace."""

    def __init__(self, top):
        self.top, self.root = top, Directory()
        self.operations, self.synced, self.lines = [], [], []
        self.positions = {}  # file positions of descriptors, which a write moves

    # Actions of the program

    def read(self, trace):
        for number, line in finished_calls(trace):
            match = LINE.match(line)
            if match and int(match.group(4)) >= 0:
                handle = getattr(self, "do_" + match.group(2), None)
                if handle:
                    handle(match.group(1), split(match.group(3)), int(match.group(4)))
            self.lines += [number] * (len(self.operations) - len(self.lines))
        return self

    def path(self, at, word):
        """The components of a path below the directory; None for a path outside of it."""
        name = os.fsdecode(text(word))
        if not name.startswith("/"):
            name = os.path.join(DESCRIPTOR.match(at).group(1), name)
        return self.pieces(name)

    def pieces(self, name):
        name = os.path.normpath(name)
        return name[len(self.top):].strip("/").split("/") if name.startswith(self.top + "/") else None

    def find(self, pieces):
        node = self.root
        for piece in pieces or ():
            node = node.entries.get(piece) if isinstance(node, Directory) else None
            if node is None:
                return None
        return node

    def parent(self, pieces):
        """The directory that contains a path; it is added to the tree if it existed before the recording."""
        node = self.root
        for piece in pieces[:-1]:
            node = node.entries.setdefault(piece, Directory())
        return node, pieces[-1]

    def add(self, *operation):
        self.operations.append(operation)
        self.synced.append(None)

    def bind(self, pieces, node):
        directory, name = self.parent(pieces)
        directory.entries[name] = node
        self.add("bind", directory, name, node)

    def node_of(self, descriptor):
        match = DESCRIPTOR.match(descriptor)
        pieces = self.pieces(match.group(1).removesuffix(" (deleted)")) if match else None
        return self.find(pieces) if pieces else None

    def do_openat(self, process, words, number):
        pieces = self.path(words[0], words[1])
        if not pieces or "O_DIRECTORY" in words[2]:
            return
        node = self.find(pieces)
        if node is None and "O_CREAT" in words[2] and "O_TMPFILE" not in words[2]:
            node = File()
            self.bind(pieces, node)
        elif isinstance(node, File) and "O_TRUNC" in words[2]:
            self.add("cut", node, 0)
        self.positions[process, number] = None if "O_APPEND" in words[2] else 0

    def do_write(self, process, words, number):
        node = self.node_of(words[0])
        if not isinstance(node, File):
            return
        key = process, int(words[0].split("<")[0])
        position = self.positions.get(key)
        self.add("data", node, position, text(words[1])[:number])
        if position is not None:
            self.positions[key] = position + number

    def do_pwrite64(self, process, words, number):
        node = self.node_of(words[0])
        if isinstance(node, File):
            self.add("data", node, int(words[3]), text(words[1])[:number])

    def do_ftruncate(self, process, words, number):
        node = self.node_of(words[0])
        if isinstance(node, File):
            self.add("cut", node, int(words[1]))

    def unsupported(self, process, words, number):
        assert not any(isinstance(self.node_of(word), File) for word in words if DESCRIPTOR.match(word)), words

    do_writev = do_fallocate = do_copy_file_range = do_sendfile = unsupported

    def unsupported_path(self, process, words, number):
        paths = [self.path("AT_FDCWD</>", word) for word in words if TEXT.fullmatch(word) and text(word).startswith(b"/")]
        assert not any(paths), words

    do_chmod = do_chown = do_lchown = do_setxattr = do_lsetxattr = do_mknod = unsupported_path

    def do_symlinkat(self, process, words, number):
        pieces = self.path(words[1], words[2])
        if pieces:
            self.bind(pieces, File(Special("link", text(words[0]))))

    def do_mknodat(self, process, words, number):
        pieces = self.path(words[0], words[1])
        if pieces:
            kind, _, mode = words[2].partition("|")
            device = [int(word, 0) for word in re.findall(r"0x[0-9a-f]+|\d+", ",".join(words[3:]))]
            self.bind(pieces, File(Special("node", (getattr(stat, kind) | int(mode or "0", 8), os.makedev(*device or (0, 0))))))

    def set_attribute(self, at, word, name, value):
        """Sets an attribute of the node of a descriptor, or of a name in its directory."""
        pieces = self.path(at, word) if word and TEXT.fullmatch(word) else None
        node = self.find(pieces) if pieces else self.node_of(at)
        if node is not None:
            self.add("attribute", node, name, value)

    def do_fchmod(self, process, words, number):
        self.set_attribute(words[0], None, "mode", int(words[1], 8))

    def do_fchmodat(self, process, words, number):
        self.set_attribute(words[0], words[1], "mode", int(words[2], 8))

    def do_fchown(self, process, words, number):
        self.set_attribute(words[0], None, "owner", (int(words[1]), int(words[2])))

    def do_fchownat(self, process, words, number):
        self.set_attribute(words[0], words[1], "owner", (int(words[2]), int(words[3])))

    def do_utimensat(self, process, words, number):
        times = re.findall(r"tv_sec=(-?\d+), tv_nsec=(\d+)", words[2])
        if len(times) == 2:  # otherwise it is the time of the call
            self.set_attribute(words[0], words[1], "times", tuple(int(s) * 10**9 + int(ns) for s, ns in times))

    def do_fsetxattr(self, process, words, number):
        # The recorder leaves out a trailing zero.
        self.set_attribute(words[0], None, os.fsdecode(text(words[1])), text(words[2]).ljust(int(words[3]), b"\0"))

    def do_fremovexattr(self, process, words, number):
        self.set_attribute(words[0], None, os.fsdecode(text(words[1])), None)

    def do_mkdirat(self, process, words, number):
        pieces = self.path(words[0], words[1])
        if pieces:
            self.bind(pieces, Directory())

    def do_unlinkat(self, process, words, number):
        pieces = self.path(words[0], words[1])
        if pieces and self.find(pieces) is not None:
            directory, name = self.parent(pieces)
            del directory.entries[name]
            self.add("unbind", directory, name)

    def do_renameat(self, process, words, number):
        old, new = self.path(words[0], words[1]), self.path(words[2], words[3])
        node = self.find(old)
        if node is None or not new:
            return
        directory, name = self.parent(old)
        target, target_name = self.parent(new)
        del directory.entries[name]
        target.entries[target_name] = node
        self.add("move", directory, name, target, target_name, node)

    def do_renameat2(self, process, words, number):
        if words[4] != "RENAME_EXCHANGE":
            self.do_renameat(process, words, number)
            return
        old, new = self.path(words[0], words[1]), self.path(words[2], words[3])
        if not old or not new:
            return
        nodes = self.find(old), self.find(new)
        directory, name = self.parent(old)
        target, target_name = self.parent(new)
        directory.entries[name], target.entries[target_name] = nodes[1], nodes[0]
        self.add("swap", directory, name, target, target_name, *nodes)

    def do_linkat(self, process, words, number):
        node, new = self.find(self.path(words[0], words[1])), self.path(words[2], words[3])
        if node is not None and new:
            self.bind(new, node)

    def do_link(self, process, words, number):
        self.do_linkat(process, ["AT_FDCWD</>", words[0], "AT_FDCWD</>", words[1]], number)

    def do_mkdir(self, process, words, number):
        self.do_mkdirat(process, ["AT_FDCWD</>", *words], number)

    def do_unlink(self, process, words, number):
        self.do_unlinkat(process, ["AT_FDCWD</>", *words], number)

    do_rmdir = do_unlink

    def do_rename(self, process, words, number):
        self.do_renameat(process, ["AT_FDCWD</>", words[0], "AT_FDCWD</>", words[1]], number)

    # Synced data

    def do_fsync(self, process, words, number):
        node = self.node_of(words[0])
        for i, operation in enumerate(self.operations):
            if self.synced[i] is None and node is not None and (
                    operation[1] is node or (operation[0] in ("move", "swap") and operation[3] is node)):
                self.synced[i] = len(self.operations)

    do_fdatasync = do_fsync

    def do_syncfs(self, process, words, number):
        for i, when in enumerate(self.synced):
            if when is None:
                self.synced[i] = len(self.operations)

    # Possible contents of the disk

    def certain(self, end):
        """The operations before 'end' that are on the disk in any case."""
        return {i for i in range(end) if self.synced[i] is not None and self.synced[i] <= end}

    def state(self, end, chosen):
        """The tree after a power cut at 'end' with the chosen operations that were not synced."""
        there = self.certain(end) | chosen
        entries, content, attributes = {}, {}, {}
        for i, operation in enumerate(self.operations[:end]):
            if i not in there:
                continue
            kind, first, *words = operation
            if kind == "bind":
                entries.setdefault(first, {})[words[0]] = words[1]
            elif kind == "unbind":
                entries.setdefault(first, {}).pop(words[0], None)
            elif kind == "move":
                entries.setdefault(first, {}).pop(words[0], None)
                entries.setdefault(words[1], {})[words[2]] = words[3]
            elif kind == "swap":
                entries.setdefault(first, {})[words[0]] = words[4]
                entries.setdefault(words[1], {})[words[2]] = words[3]
            elif kind == "attribute":
                attributes.setdefault(first, {})[words[0]] = words[1]
            elif kind == "cut":
                content[first] = content.get(first, b"")[:words[0]].ljust(words[0], b"\0")
            else:
                data = content.get(first, b"")
                offset = len(data) if words[0] is None else words[0]
                content[first] = data[:offset].ljust(offset, b"\0") + words[1] + data[offset + len(words[1]):]
        tree, names = Tree(), {}

        def walk(node, path):
            for name, child in sorted(entries.get(node, {}).items()):
                whole = path + name
                tree[whole] = child.special or content.get(child, b"") if isinstance(child, File) else None
                if child in attributes:
                    tree.attributes[whole] = attributes[child]
                if names.setdefault(child, whole) != whole:
                    tree.links[whole] = names[child]
                if isinstance(child, Directory):
                    walk(child, f"{whole}/")
        walk(self.root, "")
        return tree

    def choices(self, end, chance, samples):
        """Sets of operations that were not synced: none, all, all but the data, only the data, and some at random."""
        certain = self.certain(end)
        loose = [i for i in range(end) if i not in certain]
        data = {i for i in loose if self.operations[i][0] in ("data", "cut")}
        yield from (set(), set(loose), set(loose) - data, data)
        for _ in range(samples):
            yield {i for i in loose if chance.random() < 0.5}


def write_entry(tree, path, directory):
    data, target = tree[path], os.path.join(directory, path)
    os.makedirs(target if data is None else os.path.dirname(target), mode=0o711, exist_ok=True)
    if path in tree.links:
        os.link(os.path.join(directory, tree.links[path]), target, follow_symlinks=False)
    elif isinstance(data, Special) and data.kind == "link":
        os.symlink(data.what, os.fsencode(target))
    elif isinstance(data, Special):
        os.mknod(target, *data.what)
        os.chmod(target, stat.S_IMODE(data.what[0]))
    elif data is not None:
        with open(target, "wb") as file:
            file.write(data)
        os.chmod(target, 0o600)


def write_attributes(attributes, target):
    """Writes the attributes in an order in which none undoes another: a new owner removes some of them, and each write
    changes a time."""
    if "owner" in attributes:
        os.chown(target, *attributes["owner"], follow_symlinks=False)
    if "mode" in attributes:
        os.chmod(target, attributes["mode"])
    for name, value in attributes.items():
        if "." in name and value is not None:
            os.setxattr(target, name, value, follow_symlinks=False)
    if "times" in attributes:
        os.utime(target, ns=attributes["times"], follow_symlinks=False)


def write(tree, directory):
    """Writes a tree into an existing directory."""
    for path in tree:
        write_entry(tree, path, directory)
    for path in reversed(tree):
        write_attributes(tree.attributes.get(path, {}), os.path.join(directory, path))


class Recorded:
    """The writes of an agent that ran pods, the images that it stored, and the state at each line of the trace: the
    manifests, and the data that was synced by then."""

    calls = CALLS

    def __init__(self, run, archive, directory, make=None):
        """'make' creates the node and is given this object; without it the node is like those of other tests."""
        self.archive, self.images = archive, os.path.join(directory, "images")
        self.shared = os.path.join(directory, "shared")
        os.mkdir(self.shared)
        self.node = make(self) if make else harness.Node(archive, start=False)
        self.trace = os.path.join(directory, "trace")
        words, environment = self.node.command(), self.node.environment()
        self.node.command = lambda: command(self.trace, *words, calls=self.calls) if self.is_recorded else words
        # The search for leaks cannot be traced.
        self.node.environment = lambda: {**environment, "ASAN_OPTIONS": environment["ASAN_OPTIONS"] + ":detect_leaks=0"}
        self.marks, self.is_recorded = [], True
        try:
            self.node.start()
            run(self)
            harness.copy_tree(os.path.join(self.node.state, "images"), self.images)
            self.log = Recording(self.node.state).read(self.trace)
        finally:
            self.end_recorder()
            self.node.finish()

    def end_recorder(self):
        """The recorded agent continues without it."""
        self.is_recorded = False
        for pid in world.pids():
            if world.cmdline(pid)[:1] == ["strace"] and self.trace in world.cmdline(pid):
                os.kill(pid, signal.SIGKILL)
                world.wait(lambda pid=pid: not world.is_alive(pid), "the recorder has ended")

    def mark(self, *manifests, synced="", line=None):
        """Marks the facts that hold from here on, or from that line on."""
        self.marks.append((count_lines(self.trace) if line is None else line, manifests, synced))

    def wait_synced(self, directory, file):
        """Waits until the last file of that name is on the disk."""
        def is_synced():
            calls = [call for _, call in finished_calls(self.trace)]
            last = max((i for i, call in enumerate(calls) if re.search(rf' rename.*"{file}"(, \w+)?\) += 0$', call)),
                       default=len(calls))
            return any("fsync(" in call and f"/{directory}>" in call for call in calls[last:])
        world.wait(is_synced, lambda: f"{file} is synced")

    def facts(self, end):
        """The facts that hold after this number of operations."""
        line = self.log.lines[end - 1] if end else -1
        return next((row[1:] for row in reversed(self.marks) if row[0] <= line), self.marks[0][1:])

    def is_kept(self, path):
        """Whether the path belongs to the part of the directory whose states are tried; the stored images do not."""
        return not path.startswith(("images", "preload"))

    def tree(self, end, chosen):
        return self.log.state(end, chosen).only(self.is_kept)

    def states(self, samples):
        """The different states: the arguments of tree(), the manifests, and the synced data."""
        chance, seen = random.Random(1), set()
        for end in range(len(self.log.operations) + 1):
            for chosen in self.log.choices(end, chance, samples):
                facts = self.facts(end)
                key = self.tree(end, chosen).key(), repr(facts)
                if key not in seen:
                    seen.add(key)
                    yield (end, chosen), *facts

    def try_states(self, samples, part, boot, least=100, first=10):
        """Part 0 is small and contains a few more states than 'first'; the other seven parts together contain all
        states."""
        states = list(self.states(samples))
        print(f"{len(self.log.operations)} operations, {len(states)} states")
        assert len(states) > least
        mine = states[::len(states) // first] if part == 0 else states[part - 1::7]
        for i, (place, manifests, synced) in enumerate(mine):
            tree = self.tree(*place)
            try:
                boot(self, tree, manifests, synced)
            except AssertionError as error:
                raise AssertionError(
                    f"state {i} of {len(mine)}, after {place[0]} operations, synced {synced}, with {str(manifests)[:4000]}: "
                    f"{error}\n" + "\n".join(f"{path}: {str(data)[:4000]}" for path, data in tree.items())) from error
