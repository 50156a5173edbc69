# SPDX-License-Identifier: Apache-2.0
"""An allocation of mainstay-image fails: the program reports the error and exits, and leaves nothing partially done.
When it is started again, the result is the same as without the failure."""

import json
import os
import shutil
import subprocess

import deltas
import failing
import harness
import pytest
import specs
import world
from manifest_server import ManifestServer
from puller import Puller
from registry import BadRegistry, Blobs
from sampling import some
from test_deltas import NEW, OLD, delta_of

TEMPORARY = 75  # an exit status of mainstay-image
SPREAD = 6
PARTS = 8
OUT_OF_MEMORY = "Cannot allocate memory"


class Helper(failing.Failing, Puller):
    """An image store whose program fails at an allocation. 'before' is its initial content."""

    def __init__(self, directory, words, settings=None, before=None):
        super().__init__(directory)
        os.makedirs(self.directory)
        self.words, self.settings, self.before = words, settings or {}, before
        self.others = []  # other correct contents of the store
        self.image_archive = None

    def reset(self):
        shutil.rmtree(self.store, ignore_errors=True)
        if self.before:
            harness.copy_tree(self.before, self.store)

    def act(self, words=None):
        verb, *rest = words or self.words
        return subprocess.run([harness.program("mainstay-image"), verb, "--store", self.store, *rest], check=False, timeout=120,
                              input=json.dumps(self.settings), text=True, capture_output=True,
                              env={**os.environ, "MAINSTAY_FAILPOINTS": self.failpoints})

    def act_well(self, words=None):
        self.arm({})
        done = self.act(words)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def act_without(self, n):
        """Runs the program while the n-th allocation fails, counted from 0 over all processes. It may succeed with one
        fetcher less, or without a delta."""
        self.arm({"mainstay-image:alloc": f"{n}*off->1*return(ENOMEM)"})
        done = self.act()
        said = done.stderr.splitlines()
        assert (done.returncode, said) == (0, []) or \
            (done.returncode, len(said)) == (TEMPORARY, 1) and said[0].endswith(OUT_OF_MEMORY), (n, done)
        return done.returncode

    def count(self):
        """The number of allocations."""
        self.arm({"mainstay-image:alloc": "off"})
        done = self.act()
        assert done.returncode == 0, done
        return self.hits()["mainstay-image:alloc"]

    def describe(self):
        """The complete content of the store, except files that are being created."""
        found = []
        for directory, directories, files in os.walk(self.store):
            if directory == self.store and "tmp" in directories:
                directories.remove("tmp")
            for name in directories + files:
                path = os.path.join(directory, name)
                status = os.lstat(path)
                found.append((os.path.relpath(path, self.store), status.st_mode, status.st_uid,
                              status.st_size if name in files else 0))
        return sorted(found)


def unpacker(directory, archive):
    helper = Helper(directory, None)
    digest = json.loads(helper.act_well(["index", archive]))["images"][0]["digest"]
    helper.words = ["unpack", "--digest", digest, "--name", specs.IMAGE, archive]
    return helper


@pytest.fixture(name="make_helper")
def fixture_make_helper(archive, tmp_path):
    """Makes a Helper for the given action."""
    server = ManifestServer()
    server.serve(specs.text(specs.pod("fetched")))
    registry = BadRegistry(Blobs(OLD))
    settings = {"insecureRegistries": [registry.host]}
    name = f"{registry.host}/team/app:latest"

    def with_image(verb):
        first = unpacker(tmp_path / "first", archive)
        first.act_well()
        return Helper(tmp_path / verb, [verb], before=first.store)

    def with_delta():
        first = Helper(tmp_path / "first", ["pull", name], settings)
        first.act_well()
        old, registry.image = registry.image, Blobs(NEW)
        helper = Helper(tmp_path / "delta", ["pull", name], settings, first.store)
        helper.reset()
        helper.act_well()
        helper.others.append(helper.describe())  # the content without the delta
        deltas.offer(registry.image, deltas.artifact(old, registry.image, delta_of(OLD[0], registry.image)))
        return helper

    makers = {"import": lambda: unpacker(tmp_path / "import", archive),
              "pull": lambda: Helper(tmp_path / "pull", ["pull", name], settings),
              "source": lambda: Helper(tmp_path / "source", ["source"], {"url": server.url(), "fileMax": 1 << 20}),
              "delta": with_delta, "remove": lambda: with_image("remove"), "verify": lambda: with_image("verify")}
    yield lambda kind: makers[kind]()
    registry.stop()
    server.stop()


def check_passes(helper, choose):
    helper.reset()
    n_allocations, whole = helper.count(), helper.describe()
    passes = choose(n_allocations)
    n_failed = 0
    for n in passes:
        helper.reset()
        failed = helper.act_without(n)
        if failed:
            helper.act_well()
        assert helper.describe() in (whole, *helper.others), n
        n_failed += failed > 0
    assert n_failed > len(passes) // 2


KINDS = ["import", "pull", "delta", "source", "remove", "verify"]


@pytest.mark.parametrize("kind", some(KINDS[:5], 2))
def test_an_image_helper_without_memory_fails_and_its_work_is_repeated(make_helper, kind):
    check_passes(make_helper(kind), lambda n: range(n // 2 // SPREAD, n, n // SPREAD))


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_an_image_helper_survives_each_failed_allocation(make_helper, kind, part):
    check_passes(make_helper(kind), lambda n: range(part, n, PARTS))


@pytest.mark.parametrize("name", ["malloc", "calloc", "overflow", "realloc", "reallocarray", "aligned_alloc", "posix_memalign",
                                  "asprintf", "child"])
def test_the_program_as_it_is_shipped_exits_if_an_allocation_fails(name):
    """A child leaves the message to its parent."""
    done = run_shipped(name)
    assert (done.returncode, done.stderr) == (TEMPORARY, "" if name == "child" else f"mainstay-image: {OUT_OF_MEMORY}\n")


def test_the_program_as_it_is_shipped_allocates():
    done = run_shipped("survive")
    assert (done.returncode, done.stderr) == (0, "")


def run_shipped(name):
    return subprocess.run([os.path.join(harness.BUILD, "tests", "ended-allocation"), name], check=False, text=True, timeout=world.DEADLINE,
                          capture_output=True)


@pytest.mark.parametrize("n", [60, 150])
def test_an_image_is_imported_when_there_is_memory_again(make_failing, n):
    node = make_failing(failing.FailingNode, start=False)
    node.arm({"mainstay-image:alloc": f"{n}*off->1*return(ENOMEM)"})
    node.start()
    node.launch(specs.pod("web"))
    assert node.hits()["mainstay-image:alloc"] > n
    assert OUT_OF_MEMORY in node.said()
