# SPDX-License-Identifier: Apache-2.0
"""Pods that share namespaces of the node, and the agent's sockets there."""

import re

import specs
import world


def socket_inodes(pids):
    found = {re.fullmatch(r"socket:\[(\d+)\]", target) for pid in pids for target in world.descriptors(pid).values()}
    return {match.group(1) for match in found if match}


def unix_sockets(text):
    """The inode and the name of each named socket; the name of an abstract one starts with '@'."""
    return [fields[6:8] for fields in (line.split() for line in text.splitlines()[1:]) if len(fields) == 8]


def execute(node, name, *words):
    return node.cli("exec", name, "--", *words)


def test_a_pod_in_the_namespaces_of_the_node_reaches_no_socket_of_the_agent(node):
    node.launch(specs.pod("guest", hostPID=True))
    node.launch(specs.pod("web"))
    ours = [node.agent.pid, *node.shims()]
    inodes = socket_inodes(ours)
    seen = unix_sockets(execute(node, "guest", "cat", "/proc/net/unix").stdout)
    own = [name for inode, name in seen if inode in inodes]
    assert any(name.endswith("/mainstay.sock.new") for name in own), (own, seen)
    assert not [name for name in own if name.startswith("@")]
    for pid in ours:
        for path in (f"/proc/{pid}/root/", f"/proc/{pid}/cwd/"):
            looked = execute(node, "guest", "ls", path)
            assert looked.returncode != 0 and "ermission denied" in looked.stderr, (path, looked)
        assert execute(node, "guest", "ls", f"/proc/{pid}/").returncode == 0, "its processes are those of the node"
    for name in own:
        assert execute(node, "guest", "ls", name).returncode != 0
