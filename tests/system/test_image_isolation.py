# SPDX-License-Identifier: Apache-2.0
"""The parts of other pods' images that a pull may use: a registry learns nothing about private images, and an image
that is made to match them does not get their layers."""

import glob
import gzip
import hashlib
import json
import os
import random
import subprocess
import threading

import deltas
import harness
import pytest
import specs
import test_deltas
from deltas import COPY, DATA, OPEN, operation, pack
from registry import CONFIG_TYPE, INDEX_TYPE, LAYER_TYPE, MANIFEST_TYPE, Blobs, DockerRegistry, basic, digest_of, document
from test_registry import pod, secret
from world import DEADLINE, wait

NOISE = random.Random(7).randbytes(600_000)
PIN = b"7"
PRIVATE = [{"etc/pin": PIN, "etc/key": NOISE[:300_000]}]
USER, PASSWORD = "joe", "secret"


def login(registry, password=PASSWORD, **more):
    """The document of a pull Secret."""
    return {"auths": {registry.host: {"username": USER, "password": password}}, **more}


class Store:
    """The image store of a node, and pulls into it."""

    def __init__(self, directory):
        self.path = os.path.join(str(directory), "store")

    def spawn(self, registry, name, *logins, **settings):
        texts = [json.dumps(one) for one in logins]
        document_of_settings = {"insecureRegistries": [registry.host], "auths": logins,
                                "authHashes": [hashlib.sha256(text.encode()).hexdigest() for text in texts], **settings}
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [harness.program("mainstay-image"), "pull", "--store", self.path, f"{registry.host}/{name}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdin.write(json.dumps(document_of_settings))
        process.stdin.close()
        process.stdin = None
        return process

    def pull(self, registry, name, *logins, **settings):
        """Pulls an image; returns the exit status and the output."""
        process = self.spawn(registry, name, *logins, **settings)
        out, error = process.communicate(timeout=DEADLINE)
        assert "Sanitizer" not in error, error
        return process.returncode, out + error

    def pulled(self, registry, name, *logins, **settings):
        if hasattr(registry, "seen"):
            registry.seen.clear()
        status, said = self.pull(registry, name, *logins, **settings)
        assert status == 0, said
        return said

    def has(self, image):
        return os.path.exists(f"{self.path}/records/{image.digest[7:]}.json")

    def has_blob(self, digest):
        return os.path.exists(f"{self.path}/blobs/sha256/{digest[7:]}")

    def access(self, image):
        """The repositories by which pods may use the image."""
        try:
            with open(f"{self.path}/verified/{image.digest[7:]}.json", encoding="utf-8") as file:
                return json.loads(file.readline()).get("access", {})
        except FileNotFoundError:
            return {}


@pytest.fixture(name="store")
def fixture_store(tmp_path):
    return Store(tmp_path)


class Victim:
    """A registry with a password, whose image a pod has pulled."""

    def __init__(self, directory, store):
        self.image = Blobs(PRIVATE)
        self.registry = DockerRegistry(str(directory), USER, PASSWORD)
        source = deltas.image_archive(os.path.join(str(directory), "private.tar"), self.image, "private")
        self.registry.push(f"oci-archive:{source}", "private/app:1")
        store.pulled(self.registry, "private/app:1", login(self.registry))
        assert store.has(self.image)
        (self.layer,) = self.image.layers
        self.diff_id = digest_of(gzip.decompress(self.image.blobs[self.layer]))
        self.config = deltas.config_digest(self.image)


@pytest.fixture(name="victim")
def fixture_victim(tmp_path, store):
    victim = Victim(tmp_path, store)
    yield victim
    victim.registry.stop()


def forge(rows, diff_ids, config=None):
    """An image that lists these layers, (digest, size), but has none of their blobs."""
    image = Blobs([{}])
    config = config or document({"author": "Eve", "os": "linux", "architecture": specs.ARCHITECTURE, "config": {"Cmd": ["/bin/sh"]},
                                 "rootfs": {"type": "layers", "diff_ids": diff_ids}})
    image.blobs = {digest_of(config): config}
    image.layers = [digest for digest, _ in rows]
    set_manifest(image, document({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
        "config": {"mediaType": CONFIG_TYPE, "digest": digest_of(config), "size": len(config)},
        "layers": [{"mediaType": LAYER_TYPE, "digest": digest, "size": size} for digest, size in rows]}))
    return image


def set_manifest(image, text):
    image.manifest, image.digest = text, digest_of(text)
    image.manifests = {image.digest: (MANIFEST_TYPE, text), "latest": (MANIFEST_TYPE, text)}


def guess_image(victim, guess):
    """An image whose layer is derived from a file of the private one, if the attacker guesses it right, and its
    delta."""
    tar = Blobs.tar({"pin": guess, "filler": bytes(100_000)})
    packed = gzip.compress(tar, 0, mtime=0)
    image = forge([(digest_of(packed), len(packed))], [digest_of(tar)])
    image.add(packed)
    (_, start, size), *_ = deltas.offsets(tar)
    part = pack(operation(DATA, tar[:start]) + operation(OPEN, b"etc/pin") + operation(COPY, size) +
                operation(DATA, tar[start + size:]))
    assert len(part) < len(packed)
    made = deltas.artifact(victim.image, image, {image.layers[0]: part})
    deltas.offer(image, made)
    return image, digest_of(part)


# An attacker's registry

@pytest.mark.parametrize("guess", [PIN, b"8"], ids=["right", "wrong"])
@pytest.mark.parametrize("annotated", [True, False], ids=["annotated", "plain"])
def test_a_delta_does_not_reveal_the_content_of_a_private_image(store, victim, serve, guess, annotated):
    evil = serve(Blobs([{"x": b"x"}]))
    store.pulled(evil, "evil/x:latest")
    evil.image, part = guess_image(victim, guess)
    if not annotated:
        evil.image.manifests[evil.image.digest.replace(":", "-")] = (
            INDEX_TYPE, deltas.referrers(*[text for kind, text in evil.image.manifests.values()
                                           if b"oci-delta" in text and kind == MANIFEST_TYPE], annotated=False))
    said = store.pulled(evil, "evil/x:latest")
    assert evil.asked(evil.image.layers[0]), "the layer is fetched regardless of the private image"
    assert not evil.asked(part), said


def test_the_layers_of_a_private_image_are_not_obtained_by_their_diff_ids(store, victim, serve):
    """The registry does not have the blob that it lists."""
    evil = serve(forge([(digest_of(b"nothing"), 7)], [victim.diff_id]))
    status, said = store.pull(evil, "evil/x:latest")
    assert status != 0, said
    assert evil.asked(digest_of(b"nothing"))
    assert not store.has(evil.image) and not store.access(evil.image)


@pytest.mark.parametrize("diff_id", [True, False], ids=["known", "unknown"])
def test_the_blob_of_a_private_layer_is_not_obtained_by_its_digest(store, victim, serve, diff_id):
    size = len(victim.image.blobs[victim.layer])
    evil = serve(forge([(victim.layer, size)], [victim.diff_id if diff_id else digest_of(b"guess")]))
    status, said = store.pull(evil, "evil/x:latest")
    assert status != 0 and victim.diff_id not in said, said
    assert evil.asked(victim.layer)
    assert store.has_blob(victim.layer) and not store.has(evil.image)


@pytest.mark.parametrize("known", ["manifest", "configuration"])
def test_a_private_image_is_not_obtained_by_the_digests_of_its_documents(store, victim, serve, known):
    """The digests are in a pod's status. The registry has an index or a manifest, and none of the blobs that it
    lists."""
    if known == "manifest":
        index = document({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [
            {"mediaType": MANIFEST_TYPE, "digest": victim.image.digest, "size": len(victim.image.manifest),
             "platform": {"os": "linux", "architecture": specs.ARCHITECTURE}}]})
        evil = serve(Blobs([{}]))
        evil.image.manifests = {"latest": (INDEX_TYPE, index)}
        wanted = victim.image.digest
    else:
        config = victim.image.blobs[victim.config]
        evil = serve(forge([(digest_of(b"nothing"), 7)], [], config))
        evil.image.blobs.clear()
        wanted = victim.config
    status, said = store.pull(evil, "evil/x:latest")
    assert status != 0, said
    assert evil.asked(wanted), "the document was taken from the store"
    assert list(store.access(victim.image)) == [f"{victim.registry.host}/private/app"]


def test_an_image_that_did_not_arrive_is_not_recorded_as_accessible(store, victim, serve):
    """The registry has the documents of the image, and would have given it to any pod."""
    evil = serve(forge([], []))
    evil.image.blobs = {victim.config: victim.image.blobs[victim.config]}
    set_manifest(evil.image, victim.image.manifest)
    status, said = store.pull(evil, "evil/x:latest")
    assert status != 0, said
    assert list(store.access(victim.image)) == [f"{victim.registry.host}/private/app"]
    evil.image.blobs.update(victim.image.blobs)
    store.pulled(evil, "evil/x:latest")
    assert f"{evil.host}/evil/x" in store.access(victim.image), "the pull has proved its access to the whole image"


def test_a_damaged_record_of_access_does_not_open_the_image_when_it_is_written_again(store, victim, serve):
    with open(f"{store.path}/verified/{victim.image.digest[7:]}.json", "ab") as file:
        file.write(b"x")
    evil = serve(forge([], []))
    evil.image.blobs = {victim.config: victim.image.blobs[victim.config]}
    set_manifest(evil.image, victim.image.manifest)
    assert store.pull(evil, "evil/x:latest")[0] != 0
    evil.image = forge([(digest_of(b"nothing"), 7)], [victim.diff_id])
    assert store.pull(evil, "evil/x:latest")[0] != 0
    store.pulled(victim.registry, "private/app:1", login(victim.registry))
    assert list(store.access(victim.image)) == [f"{victim.registry.host}/private/app"]


def test_pulls_of_one_image_at_once_record_the_access_of_each(store, serve):
    registries = [serve(Blobs(PRIVATE)) for _ in range(6)]
    pulls = [store.spawn(one, "team/app:latest") for one in registries]
    for pull in pulls:
        _, error = pull.communicate(timeout=DEADLINE)
        assert pull.returncode == 0, error
    assert set(store.access(Blobs(PRIVATE))) == {f"{one.host}/team/app" for one in registries}


def test_an_image_requires_the_secret_if_only_its_layers_need_it(store, serve):
    image = Blobs(PRIVATE)

    def behave(handler):
        if "/blobs/" in handler.path and handler.headers.get("Authorization") != basic(USER, PASSWORD):
            return handler.answer(401, WWW_Authenticate='Basic realm="x"')
        return False
    home = serve(image, behave)
    store.pulled(home, "team/app:latest", login(home))
    (access,) = store.access(image).values()
    assert "secrets" in access and "node" not in access


@pytest.mark.parametrize("ended", [True, False], ids=["interrupted", "arriving"])
def test_a_registry_does_not_learn_the_download_progress_of_a_private_layer(store, serve, ended):
    image, hang, asked = Blobs(PRIVATE), threading.Event(), threading.Event()
    (layer,) = image.layers

    def behave(handler):
        if handler.headers.get("Authorization") != basic(USER, PASSWORD):
            return handler.answer(401, WWW_Authenticate='Basic realm="x"')
        if layer not in handler.path:
            return False
        data = image.blobs[layer]
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:len(data) // 2])
        handler.wfile.flush()
        asked.set()
        hang.wait(300)
        return True
    home = serve(image, behave)
    first = store.spawn(home, "private/app:latest", login(home))
    assert asked.wait(DEADLINE)
    wait(lambda: any(os.stat(path).st_size for path in glob.glob(f"{store.path}/partial/*")), "a part of it has arrived")
    if ended:
        first.kill()
        first.communicate()
    evil = serve(forge([(layer, len(image.blobs[layer]))], [digest_of(b"guess")]))
    status, said = store.pull(evil, "evil/x:latest")
    assert status != 0, said
    (request,) = evil.asked(layer)[:1]
    assert "Range" not in request[2], request
    if not ended:
        first.kill()
        first.communicate()
    hang.set()


def test_download_of_an_attacker_is_not_resumed_by_other_pulls(store, serve):
    image, hang, asked = Blobs(PRIVATE), threading.Event(), threading.Event()
    (layer,) = image.layers

    def behave(handler):
        if layer not in handler.path:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(image.blobs[layer])))
        handler.end_headers()
        handler.wfile.write(bytes(100_000))
        handler.wfile.flush()
        asked.set()
        hang.wait(300)
        return True
    evil = serve(image, behave)
    first = store.spawn(evil, "evil/x:latest")
    assert asked.wait(DEADLINE)
    wait(lambda: any(os.stat(path).st_size for path in glob.glob(f"{store.path}/partial/*")), "a part of it has arrived")
    first.kill()
    first.communicate()
    hang.set()
    home = serve(image)
    store.pulled(home, "private/app:latest")
    assert all("Range" not in request[2] for request in home.asked(layer))


