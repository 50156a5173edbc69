# SPDX-License-Identifier: Apache-2.0
"""mainstay-image against misbehaving registries: the responses that are refused, the requests that are repeated, and
the credentials that are never sent."""

import contextlib
import fcntl
import gzip
import json
import os
import random
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import threading
import time

import harness
import pytest
import world
from puller import FILES, big_image, expect_pulled, expect_refused
from registry import (CONFIG_TYPE, INDEX_TYPE, LAYER_TYPE, MANIFEST_TYPE, Blobs, basic, certificate, digest_of, document,
                      tls_server)
from world import read, wait


def test_an_image_is_pulled_by_its_tag_and_by_its_digest(puller, serve):
    registry = serve()
    expect_pulled(puller, puller.pull(registry))
    before = len(registry.asked("/blobs/"))
    expect_pulled(puller, puller.pull(registry, f"team/app@{registry.image.digest}"))
    assert len(registry.asked("/blobs/")) == before, "a blob in the store was fetched again"


def test_layers_in_any_compression_are_read(puller, serve):
    image = Blobs([FILES, {"a": b"a"}, {"b": b"b" * 100000}])
    manifest = json.loads(image.manifest)
    for row, (ending, pack) in zip(manifest["layers"], [("", lambda data: data), ("+gzip", gzip.compress), (
            "+zstd", lambda data: subprocess.run(["zstd", "-c"], input=data, check=True, capture_output=True).stdout)]):
        data = pack(gzip.decompress(image.blobs[row["digest"]]))
        row.update(digest=image.add(data), size=len(data), mediaType=LAYER_TYPE.replace("+gzip", ending))
    image.manifests["latest"] = (MANIFEST_TYPE, document(manifest))
    expect_pulled(puller, puller.pull(serve(image)))
    assert puller.content("a") == b"a" and len(puller.content("b")) == 100000


def test_an_index_gives_the_image_of_this_platform(puller, serve):
    image = Blobs([FILES])
    other = Blobs([{"etc/other": b""}], architecture="s390x")
    image.blobs.update(other.blobs)
    image.manifests.update({other.digest: other.manifests["latest"]})
    arch = json.loads(image.blobs[json.loads(image.manifest)["config"]["digest"]])["architecture"]
    index = document({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [
        {"mediaType": MANIFEST_TYPE, "digest": one.digest, "size": len(one.manifest),
         "platform": {"os": "linux", "architecture": what}} for one, what in ((other, "s390x"), (image, arch))]})
    image.manifests["latest"] = image.manifests[digest_of(index)] = (INDEX_TYPE, index)
    expect_pulled(puller, puller.pull(serve(image)))
    assert puller.content("etc/other") is None
    expect_pulled(puller, puller.pull(serve(image), f"team/app@{digest_of(index)}"))


def test_an_image_for_a_different_platform_is_refused(puller, serve):
    expect_refused(puller, puller.pull(serve(Blobs([FILES], architecture="s390x"))), "linux/s390x", "this machine is")


def test_twelve_overlapping_layers_are_unpacked_as_by_umoci(puller, serve, tmp_path):
    """Layers are unpacked in parallel: the data that a layer needs of those below it must not depend on timing."""
    dice = random.Random(7)
    layers = []
    for depth in range(12):
        files = {f"d{dice.randrange(4)}/f{dice.randrange(8)}": bytes([depth]) * dice.randrange(1, 200000)
                 for _ in range(12)}
        if depth:
            files[f"d{dice.randrange(4)}/.wh.f{dice.randrange(8)}"] = b""
            files[f"d{dice.randrange(4)}/sub/.wh..wh..opq"] = b""
            files[f"d{dice.randrange(4)}/sub/x{depth}"] = b"x"
        layers.append(files)
    registry = serve(Blobs(layers))
    assert puller.pull(registry)[0] == 0
    bundle = str(tmp_path / "bundle")
    subprocess.run(["umoci", "unpack", "--image", f"{layout_of(puller, tmp_path)}:x", bundle], check=True,
                   capture_output=True)
    with open(os.path.join(puller.store, "records", registry.image.digest[7:] + ".json"), encoding="utf-8") as file:
        order = json.loads(file.readline())["layers"]
    merged = tmp_path / "merged"
    merged.mkdir()
    lower = ":".join(os.path.join(puller.store, "layers", name) for name in order)
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower}", merged], check=True)
    try:
        assert list_tree(merged) == list_tree(os.path.join(bundle, "rootfs"))
    finally:
        subprocess.run(["umount", merged], check=True)


