# SPDX-License-Identifier: Apache-2.0
"""Secrets whose values are encrypted for the node (age) or sealed for the machine (systemd-creds), mainstay-secrets(7)."""

import base64
import json
import os
import re
import shutil
import stat
import subprocess

import harness
import pytest
import specs
import world
from canaries import encodings, files_with
from index_source import Index, Key, settings
from world import wait

ANNOTATION = "mainstay.dev/encrypted-keys"
CANARY = "canary-8f1d22-value"


def tool(*command, text=b""):
    ran = subprocess.run(command, input=text, capture_output=True, check=False, timeout=60)
    assert ran.returncode == 0, (command, ran.stderr)
    return ran.stdout


def mainstay(*words):
    return subprocess.run([harness.program("mainstay"), *words], capture_output=True, check=False, text=True, timeout=60)


def log(node, name):
    return "\n".join(node.logged(name))


def age(value, *recipients, armored=True):
    return tool("age", *(["-a"] if armored else []), *[word for one in recipients for word in ("-r", one)], text=value.encode())


def recipient(node, *options):
    ran = node.cli("source", "identity", *options)
    assert ran.returncode == 0, ran
    return ran.stdout.strip()


def secret(name="till", keys="word", **values):
    """Values of bytes are in 'data', others in 'stringData'."""
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "annotations": {ANNOTATION: keys}}, "data": {}, "stringData": {}}
    for key, value in values.items():
        if isinstance(value, bytes):
            document["data"][key] = base64.b64encode(value).decode()
        else:
            document["stringData"][key] = value
    return document


