# SPDX-License-Identifier: Apache-2.0
"""Credentials: certificates and tokens that are replaced while in use, TLS bootstrap."""

import os
import shutil
import stat
import time

import pytest
import specs
from api_certs import Authority, kubeconfig
from faulty_disk import FaultyDisk
from harness import NODE_NAME
from world import wait

TOKEN, BOOTSTRAP = "n0de-t0ken-8c1f", "b00tstr.ap-t0ken-55aa"


def certificates(member, seconds=86400):
    """The certificate and key of the node in separate files, and a kubeconfig that names them."""
    cert, key = member.api.authority.node(NODE_NAME, end=seconds)
    own = [os.path.join(member.directory, name) for name in ("node.crt", "node.key")]
    exchange(cert, own[0])
    exchange(key, own[1])
    member.api.kubeconfig(member.kubeconfig, cert=own[0], key=own[1])
    return own


def exchange(source, target):
    shutil.copy(source, target + ".new")
    os.rename(target + ".new", target)


def peers(member):
    """The users of all requests to the server."""
    return {request.user.name for request in member.api.asked()}


def watches(member):
    return member.api.asked("watch", "pods", user=f"system:node:{NODE_NAME}")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def request_of(member):
    found = member.api.all("certificatesigningrequests")
    return found[0] if found else None


def test_replaced_certificate_drops_no_watch(make_member):
    member = make_member(start=False)
    own = certificates(member)
    member.start()
    wait(lambda: member.api.get("nodes", None, NODE_NAME), "the Node")
    wait(lambda: watches(member), "a watch of pods")
    before = len(watches(member))
    other = member.api.authority.issue("second", f"/O=system:nodes/CN=system:node:{NODE_NAME}")
    start = time.monotonic()
    exchange(other[0], own[0])
    time.sleep(0.5)
    exchange(other[1], own[1])
    took = time.monotonic() - start
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    assert len(watches(member)) == before
    assert took > 1.9 or "the key is not that of the certificate" not in member.said(), "an error of less than 2 s is not reported"


def test_kubeconfig_that_is_replaced_while_it_is_read_is_read_again(make_member):
    member = make_member(start=False)
    member.kubeconfig = path = os.path.join(member.log, "kubeconfig")
    os.makedirs(member.log, exist_ok=True)
    member.api.kubeconfig(path, node=NODE_NAME)
    member.write_config(mainstay={"kubeconfig": path})
    disk = FaultyDisk(member, "read")
    member.start()
    wait(lambda: member.api.get("nodes", None, NODE_NAME), "the Node")
    disk.rule = lambda call, at: 600 if at == path else None
    kubeconfig(path, "https://127.0.0.1:1", token=TOKEN)  # an address without a server
    wait(lambda: disk.waiting, "it is being read")
    member.api.kubeconfig(path, node=NODE_NAME)
    disk.mend()
    member.bind("web")
    member.wait_reported_phase("web", "Running")


def test_mismatched_pair_is_reported_and_the_old_one_stays_in_use(make_member):
    member = make_member(start=False)
    own = certificates(member)
    member.start()
    wait(lambda: member.api.get("nodes", None, NODE_NAME), "the Node")
    other = member.api.authority.issue("second", f"/O=system:nodes/CN=system:node:{NODE_NAME}")
    exchange(other[1], own[1])
    wait(lambda: "the key is not that of the certificate" in member.said(), member.said)
    assert member.said().count("the key is not that of the certificate") == 1
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    exchange(other[0], own[0])
    member.api.drop_connections()
    member.bind("late")
    member.wait_reported_phase("late", "Running")
    assert member.said().count("the key is not that of the certificate") == 1