def test_a_sweep_does_not_reveal_the_images_of_others(store, victim, serve):
    """A partial download is kept although the blob is in the store; otherwise its registry would see that the download
    starts again."""
    size, hang, asked = len(victim.image.blobs[victim.layer]), threading.Event(), threading.Event()

    def behave(handler):
        if victim.layer not in handler.path or asked.is_set():
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(size))
        handler.end_headers()
        handler.wfile.write(bytes(100_000))
        handler.wfile.flush()
        asked.set()
        hang.wait(300)
        return True
    evil = serve(forge([(victim.layer, size)], [digest_of(b"guess")]), behave)
    first = store.spawn(evil, "evil/x:latest")
    assert asked.wait(DEADLINE)
    wait(lambda: any(os.stat(path).st_size for path in glob.glob(f"{store.path}/partial/*")), "a part of it has arrived")
    first.kill()
    first.communicate()
    hang.set()
    subprocess.run([harness.program("mainstay-image"), "sweep", "--store", store.path], check=True)
    evil.seen.clear()
    store.pull(evil, "evil/x:latest")
    assert evil.asked(victim.layer)[0][2].get("Range"), "the download is resumed"


@pytest.mark.parametrize("how", ["delta", "configuration"])
def test_an_image_does_not_remove_the_blobs_of_another_image(store, serve, how):
    public = serve(Blobs(test_deltas.OLD))
    store.pulled(public, "public/x:latest")
    (layer,) = public.image.layers
    data = public.image.blobs[layer]
    if how == "configuration":
        evil = serve(forge([(layer, len(data))], [digest_of(b"guess")]))
        evil.image.add(data)
        store.pull(evil, "evil/x:latest")
    else:
        evil = serve(Blobs([{"x": b"x"}]))
        store.pulled(evil, "evil/x:latest")
        tar = gzip.decompress(data)
        packed = gzip.compress(tar, 0, mtime=0)
        old, evil.image = evil.image, forge([(digest_of(packed), len(packed))], [digest_of(tar)])
        evil.image.add(packed)
        made = json.loads(deltas.artifact(old, evil.image, {evil.image.layers[0]: data}))
        made["layers"][-1]["mediaType"] = LAYER_TYPE
        deltas.offer(evil.image, document(made))
        os.rename(f"{store.path}/layers/{digest_of(tar)[7:]}", f"{store.path}/elsewhere")
        assert "pulling a delta" in store.pulled(evil, "evil/x:latest")
    assert store.has_blob(layer)