def layout_of(puller, tmp_path):
    """The store as a layout with a name that umoci accepts."""
    layout = tmp_path / "layout"
    shutil.copytree(os.path.join(puller.store, "blobs"), layout / "blobs")
    shutil.copy(os.path.join(puller.store, "oci-layout"), layout)
    with open(os.path.join(puller.store, "index.json"), encoding="utf-8") as file:
        index = json.load(file)
    index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"] = "x"
    (layout / "index.json").write_text(json.dumps(index))
    return layout


def list_tree(top):
    rows = {}
    for directory, names, files in os.walk(top):
        for name in names + files:
            path = os.path.join(directory, name)
            st = os.lstat(path)
            content = None
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as file:
                    content = digest_of(file.read())
            rows[os.path.relpath(path, top)] = (st.st_mode, st.st_uid, st.st_gid, content)
    return rows


# R1: slowness

@pytest.mark.parametrize("part", ["head", "body"])
def test_a_slow_server_times_out(puller, serve, part):
    def drip(handler):
        if "/blobs/" not in handler.path:
            return False
        if part == "body":
            handler.send_response(200)
            handler.send_header("Content-Length", "100000")
            handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"H")
                time.sleep(0.3)
        except OSError:
            return True
    expect_refused(puller, puller.pull(serve(behave=drip), stallSeconds=1), "registry")


# R2: redirects

def test_a_limited_number_of_redirects_is_followed(puller, serve):
    def lead(handler):
        n = handler.path.count("/x")
        return "/blobs/" in handler.path and n < 5 and handler.answer(307, Location="/x" + handler.path)
    expect_pulled(puller, puller.pull(serve(behave=lead)))


@pytest.mark.parametrize("more", ["", "x"])
def test_endless_redirects_are_refused(puller, serve, more):
    registry = serve(behave=lambda handler: "/blobs/" in handler.path and
                     handler.answer(307, Location=handler.path + more))
    expect_refused(puller, puller.pull(registry), "redirects more than 5 times")
    assert len(registry.asked("/blobs/")) < 20


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gopher://127.0.0.1/", "http://127.0.0.1:1/", "ftp://x/"])
def test_redirects_to_anything_but_https_are_refused(puller, serve, tmp_path, target):
    cert, key = certificate(tmp_path)
    registry = serve(behave=lambda handler: "/blobs/" in handler.path and handler.answer(307, Location=target),
                     tls=tls_server(cert, key))
    puller.trust(registry.host, cert)
    expect_refused(puller, puller.pull(registry), "not https")


def test_redirects_to_link_local_addresses_are_refused(puller, serve):
    registry = serve(behave=lambda handler: "/blobs/" in handler.path and
                     handler.answer(307, Location="http://169.254.169.254/latest"))
    subprocess.run(["ip", "address", "add", "169.254.169.254/32", "dev", "lo"], check=False, capture_output=True)
    listener = socket.socket()
    try:
        listener.bind(("169.254.169.254", 80))
        listener.listen()
        expect_refused(puller, puller.pull(registry), "169.254.169.254", "refused")
    finally:
        listener.close()
        subprocess.run(["ip", "address", "del", "169.254.169.254/32", "dev", "lo"], check=False, capture_output=True)


def test_a_password_is_not_sent_to_the_target_of_a_redirect(puller, serve):
    store = serve()

    def behave(handler):
        if handler.headers.get("Authorization") != basic("joe", "secret"):
            return handler.answer(401, WWW_Authenticate='Basic realm="x"')
        return "/blobs/" in handler.path and handler.answer(
            307, Location=f"http://localhost:{store.port}{handler.path}")
    registry = serve(store.image, behave)
    expect_pulled(puller, puller.pull(registry, auths=[{"auths": {registry.host: {"username": "joe", "password": "secret"}}}]))
    assert store.seen and not any("Authorization" in headers for _, _, headers in store.seen)


# R3: challenges

def bearer(realm, token="t0ken"):
    def behave(handler):
        if handler.path.startswith("/token"):
            return handler.answer(200, document({"token": token}))
        if handler.headers.get("Authorization") == f"Bearer {token}":
            return False
        where = realm or f"http://{handler.headers['Host']}/token"
        return handler.answer(401, WWW_Authenticate=f'Bearer realm="{where}",service="s",scope="repository:x:pull"')
    return behave


