# SPDX-License-Identifier: Apache-2.0
"""The delay from an event that an API server sends, over HTTP/2, to the agent's reaction. The events are sent one at a
time, and nothing follows that could push them: a late event waits for the next thing that the server sends."""

import os
import tempfile
import time

import api_front
import apiserver
import member
import specs
from harness import NODE_NAME
from world import wait

SIZES = [512, 1000, 1500, 2500, 4096, 8192, 16384, 32768, 65536]
DEADLINE_SECONDS = 30
TOKEN = "b3nch-t0ken"


def reaction(api, pointer, sent, size):
    """Seconds from the event until the volume's content changes."""
    before, end = os.readlink(pointer), time.monotonic() + DEADLINE_SECONDS
    api.patch("configmaps", "default", "settings", {"data": {"text": f"{time.monotonic()} ".ljust(size, "x")}})
    while os.readlink(pointer) == before:
        if time.monotonic() > end:
            raise SystemExit(f"bench: no reaction to an event of {size} bytes within {DEADLINE_SECONDS} s")
        time.sleep(0.0005)
    return time.monotonic() - sent[-1]


def join(api, front, archive):
    node = member.Member(api, archive, start=False)
    api.node_token(TOKEN, NODE_NAME)
    api.kubeconfig(node.kubeconfig, token=TOKEN, port=front.port)
    node.start()
    return node


def spans(api, node, samples):
    sent = []
    api.misbehave(verb="watch", plural="configmaps", change=lambda data: sent.append(time.monotonic()) or data)
    api.create("configmaps", {"metadata": {"name": "settings"}, "data": {"text": "0"}})
    node.bind("web", specs.container(volumeMounts=[specs.mount("v", "/settings")]),
              volumes=[{"name": "v", "configMap": {"name": "settings"}}])
    node.wait_reported_phase("web", "Running")
    pointer = f"/proc/{node.init('web')}/root/settings/..data"
    wait(lambda: os.path.islink(pointer), "the volume is there")
    return [reaction(api, pointer, sent, size) for _ in range(samples) for size in SIZES]


def measure(archive, arguments, figures):
    with tempfile.TemporaryDirectory(prefix="mainstay-bench-events-") as directory:
        api = apiserver.make(directory)
        front = api_front.Front(api)
        node = join(api, front, archive)
        try:
            late = sorted(spans(api, node, arguments.samples))
            figures.add("event of 0.5 to 64 KiB over HTTP/2 -> the volume has changed, 99th percentile",
                        late[int(len(late) * 0.99)] * 1000, 50, "ms", samples=len(late))
        finally:
            node.finish()
            front.stop()
            api.stop()
