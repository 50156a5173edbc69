# SPDX-License-Identifier: Apache-2.0
"""Gigabytes of output, a line of a gigabyte, a thousand rotations, readers and commands: nothing is lost or repeated,
and the use of memory and descriptors does not grow."""

import os
import socket
import subprocess
import threading
import time

import harness
import many
import pytest
import specs
import world
from test_logs import LINE
from world import wait

MIB = 1 << 20
LINE_LENGTH = 1000
MAX_SIZE, MAX_FILES = 10 * MIB, 5
PART = 16 * 1024  # bytes of a line that is longer than a record of a log may be
GROWTH_KIB, PEAK_KIB = 1024, 32 * 1024

READERS, READERS_KIB = 1000, 32 * 1024
EXECS, EXECS_AT_ONCE = 10_000, 6


def count_up(lines, width=0, pause=""):
    """A script that prints numbers, each on its own line. 'pause' is a statement that follows each."""
    return f"echo | awk '{{ for (i = 0; i < {lines}; i++) {{ printf \"%0{width}d\\n\", i; {pause} }} }}'"


def log_files(directory):
    """The log files, the oldest first; the one that is being written is the last."""
    return sorted(os.listdir(directory), key=lambda name: (name == "0.log", name))


def read_logs(directory):
    """The content of each kept file."""
    found = []
    for name in log_files(directory):
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            found.append(file.read())
    return found


def size_of(directory):
    found = 0
    for entry in os.scandir(directory):
        try:
            found += entry.stat().st_size
        except FileNotFoundError:
            pass
    return found


def wait_ended(node, name, directory, deadline):
    """Waits until the container has ended; returns the maximum size that its logs had until then."""
    largest = 0

    def has_ended():
        nonlocal largest
        largest = max(largest, size_of(directory))
        return node.pod(name)["status"]["phase"] == "Succeeded"
    wait(has_ended, lambda: f"{name} has ended: {node.pod(name)}", deadline)
    return largest


def launch_writer(node, name, script):
    """Starts a container that ends when it has written everything, and waits for its first line; returns the directory
    of its logs."""
    node.drop(specs.script_pod(name, "echo first; until [ -e /proc/1/cwd/tmp/go ]; do sleep 0.1; done; " + script,
                               restartPolicy="Never"))
    node.wait_running(name)
    wait(lambda: node.logged(name) == ["first"], "it has started")
    return os.path.join(node.log_directory(name), "main")


def let_go(node, name):
    with open(f"/proc/{node.init(name)}/root/tmp/go", "w", encoding="ascii"):
        pass


@pytest.mark.long
def test_gigabytes_of_output_stay_within_the_log_limits_and_keep_lines_intact(make_node):
    node = many.start_without_quarantine(make_node(
        config={"containerLogMaxSize": "10Mi", "containerLogMaxFiles": MAX_FILES}, start=False))
    lines = many.scaled(10 * 1024 * MIB) // LINE_LENGTH
    directory = launch_writer(node, "chatty", count_up(lines, LINE_LENGTH - 1))
    shim = node.shim("chatty")
    before, memory = many.descriptors(node.agent.pid), many.own_kib(shim)
    let_go(node, "chatty")
    largest = wait_ended(node, "chatty", directory, 7200)
    assert largest <= (MAX_FILES + 1) * MAX_SIZE
    kept = read_logs(directory)
    assert len(kept) == MAX_FILES and max(len(text) for text in kept) <= MAX_SIZE
    records = [LINE.match(line).groups() for line in "".join(kept).splitlines()]
    assert {(record[1], record[2], len(record[3])) for record in records} == {("stdout", "F", LINE_LENGTH - 1)}
    assert [int(record[3]) for record in records] == list(range(lines - len(records), lines))
    print(f"{lines * LINE_LENGTH / MIB:.0f} MiB; at most {largest / MIB:.1f} MiB of files; KiB of the shim: "
          f"{memory}, {many.own_kib(shim)}")
    assert many.own_kib(shim) < memory + GROWTH_KIB
    assert many.descriptors(node.agent.pid) == before


@pytest.mark.long
def test_a_line_of_a_gigabyte_is_written_in_parts_with_little_memory(make_node):
    node = make_node(config={"containerLogMaxSize": "10Mi", "containerLogMaxFiles": MAX_FILES})
    size = many.scaled(1024 * MIB, 64 * MIB)
    directory = launch_writer(node, "long", f"head -c {size} /dev/zero | tr '\\0' x; echo; echo end")
    shim = node.shim("long")
    peak = world.memory_kib(shim, "VmHWM")
    let_go(node, "long")
    largest = wait_ended(node, "long", directory, 900)
    print(f"{size / MIB:.0f} MiB; at most {largest / MIB:.1f} MiB of files; peak of the shim: {peak}, "
          f"{world.memory_kib(shim, 'VmHWM')}")
    assert largest <= (MAX_FILES + 1) * MAX_SIZE
    assert world.memory_kib(shim, "VmHWM") < peak + PEAK_KIB
    *parts, last, end = [LINE.match(line).groups() for line in "".join(read_logs(directory)).splitlines()]
    assert (end[2], end[3]) == ("F", "end")
    assert last[2] == "F" and set(last[3]) <= {"x"}
    assert {part[2] for part in parts} == {"P"} and max(len(part[3]) for part in parts) <= PART
    assert all(set(part[3]) == {"x"} for part in parts)


