# SPDX-License-Identifier: Apache-2.0
"""mainstay-api of a node that has joined an API server: reviews of tokens and access, and its certificate."""

import http.client
import json
import os
import shutil
import ssl
import subprocess
import threading
import time

import api_certs
import harness
import node_api
import pytest
import world
from world import wait

# Reviews

@pytest.fixture(name="reviewed")
def fixture_reviewed(api, make_member):
    """A node that has joined an API server, and mainstay-api in front of it."""
    node = make_member(config={"authentication": {"x509": {"clientCAFile": api.authority.cert}}})
    served = node_api.NodeApi(node)
    yield served
    served.stop()


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_the_api_server_decides_about_tokens_and_access(api, reviewed):
    api.add_token("reader", "jane", "readers")
    api.api.grant("readers", "nodes/pods", "get")
    assert reviewed.request("/pods", headers=bearer("reader"))[0] == 200
    assert reviewed.request("/pods", headers=bearer("unknown")) == (401, "Unauthorized")
    assert reviewed.request("/metrics", headers=bearer("reader")) == \
        (403, "Forbidden (user=jane, verb=get, resource=nodes, subresource(s)=[metrics])")
    assert reviewed.request("/exec/default/web/main?command=id&output=1", headers=bearer("reader")) == \
        (403, "Forbidden (user=jane, verb=get, resource=nodes, subresource(s)=[proxy])")


def test_proxy_permission_still_grants_access_to_pods_but_not_to_stats(api, reviewed):
    api.add_token("old", "joe")
    api.api.grant("joe", "nodes/proxy", "get")
    assert reviewed.request("/pods", headers=bearer("old"))[0] == 200
    assert reviewed.request("/stats/summary", headers=bearer("old"))[0] == 403


def test_a_websocket_session_requires_the_create_verb(api, reviewed):
    api.add_token("old", "joe")
    api.api.grant("joe", "nodes/proxy", "get")
    headers = [*node_api.websocket_headers("v5.channel.k8s.io"), "Authorization: Bearer old"]
    assert reviewed.upgrade("/exec/default/web/main?command=id&output=1", headers) == \
        (403, "Forbidden (user=joe, verb=create, resource=nodes, subresource(s)=[proxy])")


def test_reviews_of_the_api_server_are_cached(api, reviewed):
    api.add_token("reader", "jane")
    api.api.grant("jane", "nodes/pods", "get")
    for _ in range(3):
        assert reviewed.request("/pods", headers=bearer("reader"))[0] == 200
    assert len([request for request in api.requests if "review" in request.target]) == 2
    api.stop()
    assert reviewed.request("/pods", headers=bearer("reader"))[0] == 200
    assert reviewed.request("/pods", headers=bearer("another")) == (401, "Unauthorized")
    status, body = reviewed.request("/metrics", headers=bearer("reader"))
    assert status == 500 and body.startswith("Authorization error (user=jane")
    api.start()


def test_an_access_review_contains_all_attributes_of_the_user(api, reviewed):
    """An authorizer may grant a token fewer permissions than its user has, by the scopes in 'extra'."""
    more = {"uid": "7", "extra": {"scopes.authorization.openshift.io": ["user:info"], "example.com/a": []}}
    jane, _ = api.authority.issue("jane", "/CN=jane")
    for token, found in (("scoped", more), ("other", {**more, "extra": {"scopes.authorization.openshift.io": ["user:full"]}})):
        api.add_token(token, "jane", "readers")
        api.tokens[token].more = found
        assert reviewed.request("/metrics", headers=bearer(token))[0] == 403
    assert reviewed.request("/metrics", certificate=jane)[0] == 403
    specs = [request.body["spec"] for request in api.requests if "accessreview" in request.target]
    assert [(spec["user"], spec.get("uid"), spec["groups"]) for spec in specs] == \
        [("jane", "7", ["readers", "system:authenticated"])] * 2 + [("jane", None, ["system:authenticated"])]
    assert [spec["extra"] for spec in specs[:2]] == [more["extra"], {"scopes.authorization.openshift.io": ["user:full"]}]
    assert list(specs[2]["extra"]) == ["authentication.kubernetes.io/credential-id"]


