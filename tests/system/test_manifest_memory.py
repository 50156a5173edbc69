# SPDX-License-Identifier: Apache-2.0
"""The memory that is needed while a file is read: small manifests that need much memory, and manifests of the maximum
size."""

import os

import harness
import specs
import world
from world import wait

MIB = 1 << 20
LIMIT_KIB = 18 * 1024
LARGEST = 10 * MIB

POD = specs.text(specs.pod("costly"))


def laughs():
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"{one}: &{one} [{','.join(['*' + before] * 10)}]" for before, one in zip("abcdefgh", "bcdefghi")]
    return "\n".join(lines) + "\n"


def padded(start, unit, end=""):
    """Pads a manifest to the maximum size of a file."""
    return start + unit * ((LARGEST - len(start) - len(end)) // len(unit)) + end


COSTLY = {
    "a billion laughs": laughs(),
    "an alias of itself": "&x [*x]",
    "merge keys": "a: &a {" + "".join(f"k{i}: v," for i in range(1000)) + "}\n" + "".join(f"m{i}: {{<<: *a}}\n" for i in range(9000)),
    "a long text by aliases": "a: &a " + "x" * MIB + "\nb: [" + ",".join(["*a"] * 200) + "]\n",
    "a million keys": "".join(f"k{i}: v\n" for i in range(1000000))[:LARGEST],
    "a million items": padded("a: [", "x,", "x]"),
    "a long text": padded("a: ", "x"),
    "a long key": padded("? ", "x"),
    "a long quoted text": padded('a: "', "\\x41", '"'),
    "a long block": padded("a: |\n", " x\n"),
    "a long comment": padded(POD, "#\n"),
    "comments behind a pod": padded(POD, "# a comment behind the pod of the file\n"),
    "documents": padded("", "---\n"),
    "documents of one key": padded("", "--- {a: b}\n"),
    "levels of lists": padded("a: ", "["),
    "levels of maps": padded("", "{a: "),
    "anchors": padded("a: [", "&a x,", "x]"),
    "tags": padded("a: [", "!<tag:yaml.org,2002:str> x,", "x]"),
    "directives": padded("", "%TAG !a! tag:a\n", POD),
    "an environment": POD.replace("    imagePullPolicy", "    env:\n" + "".join(
        f"    - {{name: N{i}, value: v}}\n" for i in range(30000)) + "    imagePullPolicy"),
    "annotations": padded(POD.replace("  name: costly\n", "  name: costly\n  annotations:\n    a: '"), "x", "'\n"),
    "a text of UTF-16": ("\ufeff" + POD).encode("utf-16-le") * 100,
    "random letters": "".join(chr(33 + i * i % 90) for i in range(MIB)),
}


def test_no_file_takes_more_than_its_bytes_and_18_mib(node):
    node.launch(specs.pod("stays"))
    init, factor, found = node.init("stays"), 2 if harness.is_sanitized() else 1, {}
    for number, (name, content) in enumerate(COSTLY.items()):
        content = content if isinstance(content, bytes) else content.encode()
        before = world.memory_kib(node.agent.pid, "VmRSS")
        with open(f"/proc/{node.agent.pid}/clear_refs", "w", encoding="utf-8") as file:
            file.write("5")  # the peak is counted from here on
        node.drop(content, f"costly{number}.yaml")
        wait(lambda number=number: f"costly{number}.yaml" in node.said() or node.pod("costly"), lambda: f"{name}: {node.said()[-2000:]}")
        found[name] = world.memory_kib(node.agent.pid, "VmHWM") - before
        assert found[name] < (LIMIT_KIB + len(content) // 1024) * factor, f"{name}: {found[name]} KiB"
        os.unlink(node.path(f"costly{number}.yaml"))
        node.wait_gone("costly")
    print(f"{len(found)} files, KiB: {found}")
    assert node.init("stays") == init
