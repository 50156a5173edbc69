# SPDX-License-Identifier: Apache-2.0
"""Pods that an API server binds to this node, and what the node reports of them and of its own pods."""

import pytest
import specs
import world
from harness import NODE_NAME


@pytest.mark.quick
def test_bound_pod_runs_and_is_reported(make_member):
    member = make_member()
    member.bind("web")
    reported = member.wait_reported_phase("web", "Running")
    assert world.is_alive(member.init("web"))
    status = reported["status"]
    assert status["containerStatuses"][0]["ready"] is True
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "True"
    assert status["containerStatuses"][0]["containerID"].startswith("mainstay://")
    assert member.pod("web")["metadata"]["uid"] == reported["metadata"]["uid"]


@pytest.mark.quick
def test_deleted_pod_stops_with_its_grace_period_then_its_object_is_deleted(make_member):
    member = make_member()
    member.bind("slow", specs.container(script="trap 'echo ending; exit 7' TERM; sleep 1000 & wait"),
                terminationGracePeriodSeconds=20)
    member.wait_reported_phase("slow", "Running")
    pid = member.init("slow")
    member.api.delete("pods", "default", "slow")
    member.wait_reported_gone("slow")
    assert not world.is_alive(pid)
    last = [request for request in member.api.asked("patch", "pods", "slow", "status")][-1].body["status"]
    assert last["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
    assert last["phase"] == "Failed"
    final = member.api.asked("delete", "pods", "slow", user=f"system:node:{NODE_NAME}")
    assert len(final) == 1 and final[0].body["gracePeriodSeconds"] == 0 and final[0].body["preconditions"]["uid"]


@pytest.mark.quick
def test_mirror_pod_is_recreated_and_removed_with_its_file(make_member):
    member = make_member()
    member.launch(specs.pod("own"))
    name = f"own-{NODE_NAME}"
    mirror = member.wait_reported_phase(name, "Running")
    assert mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] == member.pod("own")["metadata"]["uid"]
    assert mirror["metadata"]["ownerReferences"][0]["kind"] == "Node"
    pid = member.init("own")

    member.api.delete("pods", "default", name, grace=0)
    again = member.wait_reported(name, lambda pod: pod["metadata"]["uid"] != mirror["metadata"]["uid"], "is a new mirror")
    member.api.delete("pods", "default", name)
    member.wait_reported(name, lambda pod: pod["metadata"]["uid"] != again["metadata"]["uid"] and
                     pod["status"].get("phase") == "Running", "is a new mirror once more")
    assert world.is_alive(pid)

    member.remove("own")
    member.wait_reported_gone(name)


def test_late_response_does_not_override_the_watch(make_member):
    member = make_member()
    late = member.api.misbehave(verb="patch", plural="pods", subresource="status", delay=2, times=1,
                                when=lambda request: request.body["status"].get("phase") == "Running")
    member.launch(specs.pod("own"))
    name = f"own-{NODE_NAME}"
    mirror = member.wait_reported_phase(name, "Running")
    member.api.delete("pods", "default", name)
    member.wait_reported(name, lambda pod: pod["metadata"]["uid"] != mirror["metadata"]["uid"] and
                     pod["status"].get("phase") == "Running", "is a new mirror")
    assert late.struck == 1
    member.wait_running("own")


def test_unreachable_server_stops_no_container(make_member):
    member = make_member()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    pid = member.init("web")
    member.api.stop()
    member.launch(specs.pod("own"))
    member.restart()
    member.wait_running("web")
    assert member.init("web") == pid
    member.api.start()
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    assert member.init("web") == pid


def test_many_bound_pods_run_and_are_reported(make_member):
    member = make_member()
    names = [f"many{i}" for i in range(80)]
    for name in names:
        member.bind(name)
    for name in names:
        member.wait_reported_phase(name, "Running", 120)
    assert member.agent.poll() is None
    assert len({member.reported(name)["status"]["containerStatuses"][0]["containerID"] for name in names}) == len(names)
