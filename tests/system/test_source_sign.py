# SPDX-License-Identifier: Apache-2.0
"""`mainstay source sign` with images: the images of manifests are found, stored next to the index with deltas, and run from there."""

import json
import os
import random
import shutil
import subprocess

import deltas
import pytest
import registry
import specs
from index_source import PLATFORM, Key, Runnable, settings, sign
from test_index_images import NAME, NUMBERED, app, wait_in_use, wait_says

BIG = random.Random(7).randbytes(400_000)


@pytest.fixture(name="place")
def fixture_place(tmp_path):
    (tmp_path / "manifests").mkdir()
    return Place(tmp_path)


class Place:
    """Manifests, the directory of their index, a cache and archives."""

    def __init__(self, directory):
        self.directory, self.key = directory, Key(str(directory), "key")
        self.manifests, self.public = directory / "manifests", directory / "public"

    def write(self, name, document):
        (self.manifests / name).write_text(specs.text(document))

    def archive(self, file, image, name=NAME):
        return deltas.image_archive(str(self.directory / file), image, name)

    def sign(self, *options, status=0):
        made = sign("sign", str(self.manifests), str(self.public), "--key", self.key.path, "--fleet", "shops",
                    "--cache", str(self.directory / "cache"), *options)
        assert made.returncode == status, made
        return made.stdout + made.stderr

    def index(self):
        return json.loads((self.public / "index.json").read_text())

    def blobs(self):
        return sorted(os.listdir(self.public / "images" / "blobs" / "sha256"))

    def verify(self):
        made = sign("verify", str(self.public), "--keys", self.key.public)
        assert made.returncode == 0, made
        return made.stdout


def version(text, **more):
    return Runnable({"version": f"{text}\n".encode(), "big": BIG, **more})


def test_images_of_all_kinds_of_containers_are_named(place):
    pod = app()
    pod["spec"]["initContainers"] = [{**specs.container("init", script="true"), "image": "init.invalid/a:1"}]
    pod["spec"]["volumes"] = [{"name": "data", "image": {"reference": "volume.invalid/a:1"}}]
    place.write("app.yaml", pod)
    image, names = version("one"), (NAME, "init.invalid/a:1", "volume.invalid/a:1")
    archives = [place.archive(f"{i}.tar", image, name) for i, name in enumerate(names)]
    said = place.sign("--from", ",".join(archives))
    assert [row["name"] for row in place.index()["images"]] == sorted(names)
    assert place.index()["images"][0]["platforms"][0]["platform"] == PLATFORM
    assert "added app.yaml" in said and f"added image {NAME}" in said and "every node fetches" in said, said
    assert "1 files, 3 images" in place.verify()


def test_signed_index_runs_and_skopeo_reads_it(place, make_node):
    place.write("app.yaml", app())
    place.sign("--from", place.archive("one.tar", version("one")))
    subprocess.run(["skopeo", "copy", f"oci:{place.public}/images:{NAME}", f"oci-archive:{place.directory}/copy.tar"], check=True)
    node = make_node(archive=None, config={"mainstay": {"source": settings(f"file://{place.public}/index.json", [place.key])}})
    node.wait_running("app")
    wait_says(node, "app", "one")
    node.write_config()
    node.restart()
    node.wait_gone("app-node1")


def test_next_index_has_deltas_and_no_unreferenced_files(place, make_node):
    place.write("app.yaml", app())
    place.sign("--from", place.archive("1.tar", version("1")))
    node = make_node(archive=None, config={"mainstay": {"source": settings(f"file://{place.public}/index.json", [place.key])}})
    node.wait_running("app")
    wait_says(node, "app", "1")
    size = sum(os.path.getsize(place.public / "images" / "blobs" / "sha256" / blob) for blob in place.blobs())
    for number in range(2, 7):
        place.write("app.yaml", app(script=f"{NUMBERED} # {number}"))
        said = place.sign("--from", place.archive(f"{number}.tar", version(number)))
    assert f"changed image {NAME}" in said and "deltas of" in said and "changed app.yaml" in said, said
    platform = place.index()["images"][0]["platforms"][0]
    assert len(platform["deltas"]) == 3
    assert sum(blob["size"] for blob in platform["deltas"][0]["blobs"]) < 5000
    now = sum(os.path.getsize(place.public / "images" / "blobs" / "sha256" / blob) for blob in place.blobs())
    assert now <= 1.3 * size, f"{now} bytes, and {size} for one image"
    assert place.verify()
    wait_says(node, "app", "6")
    wait_in_use(node, 6)
    node.write_config()
    node.restart()
    node.wait_gone("app-node1")