# Access with credentials

class Locked:
    """A registry with two versions and a delta, which accepts some passwords."""

    def __init__(self, serve, *passwords):
        self.old, self.new = Blobs(test_deltas.OLD), Blobs(test_deltas.NEW)
        deltas.offer(self.new, deltas.artifact(self.old, self.new, test_deltas.delta_of(test_deltas.OLD[0], self.new)))
        self.passwords = passwords
        self.registry = serve(self.old, self.behave)

    def behave(self, handler):
        if handler.headers.get("Authorization") not in [basic(USER, one) for one in self.passwords]:
            return handler.answer(401, WWW_Authenticate='Basic realm="x"')
        return False

    def publish_new(self):
        self.new.manifests.update(self.old.manifests)
        self.new.manifests["latest"] = (MANIFEST_TYPE, self.new.manifest)
        self.registry.image = self.new
        self.registry.sent = 0


def test_the_delta_of_an_image_that_the_pod_may_use_is_applied(store, serve):
    locked = Locked(serve, PASSWORD)
    registry = locked.registry
    store.pulled(registry, "team/app:latest", login(registry))
    locked.publish_new()
    assert "pulling a delta" in store.pulled(registry, "team/app:latest", login(registry))
    assert registry.sent < len(locked.new.blobs[locked.new.layers[0]]) / 10
    assert not registry.asked(f"/manifests/{locked.old.digest}"), "recorded data is not requested"


