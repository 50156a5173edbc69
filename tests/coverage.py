#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The share of each parser of untrusted bytes that the unit, component and fuzz suites execute: lines of code as
counted by gcov, without those that only report a failed allocation or pass on an error, which the tests of failed
allocations and failpoints execute. A parser below the minimum is a failure. Ends with the counts.

    tests/coverage.py BUILD             a build with --coverage, in which the suites have run
    tests/coverage.py BUILD --units     the same after the unit suite alone: its share of all lines of the modules below
"""

import collections
import fnmatch
import json
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEAST = 95.0
UNITS = {"agent/pods": 85.0}  # the minimum coverage of each module, in percent
FILES_AT_ONCE = 50
PASSES_ON = re.compile(r"-ENOMEM|^\s*return (r|fd|code|-errno|MIN\(r, 0\));$")

# The parsers: the files, with the functions if a file does more.
PARSERS = {
    "manifests, YAML": ["agent/manifest/yaml-tree.c", "agent/manifest/yaml-node.c", "agent/manifest/scalar.c"],
    "manifests, fields": ["agent/manifest/decode.c", "agent/manifest/manifest.c", "agent/manifest/validate-daemonset.c", "agent/manifest/validate-objects.c"],
    "manifests, rules": ["agent/manifest/validate*.c", "agent/manifest/defaults*.c", "agent/manifest/annotations.c"],
    "quantities": ["agent/model/quantity.c"],
    "the configuration": ["agent/manifest/config-*.c"],
    "kubeconfig": ["agent/manifest/read-kubeconfig.c"],
    "JSON of an API server": ["agent/kubeclient/json-*.c", "agent/model/status-condition.c"],
    "references of images": ["agent/image/image-reference.c"],
    "indexes of manifests": ["agent/model/source-index.c"],
    "encrypted values of Secrets": ["common/age-file.c", "agent/secret-helper/secret-open.c", "common/systemd-credential.c"],
    "indexes, manifests and configurations of images": ["agent/image-helper/pull/image-manifest.c", "agent/image-helper/pull/image-config.c"],
    "archives of images": ["agent/image-helper/archive/catalog-docker.c", "agent/image-helper/archive/catalog-oci.c",
                           "agent/image-helper/archive/catalog.c:catalog_add_take,catalog_take_config,catalog_read_config,catalog_read"],
    "challenges of registries": ["agent/image-helper/registry/challenge.c"],
    "layers": ["agent/image-helper/unpack/layer-unpack.c"],
    "deltas": ["agent/image-helper/delta/tar-patch.c"],
    "signatures": ["agent/image-helper/signature/sigstore-signature.c"],
    "passwd and group": ["common/image-user.c:parse_user_or_group_id,find_group_entry,add_user_group,find_user_groups,find_id,find_group,"
                         "find_user,image_user_find"],
    "CNI configurations and results": ["agent/cni/network-config.c", "agent/cni/result.c"],
    "the runtime's state and log": ["agent/shim/runtime.c:runtime_read_pid,error_message_of_line,runtime_log_last_error_at"],
    "mountinfo and fstab": ["agent/shim/mountinfo.c", "agent/shim/fstab.c"],
    "the shim's protocol": ["agent/sandbox/protocol.c"],
    "environments": ["agent/bundle/environment.c", "agent/bundle/env-file.c:skip_characters,parse_assignment,line_number_at,env_file_find"],
    "records": ["agent/pods/container/attempt-checkpoint.c", "agent/pods/manager/pod-record.c:take_record_line,parse_pod_record,pod_record_load",
                "agent/desired/rollout-history.c:take_history_line,take_hash,take_number,take_optional_line,rollout_history_parse",
                "common/checksummed.c:checksummed_read_at"],
    "lines of logs": ["agent/http/log-line.c"],
    "PEM and certificates": ["agent/kubeclient/tls-config.c"],
    "tar of cp": ["agent/cli/tar.c:copy_file_from_tar,rename_path,is_ordinary_entry,extract_tar_entry,tar_unpack"],
    "reports": ["agent/report/report-queue.c"],
    "SPDY": ["agent/node-api/wire/spdy.c", "agent/node-api/wire/spdy-headers.c"],
    "WebSockets": ["agent/node-api/wire/session-wire.c", "agent/node-api/session/channel-socket.c", "common/channels.c", "common/websocket-*.c"],
    "requests of the kubelet's API": ["agent/model/request-attributes.c", "agent/node-api/kubernetes/resource-path.c", "agent/node-api/http/request-url.c",
                                      "agent/node-api/kubernetes/field-terms.c", "agent/node-api/kubernetes/label-terms.c", "agent/node-api/wire/protobuf-body.c"],
    "reviews": ["agent/access/review-objects.c"],
    "handshakes": ["agent/node-api/tls/handshake-proof.c", "agent/node-api/tls/handshake-transcript.c"],
    "lists and tables": ["agent/node-api/kubernetes/object-list.c"],
}


def count_lines(build, ending=".gcda", within=""):
    """The counts for the tree: {file: {line: the number of runs}}, and {(file, function): its lines}. Files that never
    ran have only .gcno."""
    counts, functions = collections.defaultdict(collections.Counter), {}
    build = os.path.abspath(build)
    data = [os.path.join(directory, name) for directory, _, names in os.walk(build) if within in directory
            for name in names if name.endswith(ending)]
    for i in range(0, len(data), FILES_AT_ONCE):
        said = subprocess.run(["gcov", "--json-format", "--stdout", *data[i:i + FILES_AT_ONCE]], cwd=build, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        for document in map(json.loads, said.decode().splitlines()):
            for file in document["files"]:
                path = os.path.relpath(os.path.join(document["current_working_directory"], file["file"]), TOP)
                for line in file["lines"]:
                    counts[path][line["line_number"]] += line["count"]
                for function in file["functions"]:
                    functions[path, function["name"]] = range(function["start_line"], function["end_line"] + 1)
    return counts, functions


def lines_that_count(path, lines):
    """The lines that do more than pass on an error, and all lines that were executed."""
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        text = file.read().split("\n")
    return {number: count for number, count in lines.items() if count > 0 or not PASSES_ON.search(text[number - 1])}


def find_files(pattern, counts):
    found = sorted(path for path in counts if fnmatch.fnmatchcase(path, pattern))
    return found or sys.exit(f"{pattern} is not a file that the suites ran")


def find_lines(patterns, counts, functions):
    """The lines of a parser: [(file, {line: count})]."""
    for pattern in patterns:
        files, _, names = pattern.partition(":")
        for path in find_files(files, counts):
            lines = counts[path]
            if names:
                inside = {number for name in names.split(",") for number in functions[path, name]}
                lines = {number: count for number, count in lines.items() if number in inside}
            yield path, lines_that_count(path, lines)


def report_units(build):
    failed = 0
    for module, least in UNITS.items():
        folders = collections.defaultdict(list)
        for path, lines in count_lines(build, ".gcno", f"/{os.path.basename(module)}")[0].items():
            if path.startswith(f"{module}/") and path.endswith(".c"):
                for folder in (os.path.dirname(path), module):
                    folders[folder] += [count > 0 for count in lines.values()]
        for folder, hits in sorted(folders.items()):
            print(f"    {folder}: {100 * sum(hits) / len(hits):.1f} % of {len(hits)} lines")
        is_met = 100 * sum(folders[module]) >= least * max(len(folders[module]), 1)
        failed += not is_met
        print(f"{'ok' if is_met else 'FAILED'} unit tests run at least {least:.0f} % of {module}")
    print(f"{len(UNITS) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    if "--units" in sys.argv[2:]:
        return report_units(sys.argv[1])
    (counts, functions), failed = count_lines(sys.argv[1]), 0
    for name, patterns in PARSERS.items():
        n = hit = 0
        missing = []
        for path, lines in find_lines(patterns, counts, functions):
            n += len(lines)
            hit += sum(count > 0 for count in lines.values())
            missing += [f"{path}:{number}" for number, count in sorted(lines.items()) if count == 0]
        is_met = 100 * hit >= LEAST * n
        failed += not is_met
        print(f"{'ok' if is_met else 'FAILED'} {name}: {100 * hit / n:.1f} % of {n} lines")
        if not is_met:
            print("    not run: " + " ".join(missing))
    print(f"{len(PARSERS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