def ask_for_metrics(served, certificate, found):
    thread = threading.Thread(target=lambda: found.append(served.request("/metrics", certificate=certificate)[0]))
    thread.start()
    return thread


def test_a_review_waits_for_an_agent_that_has_not_read_its_kubeconfig_yet(api, reviewed):
    node, found = reviewed.node, []
    admin, _ = api.authority.issue("admin", "/O=system:masters/CN=admin")
    wait(lambda: reviewed.request("/healthz", certificate=admin)[0] == 200, "it has its settings")
    os.rename(node.kubeconfig, node.kubeconfig + ".later")
    node.kill9()
    node.start()
    status, body = reviewed.request("/metrics", certificate=admin)
    assert status == 500 and body.startswith("Authorization error (user=admin") and "no kubeconfig" in node.said()
    for _ in range(10):
        found.clear()
        start = time.monotonic()
        thread = ask_for_metrics(reviewed, admin, found)
        thread.join(2)
        has_waited = thread.is_alive() and not found
        os.rename(node.kubeconfig + ".later", node.kubeconfig)
        thread.join(world.DEADLINE)
        if found == [200] or time.monotonic() - start < 9:
            break  # otherwise the file came after the ten seconds for which a request waits
        os.rename(node.kubeconfig, node.kubeconfig + ".later")
        node.restart()
    assert has_waited and found == [200]


def test_a_review_under_way_is_repeated_when_the_agent_is_killed(api, reviewed):
    node, found = reviewed.node, []
    admin, _ = api.authority.issue("admin", "/O=system:masters/CN=admin")
    wait(lambda: reviewed.request("/healthz", certificate=admin)[0] == 200, "it has its settings")
    for _ in range(10):
        found.clear()
        fault, start = api.misbehave(when=lambda request: "accessreview" in request.target, latency=60, times=1), time.monotonic()
        thread = ask_for_metrics(reviewed, admin, found)
        wait(lambda fault=fault: fault.struck, "the API server is queried")
        node.kill9()
        node.start()
        thread.join(world.DEADLINE)
        if found == [200] or time.monotonic() - start < 9:
            break  # otherwise the next agent came after the ten seconds for which a request waits
    assert found == [200]


def test_a_client_certificate_is_reviewed_too(api, reviewed):
    admin, _ = api.authority.issue("admin", "/O=system:masters/CN=admin")
    jane, _ = api.authority.issue("jane", "/CN=jane")
    assert reviewed.request("/metrics", certificate=admin)[0] == 200
    assert reviewed.request("/metrics", certificate=jane)[0] == 403


def test_the_names_in_a_client_certificate_are_reviewed_as_they_are(api, reviewed):
    """The text of a distinguished name, in which some characters are escaped, must not be used."""
    client, _ = api.authority.issue("client", "/O=ops,eu/CN=joe/CN=a\\+b@x+O=dev")
    api.api.grant("ops,eu", "nodes/metrics", "get")
    api.api.grant("dev", "nodes/pods", "get")
    assert [reviewed.request(path, certificate=client)[0] for path in ("/metrics", "/pods")] == [200, 200]
    assert reviewed.request("/stats/summary", certificate=client) == \
        (403, "Forbidden (user=a+b@x, verb=get, resource=nodes, subresource(s)=[stats])")


def ask_at_once(served, figure, **how):
    """Starts threads, each of which requests the pods with the arguments that 'how' returns for its number; returns the
    threads and the replies. A handshake that takes more than ten seconds on this machine is aborted and retried."""
    found, end = [], time.monotonic() + world.DEADLINE

    def ask(number):
        while True:
            try:
                found.append(served.request("/pods", **{key: make(number) for key, make in how.items()}))
                return
            except (OSError, http.client.HTTPException):
                if time.monotonic() > end:
                    raise
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(figure)]
    for thread in threads:
        thread.start()
    return threads, found


def test_a_decision_for_another_request_is_not_taken_for_the_reply(api, reviewed):
    admin, _ = api.authority.issue("admin", "/O=system:masters/CN=admin")
    wait(lambda: reviewed.request("/healthz", certificate=admin)[0] == 200, "it has its settings")
    asked, several = [], threading.Event()

    def wait_for_another(request):
        """Waits until two requests need the decision, so that none finds it in the cache."""
        if "accessreview" in request.target:
            asked.append(request)
            if len(asked) > 1:
                several.set()
            several.wait(world.DEADLINE)
        return False
    api.misbehave(when=wait_for_another)
    threads, found = ask_at_once(reviewed, 4, certificate=lambda _: admin)
    for thread in threads:
        thread.join(world.DEADLINE)
    assert several.is_set(), "several have requested it"
    assert [(status, json.loads(body)["kind"]) for status, body in found] == [(200, "PodList")] * 4


