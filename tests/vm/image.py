# SPDX-License-Identifier: Apache-2.0
"""The disk that the machines of these tests boot from: Debian 13 or 12 with systemd and a kernel, the dependencies of the
package, and a channel through which tests run commands. The package itself is in /opt/test, not installed."""

import contextlib
import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import tempfile

from cache import directory
from machine import ARCHITECTURE, RELEASE

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = {"amd64": "linux-image-cloud-amd64", "arm64": "linux-image-cloud-arm64", "armhf": "linux-image-armmp-lpae"}
LIBRARIES = {"bookworm": "libarchive13 libcurl3-gnutls libgnutls30 libmicrohttpd12",
             "trixie": "libarchive13t64 libcurl3t64-gnutls libgnutls30t64 libmicrohttpd12t64"}
NEEDED = f"""systemd systemd-sysv dbus udev kmod procps iproute2 initramfs-tools busybox-static
runc crun containernetworking-plugins iptables {LIBRARIES[RELEASE]} libjansson4 libnghttp2-14 libwslay1
libsystemd0 libyaml-0-2 {"libisal2" if ARCHITECTURE == "amd64" else ""}"""
PACKAGES = {
    "root": f"""{NEEDED} {KERNELS[ARCHITECTURE]} apparmor
selinux-policy-default nginx openssl dosfstools nfs-kernel-server samba tpm2-tools
python3-pytest python3-pytest-xdist python3-yaml docker-registry""",
    # A minimal Debian, on which the offline archive of a release is installed.
    "minimal": f"systemd systemd-sysv udev kmod {KERNELS[ARCHITECTURE]} initramfs-tools",
    # The kernels for virtual machines have no USB.
    "usb": f"{NEEDED} {KERNELS[ARCHITECTURE].replace('cloud-', '')}",
}
# Servers that tests start themselves.
SERVERS = """rpcbind.service rpcbind.socket nfs-server.service nfs-mountd.service nfs-idmapd.service nfsdcld.service nfs-blkmap.service
nfs-client.target rpc-statd.service rpc-statd-notify.service proc-fs-nfsd.mount smbd.service nmbd.service samba-ad-dc.service docker-registry.service""".split()
DISK, KERNEL, RAMDISK, SIZE = "disk.ext4", "vmlinuz", "initrd.img", "3G"

CHANNEL_SERVICE = """[Unit]
Description=Runs commands of the test
Requires=dev-virtio\\x2dports-channel.device
After=dev-virtio\\x2dports-channel.device
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/local/sbin/channel
StandardInput=file:/dev/virtio-ports/channel
StandardOutput=file:/dev/virtio-ports/channel
StandardError=journal
Restart=always
RestartSec=0.1
OOMScoreAdjust=-1000
[Install]
WantedBy=multi-user.target
"""

# A request is a number and a command in base64. A response is the number, the exit status and the output in base64.
CHANNEL = """#!/bin/bash
while read -r number command; do
    output=$(bash -c "$(base64 -d <<<"$command")" 2>&1 </dev/null | base64 -w 0; exit "${PIPESTATUS[0]}")
    echo "$number $? $output"
done
"""

# PID 1 of a machine without systemd. bash reaps orphans.
PLAIN_INIT = """#!/bin/bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup
mkdir -p /dev/shm /dev/mqueue
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t mqueue mqueue /dev/mqueue
busybox ip link set lo up
hostname machine
modprobe virtio_console
until device=$(grep -lx channel /sys/class/virtio-ports/*/name); do sleep 0.1; done
device=/dev/$(basename "$(dirname "$device")")
while :; do
    channel <>"$device" >&0
    sleep 0.1
done
"""

# Debian's policy has default labels for containers, but does not define their types. With these definitions a container
# may do anything except access objects whose categories differ from its own.
CONTAINERS = """(type container_t)
(roletype system_r container_t)
(typeattributeset domain (container_t))
(typeattributeset mcs_constrained_type (container_t))
(typeattributeset unconfined_domain_type (container_t))
(typeattributeset files_unconfined_type (container_t))
(typeattributeset filesystem_unconfined_type (container_t))
(typeattributeset kern_unconfined (container_t))
(type other_container_t)
(roletype system_r other_container_t)
(typeattributeset domain (other_container_t))
(typeattributeset unconfined_domain_type (other_container_t))
(typeattributeset files_unconfined_type (other_container_t))
(typeattributeset filesystem_unconfined_type (other_container_t))
(typeattributeset kern_unconfined (other_container_t))
(type container_file_t)
(roletype object_r container_file_t)
(typeattributeset file_type (container_file_t))
(typeattributeset non_security_file_type (container_file_t))
(typeattributeset entry_type (container_file_t))
(allow initrc_t container_t (process (transition siginh rlimitinh noatsecure)))
(allow initrc_t container_t (process2 (nnp_transition nosuid_transition)))
(allow container_t container_file_t (file (entrypoint)))
(allow initrc_t other_container_t (process (transition siginh rlimitinh noatsecure)))
(allow other_container_t container_file_t (file (entrypoint)))
"""