def test_a_token_is_requested_from_the_token_server(puller, serve):
    registry = serve(behave=bearer(None))
    expect_pulled(puller, puller.pull(registry))
    assert "scope=repository%3Ax%3Apull" in registry.asked("/token")[0][1]
    assert "Authorization" not in registry.asked("/token")[0][2]


def test_a_password_is_sent_to_the_registrys_own_token_server(puller, serve):
    registry = serve(behave=bearer(None))
    expect_pulled(puller, puller.pull(registry, auths=[{"auths": {registry.host: {"username": "joe", "password": "pw"}}}]))
    assert registry.asked("/token")[0][2]["Authorization"] == basic("joe", "pw")


def test_a_password_is_not_sent_to_a_foreign_token_server(puller, serve):
    other = serve(behave=bearer(None))
    registry = serve(behave=bearer(f"http://localhost:{other.port}/token"))
    puller.pull(registry, auths=[{"auths": {registry.host: {"username": "joe", "password": "pw"}}}])
    assert not any("Authorization" in headers for _, path, headers in other.seen if path.startswith("/token"))


def test_an_identity_token_is_exchanged(puller, serve):
    def behave(handler):
        if handler.path.startswith("/token"):
            return handler.answer(200, document({"access_token": "t0ken"}))
        return bearer(None)(handler)
    registry = serve(behave=behave)
    expect_pulled(puller, puller.pull(registry, auths=[{"auths": {registry.host: {"identitytoken": "refresh"}}}]))
    form = registry.asked("/token")[0]
    assert form[0] == "POST" and "refresh_token=refresh" in form[2]["body"]


def test_endless_challenges_are_refused(puller, serve):
    def behave(handler):
        if handler.path.startswith("/token"):
            return handler.answer(200, document({"token": "x"}))
        return handler.answer(401, WWW_Authenticate=f'Bearer realm="http://{handler.headers["Host"]}/token"')
    registry = serve(behave=behave)
    expect_refused(puller, puller.pull(registry), "imagePullSecrets")
    assert len(registry.asked("/token")) <= 2


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer realm=", 'Bearer realm="' + "x" * 60000 + '"', "\"\"\"", "Basic",
                                    'Digest realm="x"', 'Bearer realm="file:///etc/passwd"', 'Bearer realm="\\'])
def test_invalid_challenges_are_refused(puller, serve, header):
    expect_refused(puller, puller.pull(serve(behave=lambda handler: handler.answer(401, WWW_Authenticate=header))), "registry")


def test_a_token_that_is_too_large_is_refused(puller, serve):
    expect_refused(puller, puller.pull(serve(behave=bearer(None, "x" * 10_000_000))), "larger than")


def test_a_token_that_expires_during_a_pull_is_renewed(puller, serve):
    current = ["t0"]

    def behave(handler):
        if "/blobs/" in handler.path and current[0] == "t0":
            current[0] = "t1"
        return bearer(None, current[0])(handler)
    expect_pulled(puller, puller.pull(serve(behave=behave)))


def pull_with_helper(puller, serve, directory, script):
    """Pulls from a registry whose password a credential helper knows."""
    def behave(handler):
        return handler.headers.get("Authorization") != basic("joe", "helped") and \
            handler.answer(401, WWW_Authenticate='Basic realm="x"')
    registry = serve(behave=behave)
    helper = directory / "docker-credential-test"
    helper.write_text(f'#!/bin/sh\nread server\necho "{{\\"Username\\": \\"joe\\", \\"Secret\\": \\"helped\\"}}"\n{script}\n')
    helper.chmod(0o755)
    auth = directory / "config.json"
    auth.write_text(json.dumps({"credHelpers": {registry.host: "test"}}))
    return puller.pull(registry, authFile=str(auth))


