# SPDX-License-Identifier: Apache-2.0
"""A machine whose clock starts in 1970 and is set, forward and back. systemd sets such a clock to its own age, so a service of
the test sets it back before the agent starts."""

import base64
import io
import re
import tarfile
import time

from index_source import Index, Key
from pods import MANIFESTS, SCRIPT, container, get, identities, wait_running, write
import pytest
import registry
import specs

pytestmark = pytest.mark.long

PODS = ["stays", "timed", "probed"]
SITE = "/opt/site"

OLD_CLOCK = """[Unit]
DefaultDependencies=no
Before=mainstay.service
[Service]
Type=oneshot
ExecStart=date -s @86400
[Install]
WantedBy=multi-user.target
"""

# openssl serves the files of its directory, which hold the headers of their answers. The agent sends a request once in
# ten hours, so that its first request must not come before the server listens.
SERVER = f"""[Unit]
Before=mainstay.service
[Service]
WorkingDirectory={SITE}
ExecStart=openssl s_server -accept 127.0.0.1:8443 -cert server.crt -key server.key -HTTP -quiet
ExecStartPost=bash -c 'until : </dev/tcp/127.0.0.1/8443; do sleep 0.2; done'
Restart=always
[Install]
WantedBy=multi-user.target
"""


def configuration(key):
    return ("mainstay:\n  source:\n    url: https://127.0.0.1:8443/index.json\n"
            f"    caFile: {SITE}/server.crt\n    keys: [{key.public}]\n    fleet: shops\n    interval: 10h\n    jitter: 1ms\n")


def add_headers(directory):
    """Adds the headers that a response needs in addition to the file, such as its length."""
    for path in [*directory.glob("index.json*"), *directory.glob("sha256/*")]:
        content = path.read_bytes()
        path.write_bytes(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content)


def send(machine, directory):
    """Copies the files of a directory to the machine."""
    packed = io.BytesIO()
    add_headers(directory)
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(directory, arcname=".")
    machine.run(f"mkdir -p {SITE} && base64 -d <<<{base64.b64encode(packed.getvalue()).decode()} | tar -xz -C {SITE}")


def year(machine):
    return int(machine.run("date -u +%Y"))


def set_clock(machine, seconds):
    machine.run(f"date -s @{int(seconds)}")


def back_off(machine):
    """The back-off of the container that crashes, in seconds."""
    message = machine.wait("mainstay get pod crash-machine -o json | grep -o 'back-off [0-9a-z.]* restarting'",
                           "the container waits to be restarted")
    minutes, seconds = re.search(r"back-off (?:(\d+)m)?(\d+)s", message).groups()
    return int(minutes or 0) * 60 + int(seconds)


@pytest.fixture(scope="module", name="old")
def _old(machine, tmp_path_factory):
    """The machine after a boot in 1970; manifests come from a server whose certificate is of this year."""
    directory = tmp_path_factory.mktemp("site")
    key = Key(str(tmp_path_factory.mktemp("key")), "key")
    Index(str(directory), key).write({"fleet.yaml": specs.pod("fleet", specs.container(script=SCRIPT))})
    registry.certificate(str(directory))
    send(machine, directory)
    machine.write("/etc/systemd/system/site.service", SERVER)
    machine.write("/etc/systemd/system/old-clock.service", OLD_CLOCK)
    machine.run("systemctl enable site.service old-clock.service")
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1, "timeoutSeconds": 60}
    write(machine, specs.pod("stays", specs.container(script=SCRIPT)))
    write(machine, specs.pod("timed", specs.container(script=SCRIPT), activeDeadlineSeconds=100000))
    write(machine, specs.pod("probed", specs.container(script=SCRIPT, livenessProbe=probe, readinessProbe=probe)))
    write(machine, specs.pod("crash", specs.container(script="exit 1")))
    for name in PODS:
        wait_running(machine, name)
    machine.write("/etc/mainstay/config.yaml", "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n" +
                  configuration(key))
    machine.run("sync")
    machine.power_off()
    machine.boot("-rtc", "base=1970-01-01T00:00:00")
    return machine


def test_pods_run_and_the_source_reports_that_the_clock_is_not_set(old):
    assert year(old) == 1970
    for name in PODS:
        wait_running(old, name)
    message = old.wait("mainstay get nodes -o json | grep -o 'the certificate of the server[^\"]*'", "the source has failed")
    assert re.search(r"is not valid yet; the clock of this machine is not set, it says 1970-01-\d\d; "
                     r"it is tried again when the clock is set", message), message


def test_waiting_operations_continue_when_the_clock_is_set(old):
    for name in PODS:
        wait_running(old, name)
    before, waits, attempts = identities(old, PODS), back_off(old), container(old, "crash")["restartCount"]
    set_clock(old, time.time())
    wait_running(old, "fleet")
    assert identities(old, PODS) == before
    assert back_off(old) >= waits and container(old, "crash")["restartCount"] - attempts <= 4
    assert get(old, "timed")["status"]["phase"] == "Running"
    assert get(old, "fleet")["status"]["startTime"] >= "2026"
    assert "SourceFailed" not in old.run("mainstay get nodes")


def test_no_container_restarts_when_the_clock_is_set_back_and_forward(old):
    names = [*PODS, "fleet"]
    before, waits = identities(old, names), back_off(old)
    for seconds in (100000, time.time(), 100000):
        set_clock(old, seconds)
        write(old, specs.pod("later", specs.container(script=SCRIPT)))
        wait_running(old, "later")
        old.run(f"rm {MANIFESTS}/later.yaml")
        old.wait("! mainstay get pods | grep -q '^later-machine '", "the pod is removed")
        assert identities(old, names) == before
        assert back_off(old) >= waits
    for _ in range(3):
        old.run("systemctl restart mainstay")
        for name in names:
            wait_running(old, name)
        assert identities(old, names) == before
        assert get(old, "timed")["status"]["phase"] == "Running"
        set_clock(old, time.time())


def test_pods_are_unaffected_by_a_clock_that_is_set_every_second(old):
    names = [*PODS, "fleet"]
    before, waits = identities(old, names), back_off(old)
    old.run("for i in 1 2 3 4 5 6 7 8 9 10; do date -s '+1 day'; sleep 0.5; date -s '-1 day'; sleep 0.5; done")
    assert identities(old, names) == before
    assert back_off(old) >= waits
    for name in names:
        wait_running(old, name)