def test_invalid_tokens_do_not_lock_out_known_clients(api, reviewed):
    admin, _ = api.authority.issue("admin", "/O=system:masters/CN=admin")
    api.add_token("reader", "jane")
    api.api.grant("jane", "nodes/pods", "get")
    known = [{"certificate": admin}, {"headers": bearer("reader")}]
    assert [reviewed.request("/pods", **one)[0] for one in known] == [200, 200]
    fault = api.misbehave(when=lambda request: "tokenreview" in request.target, latency=30)
    threads, found = ask_at_once(reviewed, 100, headers=lambda number: bearer(f"unknown-{number}"))
    wait(lambda: fault.struck and len(found) >= 50, lambda: f"some are refused at once: {found}")
    for _ in range(10):
        assert [reviewed.request("/pods", **one)[0] for one in known] == [200, 200]
    assert (429, "too many reviews of tokens and access are under way") in found
    assert reviewed.request("/metrics", certificate=admin)[0] == 200, "a review of a known user is not crowded out"
    api.behave()
    for thread in threads:
        thread.join(240)
    assert len(found) == 100 and {status for status, _ in found} == {401, 429}
    assert [reviewed.request("/pods", **one)[0] for one in known] == [200, 200]
    api.add_token("another", "jane")
    assert reviewed.request("/pods", headers=bearer("another"))[0] == 200


# The certificate

def served_certificate(served):
    stream = served.connect()
    found = ssl.DER_cert_to_PEM_cert(stream.getpeercert(binary_form=True))
    stream.close()
    return found.strip()


@pytest.mark.slow
def test_a_changed_certificate_is_served_and_a_broken_one_is_not(make_node, tmp_path):
    authority = api_certs.Authority(str(tmp_path))
    first, key = authority.server("first")
    second, second_key = authority.server("second")
    node = make_node(config={"tlsCertFile": first, "tlsPrivateKeyFile": key})
    served = node_api.NodeApi(node)
    assert served_certificate(served) == api_certs.read(first).strip()
    shutil.copy(second_key, key)
    shutil.copy(second, first)
    wait(lambda: served_certificate(served) == api_certs.read(second).strip(), "the new certificate is served")
    with open(first, "w", encoding="utf-8") as file:
        file.write("broken")
    wait(lambda: served_certificate(served) and "Cannot use the agent's settings" in served.said(), "it is refused")
    assert served_certificate(served) == api_certs.read(second).strip()
    served.stop()


def describe_certificate(pem):
    return subprocess.run(["openssl", "x509", "-noout", "-subject", "-ext", "subjectAltName"], check=True, text=True,
                          input=pem, capture_output=True).stdout


def pki(node, name):
    return os.path.join(node.state, "pki", name)


def replace_pair(node, start, end, directory):
    """Replaces the node's certificate and key by a self-signed pair with another validity."""
    other = api_certs.Authority(directory, "self", f"DNS:{harness.NODE_NAME}")
    request = other.request("selfsigned", f"/CN={harness.NODE_NAME}", other.base + "-self.key")
    subprocess.run(["openssl", "ca", "-batch", "-config", other.config, "-keyfile", other.base + "-self.key", "-in", request, "-out",
                    other.base + "-self.crt", "-notext", "-extensions", "server", "-selfsign", "-startdate",
                    api_certs.moment(start), "-enddate", api_certs.moment(end)], check=True, capture_output=True)
    shutil.copy(other.base + "-self.key", pki(node, "kubelet.key"))
    shutil.copy(other.base + "-self.crt", pki(node, "kubelet.crt"))
    return api_certs.read(other.base + "-self.crt").strip()


