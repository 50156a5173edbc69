# SPDX-License-Identifier: Apache-2.0
"""The process of a pod that copies the output of its containers."""

import os

import world


def find(node, name):
    """The pid of the log copier. Unlike it, the process of an attached session leads its own process group."""
    shim = str(node.shim(name))
    return world.wait(lambda: next((world.Process(pid) for pid in world.pids() if world.status(pid, "PPid") == shim
                                    and world.status(pid, "Name") == "mainstay-shim" and is_confined(pid) and not leads_group(pid)), None),
                      f"the log copier of {name} runs")


def is_confined(pid):
    return world.status(pid, "Seccomp") == "2" and world.status(pid, "NoNewPrivs") == "1"


def leads_group(pid):
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return False


def kill(node, name):
    """Kills the log copier; returns when another one runs."""
    pid = find(node, name)
    world.kill_all([pid])
    return world.wait(lambda: next((found for found in [find(node, name)] if found != pid), None), "another log copier runs")
