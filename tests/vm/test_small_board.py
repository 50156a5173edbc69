# SPDX-License-Identifier: Apache-2.0
"""A board with 128 MiB of memory, on which systemd refuses to reload its units."""

from conftest import machine_of
import pytest


@pytest.fixture(scope="module", name="board")
def _board(disk):
    with machine_of(disk, memory="128M") as machine:
        machine.boot()
        yield machine


def take_space(machine):
    """Leaves at most 12 MiB free in /run, however much of its memory the kernel takes."""
    machine.run("surplus=$(($(df -k --output=avail /run | tail -n 1) - 12288)); [ $surplus -le 0 ] || fallocate -l ${surplus}K /run/taken")


def test_package_installation_succeeds_although_systemd_refuses_to_reload(board):
    take_space(board)
    status, said = board.ask("systemctl daemon-reload")
    assert status != 0 and "space" in said, said
    said = board.run("dpkg --install /opt/test/mainstay_*.deb", 600)
    assert "systemctl daemon-reload" in said and "restart the machine" in said, said
    assert board.run("systemctl is-enabled mainstay; systemctl is-active mainstay").split() == ["enabled", "active"]
