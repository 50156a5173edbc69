# SPDX-License-Identifier: Apache-2.0
"""An allocation of the agent fails: it continues, or it ends with a message and is started again. The containers still run."""

import http.client
import json

import failing
import pytest
import specs
from world import wait

# While a pod is added and removed the agent makes some ten thousand allocations, more than half of them to report its
# state.
PASSES = [1, 10, 40, 100, 250, 500, 1000, 1800, 3000, 4500, 6500, 9000]


class StarvedNode(failing.FailingNode):
    def revive(self):
        """Starts the agent again also if it has exited and has logged the reason."""
        if self.agent.poll() is None:
            return
        if self.agent.returncode in (1, 255):
            assert "memory" in self.said(), self.describe_agent_exit()
            self.start(ready=False)
        super().revive()

    def get(self, path):
        """A response that ends too early counts as none."""
        try:
            status, body = super().get(path)
            if path == "/pods" and status == 200:
                json.loads(body)
            return status, body
        except (http.client.HTTPException, json.JSONDecodeError):
            return 503, ""


@pytest.fixture(name="starved")
def fixture_starved(archive):
    node = StarvedNode(archive)
    yield node
    node.arm({})
    node.finish()


def live(node, name):
    node.drop(specs.pod(name, specs.container("main", specs.IDLE)))
    node.wait_running(name)
    node.remove(name)
    node.wait_gone(name)


def has_failed(node, n):
    """The number of requests until the pod was gone depends on the machine: each request makes some hundred
    allocations."""
    node.get("/pods")
    return node.hits()["mainstayd:alloc"] > n


def check_failed_allocations(node, passes):
    node.launch(specs.pod("other", specs.container("main", specs.IDLE)))
    before = node.init("other")
    for n in passes:
        node.arm({"mainstayd:alloc": f"{n}*off->1*return(ENOMEM)"})
        live(node, f"passing-{n}")
        wait(lambda n=n: has_failed(node, n), lambda n=n: f"allocation {n} has failed: {node.hits()}")
        node.arm({})
        assert wait(lambda: node.find_init("other"), "the other pod exists") == before


def test_an_agent_survives_a_failed_allocation(starved):
    check_failed_allocations(starved, PASSES)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1, 9000, 600))
def test_an_agent_survives_every_seventh_failed_allocation(starved, first):
    check_failed_allocations(starved, range(first, first + 600, 7))


def test_an_event_of_a_shim_is_repeated_if_the_agent_has_no_memory_for_it(starved):
    """The first event is the shim's greeting."""
    starved.launch(specs.pod("other", specs.container("main", specs.IDLE)))
    before, shim = starved.init("other"), starved.shim("other")
    for n in range(8):
        starved.arm({"mainstayd:sandbox.decode-event": f"{n}*off->1*return(ENOMEM)"})
        live(starved, f"passing-{n}")
        hits = starved.hits()["mainstayd:sandbox.decode-event"]
        starved.arm({})
        assert (starved.init("other"), starved.shim("other")) == (before, shim)
        if hits <= n:
            break
    assert n >= 4, "a pod has a greeting, a setup, a start, an exit, a deletion"
    assert starved.agent.poll() is None
