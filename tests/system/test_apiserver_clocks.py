# SPDX-License-Identifier: Apache-2.0
"""Hours without the API server, by the agent's clocks, and clocks that are wrong by years."""

import os
import re
import time

import pytest
import specs
import world
from api_faults import Relay
from harness import NODE_NAME
from test_apiserver_faults import assert_untouched, behind, run_bound_pods
from world import wait

DAY = 86400
BOOTSTRAP = "b00tstr.ap-t0ken-55aa"
YEARS = 10 * 365 * DAY


@pytest.fixture(name="relay")
def fixture_relay(api):
    relay = Relay(api.port)
    yield relay
    relay.stop()


def lists(member, since):
    """The number of lists of each collection, without the query for the identity of the cluster, which follows each
    lost connection."""
    found = [(one.path, one.query.get("fieldSelector")) for one in member.api.asked("list")
             if one.at >= since and one.query.get("fieldSelector") != "metadata.name=kube-system"]
    return {what: found.count(what) for what in found}


def tokens(member):
    return member.api.asked("create", "serviceaccounts", subresource="token")


@pytest.mark.parametrize("seconds,is_compacted", [(300, False), (DAY, False), (DAY, True)])
def test_long_partition_restarts_nothing_and_status_converges(relay, make_clocked_member, seconds, is_compacted):
    member = behind(relay, make_clocked_member)
    member.api.create("configmaps", {"metadata": {"name": "settings"}, "data": {"color": "red"}})
    member.bind("reads", specs.container(volumeMounts=[specs.mount("v", "/settings")]),
                volumes=[{"name": "v", "configMap": {"name": "settings"}}])
    inits = run_bound_pods(member, "web", "goes")
    inits.update(run_bound(member, "reads"))
    wait(lambda: len(tokens(member)) >= 3, "all three pods have tokens")
    before = len(tokens(member))
    relay.freeze()
    member.let_pass(seconds / 2)
    member.api.delete("pods", "default", "goes", grace=1)
    member.api.patch("configmaps", "default", "settings", {"data": {"color": "blue"}})
    member.bind("late")
    member.launch(specs.pod("own"))
    inits["own"] = member.init("own")
    member.let_pass(seconds)
    if is_compacted:
        member.api.store.compact()
    since, asked = time.monotonic(), len(member.api.requests)
    relay.cut(only_used=True)
    relay.thaw()
    member.wait_reported_gone("goes")
    member.wait_reported_phase("late", "Running")
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    inits.pop("goes")
    if seconds == DAY:
        wait(lambda: len(tokens(member)) >= before + 3, lambda: f"the tokens were renewed: {tokens(member)}")
    assert_untouched(member, inits)
    assert all(count == 1 for count in lists(member, since).values()), lists(member, since)
    assert is_compacted or not lists(member, since), lists(member, since)
    assert len(member.api.requests) - asked < 100 + 2 * (time.monotonic() - since), member.api.requests[asked:]


def run_bound(member, name):
    member.wait_reported_phase(name, "Running")
    return {name: member.init(name)}


def wait_for_the_year(member, shift):
    """Waits for a message that contains the time of the clock, with this year."""
    pattern = time.strftime(r"the clock of this machine (is not set, it )?says %Y-", time.gmtime(time.time() + shift))
    wait(lambda: re.search(pattern, member.said()), lambda: f"'{pattern}' is logged:\n{member.said()}")


@pytest.mark.parametrize("shift", [YEARS, -YEARS])
def test_wrong_clock_is_reported_and_static_pods_run(make_clocked_member, shift):
    member = make_clocked_member(start=False)
    member.set_clock(shift)
    member.start()
    member.launch(specs.pod("own"))
    inits = {"own": member.init("own")}
    wait_for_the_year(member, shift)
    assert member.api.get("nodes", None, NODE_NAME) is None
    member.set_clock(0)
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    inits.update(run_bound_pods(member, "web"))
    assert_untouched(member, inits)


@pytest.mark.parametrize("shift", [YEARS, -YEARS])
def test_clock_change_stops_no_pod(make_clocked_member, shift):
    member = make_clocked_member()
    inits = run_bound_pods(member, "web")
    member.set_clock(shift)
    member.api.drop_connections()
    wait_for_the_year(member, shift)
    member.launch(specs.pod("own"))
    inits["own"] = member.init("own")
    member.set_clock(0)
    inits.update(run_later(member, "late"))
    assert_untouched(member, inits)


def test_certificates_are_requested_rarely_if_a_fast_clock_makes_them_expire(make_clocked_member):
    member = make_clocked_member(start=False)
    bootstrap = os.path.join(member.directory, "bootstrap")
    member.api.add_token(BOOTSTRAP, "system:bootstrap:b00tstr", "system:bootstrappers", "system:authenticated")
    member.api.kubeconfig(bootstrap, token=BOOTSTRAP)
    os.unlink(member.kubeconfig)
    member.write_config(mainstay={"kubeconfig": member.kubeconfig, "bootstrapKubeconfig": bootstrap})
    member.set_clock(2 * 3600)
    member.start()
    wait(lambda: approve_all(member), lambda: f"a certificate signing request\n{member.said()}")
    start = time.monotonic()
    while time.monotonic() < start + 20 or not member.api.get("nodes", None, NODE_NAME):
        assert time.monotonic() < start + world.DEADLINE, "the server accepts them"
        approve_all(member)
        time.sleep(1.5)  # so that each expires in another second
    limit = 3 + (time.monotonic() - start) // 60 * 2  # with a back-off of a minute or more
    assert approve_all(member) <= limit, "two requests by the token, one by the certificate, and few others"


def approve_all(member):
    """Approves all certificate signing requests; returns their number."""
    requests = member.api.all("certificatesigningrequests")
    for request in requests:
        if not request.get("status", {}).get("conditions"):
            member.api.approve(request["metadata"]["name"], seconds=600)
    return len(requests)


def run_later(member, name):
    member.bind(name)
    member.wait_reported_phase(name, "Running")
    return {name: member.init(name)}
