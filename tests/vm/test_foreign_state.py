# SPDX-License-Identifier: Apache-2.0
"""A state directory on NFS, SMB and FAT with the kernel's drivers: no container can have its root file system there.
The agent reports this at its start, with the place, the reason and the remedy, and runs the pods when the directory is
on another file system."""

from pods import SCRIPT, drain, end, wait_running, write
import pytest
import specs

pytestmark = pytest.mark.long

STATE = "/var/lib/mainstay"

# Only version 4 is used, which needs no rpcbind. The server does not wait for clients of an earlier boot.
NFS = f"""set -e
mkdir -p /srv/state /run/rpc_pipefs /var/lib/nfs/v4recovery
modprobe nfsd
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
echo 10 >/proc/fs/nfsd/nfsv4leasetime
echo 10 >/proc/fs/nfsd/nfsv4gracetime
exportfs -o rw,no_root_squash,no_subtree_check,fsid=0,insecure 127.0.0.1:/srv
pidof rpc.mountd >/dev/null || rpc.mountd --no-nfs-version 2 --no-nfs-version 3
rpc.nfsd --no-nfs-version 3 1
mount -i -t nfs4 -o vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/state {STATE}
"""
FAT = f"""set -e
truncate -s 300M /var/tmp/fat
mkfs.vfat /var/tmp/fat >/dev/null
modprobe -a loop vfat
mount -t vfat -o loop /var/tmp/fat {STATE}
"""
SMB = f"""set -e
mkdir -p /srv/share
cat >/etc/samba/smb.conf <<END
[global]
interfaces = lo
bind interfaces only = yes
map to guest = Bad User
guest account = root
delete readonly = yes
[share]
path = /srv/share
read only = no
guest ok = yes
END
pidof smbd >/dev/null || smbd -D
modprobe cifs
for try in $(seq 100); do
    mount -i -t cifs -o ip=127.0.0.1,sec=none //127.0.0.1/share {STATE} && break
    sleep 0.1
done
"""

WAITS = "mainstay get pods | grep -E '^web-machine +0/1 +(ErrImagePull|ImagePullBackOff|CreateContainerError|RunContainerError) '"


def journal(machine, cursor):
    return machine.run(f"journalctl --sync; journalctl -u mainstay --after-cursor='{cursor}' --no-pager -o cat")


# Only SMB keeps the attributes of an image.
@pytest.mark.parametrize("mount, kind, name, fails", [(FAT, "vfat", "FAT", "Cannot unpack image"), (NFS, "nfs4", "NFS", "Cannot unpack image"),
                                                      (SMB, "cifs", "SMB", "cannot mount overlay on")], ids=["fat", "nfs", "smb"])
def test_the_agent_reports_that_no_container_can_start_and_the_remedy(machine, mount, kind, name, fails):
    drain(machine)
    cursor = machine.run("journalctl -n 0 --show-cursor | sed -n 's/^-- cursor: //p'").strip()
    machine.run(mount)
    assert machine.run(f"findmnt -n -o FSTYPE {STATE}").strip() == kind
    machine.run(f"mkdir {STATE}/preload && cp /opt/test/busybox-*.tar {STATE}/preload/")
    write(machine, specs.script_pod("web", SCRIPT))
    machine.run("systemctl start mainstay")
    assert (f"The state directory {STATE} is on {name}, where containers cannot have their root file systems: none will start. "
            "Mount ext4 or XFS there, or name another directory with --state-dir") in journal(machine, cursor)
    machine.wait(WAITS, "the pod is reported as waiting")
    machine.wait(f"journalctl -u mainstay --after-cursor='{cursor}' --no-pager -o cat | grep '{fails}'",
                 "the container could not be made")
    assert machine.ask("pgrep -f 'sleep 10000[0]'")[0] != 0
    machine.run("systemctl is-active mainstay && systemctl show -P NRestarts mainstay | grep -x 0")

    drain(machine)
    machine.run(f"umount {STATE} && systemctl start mainstay")
    wait_running(machine, "web")
    end(machine, "web")
