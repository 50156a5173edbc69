# SPDX-License-Identifier: Apache-2.0
"""A board with 128 MiB of memory: systemd refuses to read units again there, and nothing may be killed for want of memory."""

from conftest import machine_of
from pods import MANIFESTS, write
import pytest
import specs

PODS = [f"pod-{i}" for i in range(10)]
IMAGE_MIB = 50
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
    machine.wait(f"[ $(mainstay get pods | grep -cE '^pod-[0-9]-machine +1/1 +Running ') = {len(PODS)} ]", "all pods run", 600)


def assert_nothing_was_killed(machine):
    assert machine.run("grep ^oom_kill /proc/vmstat").split() == ["oom_kill", "0"]


def test_package_is_installed_although_systemd_refuses_to_reload(board):
    take_space(board)
    status, said = board.ask("systemctl daemon-reload")
    assert status != 0 and "space" in said, said
    said = board.run("dpkg --install /opt/test/mainstay_*.deb", 600)
    assert "systemctl daemon-reload" in said and "restart the machine" in said, said
    assert board.run("systemctl is-enabled mainstay; systemctl is-active mainstay").split() == ["enabled", "active"]


def test_ten_pods_run_and_a_large_image_is_imported(board, figures):
    board.run("cp /opt/test/busybox-1.tar /var/lib/mainstay/preload/")
    for name in PODS:
        write(board, specs.pod(name, specs.container(script="exec sleep 100000")))
    wait_all_running(board)
    figures += board.run(MEMORY).splitlines()
    board.run("mkdir -p /var/tmp/rootfs/bin && cp /bin/busybox /var/tmp/rootfs/bin && "
              f"head -c {IMAGE_MIB}M /dev/urandom >/var/tmp/rootfs/content && tar c -f /var/tmp/large.tar -C /var/tmp/rootfs . && "
              "rm -r /var/tmp/rootfs && sync && mainstay images import /var/tmp/large.tar --name large:1", 900)
    assert "large" in board.run("mainstay images")
    write(board, specs.pod("large", {"name": "main", "image": "docker.io/library/large:1", "imagePullPolicy": "Never",
                                     "command": ["/bin/busybox", "sleep", "100000"]}))
    board.wait("mainstay get pods | grep -E '^large-machine +1/1 +Running'", "the imported image runs")
    wait_all_running(board)
    figures += [f"after the import: {line}" for line in board.run(MEMORY).splitlines()]
    assert_nothing_was_killed(board)


def test_upgrade_keeps_the_pods_and_they_run_again_after_a_restart_of_the_machine(board):
    before = board.run("pgrep -x sleep | sort")
    board.run("dpkg --install /opt/test/mainstay_*.deb", 600)
    wait_all_running(board)
    assert board.run("pgrep -x sleep | sort") == before
    assert_nothing_was_killed(board)
    board.power_off(600)
    board.boot()
    wait_all_running(board)
    assert_nothing_was_killed(board)


def test_purge_removes_the_pods_although_systemd_refuses_to_reload(board):
    take_space(board)
    board.run(f"rm -f {MANIFESTS}/*.yaml; dpkg --purge mainstay", 600)
    assert board.ask("pgrep -x sleep")[0] != 0
    assert board.ask("ls -d /var/lib/mainstay /etc/mainstay /run/mainstay 2>/dev/null")[1] == ""
    assert_nothing_was_killed(board)