@pytest.fixture(name="helpers")
def _helpers(tmp_path, monkeypatch):
    """A directory in PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_the_nodes_auth_file_and_its_credential_helper_are_used(puller, serve, helpers):
    expect_pulled(puller, pull_with_helper(puller, serve, helpers, ""))


@pytest.mark.long
def test_a_credential_helper_that_does_not_exit_is_killed(puller, serve, helpers):
    """It has closed its output, and has 30 seconds in all."""
    expect_refused(puller, pull_with_helper(puller, serve, helpers, "exec >&- 2>&-; exec sleep 100000"),
                   "credential helper 'test': Connection timed out")


def test_a_missing_password_is_reported_with_advice(puller, serve):
    expect_refused(puller, puller.pull(serve(behave=lambda handler: handler.answer(401, WWW_Authenticate='Basic realm="x"'))),
            "authentication is required", "imagePullSecrets")


# R4: temporary errors

def flaky(times, status, **headers):
    left = [times]

    def behave(handler):
        if "/blobs/" not in handler.path or left[0] == 0:
            return False
        left[0] -= 1
        return handler.answer(status, **headers)
    return behave


@pytest.mark.parametrize("status,headers", [(429, {"Retry_After": "0"}), (503, {}), (500, {}), (502, {})])
def test_temporary_errors_are_retried(puller, serve, status, headers):
    expect_pulled(puller, puller.pull(serve(behave=flaky(2, status, **headers))))


def test_a_long_retry_after_is_not_waited_for(puller, serve):
    expect_refused(puller, puller.pull(serve(behave=flaky(99, 429, Retry_After="99999"))), "too many requests")


def test_a_missing_image_is_reported_with_the_registrys_message(puller, serve):
    expect_refused(puller, puller.pull(serve(), "team/app:nope"), "image 'nope' does not exist in repository 'team/app'", "no such thing")


# R5: invalid responses

@pytest.mark.parametrize("length", [-100, 100])
def test_a_blob_of_a_wrong_length_is_refused(puller, serve, length):
    image = big_image()
    data = image.blobs[image.layers[0]]
    image.blobs[image.layers[0]] = data[:length] if length < 0 else data + b"x" * length
    expect_refused(puller, puller.pull(serve(image)), "layer" if length < 0 else "larger than")


def test_an_endless_body_is_refused(puller, serve):
    def behave(handler):
        if "/manifests/" not in handler.path:
            return False
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
        except OSError:
            return True
    expect_refused(puller, puller.pull(serve(behave=behave)), "larger than")


@pytest.mark.parametrize("headers", [[("X-Long", "x" * 1_000_000)], [(f"X-{i}", "x") for i in range(100_000)]])
def test_an_endless_response_head_is_refused(puller, serve, headers):
    def behave(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for name, value in headers:
            handler.wfile.write(f"{name}: {value}\r\n".encode())
        handler.wfile.write(b"Content-Length: 0\r\n\r\n")
        return True
    expect_refused(puller, puller.pull(serve(behave=behave)), "registry")


def test_a_response_that_is_not_http_is_refused(puller, serve):
    def behave(handler):
        handler.wfile.write(b"hello, I am an old server\n")
        handler.close_connection = True
        return True
    expect_refused(puller, puller.pull(serve(behave=behave)), "registry")


# R6: TLS

def test_a_certificate_of_an_authority_in_certs_d_is_trusted(puller, serve, tmp_path):
    cert, key = certificate(tmp_path, kind=("rsa:2048",))
    registry = serve(tls=tls_server(cert, key))
    expect_refused(puller, puller.pull(registry), "is not trusted", f"certs.d/{registry.host}/ca.crt")
    puller.trust(registry.host, cert)
    expect_pulled(puller, puller.pull(registry))


@pytest.mark.parametrize("place", ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"])
def test_authorities_of_the_distribution_stay_trusted_in_addition_to_those_of_certs_d(puller, serve, tmp_path, place):
    cert, key = certificate(tmp_path)
    registry = serve(tls=tls_server(cert, key))
    puller.trust(registry.host, certificate(tmp_path, "other")[0])
    puller.replace_system_authorities(place, cert)
    expect_pulled(puller, puller.pull(registry))


@pytest.mark.parametrize("fault", ["expired", "wrong-host", "wrong-authority", "old-tls"])
def test_a_server_with_an_invalid_certificate_is_refused(puller, serve, tmp_path, fault):
    alt = "DNS:other.example.com" if fault == "wrong-host" else "IP:127.0.0.1"
    cert, key = certificate(tmp_path, expired=fault == "expired", alt=alt, kind=("rsa:2048",))
    settings = {}
    if fault == "old-tls":
        settings = {"minimum_version": ssl.TLSVersion.TLSv1, "maximum_version": ssl.TLSVersion.TLSv1_1}
    registry = serve(tls=tls_server(cert, key, **settings))
    puller.trust(registry.host, certificate(tmp_path, "other")[0] if fault == "wrong-authority" else cert)
    words = {"expired": "the certificate of the server has expired; the clock of this machine says", "old-tls": "handshake"}
    result = puller.pull(registry)
    expect_refused(puller, result, "registry", words.get(fault, "is not trusted"))
    assert ("put the authority" in result[1]) == (fault in ("wrong-host", "wrong-authority")), result
    assert not registry.seen


def test_a_client_certificate_is_sent_and_its_key_is_readable_by_root_only(puller, serve, tmp_path):
    cert, key = certificate(tmp_path)
    client = certificate(tmp_path, "client")
    os.chmod(client[1], 0o600)
    context = tls_server(cert, key, verify_mode=ssl.CERT_REQUIRED)
    context.load_verify_locations(client[0])
    registry = serve(tls=context)
    puller.trust(registry.host, cert)
    expect_refused(puller, puller.pull(registry), "registry")
    puller.trust(registry.host, cert, client)
    expect_pulled(puller, puller.pull(registry))


# R7 and R8: unreachable registries

def test_an_unknown_host_name_is_reported(puller):
    expect_refused(puller, puller.run("registry.invalid/team/app:latest"), "registry 'registry.invalid'", "cannot be resolved")


def test_a_refused_connection_is_reported(puller):
    expect_refused(puller, puller.run("127.0.0.1:1/team/app:latest"), "registry '127.0.0.1:1'", "connect")


def test_the_only_reachable_address_of_a_hundred_is_used(puller, serve):
    registry = serve()
    puller.replace_etc_file("hosts", "".join(f"127.0.1.{i} many.test\n" for i in range(1, 100)) + "127.0.0.1 many.test\n")
    host = f"many.test:{registry.port}"
    expect_pulled(puller, puller.run(f"{host}/team/app:latest", insecureRegistries=[host]))


class BlackHole:
    """Neither accepts nor refuses a connection: the queue of its listener is full."""

    def __init__(self, family, address, port=0):
        self.listener = socket.socket(family)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((address, port))
        self.listener.listen(0)
        self.port = self.listener.getsockname()[1]
        self.fill = []
        for _ in range(4):
            one = socket.socket(family)
            one.setblocking(False)
            one.connect_ex((address, self.port))
            self.fill.append(one)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in [self.listener, *self.fill]:
            one.close()


def test_ipv4_is_used_if_ipv6_does_not_connect(puller, serve):
    registry = serve()
    puller.replace_etc_file("hosts", "::1 both.test\n127.0.0.1 both.test\n")
    host = f"both.test:{registry.port}"
    with BlackHole(socket.AF_INET6, "::1", registry.port):
        expect_pulled(puller, puller.run(f"{host}/team/app:latest", insecureRegistries=[host]))


@pytest.mark.slow
def test_a_registry_that_drops_packets_times_out_and_is_reported(puller):
    with BlackHole(socket.AF_INET, "127.0.0.1") as hole:
        host = f"127.0.0.1:{hole.port}"
        status, message = puller.run(f"{host}/team/app:latest")
        # The messages of libcurl 7 and of libcurl 8.
        expect_refused(puller, (status, message.replace("Timeout was reached", "Connection timed out")),
                       f"registry '{host}'", "Connection timed out")
        assert "milliseconds" not in message, message


def test_a_silent_name_server_times_out_and_is_reported(puller):
    """The name server never reads its queries."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.53.1", 53))
        puller.replace_etc_file("resolv.conf", "nameserver 127.0.53.1\noptions timeout:1 attempts:1\n")
        expect_refused(puller, puller.run("registry.example.test/team/app:latest"), "registry 'registry.example.test'")
        assert server.recv(512), "it was queried"