def test_check_option_writes_no_files(place):
    place.write("app.yaml", app())
    archive = place.archive("one.tar", version("one"))
    said = place.sign("--from", archive, "--check")
    assert "index 1 of the fleet shops would have 1 files and 1 images; nothing was written" in said, said
    assert not place.public.exists()
    place.sign("--from", archive)
    before = {path: path.stat().st_mtime_ns for path in place.public.rglob("*")}
    place.write("app.yaml", app(script="true"))
    assert "changed app.yaml" in place.sign("--from", archive, "--check")
    assert before == {path: path.stat().st_mtime_ns for path in place.public.rglob("*")}


def test_selected_nodes_fetch_only_their_own_images(place):
    place.write("app.yaml", app())
    till = specs.daemonset("till", nodeSelector={"shop/till": "yes"})
    till["spec"]["template"]["spec"]["containers"][0]["image"] = "till.invalid/a:1"
    place.write("till.yaml", till)
    archives = [place.archive("1.tar", version("one")), place.archive("2.tar", version("two"), "till.invalid/a:1")]
    said = place.sign("--from", ",".join(archives))
    assert "every node fetches" in said and "a node with shop/till=yes fetches" in said, said


def test_image_that_cannot_be_found_is_an_error_that_names_it(place, serve):
    host = serve(version("one")).host
    place.write("app.yaml", app(reference=f"{host}/team/app:gone"))
    said = place.sign(status=1)
    assert f"image {host}/team/app:gone, {PLATFORM}" in said and "no such thing" in said, said
    assert not (place.public / "index.json").exists()
    assert "1 files, 0 images" in place.sign("--no-images")


def test_images_come_from_a_registry_and_from_a_layout(place, serve):
    host = serve(version("one")).host
    reference = f"{host}/team/app:latest"
    place.write("app.yaml", app(reference=reference))
    place.sign()
    assert place.index()["images"][0]["platforms"][0]["digest"] == version("one").digest
    shutil.rmtree(place.directory / "cache")
    layout = shutil.move(str(place.public / "images"), str(place.directory / "layout"))
    shutil.rmtree(place.public)
    place.sign("--from", layout)
    assert place.index()["images"][0]["platforms"][0]["digest"] == version("one").digest
    assert place.verify()


def test_sign_includes_only_the_chosen_platforms(place):
    far = Runnable({"version": b"far\n"}, architecture="s390x")
    place.write("app.yaml", app())
    archives = f"{place.archive('near.tar', version('near'))}"
    said = place.sign("--from", archives, "--platform", "linux/s390x", status=1)
    assert "not for linux/s390x" in said, said
    place.sign("--from", place.archive("far.tar", far), "--platform", "linux/s390x")
    assert place.index()["images"][0]["platforms"][0]["platform"] == "linux/s390x"
    assert "is not a platform" in place.sign("--from", archives, "--platform", "windows", status=1)


@pytest.mark.parametrize("which", ["layer", "config", "manifest"])
def test_damaged_archive_is_not_signed(place, which):
    image = version("one")
    digest = {"layer": image.layers[1], "config": json.loads(image.manifest)["config"]["digest"]}.get(which)
    place.write("app.yaml", app())
    if digest:
        image.blobs[digest] = image.blobs[digest][:-1] + b"x"
    else:
        image.manifest = image.manifest[:-1] + b" "
        assert registry.digest_of(image.manifest) != image.digest
    said = place.sign("--from", place.archive("bad.tar", image), status=1)
    assert "damaged" in said or "digest" in said, said
    assert not (place.public / "index.json").exists()
