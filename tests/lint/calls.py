# SPDX-License-Identifier: Apache-2.0
"""Things that do not belong in the tree: calls that are never right here, descriptors that would leak into a container,
paths of one machine, reminders."""

import re

import tree

NEVER = {
    "system": "no shell; use child_spawn()",
    "popen": "no shell; use child_spawn()",
    "strcpy": "is unbounded", "strcat": "is unbounded", "stpcpy": "is unbounded",
    "sprintf": "is unbounded; use snprintf() or asprintf()",
    "vsprintf": "is unbounded",
    "gets": "is unbounded",
    "strtok": "keeps a state for all",
    "alloca": "a full stack is not an error but a crash",
    "mktemp": "races", "tmpnam": "races",
    "atoi": "cannot fail", "atol": "cannot fail",
}

# A call and the required content of its arguments, so that no descriptor of ours reaches a container.
CLOEXEC = {
    "open": "O_CLOEXEC", "openat": "O_CLOEXEC", "open64": "O_CLOEXEC",
    "socket": "SOCK_CLOEXEC", "socketpair": "SOCK_CLOEXEC", "accept4": "SOCK_CLOEXEC",
    "pipe2": "O_CLOEXEC", "dup3": "O_CLOEXEC", "epoll_create1": "EPOLL_CLOEXEC",
    "inotify_init1": "IN_CLOEXEC", "signalfd": "SFD_CLOEXEC", "eventfd": "EFD_CLOEXEC",
    "timerfd_create": "TFD_CLOEXEC", "memfd_create": "MFD_CLOEXEC",
}
WITHOUT_CLOEXEC = ("pipe", "accept", "dup", "epoll_create", "inotify_init", "creat")

# The path must not follow a word: /proc/PID/root/ is not a home directory.
MACHINE_PATH = re.compile(r"(?<![\w%{}\])*-])/(?:" + "|".join(["work", "root"]) + r")/")
NOTE = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME"]) + r")\b")


def arguments(text, offset):
    """The text between the parenthesis at offset and its partner."""
    depth = 0
    for i in range(offset, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[offset + 1:i]
    return text[offset + 1:]


def calls(text, names):
    pattern = r"(?<![\w.>])(" + "|".join(names) + r")\s*\("
    for match in re.finditer(pattern, text):
        # A declaration or a member of that name is not a call: it follows something like a type.
        before = text[:match.start()].rstrip()
        if re.search(r"\b(?!return|else|do)\w+[ \t]+\**$", text[:match.start()]) and before[-1:].isalnum() \
                and not before.endswith(("return", "else", "do")):
            continue
        yield match.group(1), match.start(), arguments(text, match.end() - 1)


def check_c(path, text):
    bare = tree.without_strings(text)
    for name, offset, _ in calls(bare, NEVER):
        yield f"{path}:{tree.line_of(bare, offset)}: {name}(): {NEVER[name]}"
    for name, offset, given in calls(bare, CLOEXEC):
        if CLOEXEC[name] not in given:
            yield f"{path}:{tree.line_of(bare, offset)}: {name}() without {CLOEXEC[name]}"
    for name, offset, _ in calls(bare, WITHOUT_CLOEXEC):
        yield f"{path}:{tree.line_of(bare, offset)}: {name}() cannot close on exec"
    whole = tree.without_comments(text)
    for _, offset, given in calls(whole, ["fopen", "fdopen", "freopen"]):
        if not re.search(r'"[rwa][^"]*e[^"]*"', given):
            yield f"{path}:{tree.line_of(whole, offset)}: a stream without 'e' in its mode"


# Whether one of Mainstay's own labels or annotations counts depends on the source of its object: own_pod_value()
# decides.
OWN_KEY = re.compile(r'"mainstay\.dev/')
# The second one has the prefix of resources.
OWN_KEYS = "agent/model/own-keys.c", "agent/devices/device-manager.h"


def check_own_keys(path, text):
    if not path.startswith(("agent/", "common/")) or path in OWN_KEYS:
        return
    whole = tree.without_comments(text)
    for match in OWN_KEY.finditer(whole):
        yield f"{path}:{tree.line_of(whole, match.start())}: a key of Mainstay's own; use the functions of agent/model/own-keys.h"
    if path != "agent/model/own-values.c" and re.search(r"string_map_get\([^;]*own_key_name\(", whole):
        yield f"{path}: reads a key of Mainstay's own past own_pod_value()"


def check_text(path, text):
    forbidden = [(NOTE, "a reminder")]
    if not path.startswith("tests/corpus/published/"):  # paths in containers, as their projects chose them
        forbidden.append((MACHINE_PATH, "a path of one machine"))
    for pattern, what in forbidden:
        for match in pattern.finditer(text):
            yield f"{path}:{tree.line_of(text, match.start())}: {what}: {match.group(0)}"


def check(root):
    problems = []
    for path in tree.files(root):
        text = tree.read(root, path)
        if text is None:
            continue
        problems += check_text(path, text)
        if path.endswith((".c", ".h")):
            problems += [*check_c(path, text), *check_own_keys(path, text)]
    return problems
