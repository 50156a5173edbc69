# SPDX-License-Identifier: Apache-2.0
"""From boot to running pods, on a machine without a network device. Its kernel counts all datagrams."""

from pods import MANIFESTS, wait_running, write
import pytest
import specs

# A container that writes the time of its start, in seconds since the boot.
SCRIPT = "cut -d ' ' -f 1 /proc/uptime >/notes/started; exec sleep 100000"
NOTES = "/var/tmp/notes"

# The same program in a bundle made by hand, started the same way: detached, in a scope of systemd.
BARE = """
set -e
mkdir -p /tmp/bare/rootfs/bin /tmp/bare/rootfs/proc && cd /tmp/bare
tar -xOf /opt/test/busybox-1.tar $(tar -tf /opt/test/busybox-1.tar | grep -E '[.]tar$') | tar -x -C rootfs
runc spec
sed -i 's/"terminal": true/"terminal": false/; s,"sh"$,"sleep"\\, "100000",; /"linux": {/a "cgroupsPath": "system.slice:bare:one",' config.json
for i in 1 2 3 4 5; do
    started=$(date +%s%N)
    runc --systemd-cgroup run --detach bare </dev/null >/dev/null 2>&1
    echo $((($(date +%s%N) - started) / 1000000))
    runc delete --force bare
done
"""


def sent(machine):
    """The number of datagrams that were sent and of connections that were opened on the machine since the boot."""
    output = machine.run("awk '/^Udp: [0-9]/ { print $5 } /^Tcp: [0-9]/ { print $6 }' /proc/net/snmp; "
                       "awk '/^Udp6OutDatagrams/ { print $2 }' /proc/net/snmp6")
    return sum(int(number) for number in output.split())


def milliseconds(machine, property_):
    return int(machine.run(f"systemctl show -P {property_} mainstay")) / 1000


def bare(machine):
    """The median of the time that the OCI runtime alone takes, in milliseconds."""
    return sorted(int(line) for line in machine.run(BARE).split())[2]


def started(machine):
    """The output of the pod's script, in milliseconds; the pod is reported as running before that."""
    return float(machine.wait(f"grep . {NOTES}/started", "the pod has recorded its start")) * 1000


def start(machine):
    """Milliseconds from the start of the unit to the process of the pod."""
    wait_running(machine, "first")
    return started(machine) - milliseconds(machine, "ExecMainStartTimestampMonotonic")


def test_pods_run_after_boot_without_network_and_without_name_lookups(machine, figures):
    write(machine, specs.pod("first", {**specs.container(script=SCRIPT), "volumeMounts": [specs.mount("notes", "/notes")]},
                             volumes=[specs.host_path("notes", NOTES, type="DirectoryOrCreate")]))
    wait_running(machine, "first")
    started(machine)
    machine.run(f"rm {NOTES}/started; echo 'nameserver 127.0.0.1' >/etc/resolv.conf; sync")
    machine.power_off()
    machine.boot()
    figures.append(f"boot: the pod's process {start(machine):.0f} ms after the unit's start, while the rest of the system starts")
    assert machine.run("ls /sys/class/net").split() == ["lo"]
    assert sent(machine) == 0
    assert machine.ask("timeout 20 getent hosts somewhere.example")[0] != 0
    assert sent(machine) > 0, "a name lookup would have been counted"


@pytest.mark.long
def test_a_drained_service_starts_its_pod_after_each_start(machine, figures):
    alone = bare(machine)
    times = []
    for _ in range(3):
        machine.run(f"systemctl stop mainstay && mv {MANIFESTS}/first.yaml /var/tmp && mainstayd --drain && rm -f {NOTES}/started")
        assert machine.ask("pgrep -f 'sleep 10000[0]'")[0] != 0
        machine.run(f"mv /var/tmp/first.yaml {MANIFESTS} && systemctl start mainstay")
        times.append(start(machine))
    ours = sorted(times)[1]
    figures.append(f"start: the pod's process {ours:.0f} ms after the unit's start; runc alone takes {alone} ms: "
                   f"{ours / alone:.2f} times as long")
