# SPDX-License-Identifier: Apache-2.0
"""A state directory whose project quota is used up: first blocks, then inodes. Running pods stay, no file is damaged,
and failed operations are done when there is space. Nothing is evicted: thresholds would come first."""

from machine import ARCHITECTURE
from pods import SCRIPT, configure, drain, end, get, process, wait_running, write
import pytest
import specs

pytestmark = pytest.mark.long

STATE = "/var/lib/mainstay"
PROJECT = 7
QUOTACTL = {"amd64": 179, "arm64": 60, "armhf": 131}[ARCHITECTURE]
LASTING = ["stays", "logs", "writes"]
# This pod writes to its volume continuously, and prints the errors.
WRITER = "while :; do dd if=/dev/zero of=/data/file bs=64k count=64 2>&1 | grep -o 'quota exceeded'; rm -f /data/file; sleep 0.5; done"
COUNTER = "i=0; while :; do echo line $i; i=$((i + 1)); sleep 0.2; done"

# Sets the number of blocks of 1 KiB and of inodes that the project may use in addition to those in use (0: no limit).
LIMIT = f"""
my ($blocks, $inodes) = @ARGV;
my ($get, $set, $project) = ((0x800007 << 8) + 2, (0x800008 << 8) + 2, {PROJECT});
my ($device, $has) = (`findmnt -n -o SOURCE {STATE}`, "\\0" x 72);
chomp $device;
syscall({QUOTACTL}, $get, $device, $project, $has) == 0 or die "get: $!";
my @has = unpack("Q8", $has);
my $hard = $blocks eq "none" ? 0 : int(($has[2] + 1023) / 1024) + $blocks;
my $files = $inodes eq "none" ? 0 : $has[5] + $inodes;
my $new = pack("Q8L2", $hard, 0, 0, $files, 0, 0, 0, 0, 5, 0);
syscall({QUOTACTL}, $set, $device, $project, $new) == 0 or die "set: $!";
"""


def limit(machine, blocks="none", inodes="none"):
    machine.run(f"sync -f {STATE}; perl /opt/test/limit {blocks} {inodes}")


@pytest.fixture(scope="module", name="limited")
def _limited(machine):
    """The machine with pods, whose state is on a separate file system and belongs to a project."""
    machine.write("/opt/test/limit", LIMIT)
    drain(machine)
    machine.run(f"""set -e
        truncate -s 600M /var/tmp/state && mkfs.ext4 -q -O quota,project -E lazy_itable_init=0 /var/tmp/state
        mv {STATE} {STATE}.old && mkdir -m 700 {STATE}
        modprobe -a loop quota_v2
        mount -o loop,prjquota /var/tmp/state {STATE}
        chmod 700 {STATE} && chattr -p {PROJECT} +P {STATE}
        cp -r {STATE}.old/. {STATE}/""")
    configure(machine, "evictionHard: {}\ncrashLoopBackOff: {maxContainerRestartPeriod: 2s}\n")
    write(machine, specs.script_pod("stays", SCRIPT))
    write(machine, specs.script_pod("broken", SCRIPT))
    write(machine, specs.script_pod("logs", COUNTER))
    write(machine, specs.pod("writes", {**specs.container(script=WRITER), "volumeMounts": [specs.mount("data", "/data")]},
                             volumes=[{"name": "data", "emptyDir": {}}]))
    for name in *LASTING, "broken":
        wait_running(machine, name)
    return machine


@pytest.fixture(scope="module", name="before")
def _before(limited):
    return identities(limited)


def identities(machine):
    """State that a restart would change."""
    found = {}
    for name in LASTING:
        (status,) = get(machine, name)["status"]["containerStatuses"]
        found[name] = status["containerID"], status["restartCount"], process(machine, name)
    return found


def said(machine):
    return machine.run("journalctl --sync; journalctl -u mainstay --no-pager -o cat")


