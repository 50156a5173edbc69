# SPDX-License-Identifier: Apache-2.0
"""A machine with swap space and a TPM2, emulated by swtpm. Values of Secrets are neither on its disk nor in its swap
space, which are searched after a power cut; and a value that is bound to a PCR can be opened as long as the PCR is
unchanged."""

import base64
import contextlib
import hashlib
import json
import os
import subprocess
import time
import uuid

import pods
import pytest
import specs
from canaries import encodings
from conftest import install, machine_of
from machine import SLOTS

pytestmark = pytest.mark.long

COMMON = f"canary-{uuid.uuid4().hex}-"  # the common start of all words; this file contains no complete word
# The number of words of each kind. Decrypting a sealed one requires a process and the TPM2.
COUNTS = {"file": 249, "age": 249, "index": 249, "api": 249, "sealed": 4}
PULL = 10  # more, in a Secret for pulling images
# Minutes for which pods are replaced, and programs crash and restart; one round at least.
MINUTES = int(os.environ.get("MAINSTAY_SECRETS_MINUTES", "0"))
SWAPPED = f"control-{uuid.uuid4().hex}"
CHUNK = 16 << 20
DEADLINE = 900

# The script of a pod, which ends when the process for which it waits is killed. The log contains a digest of the
# variables and one of the files.
SCRIPT = """i=0; while [ $i -lt {count} ]; do eval "printf %s \\"\\$key$i\\""; i=$((i + 1)); done | sha256sum
i=0; while [ $i -lt {count} ]; do cat /secret/key$i; i=$((i + 1)); done | sha256sum
sleep 100000 & wait $!; exit 1"""

# The API server with Secrets and pods of the words, and a registry that refuses everybody, but records those who send a
# password. Its memory does not belong to the node: none of it is swapped.
SERVER = """import base64, http.server, json, sys, threading, time
sys.path[:0] = ["/opt/test/source/tests/system"]
import apiserver

class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.headers["Authorization"]:
            open("/run/asked", "w").close()
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="all"')
        self.send_header("Content-Length", "0")
        self.end_headers()
    do_HEAD = do_GET
    def log_message(self, *words):
        pass

threading.Thread(target=http.server.HTTPServer(("127.0.0.1", 5000), Registry).serve_forever, daemon=True).start()
server = apiserver.make("/run/server")
server.kubeconfig("/run/server/kubeconfig", node="machine")
with open("/media/words/api.json") as file:
    for plural, obj in json.load(file):
        server.create(plural, obj)
open("/run/server/ready", "w").close()
while True:
    time.sleep(1000)
"""

# A handler for the core pattern that keeps the core and, like systemd-coredump, the environment.
KEEP_CORE = """#!/bin/bash
cat >/var/crash/core.$2
cat /proc/$1/environ >/var/crash/environ.$2
"""

SWAPS = """import time
held = (b"%s " * 100)[:4000] * 5000
while True:
    time.sleep(1000)
""" % SWAPPED


@contextlib.contextmanager
def tpm2_of(machine):
    """Yields the emulator's options for a TPM2, which ends with the machine."""
    state, socket = machine.path("tpm"), machine.path("tpm.socket")
    os.makedirs(state, exist_ok=True)
    server = subprocess.Popen(["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={state}", "--ctrl", f"type=unixio,path={socket}"],
                              stdin=subprocess.DEVNULL)
    while not os.path.exists(socket):
        assert server.poll() is None
        time.sleep(0.05)
    try:
        yield ["-chardev", f"socket,id=tpm,path={socket}", "-tpmdev", "emulator,id=tpm0,chardev=tpm", "-device", "tpm-crb,tpmdev=tpm0"]
    finally:
        server.kill()
        server.wait()


def swap_of(machine):
    path = machine.path("swap")
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    return path


@pytest.fixture(scope="module", name="guarded")
def _guarded(disk):
    with machine_of(disk) as machine, tpm2_of(machine) as tpm2:
        install(machine, *SLOTS, *tpm2)
        device = machine.plug(swap_of(machine), "swap", 2)  # not at the boot, when it could become the first disk
        machine.run(f"mkswap -q {device} && swapon {device} && sysctl -q -w vm.swappiness=200")
        yield machine


