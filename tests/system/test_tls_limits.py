# SPDX-License-Identifier: Apache-2.0
"""A server cannot keep the agent busy with its part of a TLS handshake. Containers are servers for probes, whose certificates
are not verified."""

import pytest
import specs
import tls_attack
from puller import Puller, expect_refused
from test_events import wait_event
from tls_attack import DHE_RSA, ECDHE_RSA, PLAIN_RSA

KEY, MESSAGE, SIGNATURE = "security level", "handshake data size is too large", "signature verification has failed"
FLIGHTS = {
    "an ordinary one": (SIGNATURE, {"suite": ECDHE_RSA}),
    "keys of 8192 bits": (SIGNATURE, {"suite": ECDHE_RSA, "modulus_size": 1024}),
    "a group of 8192 bits": (SIGNATURE, {"suite": DHE_RSA, "prime_size": 1024}),
    "a long modulus and exponent": (MESSAGE, {"suite": ECDHE_RSA, "modulus_size": 8192, "exponent_size": 8192}),
    "a long exponent": (KEY, {"suite": ECDHE_RSA, "exponent_size": 255}),
    "a long modulus": (KEY, {"suite": ECDHE_RSA, "modulus_size": 1025}),
    "a long key that the client encrypts with": (KEY, {"suite": PLAIN_RSA, "modulus_size": 4000, "exponent_size": 4000}),
    "a large group": (MESSAGE, {"suite": DHE_RSA, "prime_size": 2040}),
    "a long chain": (MESSAGE, {"suite": ECDHE_RSA, "chain_length": 40}),
}


@pytest.mark.parametrize("words, said", FLIGHTS.values(), ids=FLIGHTS)
def test_a_probed_server_is_refused_before_its_key_is_used(node, words, said):
    with tls_attack.serve(tls_attack.flight(**said)) as port:
        probe = {"httpGet": {"host": "127.0.0.1", "port": port, "scheme": "HTTPS"}, "periodSeconds": 1, "timeoutSeconds": 60}
        node.drop(specs.pod("web", specs.container(readinessProbe=probe)))
        assert words in wait_event(node, "web", "Unhealthy")["message"]


def test_a_registry_is_refused_before_its_key_is_used(tmp_path):
    words, said = FLIGHTS["a long modulus and exponent"]
    with tls_attack.serve(tls_attack.flight(**said)) as port:
        puller = Puller(tmp_path)
        expect_refused(puller, puller.run(f"127.0.0.1:{port}/team/app:latest"), words)