@pytest.mark.long
def test_a_reader_misses_and_repeats_nothing_during_a_thousand_rotations(make_node):
    node = make_node(config={"containerLogMaxSize": "16Ki", "containerLogMaxFiles": 1000})
    lines = many.scaled(1020) * 16  # 16 records of some 1,040 bytes do not fit into a file
    directory = launch_writer(node, "turning", count_up(lines, LINE_LENGTH, 'if (i % 100 == 99) system("sleep 0.05")'))
    with subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, "logs", "-f", "turning"], text=True,
                          stdout=subprocess.PIPE, env=node.environment()) as reader:
        assert reader.stdout.readline() == "first\n"
        let_go(node, "turning")
        followed = [int(line) for line in reader.stdout]
    assert reader.returncode == 0
    rotations = len(os.listdir(directory)) - 1
    print(f"{len(followed)} of {lines} lines were followed; {rotations} rotated files are kept")
    assert followed == list(range(lines))
    assert rotations >= min(999, lines // 16)
    read = node.cli("logs", "turning").stdout.split()
    assert [int(line) for line in read if line != "first"] == list(range(lines - len(read) + (read[0] == "first"), lines))


def open_reader(node, name):
    """A client of the local socket that follows a log and does not read the data that it receives."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(10)
    try:
        client.connect(node.socket)
        client.sendall(f"GET /containerLogs/default/{name}-{node.node_name}/main?follow=true HTTP/1.1\r\nHost: n\r\n\r\n".encode())
    except (BlockingIOError, TimeoutError, ConnectionError, BrokenPipeError):
        pass  # more than the agent allows to wait
    return client


@pytest.mark.long
def test_a_thousand_stalled_readers_neither_block_a_container_nor_use_memory(node):
    """The agent serves some dozens at a time; the others wait, or are refused."""
    node.launch(specs.script_pod("talker", "while :; do seq 1000; sleep 0.05; done"))
    path = os.path.join(node.log_directory("talker"), "main", "0.log")
    wait(lambda: os.path.getsize(path) > MIB, "it writes lines")
    before, memory = many.descriptors(node.agent.pid), many.own_kib(node.agent.pid)
    readers, peak = [], 0
    for _ in range(many.scaled(READERS)):
        readers.append(open_reader(node, "talker"))
        peak = max(peak, many.own_kib(node.agent.pid))
    node.drop(specs.pod("late", specs.container(script="echo started > /v/late; " + specs.IDLE,
                                                volumeMounts=[specs.mount("v", "/v")]),
                        volumes=[specs.host_path("v", node.data)]))
    wait(lambda: world.read(f"{node.data}/late"), "another pod starts meanwhile")
    size = os.path.getsize(path)
    wait(lambda: os.path.getsize(path) > size + MIB, "the container is not blocked")
    peak = max(peak, many.own_kib(node.agent.pid))
    node.wait_running("late", 300)  # readers that do not read are dropped, so this request is served
    for reader in readers:
        reader.close()
    wait(lambda: len(many.descriptors(node.agent.pid)) <= len(before) + 2, "descriptors are closed")
    print(f"{len(readers)} readers; KiB of the agent: {memory}, at most {peak}, {many.own_kib(node.agent.pid)}")
    assert peak < memory + READERS_KIB
    assert node.status("talker")["restartCount"] == 0


@pytest.mark.long
def test_thousands_of_short_commands_leave_nothing_behind(make_node):
    node = many.start_without_quarantine(make_node(start=False))
    node.launch(specs.pod("web"))
    shim, numbers, wrong = node.shim("web"), iter(range(many.scaled(EXECS))), []
    lock, looks = threading.Lock(), []

    def run_one(number):
        done = node.cli("exec", "web", "--", "sh", "-c", f"echo {number}; exit {number % 256}")
        if (done.returncode, done.stdout) != (number % 256, f"{number}\n"):
            wrong.append((number, done))

    def run_all():
        while not wrong:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            run_one(number)
    run_one(0)
    wait(lambda: not [path for path in many.files_below(f"{node.run}/pods") if os.path.basename(path).startswith("exec")] and
         not world.zombies_of(shim), "the first one has left nothing")
    before = [many.descriptors(node.agent.pid), many.descriptors(shim), many.files_below(f"{node.run}/pods", node.log)]
    workers = [threading.Thread(target=run_all) for _ in range(EXECS_AT_ONCE)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        time.sleep(1)
        looks.append((many.own_kib(node.agent.pid), many.own_kib(shim)))
    assert not wrong, wrong

    def remains():
        return [many.descriptors(node.agent.pid), many.descriptors(shim), many.files_below(f"{node.run}/pods", node.log)]
    wait(lambda: remains() == before, lambda: f"all is as before: {before}, {remains()}")
    print(f"{many.scaled(EXECS)} commands; KiB of agent and shim: {looks[:: max(1, len(looks) // 20)]}")
    looks = looks[len(looks) // 4:]  # tables of a fixed size fill up first
    half = len(looks) // 2
    for which in (0, 1):
        assert min(look[which] for look in looks[half:]) < min(look[which] for look in looks[:half]) + GROWTH_KIB