def test_mirrors_are_tried_before_the_registry(puller, serve):
    registry, mirror = serve(), serve(Blobs([{"other": b""}]))
    mirror.image.manifests.clear()
    expect_pulled(puller, puller.run(f"{registry.host}/team/app:latest", insecureRegistries=[registry.host],
                             mirrors=["http://127.0.0.1:1", f"http://{mirror.host}/cache"]))
    assert mirror.seen[0][1] == "/v2/cache/team/app/manifests/latest"


def test_only_the_configured_proxy_is_used(puller, serve, monkeypatch):
    registry = serve()
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    expect_pulled(puller, puller.pull(registry))
    refused_by = puller.run(f"{registry.host}/team/other:latest", insecureRegistries=[registry.host],
                            httpProxy="http://127.0.0.1:1", httpsProxy="http://127.0.0.1:1")
    assert refused_by[0] != 0 and "connect" in refused_by[1]


# I8 to I10: invalid documents and damaged bytes

def test_a_damaged_layer_is_detected_and_pulled_again(puller, serve):
    image = big_image()
    data = image.blobs[image.layers[0]]
    image.blobs[image.layers[0]] = data[:2_000_000] + bytes([data[2_000_000] ^ 1]) + data[2_000_001:]
    registry = serve(image)
    expect_refused(puller, puller.pull(registry), image.layers[0], "damaged")
    image.blobs[image.layers[0]] = data
    expect_pulled(puller, puller.pull(registry))


