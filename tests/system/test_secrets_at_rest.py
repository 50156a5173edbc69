# SPDX-License-Identifier: Apache-2.0
"""Secrets, tokens and pull secrets of the API server that the agent keeps for starts without it are encrypted on disk."""

import base64
import glob
import hashlib
import os
import shutil
import stat

import pytest
import specs
import world
from canaries import encodings, files_with
from test_apiserver_offline import TOKENS, reboot, wait_kept
from world import wait

CANARY = "canary-41c7e9-value"
PREFIX = "mainstay-encrypted-v1 "


def kept(member, name="secret_default_login"):
    return os.path.join(member.state, "cluster", "objects", name)


def key_file(member):
    return os.path.join(member.state, "secrets", "storage-key")


def bind(member):
    """A pod that has a Secret as a variable and as a file, a ConfigMap, and a token."""
    member.api.create("configmaps", {"metadata": {"name": "settings"}, "data": {"color": "red"}})
    member.api.create("secrets", {"metadata": {"name": "login"}, "data": {"key": base64.b64encode(CANARY.encode()).decode()}})
    bind_pod(member)


def bind_pod(member, name="web"):
    member.bind(name, specs.container(env=[{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "login", "key": "key"}}}],
                                      volumeMounts=[specs.mount("s", "/settings"), specs.mount("l", "/login")]),
                volumes=[{"name": "s", "configMap": {"name": "settings"}}, {"name": "l", "secret": {"secretName": "login"}}])


def bound(make_member, at_rest="sealed"):
    """A node that has stored everything that the pod needs on its disk."""
    member = make_member(secretsAtRest=at_rest)
    bind(member)
    member.wait_reported_phase("web", "Running")
    wait_kept(member, "web", "secret_default_login", "configmap_default_settings")
    return member


def set_at_rest(member, value):
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, "secretsAtRest": value})


def cached(member):
    return [path for path in glob.glob(os.path.join(member.state, "cluster", "objects", "*")) +
            glob.glob(os.path.join(member.state, "cluster", "tokens", "*")) if os.path.isfile(path)]


def in_clear(member):
    return [path for path in cached(member) if not (world.read(path) or "").startswith(PREFIX)]


def wait_encrypted(member):
    wait(lambda: cached(member) and not in_clear(member), lambda: f"all is encrypted: {in_clear(member)} {member.said()[-3000:]}")


def has_its_values(member):
    pid = member.init("web")
    assert world.environ(pid)["KEY"] == CANARY
    assert world.read(f"/proc/{pid}/root/login/key") == CANARY and world.read(f"/proc/{pid}/root/settings/color") == "red"
    assert world.read(f"/proc/{pid}/root{TOKENS}/token")


def assert_nothing_in_clear(member, *tokens):
    words = {word for text in (CANARY, *tokens) for word in encodings(text)}
    assert not files_with(words, member.state, member.log)
    assert not [word for word in words if word in (member.said() + member.cli("debug", "dump").stdout).encode()]


def test_objects_and_tokens_are_encrypted_and_start_the_pod_without_the_server(make_member):
    member = bound(make_member)
    wait_encrypted(member)
    token = world.read(f"/proc/{member.init('web')}/root{TOKENS}/token")
    assert_nothing_in_clear(member, token)
    assert stat.S_IMODE(os.stat(key_file(member)).st_mode) == 0o400
    assert "encrypted, with a key that systemd seals" in member.cli("describe", "node").stdout
    member.api.stop()
    reboot(member)
    member.start()
    member.wait_running("web")
    has_its_values(member)
    assert_nothing_in_clear(member, token)


def test_pod_with_an_optional_object_that_does_not_exist_starts_without_the_server(make_member):
    member = make_member()
    member.bind("web", specs.container(envFrom=[{"secretRef": {"name": "absent", "optional": True}}]))
    member.wait_reported_phase("web", "Running")
    wait_kept(member, "web", "secret_default_absent")
    member.api.stop()
    reboot(member)
    member.start()
    member.wait_running("web")


def test_state_of_an_earlier_version_is_read_and_encrypted(make_member):
    """The state of an earlier version is like that with the setting 'clear'."""
    member = bound(make_member, "clear")
    assert files_with(encodings(base64.b64encode(CANARY.encode()).decode()), member.state), "the Secret is stored unencrypted"
    os.link(kept(member), kept(member, "secret_default_unused"))
    with open(kept(member, "secret_default_login.damaged"), "w", encoding="utf-8") as file:
        file.write(f"{{\"key\": \"{CANARY}\"")
    member.api.stop()
    set_at_rest(member, "sealed")
    reboot(member)
    member.start()
    member.wait_running("web")
    has_its_values(member)
    wait_encrypted(member)
    wait(lambda: not files_with(encodings(CANARY), member.state), lambda: f"nothing is left: {files_with(encodings(CANARY), member.state)}")
    reboot(member)
    member.start()
    member.wait_running("web")
    has_its_values(member)


