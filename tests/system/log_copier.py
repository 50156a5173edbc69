# SPDX-License-Identifier: Apache-2.0
"""The process of a pod that copies what its containers write."""

import world


def find(node, name):
    """Its pid."""
    shim = str(node.shim(name))
    return world.wait(lambda: next((world.Process(pid) for pid in world.pids() if world.status(pid, "PPid") == shim
                                    and world.status(pid, "Name") == "mainstay-shim" and is_confined(pid)), None),
                      f"the log copier of {name} runs")


def is_confined(pid):
    return world.status(pid, "Seccomp") == "2" and world.status(pid, "NoNewPrivs") == "1"


def kill(node, name):
    """Returns when another one runs."""
    pid = find(node, name)
    world.kill_all([pid])
    return world.wait(lambda: next((found for found in [find(node, name)] if found != pid), None), "another log copier runs")