def change(image, **fields):
    manifest = document({**json.loads(image.manifest), **fields})
    image.manifests["latest"] = (MANIFEST_TYPE, manifest)
    return image


@pytest.mark.parametrize("fields,words", [
    ({"manifests": []}, "both manifests and layers"),
    ({"mediaType": "text/plain"}, ""),
    ({"schemaVersion": 3}, "schemaVersion"), ({"schemaVersion": 1}, "schema 1"),
    ({"layers": []}, "layers"),
    ({"config": {"mediaType": "application/json", "digest": digest_of(b""), "size": 2}}, "not an image of a container"),
    ({"config": {"mediaType": CONFIG_TYPE, "digest": "sha256:" + "A" * 64, "size": 2}}, "not a sha256 digest"),
    ({"config": {"mediaType": CONFIG_TYPE, "digest": "sha256:../../x", "size": 2}}, "not a sha256 digest"),
    ({"config": {"mediaType": CONFIG_TYPE, "digest": "md5:" + "a" * 32, "size": 2}}, "not a sha256 digest"),
    ({"config": {"mediaType": CONFIG_TYPE, "digest": digest_of(b""), "size": 10**12}}, "larger than"),
])
def test_invalid_manifests_are_refused(puller, serve, fields, words):
    expect_refused(puller, puller.pull(serve(change(Blobs([FILES]), **fields))), words)


def test_an_image_with_a_wrong_digest_is_refused(puller, serve):
    image = Blobs([FILES])
    wrong = "sha256:" + "0" * 64
    image.manifests[wrong] = image.manifests["latest"]
    expect_refused(puller, puller.pull(serve(image), f"team/app@{wrong}"), "a different image")


# Confinement of the processes

