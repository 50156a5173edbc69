# SPDX-License-Identifier: Apache-2.0
"""The cache of API objects on disk: complete, private, synced without blocking the agent."""

import base64
import contextlib
import hashlib
import os
import re
import signal
import stat
import subprocess

import specs
import world
from harness import NODE_NAME
from test_apiserver_offline import reboot, wait_kept
from world import wait

CACHED = ("objects/secret_default_login", "objects/configmap_default_settings", "services")


def bind(member):
    """Binds a pod that refers to a Secret and a ConfigMap."""
    member.api.create("configmaps", {"metadata": {"name": "settings"}, "data": {"color": "red"}})
    member.api.create("secrets", {"metadata": {"name": "login"}, "data": {"key": base64.b64encode(b"s3cr3t").decode()}})
    member.bind("web", specs.container(
        env=[{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "login", "key": "key"}}}],
        volumeMounts=[specs.mount("s", "/settings")]), volumes=[{"name": "s", "configMap": {"name": "settings"}}])


def cached(member, name=""):
    return os.path.join(member.state, "cluster", name)


def has_valid_checksum(path):
    """Whether the last line has the checksum of everything before it."""
    try:
        with open(path, "rb") as file:
            text, _, checksum = file.read()[:-1].rpartition(b"\n")
    except FileNotFoundError:
        return False
    return hashlib.sha256(text + b"\n").hexdigest().encode() == checksum


def files_below(directory):
    return [os.path.join(where, name) for where, _, names in os.walk(directory) for name in names]


@contextlib.contextmanager
def traced(member, *options):
    """Traces the agent and all of its forks by strace; returns the file to which strace writes."""
    log = os.path.join(member.directory, "trace")
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-y", "-o", log, "-p", str(member.agent.pid), *options],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait(lambda: world.status(member.agent.pid, "TracerPid").strip() != "0", "strace is attached")
        yield log
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait()


def synced(log):
    """The process and the file of each fsync, in order."""
    return [(int(pid), path) for pid, path in re.findall(r"^(\d+) +fsync\(\d+<([^>]*)>", world.read(log) or "", re.M)]


def test_cached_secrets_are_readable_only_by_root(make_member):
    """The values are not encrypted, as configured; test_secrets_at_rest.py tests encrypted values."""
    member = make_member(secretsAtRest="clear")
    bind(member)
    member.wait_running("web")
    wait(lambda: all(os.path.exists(cached(member, name)) for name in CACHED), "the objects are on the disk")
    assert base64.b64encode(b"s3cr3t") in world.read(cached(member, CACHED[0])).encode()
    for where, _, names in os.walk(cached(member)):
        assert stat.S_IMODE(os.stat(where).st_mode) == 0o700 and os.stat(where).st_uid == 0, where
        for name in names:
            found = os.stat(os.path.join(where, name))
            assert stat.S_IMODE(found.st_mode) == 0o600 and found.st_uid == 0, name


def test_cache_is_checksummed_private_and_synced_by_a_child(make_member):
    member = make_member()
    member.launch(specs.pod("first"))  # the image is present
    with traced(member, "-e", "trace=fsync,rename,renameat,renameat2", "-e", "inject=fsync:delay_enter=2000000") as log:
        bind(member)
        member.wait_reported_phase("web", "Running")
        member.launch(specs.pod("own"))
        uid = member.reported("web")["metadata"]["uid"]
        record = os.path.join(member.state, "pods", uid, "record")
        wait(lambda: all(os.path.exists(cached(member, name)) for name in CACHED), lambda: files_below(cached(member)))
        wait_kept(member, "web")
        wait(lambda: {record, os.path.dirname(record), os.path.dirname(os.path.dirname(record)), cached(member, "objects")} <=
             {path for _, path in synced(log)}, lambda: synced(log))
    user = dict((path, pid) for pid, path in synced(log))
    assert member.agent.pid not in user.values(), "the event loop does not wait for the disk"
    for name in CACHED[:2]:
        beside = os.path.join(os.path.dirname(cached(member, name)), "." + os.path.basename(name))
        assert beside in user, f"{beside} is synced before it is renamed: {sorted(user)}"
    for path in [record, *files_below(cached(member))]:
        assert has_valid_checksum(path) and stat.S_IMODE(os.stat(path).st_mode) == 0o600, path
    for where, _, _ in os.walk(cached(member)):
        assert stat.S_IMODE(os.stat(where).st_mode) == 0o700, where


def test_full_disk_is_retried_and_stops_no_pod(make_member):
    member = make_member()
    member.launch(specs.pod("first"))  # the image is present
    with traced(member, "-e", "trace=fsync", "-e", "inject=fsync:error=ENOSPC"):
        bind(member)
        member.wait_reported_phase("web", "Running")
        failure = f"Cannot write the cache of API objects in {member.state}/"
        wait(lambda: failure in member.said(), member.said)
        wait(lambda: "may not survive a power cut" in member.said(), member.said)
        pid = member.init("web")
        member.launch(specs.pod("own"))
    wait(lambda: all(os.path.exists(cached(member, name)) for name in CACHED), lambda: files_below(cached(member)))
    wait(lambda: f"Wrote the cache of API objects in {member.state}/" in member.said(), member.said)
    assert member.said().count(failure) == 1
    assert member.init("web") == pid


def test_unreferenced_objects_leave_the_cache(make_member):
    member = make_member()
    bind(member)
    member.wait_reported_phase("web", "Running")
    wait(lambda: all(os.path.exists(cached(member, name)) for name in CACHED), lambda: files_below(cached(member)))
    wait_kept(member, "web")
    member.api.delete("pods", "default", "web", grace=1)
    member.wait_reported_gone("web")
    wait(lambda: {os.path.basename(path) for path in files_below(cached(member))} == {"identity", "services"},
         lambda: files_below(cached(member)))


def test_damaged_cache_file_is_set_aside_and_written_again(make_member):
    member = make_member()
    bind(member)
    member.bind("plain")
    member.wait_reported_phase("web", "Running")
    member.wait_reported_phase("plain", "Running")
    wait(lambda: all(os.path.exists(cached(member, name)) for name in CACHED), lambda: files_below(cached(member)))
    wait_kept(member, "plain")
    member.api.stop()
    reboot(member)
    with open(cached(member, CACHED[0]), "r+b") as file:
        file.seek(3)
        byte = file.read(1)
        file.seek(3)
        file.write(bytes([byte[0] ^ 1]))
    member.start()
    member.wait_running("plain")
    wait(lambda: "Cannot use the cached object secret_default_login" in member.said(), member.said)
    assert os.path.exists(cached(member, CACHED[0] + ".damaged"))
    member.api.start()
    member.launch(specs.pod("own"))
    member.wait_reported_phase("web", "Running")
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    wait(lambda: has_valid_checksum(cached(member, CACHED[0])), "it is stored again")