def test_a_self_signed_certificate_is_kept_and_renewed_before_its_end(make_member, tmp_path):
    node = make_member()
    served = node_api.NodeApi(node)
    first = served_certificate(served)
    text = describe_certificate(first)
    assert f"CN = {harness.NODE_NAME}" in text and f"DNS:{harness.NODE_NAME}" in text
    wait(lambda: (world.read(pki(node, "kubelet.crt")) or "").strip() == first, "it is on disk")
    assert os.stat(pki(node, "kubelet.key")).st_mode & 0o777 == 0o600
    served.stop()
    node.restart()
    served = node_api.NodeApi(node)
    assert served_certificate(served) == first, "another agent and another server show the same"
    served.stop()
    node.stop()
    for start, end, is_kept in ((-7 * 86400, 3 * 86400, True), (-9 * 86400, 86400, False)):
        other = replace_pair(node, start, end, str(tmp_path))
        node.start()
        served = node_api.NodeApi(node)
        assert (served_certificate(served) == other) == is_kept
        served.stop()
        node.stop()
    node.start()


def test_a_damaged_certificate_pair_is_replaced(make_member):
    node = make_member()
    os.makedirs(os.path.join(node.state, "pki"), mode=0o700, exist_ok=True)
    for name in ("kubelet.crt", "kubelet.key"):
        with open(pki(node, name), "w", encoding="utf-8") as file:
            file.write("broken")
    served = node_api.NodeApi(node)
    assert f"DNS:{harness.NODE_NAME}" in describe_certificate(served_certificate(served))
    assert "kubelet.crt" in node.said() and "creating a new one" in node.said()
    served.stop()


def serving_requests(api):
    return [one for one in api.all("certificatesigningrequests")
            if one["spec"]["signerName"] == "kubernetes.io/kubelet-serving"]


def served_by(served, authority):
    """Whether a client that trusts only the authority accepts the certificate for the node's address."""
    context = ssl.create_default_context(cafile=authority.cert)
    with served.dial() as plain:
        try:
            with context.wrap_socket(plain, server_hostname=harness.NODE_NAME):
                return True
        except ssl.SSLCertVerificationError:
            return False


def test_the_api_server_issues_the_certificate(api, make_member):
    member = make_member(config={"serverTLSBootstrap": True})
    request = wait(lambda: next(iter(serving_requests(api)), None), lambda: f"a certificate is requested\n{member.said()}")
    assert request["spec"]["usages"] == ["digital signature", "server auth"]
    wait(lambda: f"waiting for the approval of {request['metadata']['name']}" in member.said(), member.said)
    served = node_api.NodeApi(member)
    assert not served_by(served, api.authority), "until then it is self-signed"
    member.restart()
    api.approve(request["metadata"]["name"])
    wait(lambda: served_by(served, api.authority), lambda: f"the certificate is served\n{member.said()}")
    text = describe_certificate(served_certificate(served))
    assert f"O = system:nodes, CN = system:node:{harness.NODE_NAME}" in text
    address = next(one["address"] for one in api.get("nodes", None, harness.NODE_NAME)["status"]["addresses"] if one["type"] == "InternalIP")
    assert f"DNS:{harness.NODE_NAME}" in text and f"IP Address:{address}" in text
    assert len(serving_requests(api)) == 1, "the second agent continues with the same request"
    assert os.stat(pki(member, "kubelet-server-current.pem")).st_mode & 0o777 == 0o600
    member.restart()
    api.stop()
    assert served_by(served, api.authority), "it is kept"
    api.start()
    served.stop()


def test_the_issued_certificate_is_renewed_without_a_restart(api, make_clocked_member):
    member = make_clocked_member(config={"serverTLSBootstrap": True})
    served = node_api.NodeApi(member)
    request = wait(lambda: next(iter(serving_requests(api)), None), lambda: f"a certificate is requested\n{member.said()}")
    api.approve(request["metadata"]["name"], start=-3600, seconds=360)
    wait(lambda: served_by(served, api.authority), "the first one is served")
    member.let_pass(180)  # requests are not made more often, although one is due
    second = wait(lambda: next((one for one in serving_requests(api) if one["metadata"]["name"] != request["metadata"]["name"]), None),
                  lambda: f"the next certificate is requested, but not signed yet\n{member.said()}", 180)
    first = served_certificate(served)
    api.approve(second["metadata"]["name"])
    wait(lambda: served_certificate(served) != first, "the second one is served")
    assert served_by(served, api.authority)
    served.stop()