def write(root, path, text, mode=0o644):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def debootstrap(root, packages):
    """Installs from a single archive: security updates are not needed there, and their archive may be
    unavailable. The initial RAM disk contains only the modules for the disk and its file system, because it is unpacked
    under emulation."""
    subprocess.run(["mmdebstrap", "--quiet", f"--architectures={ARCHITECTURE}", "--variant=minbase", "--format=directory",
                    "--include=" + ",".join(packages), '--aptopt=Apt::Install-Recommends "false"',
                    "--essential-hook=mkdir -p $1/etc/initramfs-tools/conf.d",
                    "--essential-hook=echo MODULES=list >$1/etc/initramfs-tools/conf.d/machine",
                    "--essential-hook=printf 'virtio_pci\\nvirtio_blk\\next4\\n' >$1/etc/initramfs-tools/modules",
                    RELEASE, root, f"deb http://deb.debian.org/debian {RELEASE} main"], check=True)


def configure_root(root):
    write(root, "usr/local/sbin/channel", CHANNEL, 0o755)
    write(root, "usr/local/sbin/plain-init", PLAIN_INIT, 0o755)
    write(root, "etc/systemd/system/channel.service", CHANNEL_SERVICE)
    write(root, "etc/fstab", "/dev/vda / ext4 defaults 0 1\n")
    write(root, "etc/hostname", "machine\n")
    write(root, "etc/hosts", "127.0.0.1 localhost machine\n")
    write(root, "etc/systemd/journald.conf.d/test.conf", "[Journal]\nStorage=persistent\n")
    subprocess.run(["systemctl", "--quiet", f"--root={root}", "enable", "channel.service"], check=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(root, "etc/systemd/system/multi-user.target.wants/nginx.service"))
    subprocess.run(["systemctl", "--quiet", f"--root={root}", "mask", "apt-daily.timer", "apt-daily-upgrade.timer",
                    "e2scrub_all.timer", "fstrim.timer", "dpkg-db-backup.timer", "getty.target",
                    "e2scrub_reap.service", *SERVERS], check=True)
    subprocess.run(["chroot", root, "passwd", "--quiet", "--delete", "root"], check=True)


def label(root):
    """Labels all files for the machines with SELinux; the others ignore the labels."""
    write(root, "etc/selinux/config", "SELINUX=enforcing\nSELINUXTYPE=default\n")
    write(root, "etc/selinux/containers.cil", CONTAINERS)
    contexts = "/etc/selinux/default/contexts/files/file_contexts"
    subprocess.run(["unshare", "--mount", "sh", "-ec",
                    f"mount --bind /proc '{root}/proc'\n"
                    f"chroot '{root}' semodule --noreload --install /etc/selinux/containers.cil\n"
                    f"chroot '{root}' setfiles -F -e /proc -e /sys -e /dev {contexts} /"], check=True)


def make_root(root, kind):
    debootstrap(root, PACKAGES[kind].split())
    configure_root(root)
    if kind == "root":
        label(root)


def make_root_in_memory(root, kind):
    """Builds the root directory in memory: 32-bit programs under user-mode emulation cannot list the directories of
    ext4, in which a position has 64 bits."""
    with tempfile.TemporaryDirectory() as memory:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=755", "tmpfs", memory], check=True)
        try:
            made = os.path.join(memory, "root")
            make_root(made, kind)
            subprocess.run(["cp", "-a", made, root], check=True)
        finally:
            subprocess.run(["umount", memory], check=True)


def root_path(prefix):
    """The root directory of the machines, cached outside of the tree: it takes minutes to build and depends on this file only."""
    with open(__file__, "rb") as file:
        return os.path.join(directory("vm"), f"{prefix}-" + hashlib.sha256(file.read()).hexdigest()[:16])


@contextlib.contextmanager
def locked_root(kind="root"):
    """Yields a root directory with these of PACKAGES and without ours, built once and locked against other runs of the
    tests."""
    prefix = f"{kind}-{RELEASE}-{ARCHITECTURE}"
    root = root_path(prefix)
    with open(os.path.join(directory("vm"), f"lock-{prefix}"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(root + ".whole"):
            for old in glob.glob(os.path.join(directory("vm"), f"{prefix}-*")):
                if old.endswith(".whole"):
                    os.unlink(old)
                else:
                    shutil.rmtree(old)
            (make_root_in_memory if ARCHITECTURE == "armhf" else make_root)(root, kind)
            write(directory("vm"), os.path.basename(root) + ".whole", "")
        yield root


def paths(cache):
    """The paths of the disk, the kernel and the RAM disk in 'cache'."""
    return tuple(os.path.join(cache, name) for name in (DISK, KERNEL, RAMDISK))


def build(root, cache, files):
    """Builds the disk from the root directory, with these files in /opt/test, and copies it with the kernel and the RAM
    disk to 'cache'."""
    disk, kernel, ramdisk = paths(cache)
    if os.path.exists(disk):
        os.unlink(disk)
    target = os.path.join(root, "opt", "test")
    shutil.rmtree(target, ignore_errors=True)
    os.mkdir(target)
    for path in files:
        shutil.copy(path, target)
    for pattern, copy in ("vmlinuz-*", kernel), ("initrd.img-*", ramdisk):
        (found,) = glob.glob(os.path.join(root, "boot", pattern))
        shutil.copy(found, copy)
    subprocess.run(["mkfs.ext4", "-q", "-d", root, disk, SIZE], check=True)
