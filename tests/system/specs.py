# SPDX-License-Identifier: Apache-2.0
"""Functions that build manifests from a few arguments."""

import os
import re

import yaml

IMAGE = "docker.io/library/busybox:1"
# The architecture of this machine in the spelling of images and Nodes; in a 32-bit root directory, the architecture of
# its programs.
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}.get(os.uname().machine, os.uname().machine)

# Runs until SIGTERM and then exits at once: a shell that is PID 1 ignores SIGTERM without a trap.
IDLE = "trap 'exit 0' TERM; sleep 100000 & wait"


def container(name="main", script=IDLE, **fields):
    return {"name": name, "image": IMAGE, "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c", script], **fields}


def failing_container(**fields):
    """A container that exits and is not ready while it runs either: otherwise all pods might be ready at one moment."""
    return container(script="exit 1", readinessProbe={"exec": {"command": ["false"]}}, **fields)


def sets_trap(spec):
    """Whether the script of a container sets a trap for SIGTERM, in a line that starts with it."""
    return any(re.search(r"^trap .*\bTERM", word, re.M) for word in spec.get("command") or [])


def pod(name, *containers, metadata=None, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(metadata or {})},
            "spec": {"hostNetwork": True, "terminationGracePeriodSeconds": 2,
                     "containers": list(containers) or [container()], **spec}}


def script_pod(name, script, **spec):
    return pod(name, container(script=script), **spec)


def host_path(name, path, **fields):
    return {"name": name, "hostPath": {"path": str(path), **fields}}


def mount(name, path, **fields):
    return {"name": name, "mountPath": path, **fields}


def text(*documents):
    return yaml.safe_dump_all(documents, sort_keys=False)


def daemonset(name, *containers, update=None, metadata=None, spec=None, **template):
    """A DaemonSet whose pods have its name as a label; named arguments go into the template's spec."""
    pod_spec = pod(name, *containers, **template)["spec"]
    strategy = {"updateStrategy": update} if update else {}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, **(metadata or {})},
            "spec": {"selector": {"matchLabels": {"app": name}}, **strategy, **(spec or {}),
                     "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec}}}
