# SPDX-License-Identifier: Apache-2.0
"""A board with 128 MiB of memory: systemd refuses to reload its units when /run is nearly full, and none of our programs may be
killed for lack of memory."""

from conftest import machine_of
from pods import write
import pytest
import specs

PODS = [f"pod-{i}" for i in range(10)]
IMAGE_MIB = 50
DEADLINE = 1200  # seconds for each step, on a busy host
# Number and PSS of the agent, the shims and the launch server; the memory of the machine.
MEMORY = """for name in mainstayd mainstay-shim mainstay-launc; do
    pids=$(pgrep -d ' ' "$name") && cat $(printf '/proc/%s/smaps_rollup ' $pids) |
        awk -v name=$name -v count=$(wc -w <<<"$pids") '/^Pss:/ { n += $2 } END { print count, name ":", n, "KiB" }'
done
free -k | awk '/^Mem:/ { print "of the machine:", $2, "KiB, available:", $7, "KiB" }'
df -k /run | awk 'NR == 2 { print "free in /run:", $4, "KiB" }'"""


@pytest.fixture(scope="module", name="board")
def _board(disk):
    with machine_of(disk, memory="128M") as machine:
        machine.boot()
        yield machine


def take_space(machine):
    """Leaves at most 12 MiB free in /run, however much of its memory the kernel takes."""
    machine.run("surplus=$(($(df -k --output=avail /run | tail -n 1) - 12288)); [ $surplus -le 0 ] || fallocate -l ${surplus}K /run/taken")


def wait_all_running(machine):
    machine.wait(f"[ $(mainstay get pods | grep -cE '^pod-[0-9]-machine +1/1 +Running ') = {len(PODS)} ]", "all pods run", DEADLINE)


def assert_nothing_was_killed(machine):
    """None of our programs, and nothing has failed. The kernel may kill Debian's own services, an OCI runtime that starts a
    container, or a container; the agent then starts the container again. Returns the names of what was killed."""
    killed = machine.run("dmesg | sed -n 's/.*Killed process [0-9]* (\\([^)]*\\)).*/\\1/p'").split()
    assert not [name for name in killed if name.startswith("mainstay")]
    assert machine.run("systemctl list-units --failed --plain --no-legend 'mainstay*' 'kubepods*'") == ""
    assert machine.run("systemctl show -P NRestarts mainstay").strip() == "0"
    return killed


def test_package_installation_succeeds_although_systemd_refuses_to_reload(board):
    take_space(board)
    status, said = board.ask("systemctl daemon-reload")
    assert status != 0 and "space" in said, said
    said = board.run("dpkg --install /opt/test/mainstay_*.deb", DEADLINE)
    assert "systemctl daemon-reload" in said and "restart the machine" in said, said
    assert board.run("systemctl is-enabled mainstay; systemctl is-active mainstay").split() == ["enabled", "active"]
    board.run("rm -f /run/taken")


@pytest.mark.long
def test_board_runs_ten_pods_and_imports_a_large_image(board, figures):
    board.run("cp /opt/test/busybox-1.tar /var/lib/mainstay/preload/")
    for name in PODS:
        write(board, specs.pod(name, specs.container(script="exec sleep 100000")))
    wait_all_running(board)
    figures += board.run(MEMORY).splitlines()
    board.run("mkdir -p /var/tmp/rootfs/bin && cp /bin/busybox /var/tmp/rootfs/bin && "
              f"head -c {IMAGE_MIB}M /dev/urandom >/var/tmp/rootfs/content && tar c -f /var/tmp/large.tar -C /var/tmp/rootfs . && "
              "rm -r /var/tmp/rootfs && sync && mainstay images import /var/tmp/large.tar --name large:1", DEADLINE)
    write(board, specs.pod("large", {"name": "main", "image": "docker.io/library/large:1", "imagePullPolicy": "Never",
                                     "command": ["/bin/busybox", "sleep", "100000"]}))
    board.wait("mainstay get pods | grep -E '^large-machine +1/1 +Running'", "the imported image runs", DEADLINE)
    wait_all_running(board)
    figures += [f"after the import: {line}" for line in board.run(MEMORY).splitlines()]
    figures.append(f"processes killed since the boot: {assert_nothing_was_killed(board)}")