def user(name="web", of="till", **container):
    """A pod with the Secret as variables and as files."""
    return specs.pod(name, specs.container(script='printf "%s\n" "$WORD"; cat /secret/*; echo; exec sleep inf',
                                           env=[{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": of, "key": "word"}}}],
                                           volumeMounts=[{"name": "s", "mountPath": "/secret"}], **container),
                     volumes=[{"name": "s", "secret": {"secretName": of}}])


@pytest.fixture(name="sealing", params=["sealed", "clear"])
def fixture_sealing(request, make_node):
    """A node for each setting."""
    return make_node(config={"mainstay": {"secretsAtRest": request.param}})


def waiting(node, name):
    states = [one.get("state", {}).get("waiting") for one in node.pod(name)["status"].get("containerStatuses", [])]
    return states[0] if states and states[0] else {}


def wait_says(node, name, reason, *words):
    wait(lambda: waiting(node, name).get("reason") == reason and all(word in waiting(node, name).get("message", "") for word in words),
         lambda: f"'{reason}' of {name} contains {words}: {waiting(node, name)}\n{node.said()[-2000:]}")


def identity_file(node):
    return os.path.join(node.state, "secrets", "identity")


def test_age_encrypted_values_are_decrypted_for_variables_and_files(sealing):
    node = sealing
    mine = recipient(node)
    node.drop(specs.text(secret(keys="word, binary", word=age(CANARY, mine).decode(), binary=age("bytes", mine, armored=False), plain="clear"),
                         user()), "web.yaml")
    node.wait_running("web")
    wait(lambda: all(word in log(node, "web") for word in (CANARY, "bytes", "clear")), lambda: f"all are logged: {node.log('web')}")


def test_identity_is_readable_only_by_root_and_sealed_on_disk(node):
    first = recipient(node)
    assert recipient(node) == first, "the identity is created once"
    text = open(identity_file(node), encoding="utf-8").read()
    assert stat.S_IMODE(os.stat(identity_file(node)).st_mode) == 0o400
    assert "sealed" in text and "AGE-SECRET-KEY" not in text and first in text
    node.restart()
    assert recipient(node) == first


def test_identity_is_stored_in_clear_only_if_configured(make_node):
    node = make_node(config={"mainstay": {"secretsAtRest": "clear"}})
    ran = node.cli("source", "identity")
    assert "not sealed" in ran.stderr and "AGE-SECRET-KEY" in open(identity_file(node), encoding="utf-8").read()
    assert stat.S_IMODE(os.stat(identity_file(node)).st_mode) == 0o400


def test_identity_error_is_cleared_once_the_identity_is_unsealed(make_node, tmp_path):
    (tmp_path / "systemd-creds").write_text(f'#!/bin/sh\n[ -e {tmp_path}/broken ] && exit 1\nexec /usr/bin/systemd-creds "$@"\n')
    (tmp_path / "systemd-creds").chmod(0o755)
    node = make_node(start=False)
    environment = node.environment
    node.environment = lambda: {**environment(), "PATH": f"{tmp_path}:{environment()['PATH']}"}
    node.start()
    mine = recipient(node)
    (tmp_path / "broken").touch()
    node.restart()
    node.drop(specs.text(secret(word=age(CANARY, mine).decode()), user()), "web.yaml")
    wait(lambda: "cannot be unsealed" in json.loads(node.get("/identity")[1]).get("error", ""), "it is reported")
    (tmp_path / "broken").unlink()
    node.wait_running("web")
    assert "error" not in json.loads(node.get("/identity")[1])


def test_rotation_keeps_the_old_identity_until_it_is_removed(node):
    old = recipient(node)
    new = recipient(node, "--rotate")
    assert new != old
    node.drop(specs.text(secret(word=age("for the old one", old).decode()), user()), "web.yaml")
    node.wait_running("web")
    wait(lambda: "for the old one" in log(node, "web"), "the old identity opens it")
    node.drop(specs.text(secret("other", word=age("for the new one", new).decode()), user("other", "other")), "other.yaml")
    node.wait_running("other")
    assert recipient(node, "--remove-old") == new
    node.restart()
    node.drop(specs.text(secret("third", word=age("late", old).decode()), user("third", "third")), "third.yaml")
    wait(lambda: "is encrypted for 1 recipients of X25519" in node.said(), lambda: f"it cannot be opened: {node.said()[-2000:]}")


def soft_limit_of_cores(pid):
    return re.search(r"^Max core file size +(\d+|unlimited) ", world.read(f"/proc/{pid}/limits"), re.M).group(1)


def test_programs_with_secret_values_dump_no_core_unless_they_enable_it(node):
    mine = recipient(node)
    script = 'case "$WORD" in asks) ulimit -c unlimited;; esac; exec sleep inf'
    for name, word in (("web", CANARY), ("asking", "asks")):
        node.drop(specs.text(secret(name, word=age(word, mine).decode()), specs.pod(name, specs.container(script=script, env=[
            {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": name, "key": "word"}}}]))), f"{name}.yaml")
    for name in ("web", "asking"):
        node.wait_running(name)
    shim = node.shim("web")
    assert [soft_limit_of_cores(pid) for pid in (node.agent.pid, shim, node.init("web"))] == ["1"] * 3
    wait(lambda: soft_limit_of_cores(node.init("asking")) == "unlimited", "a container may have its core")


WRONG = {
    "for another node": (lambda mine: age(CANARY, tool("age-keygen").decode().split("public key: ")[1].split()[0]).decode(), "none of them is an identity"),
    "damaged": (lambda mine: age(CANARY, mine).decode().replace("\n-----END", "A\n-----END"), "is not an armored file of age"),
    "cut": (lambda mine: age("x" * 1000, mine, armored=False)[:-200], "is damaged"),
    "with a password": (lambda mine: "age-encryption.org/v1\n-> scrypt AAAAAAAAAAAAAAAAAAAAAA 10\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
                        "--- AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n", "is encrypted for 0 recipients"),
    "a credential of another machine": (lambda mine: base64.b64encode(b"\x5a\x1c\x6a\x86\xdf\x9d\x40\x96\xb1\xd5\xa6\x5e\x08\x62\xf1\x9a" + b"x" * 80).decode(),
                                        "systemd-creds"),
}


@pytest.mark.parametrize("case", WRONG)
def test_pod_waits_with_the_reason_if_a_value_cannot_be_decrypted(node, case):
    make, words = WRONG[case]
    node.drop(specs.text(secret(word=make(recipient(node))), specs.pod("web", specs.container(envFrom=[{"secretRef": {"name": "till"}}]))), "web.yaml")
    wait_says(node, "web", "CreateContainerConfigError", 'secret "till": word', words)
    assert CANARY not in json.dumps(node.pod("web"))


def test_volume_that_cannot_be_decrypted_is_an_event_with_the_reason(node):
    recipient(node)
    node.drop(specs.text(secret(word=WRONG["for another node"][0](None)), user()), "web.yaml")
    wait(lambda: any(event["reason"] == "FailedMount" and 'secret "till": word: is encrypted for 1 recipients' in event["message"]
                     for event in json.loads(node.cli("get", "events", "-o", "json").stdout)["items"]),
         lambda: f"FailedMount names it: {node.cli('get', 'events').stdout}")


def test_secret_is_decrypted_once_the_node_has_an_identity(node):
    keys = tool("age-keygen").decode()
    node.drop(specs.text(secret(word=age(CANARY, keys.split("public key: ")[1].split()[0]).decode()), user()), "web.yaml")
    wait(lambda: "this node has no identity" in node.said(), "the remedy is in the log")
    mine = recipient(node)
    node.drop(specs.text(secret(word=age(CANARY, mine).decode()), user()), "web.yaml")
    node.wait_running("web")


def test_an_edit_of_an_encrypted_value_reaches_the_running_pod(node):
    mine = recipient(node)
    node.drop(specs.text(secret(word=age("before", mine).decode())), "secret.yaml")
    node.drop(user(), "web.yaml")
    node.wait_running("web")
    node.drop(specs.text(secret(word=age("after-the-edit", mine).decode())), "secret.yaml")
    wait(lambda: "after-the-edit" in node.cli("exec", "web", "--", "cat", "/secret/word").stdout, "the file follows")


def test_sealed_value_is_decrypted_only_on_its_machine_and_under_its_name(node, tmp_path):
    (tmp_path / "word").write_text(CANARY)
    made = mainstay("secret", "seal", "till", f"word={tmp_path}/word")
    assert made.returncode == 0 and CANARY not in made.stdout, made
    node.drop(specs.text(user()), "web.yaml")
    with open(node.path("secret.yaml"), "w", encoding="utf-8") as file:
        file.write(made.stdout)
    node.wait_running("web")
    wait(lambda: CANARY in log(node, "web"), lambda: f"the value is in the log: {node.log('web')}")
    with open(node.path("other.yaml"), "w", encoding="utf-8") as file:
        file.write(made.stdout.replace('"till"', '"stolen"'))
    node.drop(specs.pod("thief", specs.container(envFrom=[{"secretRef": {"name": "stolen"}}])), "thief.yaml")
    wait_says(node, "thief", "CreateContainerConfigError", 'secret "stolen": word')


def test_secret_is_not_sealed_with_a_public_key(tmp_path):
    """On a machine without a key systemd-creds uses a public one."""
    (tmp_path / "word").write_text(CANARY)
    sealed = base64.b64encode(bytes.fromhex("058469daf6f54324800549da0f8ea2fb") + b"x" * 100).decode()
    for script, words in ((f"echo {sealed}", "neither a TPM2 nor a key"), ("echo nothing", "returned no credential"), ("exit 1", "failed")):
        (tmp_path / "systemd-creds").write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n")
        (tmp_path / "systemd-creds").chmod(0o755)
        ran = subprocess.run([harness.program("mainstay"), "secret", "seal", "till", f"word={tmp_path}/word"], capture_output=True, check=False, text=True,
                             timeout=60, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
        assert ran.returncode == 1 and words in ran.stderr and not ran.stdout and CANARY not in ran.stderr, ran


def test_duplicate_key_of_a_secret_is_refused(tmp_path):
    (tmp_path / "word").write_text(CANARY)
    key = tool("age-keygen").decode().split("public key: ")[1].split()[0]
    for verb, options in (("encrypt", ("-r", key)), ("seal", ())):
        ran = mainstay("secret", verb, "till", f"word={tmp_path}/word", f"words={tmp_path}/word", f"word={tmp_path}/word", *options)
        assert ran.returncode == 1 and "the key 'word' occurs twice" in ran.stderr and not ran.stdout, ran
    assert mainstay("secret", "encrypt", "till", f"word={tmp_path}/word", f"words={tmp_path}/word", "-r", key).returncode == 0


def test_encrypted_secret_of_the_command_is_read_by_age_and_by_the_node(node, tmp_path):
    keys = tool("age-keygen").decode()
    (tmp_path / "key").write_text(keys)
    (tmp_path / "group").write_text(f"# till 1\n{recipient(node)}\n\n# the office\n{keys.split('public key: ')[1].split()[0]}\n")
    (tmp_path / "word").write_text(CANARY)
    made = mainstay("secret", "encrypt", "till", f"word={tmp_path}/word", "-R", str(tmp_path / "group"))
    assert made.returncode == 0, made
    (tmp_path / "made.yaml").write_text(made.stdout)
    assert mainstay("validate", str(tmp_path / "made.yaml")).returncode == 0
    assert 'mainstay.dev/encrypted-for: "till 1, the office"' in made.stdout, made
    armored = "\n".join(line.strip() for line in made.stdout.split("word: |")[1].splitlines()).strip()
    assert tool("age", "-d", "-i", str(tmp_path / "key"), text=armored.encode()).decode() == CANARY
    with open(node.path("secret.yaml"), "w", encoding="utf-8") as file:
        file.write(made.stdout)
    node.drop(user(), "web.yaml")
    node.wait_running("web")


REFUSED = {
    "a key that is not there": (secret(keys="word,none", word="age-encryption.org/v1\n"), "there is no value 'none'"),
    "a value in clear": (secret(word="hunter2"), "must be a file of age or a credential of systemd"),
    "no key": (secret(keys="", word="x"), "there is no value ''"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_annotation_that_does_not_match_the_values_is_an_error_of_the_manifest(tmp_path, case):
    document, words = REFUSED[case]
    (tmp_path / "secret.yaml").write_text(specs.text(document))
    ran = mainstay("validate", str(tmp_path / "secret.yaml"))
    assert ran.returncode == 1 and words in ran.stdout + ran.stderr and "hunter2" not in ran.stdout + ran.stderr, ran


def test_value_without_the_annotation_is_not_decrypted(node):
    mine = recipient(node)
    document = secret(word=age(CANARY, mine).decode())
    del document["metadata"]["annotations"]
    node.drop(specs.text(document, user()), "web.yaml")
    node.wait_running("web")
    wait(lambda: "BEGIN AGE ENCRYPTED FILE" in log(node, "web"), lambda: f"the value is unchanged: {node.log('web')}")
    assert CANARY not in log(node, "web")


def test_secrets_of_an_index_are_decrypted(make_node, tmp_path):
    key = Key(str(tmp_path), "one")
    os.mkdir(tmp_path / "root")
    index = Index(str(tmp_path / "root"), key)
    node = make_node()
    mine = recipient(node)
    index.write({"all.yaml": specs.text(secret(word=age(CANARY, mine).decode()), user()).encode()})
    node.write_config(**{"mainstay": {"source": settings(f"file://{index.directory}/index.json", [key])}})
    node.restart()
    node.wait_running("web")
    wait(lambda: CANARY in log(node, "web"), lambda: f"the value is in the log: {node.log('web')}")
    node.write_config()
    node.restart()
    node.wait_gone("web")


def test_source_status_shows_which_secrets_of_the_index_this_node_can_decrypt(make_node, tmp_path):
    """The status also covers Secrets that no pod needs, which are neither kept nor logged."""
    key = Key(str(tmp_path), "one")
    os.mkdir(tmp_path / "root")
    index = Index(str(tmp_path / "root"), key)
    node = make_node()
    mine, other = recipient(node), tool("age-keygen").decode().split("public key: ")[1].split()[0]
    documents = [secret(word=age(CANARY, mine).decode()), secret("spare", word=age("spare-" + CANARY, mine, other).decode(), plain="x"),
                 secret("office", word=age(CANARY, other).decode())]
    documents[1]["metadata"]["annotations"]["mainstay.dev/encrypted-for"] = "till-1, office"
    index.write({"all.yaml": specs.text(*documents, user()).encode()})
    node.drop(specs.text(secret("local", word=age(CANARY, mine).decode())), "local.yaml")
    node.write_config(**{"mainstay": {"source": settings(f"file://{index.directory}/index.json", [key])}})
    node.restart()
    node.wait_running("web")

    def rows():
        lines = node.cli("source", "status").stdout.splitlines()
        start = next((i for i, line in enumerate(lines) if line.startswith("SECRET ")), len(lines))
        return {row[0]: row[1:] for row in (re.split(" {2,}", line.strip()) for line in lines[start + 1:])}

    shown = rows()
    assert set(shown) == {"default/till", "default/spare", "default/office"}, shown
    assert shown["default/till"] == ["word", "<not named>", "yes"] and shown["default/spare"] == ["word", "till-1, office", "yes"], shown
    assert shown["default/office"][:3] == ["word", "<not named>", "no"], shown
    assert "word: is encrypted for 1 recipients of X25519, and none of them is an identity" in shown["default/office"][3], shown
    assert "Cannot open" not in node.said(), "nobody needs it"
    assert "Secret default/spare: openable" in node.cli("debug", "dump").stdout
    node.drop(user("late", "local"), "late.yaml")
    node.wait_running("late")
    index.write({"all.yaml": specs.text(*documents, user(), user("reserve", "spare")).encode()})
    node.wait_running("reserve")
    wait(lambda: "spare-" + CANARY in log(node, "reserve"), "the checked Secret is opened for a pod")
    recipient(node, "--rotate")
    recipient(node, "--remove-old")
    wait(lambda: rows()["default/office"][2] == "no", "it is checked again")
    node.write_config()
    node.restart()
    for name in ("web", "reserve"):
        node.wait_gone(name)


def with_helper(make_node, directory, script):
    """A node with a script in the place of mainstay-secret, whose starts are counted in a file."""
    for name in ("mainstayd", "mainstay-image", "mainstay-shim"):
        shutil.copy(harness.program(name), directory)
    (directory / "mainstay-secret").write_text(f"#!/bin/sh\necho x >> {directory}/runs\n{script}\n")
    (directory / "mainstay-secret").chmod(0o755)
    node = make_node(start=False)
    command = node.command
    node.command = lambda: [str(directory / "mainstayd"), *command()[1:]]
    node.start()
    return node


def test_secret_that_crashes_the_helper_affects_no_other_secret(make_node, tmp_path):
    """At first one process opens all Secrets."""
    node = with_helper(make_node, tmp_path, f"""
cat > {tmp_path}/request.$$
grep -q CRASH {tmp_path}/request.$$ && kill -SEGV $$
exec {harness.program("mainstay-secret")} < {tmp_path}/request.$$""")
    mine = recipient(node)
    node.drop(specs.text(secret("bad", word=b"age-encryption.org/v1\n-> CRASH\n\n"), secret(word=age(CANARY, mine).decode()),
                         secret("more", word=age("more", mine).decode()),
                         specs.pod("web", specs.container(script="exec sleep inf", envFrom=[{"secretRef": {"name": name}} for name in ("till", "more")])),
                         specs.pod("both", specs.container(envFrom=[{"secretRef": {"name": name}} for name in ("bad", "till")]))), "all.yaml")
    node.wait_running("web")
    wait_says(node, "both", "CreateContainerConfigError", 'secret "bad": ', "mainstay-secret")
    assert (tmp_path / "runs").read_text().count("x") >= 3


def test_secrets_of_a_pod_are_decrypted_by_one_process(make_node, tmp_path):
    node = with_helper(make_node, tmp_path, f"exec {harness.program('mainstay-secret')}")
    mine = recipient(node)
    names = [f"secret-{i}" for i in range(20)]
    node.drop(specs.text(*(secret(name, keys="word, more", word=age(name, mine).decode(), more=age(name, mine, armored=False)) for name in names)), "secrets.yaml")
    node.drop(specs.pod("web", specs.container(script='printf "%s\n" "$WORD"; exec sleep inf', envFrom=[{"secretRef": {"name": name}} for name in names[:10]],
                                               env=[{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": names[3], "key": "word"}}}],
                                               volumeMounts=[{"name": "s", "mountPath": "/secret"}]),
                        volumes=[{"name": "s", "projected": {"sources": [{"secret": {"name": name, "items": [{"key": "word", "path": name}]}} for name in names[10:]]}}]))
    node.wait_running("web")
    wait(lambda: "secret-3" in log(node, "web"), "the value is in the log")
    assert node.cli("exec", "web", "--", "cat", "/secret/secret-19").stdout == "secret-19"
    assert (tmp_path / "runs").read_text() == "x\n"


def test_canaries_are_neither_in_the_state_nor_in_logs_and_dumps(node):
    mine = recipient(node)
    node.drop(specs.text(secret(word=age(CANARY, mine).decode()),
                         specs.pod("web", specs.container(script="exec sleep inf", env=[
                             {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "till", "key": "word"}}}],
                             volumeMounts=[{"name": "s", "mountPath": "/secret"}]), volumes=[{"name": "s", "secret": {"secretName": "till"}}])), "web.yaml")
    node.wait_running("web")
    assert node.cli("exec", "web", "--", "cat", "/secret/word").stdout == CANARY
    node.restart()
    node.wait_running("web")
    words = encodings(CANARY)
    assert not files_with(words, node.state, node.log)
    for text in (node.said(), node.cli("debug", "dump").stdout, node.cli("get", "secrets", "-o", "json").stdout, node.cli("describe", "pod", "web").stdout):
        assert not any(word in text.encode() for word in words), text


def test_sign_prints_for_how_many_recipients_a_value_is_encrypted(tmp_path):
    keys = [tool("age-keygen").decode().split("public key: ")[1].split()[0] for _ in range(3)]
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "till.yaml").write_text(specs.text(secret(word=age(CANARY, *keys).decode())))
    key = Key(str(tmp_path), "one")
    ran = mainstay("source", "sign", str(tmp_path / "manifests"), str(tmp_path / "public"), "--key", key.path, "--fleet", "shops", "--check")
    assert ran.returncode == 0 and "Secret default/till: word is encrypted for 3 recipients" in ran.stdout, ran
    (tmp_path / "manifests" / "till.yaml").write_text(specs.text(secret(word="age-encryption.org/v1\n-> X25519 x\n")))
    ran = mainstay("source", "sign", str(tmp_path / "manifests"), str(tmp_path / "public"), "--key", key.path, "--fleet", "shops", "--check")
    assert ran.returncode == 1 and "Secret default/till: word: is not a file of age" in ran.stderr, ran


@pytest.mark.parametrize("names", ["till-1, office", None, "till-1"])
def test_sign_names_the_recipients_of_a_value(tmp_path, names):
    keys = [tool("age-keygen").decode().split("public key: ")[1].split()[0] for _ in range(2)]
    (tmp_path / "manifests").mkdir()
    (tmp_path / "group").write_text(f"#   till-1 \n{keys[0]}\n# \\x, \"quoted\"\033\n{keys[1]}\n")
    (tmp_path / "word").write_text(CANARY)
    made = mainstay("secret", "encrypt", "till", f"word={tmp_path}/word", "-R", str(tmp_path / "group"), "-r", keys[1])
    text = made.stdout
    assert f'mainstay.dev/encrypted-for: "{keys[1]}, till-1 , _x_ _quoted_?"' in text, made
    line = next(line for line in text.splitlines() if "encrypted-for" in line)
    text = text.replace(line + "\n", f'    mainstay.dev/encrypted-for: "{names}"\n' if names else "")
    (tmp_path / "manifests" / "till.yaml").write_text(text)
    key = Key(str(tmp_path), "one")
    ran = mainstay("source", "sign", str(tmp_path / "manifests"), str(tmp_path / "public"), "--key", key.path, "--fleet", "shops", "--check")
    n = names.count(",") + 1 if names else 0
    expected = "word is encrypted for 3 recipients" + (f": {names} (mainstay.dev/encrypted-for names {n})" if names else "") + "\n"
    assert ran.returncode == 0 and expected in ran.stdout, ran