def wait_restart(machine, restarts, what, otherwise="0"):
    """Waits until the container of the broken pod was started again; the rest of its status may vary."""
    machine.wait("mainstay get pod broken-machine -o json | perl -0777 -ne "
                 f"'/\"restartCount\": *(\\d+)/ or exit 1; exit !($1 > {restarts} || {otherwise})'", what)


def live_through(machine, before, number, **left):
    """Adds a pod, ends a container and kills the agent while little space is left; everything runs when there is
    more."""
    name, logged = f"new{number}", len(said(machine))
    restarts = get(machine, "broken")["status"]["containerStatuses"][0]["restartCount"]
    limit(machine, **left)
    write(machine, specs.script_pod(name, SCRIPT))
    machine.run(f"kill -9 {process(machine, 'broken')}; systemctl kill -s KILL mainstay")
    machine.wait(f"mainstay get pods | grep -E '^{name}-machine '", "the new pod is listed")
    for pod in LASTING:  # the next agent knows the running pods
        wait_running(machine, pod)
    # The last state of the container is not compared, because it has one since its first restart.
    wait_restart(machine, restarts, "its exit is known", '/"state": *\\{\\s*"(waiting|terminated)"/')
    assert identities(machine) == before
    was_full = "Disk quota exceeded" in said(machine)[logged:]
    limit(machine)
    for pod in name, "broken":
        wait_running(machine, pod)
    wait_restart(machine, restarts, "what ended was started again")
    end(machine, name)
    return was_full


def assert_whole(machine, before):
    """Asserts that everything is intact, also after a restart in which the agent reads everything again."""
    machine.run("systemctl restart mainstay")
    for name in *LASTING, "broken":
        wait_running(machine, name)
    assert identities(machine) == before
    assert machine.ask(f"ls {STATE}/corrupt 2>/dev/null | grep .")[0] != 0
    machine.run("mainstay images verify")
    lines = [line.split("line ")[1] for line in machine.run("cat /var/log/pods/default_logs-machine_*/main/*.log").splitlines()
             if "line " in line]
    assert lines == [str(i) for i in range(len(lines))], "lines are missing"


def test_the_kernel_enforces_the_quota(limited):
    limit(limited, blocks=0)
    status, output = limited.ask(f"setpriv --bounding-set -sys_resource --inh-caps -sys_resource dd if=/dev/zero of={STATE}/try bs=64k count=1")
    limited.run(f"rm -f {STATE}/try")
    limit(limited)
    assert status != 0 and "quota exceeded" in output, output


@pytest.mark.parametrize("kind, counts", [("blocks", (0, 4, 16, 64)), ("inodes", (0, 1, 3, 8, 16))])
def test_failed_operations_are_repeated_once_the_quota_has_space(limited, before, kind, counts):
    were_full = [live_through(limited, before, f"{kind}{count}", **{kind: count}) for count in counts]
    assert were_full[0], "no write found the quota used up"
    assert_whole(limited, before)


def test_an_image_is_unpacked_when_there_is_space(limited, before):
    """There is space for the archive (10 MB) and for the data that the other pod writes (4 MB), but not for the image
    as well."""
    limit(limited, blocks=16000)
    pod = specs.script_pod("large", SCRIPT)
    pod["spec"]["containers"][0]["image"] = "docker.io/library/large0:1"
    limited.run(f"cp /opt/test/large0-1.tar {STATE}/preload/.new && mv {STATE}/preload/.new {STATE}/preload/large0-1.tar")
    write(limited, pod)
    limited.wait("journalctl --sync; journalctl -u mainstay --no-pager -o cat | grep 'large0.*quota exceeded'", "the image could not be unpacked")
    limit(limited)
    wait_running(limited, "large")
    assert_whole(limited, before)


def test_a_container_that_uses_up_the_quota_gets_its_error_and_continues(limited, before):
    limit(limited, blocks=1000)
    limited.wait("mainstay logs writes-machine | grep -q 'quota exceeded'", "the writer meets the quota")
    limit(limited)
    assert_whole(limited, before)