def test_rotated_authority_is_used_as_soon_as_its_file_exists(make_member, tmp_path):
    member = make_member(start=False)
    path = os.path.join(member.directory, "ca.crt")
    shutil.copy(member.api.authority.cert, path)
    cert, key = member.api.authority.node(NODE_NAME)
    kubeconfig(member.kubeconfig, member.api.url, path, cert, key)
    member.start()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    pid = member.init("web")
    first, other = len(watches(member)), Authority(str(tmp_path))
    member.api.use_certificate(*other.server())
    member.api.drop_connections()
    wait(lambda: "certificate verification failed" in member.said(), member.said)
    member.launch(specs.pod("own"))
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text_of(member.api.authority.cert) + text_of(other.cert))
    os.rename(path + ".new", path)
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    wait(lambda: len(watches(member)) > first, "the watch is resumed")
    before = len(watches(member))
    exchange(other.cert, path)  # the old connection gets no new requests, and no watch is dropped
    member.bind("late")
    member.wait_reported_phase("late", "Running")
    assert len(watches(member)) == before
    assert member.init("web") == pid
    assert member.said().count("certificate verification failed") == 1, member.said()


@pytest.mark.parametrize("what,message", [
    ("nothing", "holds no token"), ("directory", "Is a directory"), ("large", "File too large"), ("binary", "holds no token"),
    ("fifo", "Invalid argument")])
def test_invalid_token_file_is_reported_and_the_last_token_stays_in_use(make_member, what, message):
    member = make_member(start=False)
    path = os.path.join(member.directory, "token")
    member.api.node_token(TOKEN, NODE_NAME)
    replace_file(path, TOKEN)
    member.api.kubeconfig(member.kubeconfig, tokenFile=path)
    member.start()
    wait(lambda: member.api.get("nodes", None, NODE_NAME), "the Node")
    if what == "directory":
        os.mkdir(path + ".new")
        os.unlink(path)
        os.rename(path + ".new", path)
    elif what == "fifo":
        os.mkfifo(path + ".new")
        os.rename(path + ".new", path)
    else:
        replace_file(path, {"nothing": "", "large": "x" * 1_000_000, "binary": "a\0b\nc"}[what])
    wait(lambda: f"{path}: {message}" in member.said(), lambda: f"{path}: {message}; its log:\n{member.said()}")
    member.api.drop_connections()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    if what == "directory":
        os.rmdir(path)
    member.api.tokens.pop(TOKEN)
    member.api.node_token(TOKEN + "-2", NODE_NAME)
    replace_file(path, TOKEN + "-2")
    member.bind("late")
    member.wait_reported_phase("late", "Running")
    assert member.said().count(f"{path}: {message}") == 1
    assert TOKEN not in member.said()


def replace_file(path, text):
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)


def test_replaced_token_is_used_and_never_shown(make_member):
    member = make_member(start=False)
    path = os.path.join(member.directory, "token")
    member.api.node_token(TOKEN, NODE_NAME)
    with open(path, "w", encoding="utf-8") as file:
        file.write(TOKEN)
    member.api.kubeconfig(member.kubeconfig, tokenFile=path)
    member.start()
    wait(lambda: member.api.get("nodes", None, NODE_NAME), "the Node")
    with open(path, "w", encoding="utf-8") as file:
        file.write("")
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    member.api.kubeconfig(member.kubeconfig, token=TOKEN, exec="{command: " + TOKEN + "}")
    wait(lambda: "would run a program to log in" in member.said(), member.said)
    assert TOKEN not in member.said()


