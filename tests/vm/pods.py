# SPDX-License-Identifier: Apache-2.0
"""Pods on a machine: write, wait for and remove them, find their units, control groups and processes."""

import json

import specs

MANIFESTS = "/etc/kubernetes/manifests"
SCRIPT = "exec sleep 100000"


def launch(machine, name, **fields):
    pod = specs.pod(name, specs.container(script=SCRIPT, **fields))
    write(machine, pod)
    wait_asleep(machine, name)


def write(machine, pod):
    machine.write(f"{MANIFESTS}/{pod['metadata']['name']}.yaml", specs.text(pod))


def wait_running(machine, name):
    machine.wait(f"mainstay get pods | grep -E '^{name}-machine +([0-9]+)/\\1 +Running'", f"pod {name} runs")


# Whether a process of the pod's containers is 'sleep'.
ASLEEP = """for id in $(mainstay get pod {name}-machine -o json | grep -o 'mainstay://[0-9a-f]*' | cut -d / -f 3); do
    grep -qx sleep $(find /sys/fs/cgroup -path "*$id*" -name cgroup.procs -exec sed 's,.*,/proc/&/comm,' {{}} +) && exit
done; false"""


def wait_asleep(machine, name):
    """Waits until its script has reached its 'sleep': a container may be reported as running before its shell is
    executed."""
    wait_running(machine, name)
    machine.wait(ASLEEP.format(name=name), f"the script of pod {name} has come to its sleep")


def end(machine, name):
    machine.run(f"rm {MANIFESTS}/{name}.yaml")
    machine.wait(f"! mainstay get pods | grep -E '^{name}-machine '", f"pod {name} is removed")


def drain(machine):
    machine.run("systemctl stop mainstay && mainstayd --drain")


def get(machine, name):
    return json.loads(machine.run(f"mainstay get pod {name}-machine -o json"))


def uid(machine, name):
    return get(machine, name)["metadata"]["uid"]


def show(machine, unit, *properties):
    """Properties of a systemd unit."""
    output = machine.run(f"systemctl show {unit} " + " ".join(f"-p {one}" for one in properties))
    return dict(line.split("=", 1) for line in output.splitlines())


def group(machine, name):
    """The control group of the pod, below /sys/fs/cgroup."""
    return machine.run(f"cat /run/mainstay/pods/{uid(machine, name)}/cgroup").strip()


def scope(machine, name, container="main"):
    """The control group of a container's latest attempt."""
    (status,) = [one for one in get(machine, name)["status"]["containerStatuses"] if one["name"] == container]
    return machine.run(f"find /sys/fs/cgroup{group(machine, name)} -name '*{status['containerID'].rsplit('/', 1)[1]}*' "
                       "-type d | sed 's,^/sys/fs/cgroup,,'").strip()


def process(machine, name):
    """The first process of the container."""
    return machine.run(f"cat /sys/fs/cgroup{scope(machine, name)}/cgroup.procs").split()[0]


def values(machine, directory, *files):
    """The values of a control group's files by name."""
    output = machine.run(f"cd /sys/fs/cgroup{directory} && grep -H . " + " ".join(files))
    return dict(line.split(":", 1) for line in output.splitlines())


def configure(machine, text=""):
    machine.write("/etc/mainstay/config.yaml", "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n" + text)
    machine.run("systemctl restart mainstay")


def container(machine, name):
    (status,) = get(machine, name)["status"]["containerStatuses"]
    return status


def identities(machine, names):
    """State that a restart would change."""
    return {name: (container(machine, name)["containerID"], container(machine, name)["restartCount"], process(machine, name))
            for name in names}