def test_clear_setting_is_logged_and_encrypted_objects_stay_readable(make_member):
    member = bound(make_member)
    wait_encrypted(member)
    member.api.stop()
    set_at_rest(member, "clear")
    reboot(member)
    member.start()
    member.wait_running("web")
    has_its_values(member)
    assert "'secretsAtRest: clear' is configured" in member.said()
    assert "unencrypted, as 'secretsAtRest: clear' permits" in member.cli("describe", "node").stdout


def cut_file(member):
    os.truncate(key_file(member), 20)


def remove_file(member):
    os.remove(key_file(member))


def take_another_key(member):
    """Replaces the key by a credential for which this machine has no key."""
    recipient, credential = world.read(key_file(member)).rstrip("\n").rpartition("\n")[0].split("sealed\n")
    text = f"{recipient}sealed\n{'A' * 8}{credential[8:]}\n"
    os.chmod(key_file(member), 0o600)
    with open(key_file(member), "w", encoding="utf-8") as file:
        file.write(text + hashlib.sha256(text.encode()).hexdigest() + "\n")


LOST = {"cut": cut_file, "removed": remove_file, "of another machine": take_another_key}


@pytest.mark.parametrize("case", LOST)
def test_all_objects_are_fetched_again_after_the_loss_of_the_key(make_member, case):
    member = bound(make_member)
    wait_encrypted(member)
    before = {path: world.read(path) for path in cached(member)}
    member.api.stop()
    reboot(member)
    LOST[case](member)
    member.start()
    member.launch(specs.pod("own"))
    wait(lambda: "Cannot use the cached object secret_default_login" in member.said(), member.said)
    assert member.find_init("web") is None, "it waits for the server"
    member.api.start()
    member.wait_running("web")
    has_its_values(member)
    wait(lambda: (world.read(kept(member)) or "").startswith(PREFIX) and world.read(kept(member)) != before[kept(member)],
         lambda: f"it is stored again: {member.said()[-3000:]}")
    wait_encrypted(member)
    assert os.path.exists(key_file(member))
    member.api.stop()
    reboot(member)
    member.start()
    member.wait_running("web")
    has_its_values(member)


def test_file_under_the_name_of_another_secret_is_not_used(make_member):
    member = bound(make_member)
    member.api.create("secrets", {"metadata": {"name": "other"}, "data": {"key": base64.b64encode(b"other").decode()}})
    member.bind("second", specs.container(envFrom=[{"secretRef": {"name": "other"}}]))
    member.wait_reported_phase("second", "Running")
    wait_kept(member, "second", "secret_default_other")
    wait_encrypted(member)
    member.api.stop()
    reboot(member)
    shutil.copy(kept(member), kept(member, "secret_default_other"))
    member.start()
    member.wait_running("web")
    wait(lambda: "Cannot use the cached object secret_default_other" in member.said(), member.said)
    assert member.find_init("second") is None, "it waits for the server"


PUBLIC = base64.b64encode(bytes.fromhex("058469daf6f54324800549da0f8ea2fb") + b"x" * 100).decode()
UNSEALED = {
    "not installed": (None, "systemd-creds of systemd is not installed"),
    "fails": ("#!/bin/sh\necho no TPM >&2\nexit 1\n", "no TPM"),
    "without a key": (f"#!/bin/sh\necho {PUBLIC}\n", "neither a TPM2 nor a key"),
}


@pytest.mark.parametrize("case", UNSEALED)
def test_node_caches_no_secrets_without_a_key_and_reports_it(make_member, tmp_path, case):
    script, words = UNSEALED[case]
    programs = without_systemd_creds(tmp_path)
    if script:
        path = os.path.join(programs, "systemd-creds")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        os.chmod(path, 0o755)
    member = make_member(start=False)
    environment = member.environment
    member.environment = lambda: {**environment(), "PATH": programs}
    member.start()
    bind(member)
    member.wait_running("web")
    has_its_values(member)
    described = member.cli("describe", "node").stdout
    assert "Secrets At Rest:" in described and "not kept:" in described and words in described, described
    assert words in member.said() and "secretsAtRest: clear" in member.said()
    member.restart()
    member.wait_running("web")
    assert member.stop() == 0
    assert not cached(member) and not files_with(encodings(CANARY), member.state)
    del member.environment
    member.start()
    wait_kept(member, "web", "secret_default_login")
    wait_encrypted(member)
    assert "encrypted, with a key" in member.cli("describe", "node").stdout


def without_systemd_creds(tmp_path):
    """A directory with links to all programs except systemd-creds."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for directory in ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"):
        for name in os.listdir(directory) if os.path.isdir(directory) else []:
            if name != "systemd-creds" and not os.path.lexists(programs / name):
                os.symlink(os.path.join(directory, name), programs / name)
    return str(programs)