def test_the_registry_authorizes_the_base_image_for_a_new_secret(store, serve):
    """The token of a registry has changed since the old image was pulled."""
    locked = Locked(serve, PASSWORD, "newer")
    registry = locked.registry
    store.pulled(registry, "team/app:latest", login(registry))
    locked.publish_new()
    assert "pulling a delta" in store.pulled(registry, "team/app:latest", login(registry, "newer"))
    assert registry.asked(f"/manifests/{locked.old.digest}")
    assert registry.sent < len(locked.new.blobs[locked.new.layers[0]]) / 10


def test_a_base_image_that_the_registry_does_not_authorize_is_not_used(store, serve):
    locked = Locked(serve, PASSWORD, "newer")
    registry = locked.registry
    store.pulled(registry, "team/app:latest", login(registry))
    locked.publish_new()
    del locked.new.manifests[locked.old.digest]
    said = store.pulled(registry, "team/app:latest", login(registry, "newer"))
    assert "pulling a delta" not in said
    assert registry.asked(f"/manifests/{locked.old.digest}") and registry.asked(locked.new.layers[0])


def test_an_image_that_the_registry_authorizes_again_is_not_fetched_again(store, serve):
    locked = Locked(serve, PASSWORD, "newer")
    registry = locked.registry
    store.pulled(registry, "team/app:latest", login(registry))
    store.pulled(registry, "team/app:latest", login(registry, "newer"))
    assert not registry.asked("/blobs/")
    assert len(store.access(locked.old)[f"{registry.host}/team/app"]["secrets"]) == 2


