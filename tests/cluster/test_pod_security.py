# SPDX-License-Identifier: Apache-2.0
"""The node's own table of the Pod Security Standards against the API server's verdicts on the same pods: the same pods are
refused, for the same violations in the same words.

    MAINSTAY_KUBERNETES=DIR tests/cluster/test_pod_security.py > tests/system/pod-security.txt

writes the verdicts that the system suite compares the table with."""

import concurrent.futures
import os
import random
import re
import sys
import threading

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TOP, "tests", "cluster"), os.path.join(TOP, "tests", "system")]

import pod_security  # noqa: E402  pylint: disable=wrong-import-position
import pytest  # noqa: E402  pylint: disable=wrong-import-position
from client import Refused  # noqa: E402  pylint: disable=wrong-import-position
from world import wait  # noqa: E402  pylint: disable=wrong-import-position

COUNT = 3000
FIXTURE = 400
THREADS = 4


def namespace_of(level, version):
    return f"security-{level}-{version.replace('.', '-')}"


class Server:
    """Does dry runs in a namespace for each policy, with a connection for each thread."""

    def __init__(self, plane):
        self.plane, self.local = plane, threading.local()
        for level, version in pod_security.POLICIES:
            labels = {"pod-security.kubernetes.io/enforce": level, "pod-security.kubernetes.io/enforce-version": version}
            if not plane.client.get("namespaces", None, namespace_of(level, version)):
                plane.client.create({"apiVersion": "v1", "kind": "Namespace",
                                     "metadata": {"name": namespace_of(level, version), "labels": labels}})
        for policy in pod_security.POLICIES:
            wait(lambda policy=policy: plane.client.get("serviceaccounts", namespace_of(*policy), "default"),
                 "the service account of the namespace", 120)

    def judge(self, case):
        """The verdicts in the form of pod_security.judge(); None for a pod that is not valid."""
        level, version, pod = case
        if not hasattr(self.local, "client"):
            self.local.client = self.plane.make_client("admin")
        try:
            self.local.client.do("POST", f"/api/v1/namespaces/{namespace_of(level, version)}/pods?dryRun=All", pod)
        except Refused as refused:
            message = refused.status.get("message", "")
            found = re.search(r'is forbidden: (violates PodSecurity .*)', message, re.S)
            assert found or refused.status.get("code") == 422, message
            return found.group(1) if found else None
        return "allowed"


def collect(plane, seed, count):
    """Cases that the server has judged, with its verdicts."""
    cases = [pod_security.make(seed, number) for number in range(count)]
    server = Server(plane)
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        verdicts = list(pool.map(server.judge, cases))
    return [(case, verdict) for case, verdict in zip(cases, verdicts) if verdict]


def check(plane, seed, count):
    judged = collect(plane, seed, count)
    assert len(judged) > count / 2
    refused = [verdict for _, verdict in judged if verdict != "allowed"]
    assert len(judged) / 5 < len(refused) < len(judged) * 4 / 5
    ours = pod_security.judge([case for case, _ in judged])
    wrong = [f"{case[0]}:{case[1]} {case[2]['spec']} {case[2]['metadata']}\n  server: {theirs}\n  node:   {own}"
             for (case, theirs), own in zip(judged, ours) if theirs != own]
    assert not wrong, f"{len(wrong)} of {len(judged)}, seed {seed}:\n" + "\n".join(wrong[:10])


@pytest.mark.data
def test_random_pods_get_the_verdicts_of_the_api_server(plane):
    check(plane, "0", COUNT)


@pytest.mark.data
@pytest.mark.long
def test_more_random_pods_get_the_verdicts_of_the_api_server(plane):
    check(plane, os.environ.get("MAINSTAY_SEED") or str(random.randrange(10**6)), 20 * COUNT)


def main():
    import control_plane  # pylint: disable=import-outside-toplevel
    plane = control_plane.ControlPlane()
    try:
        for case, verdict in collect(plane, "fixture", FIXTURE):
            print(pod_security.line_of(*case).rstrip("\n"))
            print(f"    {verdict}")
    finally:
        plane.finish()


if __name__ == "__main__":
    main()
