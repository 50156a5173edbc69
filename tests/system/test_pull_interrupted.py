# SPDX-License-Identifier: Apache-2.0
"""Pulls that are interrupted: by the registry, by a signal, or by a second pull of the same image."""

import glob
import os
import random
import re
import signal
import subprocess
import threading
import time

import harness
import pytest
import world
from puller import big_image, expect_pulled, expect_refused
from registry import Blobs
from world import cmdline, pids, read, wait


def cut(handler, data, start, length):
    """Announces the full length and sends a part."""
    handler.send_response(206 if start else 200)
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
    handler.send_header("Content-Length", str(len(data) - start))
    handler.end_headers()
    handler.wfile.write(data[start:start + length])
    handler.close_connection = True
    return True


def test_an_interrupted_download_is_resumed(puller, serve):
    image, sent = big_image(), [0]
    data = image.blobs[image.layers[0]]

    def behave(handler):
        if image.layers[0] not in handler.path:
            return False
        start = int(handler.headers.get("Range", "bytes=0-")[6:-1])
        length = min(700_000, len(data) - start)
        sent[0] += length
        return cut(handler, data, start, length)
    expect_pulled(puller, puller.pull(serve(image, behave)))
    assert sent[0] <= 1.1 * len(data)


@pytest.mark.parametrize("answer", ["whole", "no-range", "416"])
def test_a_server_without_ranges_is_read_from_the_start(puller, serve, answer):
    image, tries = big_image(), [0]
    data = image.blobs[image.layers[0]]

    def behave(handler):
        if image.layers[0] not in handler.path:
            return False
        tries[0] += 1
        if tries[0] == 1:
            return cut(handler, data, 0, 1_000_000)
        if "Range" not in handler.headers or answer == "whole":
            return handler.answer(200, data)
        return handler.answer(416) if answer == "416" else handler.answer(206, data)
    expect_pulled(puller, puller.pull(serve(image, behave)))