SHARED = {"lib/shared": NOISE[300_000:500_000]}


@pytest.mark.parametrize("case,access,reused", [
    ("same secret", None, True),
    ("other secret", None, False),
    ("no secret", None, False),
    ("public", None, True),
    ("public", {"opensAll": False, "opensPreloaded": False}, True),
    ("no secret", {"opensAll": True}, True),
    ("no secret", {"opensPreloaded": False, "allowlist": ["HOST/team/*"]}, True),
    ("no secret", {"opensPreloaded": False, "allowlist": ["HOST/team/app"]}, True),
    ("no secret", {"opensPreloaded": False, "allowlist": ["HOST/team/ap"]}, False),
    ("no secret", {"opensPreloaded": True, "archived": ["DIGEST"]}, True),
    ("no secret", {"opensPreloaded": False, "archived": ["DIGEST"]}, False),
    ("preloaded", None, True),
    ("preloaded", {"opensPreloaded": False}, False),
    ("damaged", None, False),
], ids=str)
def test_layers_are_reused_only_from_images_that_the_pod_may_use(store, serve, case, access, reused):
    """The other image is in another registry."""
    locked = Locked(serve, PASSWORD)
    locked.registry.image = base = Blobs([SHARED, {"a": b"a"}])
    if case == "public":
        locked.registry.behave = None
    store.pulled(locked.registry, "team/app:latest", *([] if case == "public" else [login(locked.registry)]))
    record = f"{store.path}/verified/{base.digest[7:]}.json"
    if case == "preloaded":
        os.unlink(record)
    if case == "damaged":
        with open(record, "ab") as file:
            file.write(b"x")
    other = serve(Blobs([SHARED, {"b": b"b"}]))
    logins = {"same secret": [login(locked.registry)], "other secret": [login(locked.registry, "else")]}.get(case, [])
    settings = {}
    if access:
        text = json.dumps(access).replace("HOST", locked.registry.host).replace("DIGEST", base.digest)
        settings["access"] = json.loads(text)
    store.pulled(other, "other/x:latest", *logins, **settings)
    assert bool(other.asked(other.image.layers[0])) is not reused
    assert other.asked(other.image.layers[1])
    assert os.listdir(f"{store.path}/tmp") == [] and os.listdir(f"{store.path}/partial") == []
    sound = subprocess.run([harness.program("mainstay-image"), "verify", "--store", store.path], check=False,
                           capture_output=True)
    assert sound.returncode == 0, sound.stdout