def test_value_bound_to_a_pcr_can_be_decrypted_until_the_pcr_changes(guarded):
    word = "opened-by-the-tpm"
    sealed = guarded.run(f"printf {word} | systemd-creds encrypt --name=mainstay.default.bound.word --with-key=host+tpm2 --tpm2-pcrs=16 "
                         "- - 2>/dev/null")
    bound = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bound", "annotations": {"mainstay.dev/encrypted-keys": "word"}},
             "stringData": {"word": sealed}}
    fields = {"env": [{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "bound", "key": "word"}}}]}
    early, late = (specs.pod(name, specs.container(script="echo it has ${#WORD} characters; exec sleep 100000", **fields))
                   for name in ("early", "late"))
    guarded.write(f"{pods.MANIFESTS}/early.yaml", specs.text(bound, early))
    guarded.wait(f"mainstay logs early-machine | grep 'it has {len(word)} characters'", "the TPM2 opens it", DEADLINE)
    before = pods.identities(guarded, ["early"])

    guarded.run("tpm2_pcrextend 16:sha256=" + "ab" * 32)
    guarded.run("systemctl restart mainstay")
    pods.write(guarded, late)
    # In one command, because the state changes with each attempt.
    state = guarded.wait("mainstay get pod late-machine -o json >/run/late && grep -q CreateContainerConfigError /run/late && "
                         "grep -q systemd-creds /run/late && cat /run/late",
                         "it is not opened", DEADLINE)
    (container,) = json.loads(state)["status"]["containerStatuses"]
    message = container["state"]["waiting"]["message"]
    assert "bound" in message and "word" in message and word not in message, message
    assert pods.identities(guarded, ["early"]) == before, "running pods are not affected"

    guarded.run("tpm2_pcrreset 16")
    guarded.wait(f"mainstay logs late-machine | grep 'it has {len(word)} characters'", "the pod starts once it opens again", DEADLINE)
    for name in ("late", "early"):
        pods.end(guarded, name)


def words_of(kind):
    return [f"{COMMON}{kind}-{i}" for i in range(COUNTS.get(kind, PULL))]


def values(kind):
    return {f"key{i}": word for i, word in enumerate(words_of(kind))}


def secret(kind):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": kind}, "stringData": values(kind)}


def user(kind):
    """A pod that has the Secret as variables and as files."""
    script = SCRIPT.format(count=COUNTS[kind])
    return specs.pod(kind, specs.container(script=script, envFrom=[{"secretRef": {"name": kind}}], volumeMounts=[specs.mount("s", "/secret")]),
                     volumes=[{"name": "s", "secret": {"secretName": kind}}])


def objects_of_server():
    """The Secrets, and the pods, which have a node."""
    auths = {f"{i or ''}.example.com": {"username": "joe", "password": word} for i, word in enumerate(words_of("pull"))}
    auths["127.0.0.1:5000"] = auths.pop(".example.com")
    puller = {**specs.container(), "image": "127.0.0.1:5000/team/none:1", "imagePullPolicy": "Always"}
    yield "secrets", {"metadata": {"name": "api"}, "data": in_base64(values("api"))}
    yield "secrets", {"metadata": {"name": "pull"}, "type": "kubernetes.io/dockerconfigjson",
                      "data": in_base64({".dockerconfigjson": json.dumps({"auths": auths})})}
    for pod in (user("api"), specs.pod("pull", puller, imagePullSecrets=[{"name": "pull"}])):
        yield "pods", {**pod, "spec": {**pod["spec"], "nodeName": "machine"}}


def in_base64(data):
    return {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}


class Medium:
    """A read-only disk made from a directory: the unencrypted words are nowhere else, not even in a command."""

    def __init__(self, directory, name):
        self.name, self.root, self.image = name, os.path.join(directory, name), os.path.join(directory, f"{name}.image")
        os.mkdir(self.root)

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def plug(self, machine):
        subprocess.run(["mkfs.ext4", "-q", "-d", self.root, self.image, "64M"], check=True)
        device = machine.plug(self.image, self.name, 1, ",readonly=on")
        machine.run(f"mkdir -p /media/{self.name} && mount -o ro,noload {device} /media/{self.name}")


