# SPDX-License-Identifier: Apache-2.0
"""The protocol versions, cipher suites and curves of mainstay-api, as clients see them."""

import contextlib
import os
import ssl
import subprocess

import harness
import node_api
import pytest
from world import wait

ACCESS = {"authorization": {"mode": "AlwaysAllow"}, "authentication": {"webhook": {"enabled": False}}}
ECDSA, RSA = "TLS_ECDHE_ECDSA_WITH_", "TLS_ECDHE_RSA_WITH_"


def make_certificate(directory, kind):
    """Makes a key of that type with a self-signed certificate."""
    cert, key = (os.path.join(directory, f"{kind}.{suffix}") for suffix in ("crt", "key"))
    words = ["rsa:2048"] if kind == "RSA" else ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    subprocess.run(["openssl", "req", "-x509", "-newkey", *words, "-nodes", "-subj", "/CN=node1", "-days", "30",
                    "-out", cert, "-keyout", key], check=True, capture_output=True)
    return cert, key


@contextlib.contextmanager
def serve(archive, directory, kind="ECDSA", **config):
    cert, key = make_certificate(directory, kind)
    node = harness.Node(archive, config={"tlsCertFile": cert, "tlsPrivateKeyFile": key, **ACCESS, **config})
    api = node_api.NodeApi(node)
    try:
        yield api
    finally:
        try:
            api.stop()
        finally:
            node.finish()


def handshake(api, version, ciphers="ALL:@SECLEVEL=0", curve=None):
    """The protocol version and the cipher suite, or None if the server refuses."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    context.set_ciphers(ciphers)
    if curve:
        context.set_ecdh_curve(curve)
    with api.dial() as plain:
        try:
            with context.wrap_socket(plain) as stream:
                # In TLS 1.3, a refusal may arrive after the client has finished the handshake.
                stream.sendall(b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n")
                assert stream.recv(12) == b"HTTP/1.1 401"
                return stream.version(), stream.cipher()[0]
        except (ssl.SSLError, ConnectionResetError):
            return None


TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_ciphers_with_forward_secrecy_are_offered_in_the_servers_order(archive, tmp_path):
    with serve(archive, str(tmp_path), "RSA") as api:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            first = "AES_128_GCM" if " aes" in file.read() else "CHACHA20_POLY1305"
        assert handshake(api, TLS13) == ("TLSv1.3", f"TLS_{first}_SHA256")
        assert handshake(api, TLS12) == ("TLSv1.2", f"ECDHE-RSA-{first.replace('AES_128', 'AES128').replace('_', '-')}"
                                         + ("-SHA256" if first.startswith("AES") else ""))
        assert handshake(api, TLS12, "ECDHE-RSA-AES256-GCM-SHA384") == ("TLSv1.2", "ECDHE-RSA-AES256-GCM-SHA384")
        for weak in ("AES128-GCM-SHA256", "AES256-SHA", "DHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA"):
            assert handshake(api, TLS12, f"{weak}:@SECLEVEL=0") is None, weak
        assert handshake(api, ssl.TLSVersion.TLSv1_1) is None


@pytest.mark.parametrize("kind, mine, other", [("RSA", RSA, ECDSA), ("ECDSA", ECDSA, RSA)])
def test_configured_cipher_suites_apply_only_to_tls_1_2(archive, tmp_path, kind, mine, other):
    """Only suites for the kind of key that the certificate has are accepted."""
    suites = [mine + "AES_256_GCM_SHA384", mine + "AES_128_CBC_SHA", other + "CHACHA20_POLY1305_SHA256",
              "TLS_RSA_WITH_AES_128_GCM_SHA256"]
    with serve(archive, str(tmp_path), kind, tlsCipherSuites=suites) as api:
        assert handshake(api, TLS12) == ("TLSv1.2", f"ECDHE-{kind}-AES256-GCM-SHA384")
        assert handshake(api, TLS12, f"ECDHE-{kind}-AES128-SHA:@SECLEVEL=0") == ("TLSv1.2", f"ECDHE-{kind}-AES128-SHA")
        for absent in (f"ECDHE-{kind}-AES128-GCM-SHA256", f"ECDHE-{kind}-CHACHA20-POLY1305", f"ECDHE-{kind}-AES256-SHA",
                       "AES128-GCM-SHA256"):
            assert handshake(api, TLS12, f"{absent}:@SECLEVEL=0") is None, absent
        version, suite = handshake(api, TLS13)
        assert version == "TLSv1.3" and suite in ("TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256")


def test_only_tls_1_3_is_offered_without_a_suite_for_the_key(archive, tmp_path):
    with serve(archive, str(tmp_path), tlsCipherSuites=[RSA + "AES_128_GCM_SHA256"]) as api:
        assert handshake(api, TLS12) is None
        assert handshake(api, TLS13)


def exchange_keys(api, *words):
    """openssl's output for a handshake: its messages, and the key of the server."""
    return subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{api.port}", "-msg", *words], check=True, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def test_the_key_share_of_a_client_is_accepted_without_a_retry(archive, tmp_path):
    with serve(archive, str(tmp_path)) as api:
        assert handshake(api, TLS13)  # the server listens
        for version in ("-tls1_3", "-tls1_2"):
            said = exchange_keys(api, version)
            assert said.count("ClientHello") == 1 and "Server Temp Key: X25519" in said, said
        assert "ECDH, prime256v1" in exchange_keys(api, "-groups", "P-256")
        assert "ECDH, secp521r1" in exchange_keys(api, "-groups", "P-521")


def test_the_minimum_version_and_the_curves_are_configured(archive, tmp_path):
    with serve(archive, str(tmp_path), tlsMinVersion="VersionTLS13", tlsCurvePreferences=[24, 4588]) as api:
        assert handshake(api, TLS12) is None
        assert handshake(api, TLS13, curve="secp384r1")
        for curve in ("prime256v1", "secp521r1"):
            assert handshake(api, TLS13, curve=curve) is None, curve


def test_a_new_agent_may_have_another_configuration(archive, tmp_path):
    with serve(archive, str(tmp_path)) as api:
        assert handshake(api, TLS12)
        cert, key = make_certificate(str(tmp_path), "RSA")
        api.node.write_config(tlsCertFile=cert, tlsPrivateKeyFile=key, tlsMinVersion="VersionTLS13", **ACCESS)
        api.node.restart()
        wait(lambda: handshake(api, TLS12) is None, "TLS 1.2 is refused")
        assert handshake(api, TLS13)


def test_a_configuration_with_only_unsupported_curves_is_an_error(archive, tmp_path):
    with serve(archive, str(tmp_path), tlsCurvePreferences=[4588]) as api:
        wait(lambda: "tlsCurvePreferences: none of them is supported" in api.said() + api.node.said(), "the reason is logged")