# Nodes

def log_in(node, registry, name, password=PASSWORD):
    node.drop(secret(name, login(registry, password)), f"secret-{name}.yaml")


@pytest.fixture(name="private_node")
def fixture_private_node(tmp_path, archive, make_node, serve):
    """A node on which a pod runs a private image, the registry of an attacker, and the content of the image."""
    registries = []

    def make(**config):
        home = DockerRegistry(str(tmp_path), USER, PASSWORD)
        registries.append(home)
        home.push(f"docker-archive:{archive}", "private/app:1")
        evil = serve()
        node = make_node(archive=None, config={"mainstay": {"insecureRegistries": [home.host, evil.host]}, **config})
        log_in(node, home, "right")
        node.launch(pod("first", f"{home.host}/private/app:1", imagePullSecrets=[{"name": "right"}]))
        return node, home, evil
    yield make
    for one in registries:
        one.stop()


def stored(node, home):
    """The manifest and the configuration of the private image."""
    digest = home.digest("private/app:1")

    def blob(name):
        with open(f"{node.state}/images/blobs/sha256/{name[7:]}", "rb") as file:
            return file.read()
    manifest = blob(digest)
    return digest, manifest, blob(json.loads(manifest)["config"]["digest"])


def test_a_pod_does_not_run_a_private_image_that_another_registry_describes(private_node):
    node, home, evil = private_node()
    _, manifest, config = stored(node, home)
    rows = [(digest_of(row["digest"].encode()), row["size"]) for row in json.loads(manifest)["layers"]]
    evil.image = forge(rows, [], config)
    node.drop(pod("forged", f"{evil.host}/evil/x:latest"))
    node.wait_waiting("forged", "ErrImagePull")
    set_manifest(evil.image, manifest)
    node.drop(pod("copied", f"{evil.host}/evil/y:latest"))
    node.wait_waiting("copied", "ErrImagePull")
    node.drop(pod("named", f"{evil.host}/evil/y@{evil.image.digest}"))
    node.wait_waiting("named", "ErrImagePull")
    assert not any(node.find_init(name) for name in ("forged", "copied", "named"))


def test_an_allowlisted_repository_gives_no_access_to_images_of_another_one(private_node):
    node, home, _ = private_node(imagePullCredentialsVerificationPolicy="NeverVerifyAllowlistedImages",
                                 preloadedImagesVerificationAllowlist=["registry.invalid/open/*"])
    node.drop(pod("named", f"registry.invalid/open/x@{home.digest('private/app:1')}"))
    node.wait_waiting("named", "ErrImagePull")
    assert not node.find_init("named")


@pytest.mark.parametrize("policy,open_to_all", [("NeverVerify", True), ("AlwaysVerify", False)])
def test_the_verification_policy_of_the_node_applies_to_layers(private_node, policy, open_to_all):
    node, home, evil = private_node(imagePullCredentialsVerificationPolicy=policy)
    _, manifest, config = stored(node, home)
    evil.image = forge([(row["digest"], row["size"]) for row in json.loads(manifest)["layers"]], [], config)
    node.drop(pod("other", f"{evil.host}/other/x:latest"))
    if open_to_all:
        node.wait_running("other")
    else:
        node.wait_waiting("other", "ErrImagePull")