def interrupt(puller, serve):
    """An image whose pull has most of the first layer and waits for the rest. Returns the registry, the pull, and the
    first byte of each request for that layer."""
    image, ended = big_image(), threading.Event()
    data = image.blobs[image.layers[0]]
    starts = []

    def behave(handler):
        if image.layers[0] not in handler.path:
            return False
        starts.append(int(handler.headers.get("Range", "bytes=0-")[6:-1]))
        if len(starts) > 1:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:len(data) * 99 // 100])
        handler.wfile.flush()
        ended.wait(300)
        return True
    registry = serve(image, behave)
    process = puller.spawn(f"{registry.host}/team/app:latest", insecureRegistries=[registry.host])

    def partial():
        return glob.glob(os.path.join(puller.store, "partial", image.layers[0][7:] + ".*"))
    wait(lambda: any(os.stat(path).st_size >= len(data) * 98 // 100 for path in partial()), "most of it has arrived")

    def kill():
        process.kill()
        process.communicate()
        ended.set()
    return registry, kill, starts


def test_a_killed_pull_is_resumed(puller, serve):
    registry, kill, starts = interrupt(puller, serve)
    kill()
    expect_pulled(puller, puller.pull(registry))
    image = registry.image
    assert starts[-1] >= len(image.blobs[image.layers[0]]) * 98 // 100


def test_a_layer_completed_by_a_second_pull_is_kept_and_the_partial_one_removed(puller, serve):
    registry, kill, starts = interrupt(puller, serve)
    image = registry.image
    expect_pulled(puller, puller.pull(registry))
    assert len(starts) > 1 and starts[-1] == 0  # the second one comes from another registry
    kill()
    assert puller.blob(image.layers[0]) == image.blobs[image.layers[0]]
    expect_pulled(puller, puller.pull(registry))
    assert os.listdir(f"{puller.store}/partial") == []
    assert puller.blob(image.layers[0]) == image.blobs[image.layers[0]]


@pytest.mark.skipif(not os.path.exists("/proc/self/autogroup"), reason="the kernel does not schedule by session")
@pytest.mark.parametrize("prefix, nice", [([], "nice 10"), (["setsid"], "nice 0")], ids=["a child", "the leader of a job"])
def test_a_pull_runs_at_low_priority_in_a_separate_session(puller, serve, prefix, nice):
    image, asked, hang = big_image(), threading.Event(), threading.Event()

    def behave(handler):
        if image.layers[0] in handler.path:
            asked.set()
            hang.wait(300)
        return False
    registry = serve(image, behave)
    puller.prefix += prefix
    with puller.spawn(f"{registry.host}/team/app:latest", insecureRegistries=[registry.host]) as process:
        try:
            assert asked.wait(world.DEADLINE)
            at_work = [pid for pid in pids() if cmdline(pid)[:1] == [harness.program("mainstay-image")] and
                       puller.store in cmdline(pid)]
            assert process.pid in at_work and len(at_work) > 1
            assert {os.getsid(pid) for pid in at_work} == {process.pid}
            assert {read(f"/proc/{pid}/autogroup").split(" ", 1)[1].strip() for pid in at_work} == {nice}
        finally:
            hang.set()
        _, error = process.communicate(timeout=world.DEADLINE)
    expect_pulled(puller, (process.returncode, error))


def test_a_killed_fetcher_is_reported_as_the_cause_of_a_failed_pull(puller, serve):
    image, asked, hang, ports = big_image(), threading.Event(), threading.Event(), []

    def behave(handler):
        if image.layers[0] not in handler.path:
            return False
        data = image.blobs[image.layers[0]]
        ports.append(handler.client_address[1])
        cut(handler, data, 0, len(data) // 2)
        asked.set()
        return hang.wait(300)
    registry = serve(image, behave)
    with puller.spawn(f"{registry.host}/team/app:latest", insecureRegistries=[registry.host]) as process:
        try:
            assert asked.wait(world.DEADLINE)
            fetcher = subprocess.run(["ss", "-tnpH", "state", "established", "src", f"127.0.0.1:{ports[0]}"], check=True,
                                     text=True, stdout=subprocess.PIPE).stdout
            os.kill(int(re.search(r"pid=(\d+),", fetcher)[1]), signal.SIGKILL)
            _, error = process.communicate(timeout=world.DEADLINE)
        finally:
            hang.set()
    expect_refused(puller, (process.returncode, error), "the fetcher process was killed by signal 9")


def families(random_source):
    """Two images that share layers and have one separate layer each."""
    common = [{f"common{i}/{j}": random_source.randbytes(60_000) for j in range(20)} for i in range(3)]
    return [Blobs([*common[:2], {f"own{i}/x": random_source.randbytes(400_000)}, common[2]]) for i in range(2)]


def verified(puller):
    return subprocess.run([harness.program("mainstay-image"), "verify", "--store", puller.store], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("rounds", [3, pytest.param(25, marks=pytest.mark.long)])
def test_concurrent_pulls_killed_at_any_moment_leave_only_complete_layers(puller, serve, rounds):
    seed = int(os.environ.get("MAINSTAY_SEED", random.randrange(1 << 32)))
    print(f"MAINSTAY_SEED={seed}")
    chance = random.Random(seed)
    images = families(chance)
    registries = [serve(image) for image in images]
    for _ in range(rounds):
        pulls = [puller.spawn(f"{registry.host}/team/app:latest", insecureRegistries=[registry.host]) for registry in registries]
        for pull in chance.sample(pulls, chance.randrange(1, 3)):
            time.sleep(chance.random() * 0.15)  # it must die at exactly this moment
            pull.kill()
        for pull in pulls:
            pull.communicate(timeout=world.DEADLINE)
        sound = verified(puller)
        assert sound.returncode == 0, sound.stdout
    for registry in registries:
        result = puller.pull(registry)
        assert result[0] == 0, result[1]
    sound = verified(puller)
    assert sound.returncode == 0, sound.stdout
    puller.sweep()
    assert os.listdir(f"{puller.store}/tmp") == [] and os.listdir(f"{puller.store}/partial") == []
    names = {layer for registry in registries for layer in registry.image.layers}
    assert {f"sha256:{name}" for name in os.listdir(f"{puller.store}/blobs/sha256")} >= names
    assert len(os.listdir(f"{puller.store}/records")) == 2


def test_a_layer_that_another_pull_published_meanwhile_keeps_its_complete_blob(puller, serve, tmp_path):
    """The second pull stops when it has created its own file for the blob, and gets it when the first has ended."""
    image, asked, hang, end = big_image(), threading.Event(), threading.Event(), threading.Event()

    def behave(handler):
        if image.layers[0] in handler.path:
            event = end if asked.is_set() else hang
            asked.set()
            event.wait(300)
        return False
    registry = serve(image, behave)

    def spawn():
        return puller.spawn(f"{registry.host}/team/app:latest", insecureRegistries=[registry.host])
    first = spawn()
    assert asked.wait(world.DEADLINE)
    trace = str(tmp_path / "trace")
    puller.prefix = ["env", "ASAN_OPTIONS=detect_leaks=0", "strace", "-D", "-o", trace, "-e", "trace=pipe2",
                     "-e", "inject=pipe2:signal=SIGSTOP:when=1"]
    second = spawn()
    wait(lambda: "stopped by SIGSTOP" in (read(trace) or ""), "the second pull has stopped")
    assert glob.glob(f"{puller.store}/tmp/*/blob-0"), "the second pull has a private file"
    hang.set()
    _, error = first.communicate(timeout=world.DEADLINE)
    assert first.returncode == 0, error
    end.set()
    os.kill(second.pid, signal.SIGCONT)
    _, error = second.communicate(timeout=world.DEADLINE)
    expect_pulled(puller, (second.returncode, error))
    assert puller.blob(image.layers[0]) == image.blobs[image.layers[0]]