@contextlib.contextmanager
def open_lock(path):
    fd = os.open(path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(fd)



def confinement_of(puller, words):
    """The capabilities and the network namespace of a program that is confined; None if it has ended in the
    meantime."""
    process = subprocess.Popen([harness.program("mainstay-image"), *words, "--store", puller.store])
    try:
        wait(lambda: world.status(process.pid, "Seccomp") == "2", f"{words[0]} is confined")
        os.kill(process.pid, signal.SIGSTOP)
        return int(world.status(process.pid, "CapPrm"), 16), os.readlink(f"/proc/{process.pid}/ns/net")
    except FileNotFoundError:
        return None
    finally:
        process.kill()
        process.wait()


def test_programs_that_read_the_store_are_confined(puller, serve):
    """The content of the store comes from untrusted sources. The lock keeps the first program from ending."""
    image = Blobs([FILES])
    expect_pulled(puller, puller.pull(serve(image)))
    with open_lock(f"{puller.store}/tmp"):
        for words in (["remove", "--name", image.digest], ["sweep"]):
            capabilities, network = wait(lambda words=words: confinement_of(puller, words), f"{words[0]} is seen")
            assert not capabilities & (1 << 12), "CAP_NET_ADMIN"
            assert network != os.readlink("/proc/self/ns/net")


def test_fetchers_are_unprivileged_and_unpackers_have_no_network(puller, serve):
    hang = threading.Event()

    def behave(handler):
        if "/blobs/" not in handler.path:
            return False
        return bool(hang.wait(300)) and False
    registry = serve(behave=behave)
    process = puller.spawn(f"{registry.host}/team/app:latest", insecureRegistries=[registry.host])
    try:
        wait(lambda: registry.asked("/blobs/"), "it requests the configuration")
        text = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        children = [int(word) for word in text.split()]
        assert children

        def status(pid, field):
            with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                return next(line.split()[1] for line in file if line.startswith(field + ":"))
        wait(lambda: all(status(pid, "Seccomp") == "2" for pid in children), "idle fetchers are confined, too")
        for pid in children:
            assert status(pid, "Uid") != "0" and status(pid, "Gid") != "0"
            assert int(status(pid, "CapEff"), 16) == int(status(pid, "CapPrm"), 16) == 0
            assert status(pid, "NoNewPrivs") == "1" and status(pid, "Seccomp") == "2"
        assert status(process.pid, "Seccomp") == "2"
        assert not int(status(process.pid, "CapEff"), 16) & (1 << 12), "CAP_NET_ADMIN"
        assert os.readlink(f"/proc/{process.pid}/ns/net") != os.readlink("/proc/self/ns/net")
    finally:
        hang.set()
        process.communicate(timeout=world.DEADLINE)
    assert process.returncode == 0


def test_a_registry_on_a_loopback_address_may_speak_plain_http(puller, serve):
    registry = serve(Blobs([FILES]))
    expect_pulled(puller, puller.pull(registry, insecureRegistries=[]))


@pytest.mark.parametrize("host,address", [("localhost", "127.0.0.1"), ("127.8.9.10", "127.8.9.10")])
def test_every_loopback_name_and_address_allows_plain_http(puller, serve, host, address):
    registry = serve(Blobs([FILES]), address=address)
    expect_pulled(puller, puller.run(f"{host}:{registry.port}/team/app:latest"))


def test_other_hosts_are_never_contacted_over_plain_http(puller, serve, tmp_path):
    registry = serve(Blobs([FILES]))
    tmp_path.chmod(0o755)
    puller.replace_etc_file("hosts", "127.0.0.1 localhost registry.test\n")
    expect_refused(puller, puller.run(f"registry.test:{registry.port}/team/app:latest"), "registry 'registry.test:")
    assert not registry.seen, "it was not contacted over plain HTTP"


def test_a_loopback_registry_with_tls_is_verified(puller, serve, tmp_path):
    cert, key = certificate(str(tmp_path))
    registry = serve(Blobs([FILES]), tls=tls_server(cert, key))
    expect_refused(puller, puller.pull(registry), "its certificate is not trusted")


def test_a_loopback_registry_does_not_redirect_to_plain_http_elsewhere(puller, serve):
    def lead(handler):
        return "/blobs/" in handler.path and handler.answer(307, Location="http://registry.example/x")

    registry = serve(Blobs([FILES]), lead)
    expect_refused(puller, puller.pull(registry, insecureRegistries=[]), "which is not https")


def test_an_image_of_schema_1_is_refused_with_a_message_that_names_the_schema(puller, serve):
    image = Blobs([FILES])
    image.manifests["latest"] = ("application/vnd.docker.distribution.manifest.v1+prettyjws",
                                 json.dumps({"schemaVersion": 1, "fsLayers": []}).encode())
    expect_refused(puller, puller.pull(serve(image)), "an image of Docker's schema 1, which is not supported")


def index_of(image, *entries):
    """Makes the tag 'latest' an index."""
    body = json.dumps({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": list(entries)}).encode()
    image.manifests[digest_of(body)] = image.manifests["latest"] = (INDEX_TYPE, body)
    return {"mediaType": INDEX_TYPE, "digest": digest_of(body), "size": len(body)}


def test_entries_without_a_platform_and_indexes_in_indexes_are_followed(puller, serve):
    image, foreign = Blobs([FILES]), Blobs([{"etc/hello": b"no\n"}], architecture="s390x")
    image.blobs.update(foreign.blobs)
    image.manifests[foreign.digest] = foreign.manifests[foreign.digest]
    entries = [{"mediaType": MANIFEST_TYPE, "digest": one.digest, "size": len(one.manifest)} for one in (foreign, image)]
    index_of(image, index_of(image, *entries))
    expect_pulled(puller, puller.pull(serve(image)))


def test_an_index_of_too_many_images_without_a_platform_is_refused(puller, serve):
    image = Blobs([FILES], architecture="s390x")
    entry = {"mediaType": MANIFEST_TYPE, "digest": image.digest, "size": len(image.manifest)}
    index_of(image, *[entry] * 40)
    expect_refused(puller, puller.pull(serve(image)), "it lists more than 16 images without a platform")