def fill(machine, directory):
    """Creates a Secret and a pod of each kind."""
    medium = Medium(directory, "words")
    for kind in "age", "index", "sealed":
        for key, word in values(kind).items():
            medium.write(f"{kind}/{key}", word)
    medium.write("pods/file.yaml", specs.text(secret("file"), user("file")))
    medium.write("api.json", json.dumps(list(objects_of_server())))
    medium.plug(machine)
    machine.write("/run/server.py", SERVER)
    machine.run("mkdir -p /opt/test/source && tar -C /opt/test/source -xf /opt/test/system-suite.tar && "
                "systemd-run --quiet --unit=server -p MemorySwapMax=0 -E PYTHONDONTWRITEBYTECODE=1 python3 /run/server.py")
    for kind in "age", "index", "sealed":
        machine.write(f"/srv/{'index' if kind == 'index' else 'pods'}/{kind}-pod.yaml", specs.text(user(kind)))
    encrypt = "mainstay secret {verb} {kind} $(cd /media/words/{kind} && printf '%s=/media/words/{kind}/%s\\n' $(ls | sed p)) {more}"
    machine.run("set -e; mkdir -p /var/log/reports /srv/images; cp /opt/test/skopeo.tar /srv/images/; touch /srv/pods/file.yaml; mount --bind /media/words/pods/file.yaml /srv/pods/file.yaml\n"
                "recipient=$(mainstay source identity)\n" +
                encrypt.format(verb="encrypt", kind="age", more="-r $recipient >/srv/pods/age.yaml\n") +
                encrypt.format(verb="encrypt", kind="index", more="-r $recipient >/srv/index/index.yaml\n") +
                encrypt.format(verb="seal", kind="sealed", more=">/srv/pods/sealed.yaml\n") +
                "openssl genpkey -algorithm ed25519 -out /srv/key.pem\n"
                "mainstay source sign /srv/index /srv/shops --key /srv/key.pem --fleet shops --from /srv/images", DEADLINE)
    key = machine.run("openssl pkey -in /srv/key.pem -pubout | sed -n 2p").strip()
    machine.wait("test -e /run/server/ready", "the API server is there", DEADLINE)
    pods.configure(machine, specs.text({"staticPodPath": "/srv/pods", "mainstay": {
        "kubeconfig": "/run/server/kubeconfig", "insecureRegistries": ["127.0.0.1:5000"],
        "source": {"url": "file:///srv/shops/index.json", "keys": [key], "fleet": "shops"},
        "report": {"url": "file:///var/log/reports", "interval": "1s", "jitter": "1ms", "logLines": 20}}}))
    machine.wait("mainstay debug log-level debug", "the agent answers", DEADLINE)


def wait_used(machine):
    """Waits until each word has arrived in its pod, so that the search is for words that existed."""
    for kind, name in zip(COUNTS, names()):
        digest = hashlib.sha256("".join(words_of(kind)).encode()).hexdigest()
        machine.wait(f"mainstay get pods | grep -E '^{name} +1/1' && test $(mainstay logs {name} | grep -c {digest}) = 2",
                     f"{kind} has its values", DEADLINE)
    machine.wait("test -e /run/asked", "the registry was given the password", DEADLINE)


def names():
    """The names of the pods; the one of the API server has no suffix."""
    return [kind if kind == "api" else f"{kind}-machine" for kind in COUNTS]


def crash_all(machine):
    """Crashes the programs of all containers, a shim and the agent by a signal that dumps a core."""
    shim = machine.run("pgrep -o -f '[m]ainstay-shim sandbox'").strip()
    machine.run("sleeping=$(pgrep -x sleep); kill -SEGV $sleeping; for pid in $sleeping; do while [ -e /proc/$pid ]; do sleep 0.1; done; done")
    machine.run(f"agent=$(systemctl show -P MainPID mainstay); kill -SEGV $agent {shim}; while [ -e /proc/$agent ]; do sleep 0.1; done")
    machine.wait("systemctl is-active mainstay && mainstay get pods", "the agent is back", DEADLINE)
    wait_used(machine)


def crash_with_each_pattern(machine):
    """Other programs leave a core, those that hold words do not."""
    for pattern, file in (("|/usr/local/sbin/keep-core %P %p", "core"), ("/var/crash/file.%p", "file")):
        machine.run(f"echo '{pattern}' >/proc/sys/kernel/core_pattern")
        crash_all(machine)
        assert machine.run("ls /var/crash") == ""
        machine.ask("bash -c 'ulimit -c unlimited; kill -SEGV $$'")
        machine.wait(f"ls /var/crash | grep {file}", "the pattern works for others")
        machine.run("rm /var/crash/*")