def test_tls_bootstrap_waits_for_the_approval(make_member):
    member = make_member(start=False)
    bootstrap = os.path.join(member.directory, "bootstrap")
    member.api.add_token(BOOTSTRAP, "system:bootstrap:b00tstr", "system:bootstrappers", "system:authenticated")
    member.api.kubeconfig(bootstrap, token=BOOTSTRAP)
    os.unlink(member.kubeconfig)
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, "bootstrapKubeconfig": bootstrap})
    member.start()
    request = wait(lambda: request_of(member), lambda: f"a certificate signing request\n{member.said()}")
    assert request["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client-kubelet"
    wait(lambda: f"waiting for the approval of {request['metadata']['name']}" in member.said(), member.said)
    member.restart()
    member.api.approve(request["metadata"]["name"])
    wait(lambda: member.api.get("nodes", None, NODE_NAME), lambda: f"the Node\n{member.said()}")
    assert len(member.api.all("certificatesigningrequests")) == 1, "the second agent continues with the same request"
    pair = os.path.join(member.state, "pki", "kubelet-client-current.pem")
    for path in (pair, member.kubeconfig):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert text_of(pair).startswith("-----BEGIN CERTIFICATE-----") and "PRIVATE KEY-----" in text_of(pair)
    assert pair in text_of(member.kubeconfig) and BOOTSTRAP not in text_of(member.kubeconfig)
    assert BOOTSTRAP not in member.said() and "PRIVATE" not in member.said()
    member.bind("web")
    member.wait_reported_phase("web", "Running")


@pytest.mark.parametrize("token", [None, "b00tstr.exp1red-t0ken"])
def test_bootstrap_kubeconfig_that_is_replaced_is_used(make_member, token):
    """Before that the kubeconfig was missing, or its token had expired."""
    member = make_member(start=False)
    bootstrap = os.path.join(member.directory, "bootstrap")
    member.api.add_token(BOOTSTRAP, "system:bootstrap:b00tstr", "system:bootstrappers", "system:authenticated")
    if token:
        member.api.kubeconfig(bootstrap, token=token)
    os.unlink(member.kubeconfig)
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, "bootstrapKubeconfig": bootstrap})
    member.start()
    wait(lambda: ("401 Unauthorized" if token else f"{bootstrap}: No such file") in member.said(), member.said)
    assert request_of(member) is None
    member.api.kubeconfig(bootstrap, token=BOOTSTRAP)
    request = wait(lambda: request_of(member), lambda: f"a certificate signing request\n{member.said()}")
    member.api.approve(request["metadata"]["name"])
    wait(lambda: member.api.get("nodes", None, NODE_NAME), lambda: f"the Node\n{member.said()}")
    assert BOOTSTRAP not in member.said()


def test_issued_certificate_is_rotated(make_member):
    member = make_member(start=False)
    pki = os.path.join(member.state, "pki")
    pair = os.path.join(pki, "kubelet-client-current.pem")
    cert, key = member.api.authority.node(NODE_NAME, start=-36000, end=1200)  # more than 90 % of its lifetime is over
    os.makedirs(pki, mode=0o700)
    with open(pair, "w", encoding="utf-8") as file:
        file.write(text_of(cert) + text_of(key))
    member.api.kubeconfig(member.kubeconfig, cert=pair, key=pair)
    before = text_of(pair)
    member.start()
    request = wait(lambda: request_of(member), lambda: f"a certificate signing request\n{member.said()}")
    member.api.approve(request["metadata"]["name"])
    wait(lambda: text_of(pair) != before, lambda: f"another pair\n{member.said()}")
    wait(lambda: os.listdir(pki) == ["kubelet-client-current.pem"], lambda: str(os.listdir(pki)))
    member.bind("web")
    member.wait_reported_phase("web", "Running")


def test_denied_bootstrap_runs_static_pods(make_member):
    member = make_member(start=False)
    bootstrap = os.path.join(member.directory, "bootstrap")
    member.api.add_token(BOOTSTRAP, "system:bootstrap:b00tstr", "system:bootstrappers", "system:authenticated")
    member.api.kubeconfig(bootstrap, token=BOOTSTRAP)
    os.unlink(member.kubeconfig)
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, "bootstrapKubeconfig": bootstrap})
    member.start()
    request = wait(lambda: request_of(member), lambda: f"a certificate signing request\n{member.said()}")
    member.api.approve(request["metadata"]["name"], approve=False)
    wait(lambda: "the certificate signing request was denied" in member.said(), member.said)
    member.launch(specs.pod("own"))
    member.wait_phase("own", "Running")
    assert not os.path.exists(member.kubeconfig)
