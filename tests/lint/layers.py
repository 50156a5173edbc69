#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The layers of the modules. A file includes its own module, its module's submodules and modules of lower layers;
modules of one layer never include each other. The files of a module do not include each other in a circle. A library's
headers are included only by the files that are listed for it."""

import fnmatch
import os
import re
import sys

import tree

# A module is a directory below agent/; "agent" itself is the wiring. The folders of one module have their own order,
# the fraction, and count as one layer for all others.
LAYERS = {
    "common": 0,
    "model": 1,
    "manifest": 2, "source": 2, "secrets": 2, "daemonset/rules": 2, "devices": 2, "csi": 2, "image": 2, "bundle": 2, "cni": 2, "sandbox": 2, "kubeclient": 2,
    "http": 2, "access": 2, "metrics": 2,
    "cdi": 3, "node": 3, "node-devices": 3, "plugins": 3, "eviction": 3,
    "pods/machine": 3, "pods/probe": 3, "pods/pod": 3.1, "pods/container": 3.2, "pods/status": 3.3, "pods/worker": 3.4,
    "pods/manager": 3.5, "pods/stats": 3.6,
    "desired": 4, "daemonset": 4, "apiserver": 4, "report": 4,
    "agent": 5,
}

# Separate programs: in addition to their module and common/, they may include these.
PROGRAMS = {
    "pause": [],
    "shim": ["agent/sandbox/protocol.h"],
    "image-helper": ["agent/model/source-index.h"],
    "secret-helper": ["agent/secrets/opening-protocol.h"],
    "launch": [],
    "node-api": ["agent/model/system-log-query.h", "agent/model/age.h", "agent/model/hidden-value.h", "agent/model/table-kinds.h",
                 "agent/model/status-condition.h", "agent/model/own-keys.h", "agent/model/pod-summary.h", "agent/model/system-class.h",
                 "agent/model/api-user.h", "agent/model/client-ticket.h", "agent/model/request-attributes.h", "agent/model/review-cache.h",
                 "agent/model/signer-protocol.h"],
    "plugin-host": ["agent/plugins/plugin-protocol.h", "agent/model/csi-driver.h", "agent/model/device.h", "agent/model/names.h", "agent/model/values-message.h"],
    "kubelet": ["agent/model/agent-options.h", "agent/model/node-status.h"],
    "cli": ["agent/model/*.h", "agent/manifest/manifest.h", "agent/manifest/cdi-spec.h", "agent/daemonset/rules/rules.h"],
}

# The event loop is visible through the headers of the modules that run in it.
LIBRARIES = {
    "systemd/": ["agent/apiserver/*.h", "agent/csi/csi-manager.h", "agent/cdi/cdi-registry.h", "agent/node/config-watch.h", "agent/node/network-readiness.h", "agent/image/image-store.h", "agent/kubeclient/*.h",
                 "agent/secrets/key-file.h", "agent/secrets/secret-storage.h", "agent/manifest/kubeconfig-watch.h", "agent/manifest/manifest.h", "agent/source/manifest-source.h", "agent/report/report-store.h", "agent/report/status-report.h", "agent/eviction/memory-pressure-watch.h",
                 "agent/desired/index-images.h", "agent/desired/pod-rollouts.h", "agent/desired/rollout-store.h",
                 "agent/eviction/eviction-manager.h", "agent/eviction/pod-evictor.h", "agent/metrics/journal.c", "agent/metrics/service-notifier.c",
                 "agent/sandbox/shutdown-inhibitor.[ch]", "agent/sandbox/sandbox.h",
                 "agent/sandbox/systemd-client.[ch]", "agent/node-api/*.h", "agent/node-api/mainstay-api.c", "agent/http/http-connection.h", "agent/http/http-server.h", "agent/http/healthz-server.h",
                 "agent/node/api-signer.h", "agent/plugins/plugin-manager.h", "agent/plugins/plugin-registry.h", "agent/plugins/registry-watch.h", "agent/node-devices/*.h", "agent/node-devices/device-watch.c", "agent/node/lone-node.h", "agent/node/node-api-launcher.h", "agent/node/self-signed.h", "agent/node/system-log-process.h",
                 "common/child.h", "common/clock-watch.h",
                 "common/curl-loop.h", "common/dump.h", "common/event-source.h", "common/fsync-queue.h", "common/file-watch.h", "common/forked-task.h", "common/http-client.h", "common/memory-trim-timer.h", "common/mhd-loop.h", "common/mount-watch.h", "common/process-dump.h", "common/stick-watch.h",
                 "common/socket-proxy.h"],
    "yaml.h": ["agent/cli/yaml.c", "agent/manifest/yaml-tree.c"],
    "jansson.h": ["common/json-text.h", "common/redact.h", "agent/bundle/actual-resources.c", "agent/bundle/huge-pages.h", "agent/bundle/masked-paths.h",
                  "agent/bundle/cdi-edits.h", "agent/bundle/device-edits.h", "agent/bundle/guarded-root.h", "agent/bundle/runtime-spec.c",
                  "agent/bundle/seccomp.h", "agent/bundle/resolved-security.h", "agent/bundle/pod-user-namespace.h", "agent/cli/*.h",
                  "agent/apiserver/controller-lease.c", "agent/apiserver/csi-node.c", "agent/csi/csi-files.c", "agent/devices/device-checkpoint.c",
                  "agent/apiserver/namespace-policies.c", "agent/apiserver/services.c",
                  "agent/apiserver/token-refresh.c", "agent/image-helper/registry/registry-credentials.h", "agent/image-helper/pull/document.h", "agent/image-helper/pull/pull-request.h",
                  "agent/image-helper/signature/signature-check.h", "agent/image-helper/signature/signature-collect.h", "agent/image-helper/signature/signed-identity.h", "agent/image/signature-policy.h",
                  "agent/image-helper/store/store.h", "agent/image/preload-archives.c", "agent/image/image-jobs.c", "agent/image/image-names.c",
                  "agent/image/pull-settings.c", "agent/source/source-answer.c", "agent/source/fetch-settings.c", "agent/report/report-line.c", "agent/image/image-record.c", "agent/image/images-json.c",
                  "agent/node/lone-node.c", "agent/node/lone-node.h", "agent/node/self-signed.c", "agent/node/self-signed.h", "agent/node-api/process/api-settings.c",
                  "agent/node-api/kubernetes/discovery.h", "agent/node-api/kubernetes/openapi-document.h", "agent/node-api/kubernetes/field-terms.h", "agent/node-api/kubernetes/label-terms.h",
                  "agent/apiserver/local-node-object.c", "agent/node-api/kubernetes/object-versions.h", "agent/node-api/wire/protobuf-body.h",
                  "agent/node-api/kubernetes/metrics-objects.h", "agent/node-api/access/self-reviews.h",
                  "agent/access/review-objects.c", "agent/node-api/session/session-result.c", "agent/node-api/kubernetes/status-object.c", "agent/node-api/kubernetes/table.h",
                  "agent/kubeclient/tls-bootstrap.c", "agent/kubeclient/event-object.c", "agent/kubeclient/lease-object.c",
                  "agent/kubeclient/review-request.c", "agent/kubeclient/json-string.h", "agent/kubeclient/mirror-pod.h", "agent/kubeclient/node-status-json.h",
                  "agent/kubeclient/node-local-labels.h", "agent/kubeclient/node-object.h", "agent/kubeclient/node-events.h", "agent/kubeclient/pod-status-patch.h",
                  "agent/model/config-json.c", "agent/model/json-daemonset.c", "agent/model/status-condition.h", "agent/model/label-text.h", "agent/model/table-kinds.h", "agent/model/own-keys.h", "agent/model/json-memfd.h", "agent/model/json-writer.h", "agent/model/source-index.c", "agent/model/pod-json.c", "agent/model/pod-status-json.h", "agent/model/json-tree.h", "agent/model/object-json.c",
                  "agent/cni/network-config.h", "agent/cni/capability-args.h", "agent/cni/result.h",
                  "agent/metrics/event-store.c", "agent/metrics/stats-summary.c", "agent/metrics/running-pods.c", "agent/sandbox/protocol.c", "agent/http/serve-manifests.c",
                  "agent/shim/hook-state.h", "agent/shim/device-rules.h", "agent/shim/runtime.c", "agent/shim/session-status.c"],
    "curl/": ["agent/image-helper/registry/url.c", "common/curl-library.h"],
    "archive.h": ["agent/cli/tar.c", "agent/image-helper/unpack/layer-unpack.c", "agent/image-helper/archive/archive-members.c", "agent/image-helper/archive/byte-stream.c",
                  "agent/image-helper/archive/byte-stream.h", "agent/image-helper/delta/tar-diff-writer.c"],
    "archive_entry.h": ["agent/cli/tar.c", "agent/image-helper/import/rootfs-check.c", "agent/image-helper/unpack/entry-time.h", "agent/image-helper/unpack/layer-unpack.c", "agent/image-helper/archive/archive-members.c", "agent/image-helper/archive/byte-stream.c",
                        "agent/image-helper/archive/byte-stream.h", "agent/image-helper/delta/tar-diff-writer.c"],
    "gnutls/": ["common/certificate-time.[ch]", "common/tls-limits.[ch]", "agent/node-api/tls/tls-credentials.[ch]", "agent/node-api/tls/client-certificate.h", "agent/node-api/tls/handshake-*.[ch]", "agent/node-api/tls/signer.c", "agent/kubeclient/csr.c", "agent/kubeclient/private-key.[ch]", "agent/kubeclient/tls-config.c",
                "agent/node/node-authority.c", "common/ed25519.c", "common/hash.c", "common/public-key.c"],
    "nettle/": ["common/age-file.c", "common/chacha.c"],
    "nghttp2/": ["common/grpc.c"],
    "wslay/": ["agent/node-api/wire/websocket.c", "common/wslay-library.h"],
    "zlib.h": ["agent/node-api/wire/spdy-headers.c"],
    "microhttpd.h": ["common/mhd-loop.h", "agent/http/http-connection.h", "agent/http/http-reply.h"],
}


def module_of(path):
    parts = path.split("/")
    if parts[0] == "common":
        return "common"
    if parts[0] == "agent":
        return parts[1] if parts[1] in PROGRAMS else "/".join(parts[1:-1]) or "agent"
    return None


def is_lower(other, module):
    """Whether one layer is below another; within one layer only folders of the same module have an order."""
    if int(LAYERS[other]) == int(LAYERS[module]) and other.split("/")[0] != module.split("/")[0]:
        return False
    return LAYERS[other] < LAYERS[module]


def may_include(module, header):
    """Whether a file of the module may include the header."""
    other = module_of(header)
    if other == "common" or other == module or (other or "").startswith(module + "/"):
        return True
    if module in PROGRAMS:
        return any(fnmatch.fnmatch(header, pattern) for pattern in PROGRAMS[module])
    return module in LAYERS and other in LAYERS and is_lower(other, module)


def _matches(path, patterns):
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def check_include(root, path, bracket, header):
    """The problem of one include, or None."""
    module = module_of(path)
    if bracket == "<":
        for prefix, allowed in LIBRARIES.items():
            if header.startswith(prefix) and not _matches(path, allowed):
                return f"<{header}> is not for this file"
        return None
    if not os.path.exists(os.path.join(root, header)):
        return f'"{header}" does not exist; includes start at the top of the tree'
    if module not in LAYERS and module not in PROGRAMS:
        return f"'{module}' is not a module that has a layer"
    if not may_include(module, header):
        return f'{module} may not include "{header}"'
    return None


def includes(root):
    """Each include of the tree: file, offset, text, bracket, header."""
    for path in tree.files(root, ".c", ".h"):
        if module_of(path) is None:
            continue
        text = tree.without_comments(tree.read(root, path))
        for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', text, re.M):
            yield path, tree.line_of(text, match.start()), match.group(1), match.group(2)


def check(root):
    problems = []
    for path, line, bracket, header in includes(root):
        problem = check_include(root, path, bracket, header)
        if problem:
            problems.append(f"{path}:{line}: {problem}")
    return problems


def unit_of(path):
    """A source, its header and its private header are one unit: it includes everything that they include."""
    return re.sub(r"(-private)?\.[ch]$", "", path)


def circles(edges):
    """The strongly connected sets of more than one node, each sorted."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            members = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(members) > 1:
                found.append(sorted(members))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return sorted(found)


def check_circles(root):
    """Files of one module that include each other in a circle."""
    edges = {}
    for path, _, bracket, header in includes(root):
        unit, other = unit_of(path), unit_of(header)
        if bracket == '"' and os.path.dirname(path) == os.path.dirname(header) and unit != other:
            edges.setdefault(unit, set()).add(other)
    return [f"{members[0]}: include each other in a circle: {', '.join(members)}" for members in circles(edges)]


if __name__ == "__main__":
    top = sys.argv[1] if len(sys.argv) > 1 else "."
    all_problems = check(top) + check_circles(top)
    print("\n".join(all_problems))
    sys.exit(bool(all_problems))