def replace_pods(machine):
    """Removes the pods of the manifest directory, restarts the agent, and puts them back."""
    machine.run("mkdir -p /run/taken && mv /srv/pods/*-pod.yaml /run/taken/ && systemctl restart mainstay")
    machine.wait("! mainstay get pods | grep -E '^(age|sealed)-machine '", "the pods have ended", DEADLINE)
    machine.run("mv /run/taken/*.yaml /srv/pods/")
    wait_used(machine)


def swap_out(machine):
    """Swaps out everything that may be swapped, until that has happened to a program of the test."""
    machine.write("/run/swaps.py", SWAPS)
    machine.run("systemd-run --quiet --unit=control python3 /run/swaps.py; mount -t tmpfs -o size=2g none /mnt; "
                "yes | head -c 500M >/mnt/filler; sync; echo 3 >/proc/sys/vm/drop_caches", DEADLINE)
    machine.wait("for group in system mainstay kubepods; do echo 300M >/sys/fs/cgroup/$group.slice/memory.reclaim 2>/dev/null; done; "
                 "awk '/^VmSwap/ { exit $2 < 10000 }' /proc/$(systemctl show -P MainPID control)/status", "memory is swapped", DEADLINE)
    swapped = machine.run("for pid in $(systemctl show -P MainPID mainstay) $(pgrep -x sleep) $(pgrep mainstay); do "
                          "awk '/^(Name|VmSwap)/ { printf \"%s \", $2 } END { print \"\" }' /proc/$pid/status 2>/dev/null; done; true")
    assert {line.split()[-1] for line in swapped.splitlines() if len(line.split()) == 2} == {"0"}, swapped


def tell_all(machine):
    """Writes everything that the node reports to any client into files."""
    machine.run("cd /var/tmp; mainstay debug dump >dump; mainstay debug bundle bundle.tar.gz; tar -xzf bundle.tar.gz; "
                "for what in pods events secrets nodes; do mainstay get $what -A -o json >$what; done; "
                f"for name in {' '.join(names())} pull; do mainstay describe pod $name >$name; done; mainstay source status >status; "
                "journalctl --sync; journalctl --no-pager >journal; test -s dump; sync", DEADLINE)
    machine.wait("grep -q age-machine /var/log/reports/*.ndjson", "the report is there", DEADLINE)


def found_in(path, words):
    """The words that a file contains; holes are not read."""
    found, longest, at = set(), max(map(len, words)), 0
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            chunk = os.pread(file.fileno(), CHUNK + longest, at)
            found |= {word for word in words if word in chunk}
            at += CHUNK
    return found


def test_a_thousand_values_are_neither_on_the_disk_nor_in_swap_space_after_a_power_cut(guarded, tmp_path, figures):
    assert sum(COUNTS.values()) + PULL > 1000
    assert "noswap" in guarded.run("findmnt -n -o OPTIONS /run/mainstay")
    guarded.write("/usr/local/sbin/keep-core", KEEP_CORE)
    guarded.run("chmod +x /usr/local/sbin/keep-core; mkdir -p /var/crash")
    fill(guarded, str(tmp_path))
    wait_used(guarded)
    end, rounds = time.monotonic() + 60 * MINUTES, 1
    crash_with_each_pattern(guarded)
    while time.monotonic() < end:
        replace_pods(guarded)
        crash_with_each_pattern(guarded)
        rounds += 1
    figures.append(f"{rounds} rounds of crashes")
    swap_out(guarded)
    tell_all(guarded)
    guarded.cut_power()

    raw = str(tmp_path / "raw")
    subprocess.run(["qemu-img", "convert", "-O", "raw", guarded.disk, raw], check=True)
    words = encodings(COMMON)
    assert found_in(guarded.path("swap"), {SWAPPED.encode(), *words}) == {SWAPPED.encode()}, "only permitted pods use swap"
    age_file = b"-----BEGIN AGE ENCRYPTED FILE-----"  # the index is on the disk, encrypted
    assert found_in(raw, {age_file, *words}) == {age_file}
