#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The ranks of the rooms, kept: a file includes its own room and rooms of lower rank, equals never see each
other, and a library's headers are seen in the files that are named for it."""

import fnmatch
import os
import re
import sys

import tree

RANKS = {
    "common": 0,
    "model": 1,
    "manifest": 2, "daemonset": 2, "image": 2, "bundle": 2, "network": 2, "sandbox": 2, "kube": 2,
    "pressure": 2,
    "publish": 2, "serve": 2,
    "supervise": 3,
    "agent": 4,
}

# Programs of their own: besides their room and common/, they may see these.
PROGRAMS = {
    "shim": ["agent/sandbox/protocol.h"],
    "fetch": [],
    "cli": ["agent/model/*.h", "agent/manifest/manifest.h", "agent/daemonset/daemonset.h"],
}

# The event loop is seen through the headers of the rooms that live in it.
LIBRARIES = {
    "systemd/": ["agent/config-watch.h", "agent/image/image.h", "agent/kube/*.h",
                 "agent/manifest/kubeconfig-watch.h", "agent/manifest/manifest.h", "agent/pressure/doorbell.h",
                 "agent/pressure/pressure.h", "agent/publish/journal.c", "agent/publish/publish.c",
                 "agent/sandbox/inhibitor.[ch]", "agent/sandbox/sandbox.h",
                 "agent/sandbox/units.[ch]", "agent/serve/serve.h", "common/child.h",
                 "common/curl-loop.h", "common/dir-sync.h", "common/file-watch.h", "common/forked.h", "common/http.h", "common/relay.h"],
    "yaml.h": ["agent/cli/yaml.c", "agent/manifest/tree.c"],
    "jansson.h": ["agent/bundle/enacted.c", "agent/bundle/huge-pages.h", "agent/bundle/runtime-spec.c",
                  "agent/bundle/seccomp.h", "agent/bundle/security.h", "agent/bundle/users.h", "agent/cli/*.h",
                  "agent/cluster-daemonsets.c", "agent/cluster-services.c",
                  "agent/cluster-tokens.c", "agent/fetch/credentials.h", "agent/fetch/document.h", "agent/fetch/pull-settings.h",
                  "agent/fetch/store.h", "agent/image/archive.c", "agent/image/kept.c",
                  "agent/image/pull-settings.c", "agent/image/record.c", "agent/images.c",
                  "agent/kube/bootstrap-kubeconfig.c", "agent/kube/event-object.c", "agent/kube/lease-object.c",
                  "agent/kube/json-text.h", "agent/kube/mirror.c", "agent/kube/node-json.h",
                  "agent/kube/node-owned.h", "agent/kube/pod-write.c", "agent/kube/status-patch.c",
                  "agent/model/json-daemonset.c", "agent/model/json.c", "agent/model/object-json.c",
                  "agent/network/config.h", "agent/network/request.h", "agent/network/result.h",
                  "agent/publish/events.c", "agent/sandbox/protocol.c", "agent/serve/report.c",
                  "agent/shim/runtime.c", "agent/shim/session-status.c"],
    "curl/": ["agent/cli/client.c", "agent/fetch/fetcher.c", "agent/fetch/http.c", "agent/fetch/token.c",
              "agent/fetch/url.c", "common/curl-library.h"],
    "archive.h": ["agent/cli/tar.c", "agent/fetch/layer.c", "agent/fetch/source.c", "agent/fetch/stream.c",
                  "agent/fetch/stream.h"],
    "archive_entry.h": ["agent/cli/tar.c", "agent/fetch/layer.c", "agent/fetch/source.c", "agent/fetch/stream.c",
                        "agent/fetch/stream.h"],
    "gnutls/": ["agent/kube/csr.c", "agent/kube/identity.c", "common/hash.c"],
    "wslay/": ["common/channels.c"],
    "microhttpd.h": ["agent/serve/serve-private.h"],
}


def room_of(path):
    parts = path.split("/")
    if parts[0] == "common":
        return "common"
    if parts[0] == "agent":
        return parts[1] if len(parts) > 2 else "agent"
    return None


def may_include(room, header):
    """Whether a file of the room may include the header."""
    other = room_of(header)
    if other == room or other == "common":
        return True
    if room in PROGRAMS:
        return any(fnmatch.fnmatch(header, pattern) for pattern in PROGRAMS[room])
    return room in RANKS and other in RANKS and RANKS[other] < RANKS[room]


def _matches(path, patterns):
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def check_include(root, path, bracket, header):
    """The sentence that says what is wrong with one include, or None."""
    room = room_of(path)
    if bracket == "<":
        for prefix, allowed in LIBRARIES.items():
            if header.startswith(prefix) and not _matches(path, allowed):
                return f"<{header}> is not for this file"
        return None
    if not os.path.exists(os.path.join(root, header)):
        return f'"{header}" is not there; includes start at the top of the tree'
    if room not in RANKS and room not in PROGRAMS:
        return f"'{room}' is no room that has a rank"
    if not may_include(room, header):
        return f'{room} may not include "{header}"'
    return None


def check(root):
    problems = []
    for path in tree.files(root, ".c", ".h"):
        if room_of(path) is None:
            continue
        text = tree.without_comments(tree.read(root, path))
        for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', text, re.M):
            problem = check_include(root, path, *match.groups())
            if problem:
                problems.append(f"{path}:{tree.line_of(text, match.start())}: {problem}")
    return problems


if __name__ == "__main__":
    found = check(sys.argv[1] if len(sys.argv) > 1 else ".")
    print("\n".join(found))
    sys.exit(bool(found))
