# SPDX-License-Identifier: Apache-2.0
"""Image archives in the layouts of the tools that build images, each made from its tool's documentation, or by skopeo
and umoci themselves. IMAGES has them by name; each prints 'ok' and the words for its name, or has an expected error.
Next to the error is the result of containerd 1.6 for the same archive: a part of its error, or RUNS, a difference that
mainstay-differences(7) explains."""

import bz2
import dataclasses
import gzip
import hashlib
import io
import json
import lzma
import os
import subprocess
import tarfile
import typing

import specs

OCI, DOCKER = "application/vnd.oci.image.", "application/vnd.docker."
INDEX, MANIFEST, CONFIG = OCI + "index.v1+json", OCI + "manifest.v1+json", OCI + "config.v1+json"
DOCKER_LIST, DOCKER_MANIFEST = DOCKER + "distribution.manifest.list.v2+json", DOCKER + "distribution.manifest.v2+json"
DOCKER_CONFIG, DOCKER_LAYER = DOCKER + "container.image.v1+json", DOCKER + "image.rootfs.diff.tar"
HERE = {"architecture": specs.ARCHITECTURE, "os": "linux"}
FOREIGN = {"architecture": "s390x", "os": "linux"}
UNKNOWN = {"architecture": "unknown", "os": "unknown"}
# A capability of version 2: cap_net_bind_service, permitted and effective.
NET_BIND = bytes.fromhex("0100000200040000000000000000000000000000")


@dataclasses.dataclass
class ToolImage:
    build: typing.Callable
    says: str = "ok"
    refused: str = ""
    containerd: str = ""


IMAGES = {}
RUNS = "it runs"


def image(says="ok", refused="", containerd=""):
    def add(build):
        IMAGES[build.__name__] = ToolImage(build, says, refused, containerd)
        return build
    return add


def reference(name):
    return f"tools.example/{name.replace('_', '-')}:1"


# ---- layers ----

def entry(name, data=b"", kind=None, mode=None, link="", **fields):
    info = tarfile.TarInfo(name)
    info.type = kind or (tarfile.SYMTYPE if link else tarfile.REGTYPE)
    info.mode = mode if mode is not None else 0o755 if info.type == tarfile.DIRTYPE else 0o644
    info.linkname, info.size = link, len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def folder(name, mode=0o755, **fields):
    return entry(name, kind=tarfile.DIRTYPE, mode=mode, **fields)


def hard(name, link):
    return entry(name, kind=tarfile.LNKTYPE, link=link)


def tar(*entries, form=tarfile.GNU_FORMAT, end=True):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
        size = archive.offset
    return out.getvalue() if end else out.getvalue()[:size]


def busybox(path="bin/busybox"):
    with open("/bin/busybox", "rb") as file:
        return entry(path, file.read(), mode=0o755)


def root(*more, **options):
    """The entries of a root file system with a shell, and further entries."""
    tools = [entry(f"bin/{tool}", link="busybox") for tool in ("sh", "cat", "ls", "stat", "id", "test", "wc", "readlink", "echo")]
    return tar(folder("bin"), busybox(), *tools, folder("etc"), folder("tmp", 0o1777),
               entry("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n"), entry("etc/group", b"root:x:0:\n"), *more, **options)


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


PACK = {"": lambda data: data, "+gzip": lambda data: gzip.compress(data, 1, mtime=0), "+zstd": zstd,
        ".gzip": lambda data: gzip.compress(data, 1, mtime=0), ".zstd": zstd}


# ---- documents ----

def sha(data):
    return hashlib.sha256(data).hexdigest()


def text(value):
    return json.dumps(value).encode()


def say(script="echo ok", **fields):
    return {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "Cmd": ["/bin/sh", "-c", script], **fields}


def config_of(tars, process=None, **fields):
    return {"created": "2024-05-01T10:00:00Z", **HERE, "config": process or say(),
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(data) for data in tars]}, **fields}


class Layout:
    """An OCI image layout."""

    def __init__(self):
        self.blobs, self.listed, self.extra = {}, [], []

    def add(self, media_type, data, **fields):
        data = data if isinstance(data, bytes) else text(data)
        self.blobs[sha(data)] = data
        return {"mediaType": media_type, "digest": "sha256:" + sha(data), "size": len(data), **fields}

    def manifest(self, tars, config=None, pack="+gzip", docker=False, packed=None, layer_type=None, **fields):
        """The descriptor of the manifest of an image; 'packed' are the blobs of its layers."""
        config = config or config_of(tars)
        layer_type = layer_type or (DOCKER_LAYER if docker else OCI + "layer.v1.tar") + pack
        own = DOCKER_MANIFEST if docker else MANIFEST
        layers = [self.add(layer_type, blob) for blob in packed or [PACK[pack](data) for data in tars]]
        return self.add(own, {"schemaVersion": 2, "mediaType": own,
                              "config": self.add(DOCKER_CONFIG if docker else CONFIG, config), "layers": layers, **fields})

    def index(self, *entries, docker=False, **fields):
        own = DOCKER_LIST if docker else INDEX
        return self.add(own, {"schemaVersion": 2, "mediaType": own, "manifests": list(entries), **fields})

    def name(self, descriptor, name, **annotations):
        self.listed.append({**descriptor, "annotations": {"org.opencontainers.image.ref.name": name, **annotations}})
        return self

    def tar(self, **index):
        blobs = [entry("blobs/sha256/" + name, data) for name, data in sorted(self.blobs.items())]
        return tar(folder("blobs"), folder("blobs/sha256"), *blobs, *self.extra,
                   entry("index.json", text({"schemaVersion": 2, "manifests": self.listed, **index})),
                   entry("oci-layout", text({"imageLayoutVersion": "1.0.0"})))


def layout(name, tars=None, process=None, **options):
    """A layout of the common case: one image, by its name."""
    one, tars = Layout(), tars or [root()]
    config = config_of(tars, process, **options.pop("config", {}))
    return one.name(one.manifest(tars, config, **options), name).tar()


def docker_save(name, tars=None, process=None, config=None, layer="{id}/layer.tar", config_name="{id}.json", pack="", more=()):
    """Docker's own format: manifest.json, a configuration, and tars."""
    tars = tars or [root()]
    config = text(config_of(tars, process, **(config or {})))
    names = [layer.format(id=sha(data)) for data in tars]
    where = config_name.format(id=sha(config))
    listed = text([{"Config": where, "RepoTags": [name], "Layers": names}])
    return tar(entry(where, config), *[entry(place, PACK[pack](data)) for place, data in zip(names, tars)], *more,
               entry("manifest.json", listed))


# ---- Docker ----

@image()
def docker_save_before_25(name):
    parts = [folder(sha(root())), entry(sha(root()) + "/VERSION", b"1.0"), entry(sha(root()) + "/json", b"{}"),
             entry("repositories", text({name.split(":")[0]: {"1": sha(root())}}))]
    return docker_save(name, more=parts)


@image()
def docker_save_of_a_layer_that_repeats(name):
    first, empty = root(), tar()
    config = text(config_of([first, empty, empty]))
    names = ["a/layer.tar", "b/layer.tar", "c/layer.tar"]
    return tar(entry("a/layer.tar", first), entry("b/layer.tar", empty), entry("c/layer.tar", link="../b/layer.tar"),
               entry(sha(config) + ".json", config),
               entry("manifest.json", text([{"Config": sha(config) + ".json", "RepoTags": [name], "Layers": names}])))


@image()
def docker_save_with_names_that_start_with_a_dot(name):
    return docker_save(name, layer="./{id}/layer.tar", config_name="./{id}.json")


@image()
def docker_save_since_25(name):
    one, tars = Layout(), [root()]
    manifest = one.manifest(tars, pack="")
    config = sha(text(config_of(tars)))
    one.extra = [entry("manifest.json", text([{"Config": "blobs/sha256/" + config, "RepoTags": [name],
                                               "Layers": ["blobs/sha256/" + sha(tars[0])],
                                               "LayerSources": {"sha256:" + sha(tars[0]): {"mediaType": OCI + "layer.v1.tar"}}}])),
                 entry("repositories", b"{}")]
    return one.name(manifest, "1", **{"io.containerd.image.name": name}).tar(mediaType=INDEX)


@image()
def docker_save_of_the_containerd_store(name):
    """All platforms are listed, but only the blobs of this machine's platform are present."""
    one = Layout()
    ours = one.manifest([root()])
    proof = one.add(MANIFEST, {"schemaVersion": 2, "mediaType": MANIFEST, "config": one.add(CONFIG, {"rootfs": {}}), "layers": []})
    foreign = {"mediaType": MANIFEST, "digest": "sha256:" + "7" * 64, "size": 1234, "platform": FOREIGN}
    index = one.index(foreign, {**ours, "platform": HERE},
                      {**proof, "platform": UNKNOWN, "annotations": {"vnd.docker.reference.type": "attestation-manifest",
                                                                     "vnd.docker.reference.digest": ours["digest"]}})
    return one.name(index, "1", **{"io.containerd.image.name": name, "containerd.io/distribution.source.docker.io": "x"}).tar()


@image()
def docker_save_through_gzip(name):
    return gzip.compress(docker_save(name), 1)


@image()
def docker_save_through_zstd(name):
    return zstd(docker_save(name))


@image(refused="is compressed with xz, which is not supported: decompress it with 'xz -d'",
       containerd="archive/tar: invalid tar header")
def docker_save_through_xz(name):
    return lzma.compress(docker_save(name), preset=0)


@image(refused="is compressed with bzip2, which is not supported: decompress it with 'bzip2 -d'",
       containerd="archive/tar: invalid tar header")
def docker_save_through_bzip2(name):
    return bz2.compress(docker_save(name), 1)


@image(refused="neither an oci-layout with an index.json nor a manifest.json", containerd="unrecognized image format")
def docker_save_before_1_10(name):
    return tar(entry("repositories", text({name: {"1": "a"}})), entry("a/json", b"{}"), entry("a/layer.tar", root()))


@image()
def buildx_oci(name):
    return layout(name, annotations={"org.opencontainers.image.source": "https://example.com"},
                  config={"history": [{"created_by": "RUN /bin/sh -c true # buildkit", "comment": "buildkit.dockerfile.v0"}]})


@image()
def buildx_with_zstd(name):
    return layout(name, pack="+zstd")


@image()
def buildx_uncompressed(name):
    return layout(name, pack="")


@image()
def buildx_docker_types_with_zstd(name):
    return layout(name, docker=True, pack=".zstd")


@image()
def buildx_foreign_layer(name):
    return layout(name, docker=True, layer_type=DOCKER + "image.rootfs.foreign.diff.tar.gzip")


@image()
def buildx_nondistributable_zstd(name):
    return layout(name, pack="+zstd", layer_type=OCI + "layer.nondistributable.v1.tar+zstd")


@image()
def buildx_estargz(name):
    """A gzip member for each file, with a table of contents at the end."""
    data = root(entry(".no.prefetch.landmark", b"\x0f"), entry("stargz.index.json", b'{"version":1,"entries":[]}'))
    packed = b"".join(gzip.compress(data[i:i + 65536], 1) for i in range(0, len(data), 65536))
    return layout(name, [data], packed=[packed], annotations={"containerd.io/snapshot/stargz/toc.digest": "sha256:" + "0" * 64})


@image()
def buildx_inline_cache(name):
    return layout(name, config={"moby.buildkit.cache.v0": "W10=", "moby.buildkit.buildinfo.v1": "e30="})


@image()
def buildx_provenance_in_index(name):
    one = Layout()
    proof = one.add(MANIFEST, {"schemaVersion": 2, "mediaType": MANIFEST, "config": one.add(CONFIG, b"{}"),
                               "layers": [one.add("application/vnd.in-toto+json", b"{}")]})
    return one.name(one.index({**one.manifest([root()]), "platform": HERE}, {**proof, "platform": UNKNOWN}), name).tar()


@image(says="app yes /srv")
def dockerfile_with_every_instruction(name):
    process = {"Env": ["A=yes", "PATH=/bin"], "WorkingDir": "/srv", "Entrypoint": ["/bin/sh", "-c", 'echo app $A $PWD'],
               "Hostname": "", "Domainname": "", "AttachStdin": False, "ExposedPorts": {"80/tcp": {}}, "Labels": {"a": "b"},
               "Healthcheck": {"Test": ["CMD", "true"], "Interval": 1000000000}, "OnBuild": ["RUN x"], "Shell": ["/bin/sh", "-c"],
               "StopSignal": "SIGQUIT", "ArgsEscaped": True, "Image": "sha256:0", "Cmd": None, "Volumes": None}
    return docker_save(name, [root(folder("srv"))], process, {"container": "ff", "container_config": {"Cmd": ["#(nop)"]},
                                                              "docker_version": "20.10.1", "author": "x"})


@image()
def dockerfile_with_empty_layers_in_its_history(name):
    history = [{"created_by": "ADD rootfs"}, {"created_by": "ENV A=b", "empty_layer": True}, {"created_by": "CMD", "empty_layer": True}]
    return docker_save(name, config={"history": history})


@image()
def docker_commit(name):
    return docker_save(name, [root(), tar(entry("root/.ash_history", b"x"), folder("var/log"))],
                       config={"parent": "sha256:" + "1" * 64, "container_config": None})


@image()
def docker_import(name):
    return docker_save(name, config={"history": [{"comment": "Imported from -"}]})


# ---- buildah, podman ----

@image()
def buildah_oci(name):
    return layout(name, annotations={"org.opencontainers.image.base.digest": "sha256:" + "2" * 64,
                                     "org.opencontainers.image.base.name": "docker.io/library/x"},
                  config={"history": [{"created_by": "/bin/sh -c #(nop) CMD", "empty_layer": True}, {"created_by": "/bin/sh"}]})


@image()
def buildah_docker_format(name):
    return layout(name, docker=True, pack=".gzip")


@image()
def buildah_squashed_with_null_fields(name):
    return layout(name, process=say(Entrypoint=None, ExposedPorts=None, Labels=None, Volumes=None, User="", WorkingDir=""))


@image()
def buildah_manifest_list(name):
    one = Layout()
    entries = [{**one.manifest([root()]), "platform": {**HERE, "variant": ""}, "annotations": None},
               {"mediaType": MANIFEST, "digest": "sha256:" + "8" * 64, "size": 3, "platform": {**FOREIGN, "os.features": ["x"]}}]
    return one.name(one.index(*entries), name).tar()


@image()
def podman_save_docker_archive(name):
    return docker_save(name, layer="{id}.tar")


@image()
def podman_save_of_several_images(name):
    config, data = text(config_of([root()])), root()
    other = text(config_of([data], say("echo other")))
    listed = [{"Config": sha(which) + ".json", "RepoTags": [tag], "Layers": [sha(data) + ".tar"]}
              for which, tag in ((other, "tools.example/other:1"), (config, name))]
    return tar(entry(sha(data) + ".tar", data), entry(sha(config) + ".json", config), entry(sha(other) + ".json", other),
               entry("manifest.json", text(listed)))


@image()
def podman_save_oci_archive(name):
    return layout(name, pack="")


# ---- kaniko, ko, jib ----

@image()
def kaniko_tar_path(name):
    return docker_save(name, layer="{id}.tar.gz", config_name="sha256:{id}", pack="+gzip",
                       config={"author": "kaniko", "history": [{"author": "kaniko", "created": "0001-01-01T00:00:00Z"}]})


@image()
def kaniko_whiteouts_without_a_lower_file(name):
    return docker_save(name, [root(), tar(entry("etc/.wh.not-there"), entry("not/there/.wh.x"))], pack="+gzip")


@image(says="ko data")
def ko_local(name):
    app = [folder("ko-app"), entry("ko-app/app", b"#!/bin/sh\nexec cat $KO_DATA_PATH/text\n", mode=0o555),
           folder("var/run/ko", 0o555), entry("var/run/ko/text", b"ko data\n", mode=0o444)]
    return layout(name, [root(), tar(*app)], {"Entrypoint": ["/ko-app/app"], "Env": ["PATH=/ko-app:/bin", "KO_DATA_PATH=/var/run/ko"]},
                  config={"author": "github.com/ko-build/ko", "created": "0001-01-01T00:00:00Z"})


@image()
def ko_for_all_platforms(name):
    one = Layout()
    entries = [{**one.manifest([root()]), "platform": HERE},
               {**one.manifest([root(entry("x"))], config_of([root(entry("x"))], **FOREIGN)), "platform": FOREIGN}]
    return one.name(one.index(*entries, docker=True), name).tar()


@image(says="class resource")
def jib_tar(name):
    """Layers without parent directories; times of 1970."""
    layers = [root(), tar(entry("app/resources/r", b"resource\n", mtime=1)), tar(entry("app/classes/c", b"class ", mtime=1))]
    return docker_save(name, layers, say("cat /app/classes/c /app/resources/r", WorkingDir=""), config_name="config.json",
                       layer="{id}.tar.gz", pack="+gzip", config={"created": "1970-01-01T00:00:00Z",
                                                                  "history": [{"author": "Jib", "created_by": "jib-maven-plugin:3"}]})


@image()
def jib_docker_types(name):
    return layout(name, docker=True, pack=".gzip", config={"created": "1970-01-01T00:00:00Z"})


# ---- Nix, apko, Bazel ----

@image(says="hello of nix")
def nix_docker_tools(name):
    """Everything is below /nix/store and read-only; / consists of links."""
    store = "nix/store/abc-hello"
    data = tar(folder("./", 0o755), folder("./nix"), folder("./nix/store", 0o555), folder("./" + store, 0o555),
               folder(f"./{store}/bin", 0o555), busybox(f"./{store}/bin/busybox"), hard(f"./{store}/bin/sh", f"./{store}/bin/busybox"),
               entry("./bin", link=f"/{store}/bin"), entry(f"./{store}/text", b"hello of nix\n", mode=0o444),
               entry("./share", link=f"{store}/text"))
    return docker_save(name, [data], say("/bin/busybox cat /share"), {"created": "1970-01-01T00:00:01+00:00"})


@image()
def nix_layered(name):
    layers = [tar(folder(f"nix/store/{i:02}-part", 0o555), entry(f"nix/store/{i:02}-part/f", b"x" * i)) for i in range(30)]
    return docker_save(name, [*layers, root()], say("test $(ls /nix/store | wc -l) = 30 && echo ok"))


@image(says="linked")
def nix_with_a_linked_etc(name):
    data = [entry("etc", link="/nix/etc"), folder("nix/etc"), entry("nix/etc/text", b"linked\n")]
    return docker_save(name, [tar(folder("bin"), busybox(), entry("bin/sh", link="busybox"), *data)], say("/bin/busybox cat /etc/text"))


@image()
def nix2container(name):
    return layout(name, [root(), tar(folder("./nix", 0o555))], pack="", config={"created": None, "author": ""})


@image(says="65532")
def apko_single(name):
    users = [entry("etc/passwd", b"root:x:0:0::/root:/bin/sh\nnonroot:x:65532:65532::/home:/bin/sh\n"),
             entry("lib/apk/db/installed", b"", pax_headers={"APK-TOOLS.checksum.SHA1": "00"})]
    return layout(name, [root(*users, form=tarfile.PAX_FORMAT)], say("id -u", User="65532"),
                  config={"author": "apko", "history": [{"author": "apko", "created_by": "apko"}]})


@image()
def apko_index_in_index(name):
    one = Layout()
    index = one.index({**one.manifest([root()]), "platform": HERE}, annotations={"org.opencontainers.image.vendor": "x"})
    return one.name(one.index(one.index(index)), name).tar()


@image(refused="it has indexes more than 4 deep", containerd=RUNS)
def index_too_deep(name):
    one = Layout()
    index = one.manifest([root()])
    for _ in range(5):
        index = one.index(index)
    return one.name(index, name).tar()


@image()
def bazel_rules_oci(name):
    """The layer has no directories at all, and the name is only in an annotation of containerd."""
    one = Layout()
    data = tar(busybox("./bin/busybox"), entry("./bin/sh", link="busybox"), entry("./app/bin.runfiles/_main/x", b"x"))
    return one.name(one.manifest([data]), "1", **{"io.containerd.image.name": name}).tar()


@image()
def bazel_rules_docker(name):
    data = root(folder("./"), folder("/app"), entry("/app/x", b"x"))
    return docker_save(name, [data], config={"created": "1970-01-01T00:00:00Z", "history": [{"author": "Bazel"}]})


@image()
def bazel_without_architecture(name):
    config = {"created": "1970-01-01T00:00:00Z", "architecture": "", "os": ""}
    return docker_save(name, config=config)


# ---- crane, skopeo, umoci, artifacts ----

@image(says="appended")
def crane_append(name):
    return docker_save(name, [root(), tar(entry("text", b"appended\n"), form=tarfile.USTAR_FORMAT)], say("cat /text"),
                       {"history": [{"created_by": "base"}]}, layer="{id}.tar.gz", config_name="sha256:{id}", pack="+gzip")


@image()
def crane_index_append_without_platforms(name):
    one = Layout()
    foreign = one.manifest([root(entry("x"))], config_of([root(entry("x"))], **FOREIGN))
    return one.name(one.index(foreign, one.manifest([root()])), name).tar()


@image()
def crane_index_with_an_empty_platform(name):
    one = Layout()
    return one.name(one.index({**one.manifest([root()]), "platform": {}}), name).tar()


@image(refused="the image is for linux/s390x", containerd="no match for platform in manifest")
def crane_index_of_others_without_platforms(name):
    one = Layout()
    return one.name(one.index(one.manifest([root()], config_of([root()], **FOREIGN))), name).tar()


def run_tool(directory, *words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=directory)


def copied(name, directory, target, *options):
    """A docker archive that skopeo has converted."""
    source, out = os.path.join(directory, "in.tar"), os.path.join(directory, "out.tar")
    with open(source, "wb") as file:
        file.write(docker_save(name))
    run_tool(directory, "skopeo", "--insecure-policy", "copy", *options, f"docker-archive:{source}", f"{target}:{out}:{name}")
    with open(out, "rb") as file:
        return file.read()


@image()
def skopeo_to_oci_archive(name, directory):
    return copied(name, directory, "oci-archive")


@image()
def skopeo_to_docker_archive(name, directory):
    return copied(name, directory, "docker-archive")


@image()
def skopeo_to_oci_with_zstd(name, directory):
    return copied(name, directory, "oci-archive", "--dest-compress-format=zstd", "--dest-compress")


@image(says="by umoci")
def umoci_repack(name, directory):
    with open(os.path.join(directory, "in.tar"), "wb") as file:
        file.write(docker_save(name))
    run_tool(directory, "skopeo", "--insecure-policy", "copy", f"docker-archive:in.tar:{name}", "oci:layout:1")
    run_tool(directory, "umoci", "unpack", "--image", "layout:1", "bundle")
    with open(os.path.join(directory, "bundle/rootfs/text"), "w", encoding="ascii") as file:
        file.write("by umoci\n")
    os.unlink(os.path.join(directory, "bundle/rootfs/etc/group"))
    run_tool(directory, "umoci", "repack", "--image", "layout:1", "bundle")
    run_tool(directory, "umoci", "config", "--image", "layout:1", "--config.cmd", "/bin/cat", "--config.cmd", "/text")
    with open(os.path.join(directory, "layout/index.json"), encoding="utf-8") as file:
        index = json.load(file)
    for item in index["manifests"]:
        item["annotations"]["org.opencontainers.image.ref.name"] = name
    with open(os.path.join(directory, "layout/index.json"), "w", encoding="utf-8") as file:
        json.dump(index, file)
    run_tool(directory, "tar", "-C", "layout", "-cf", "out.tar", "blobs", "index.json", "oci-layout")
    with open(os.path.join(directory, "out.tar"), "rb") as file:
        return file.read()


@image()
def cosign_signature_beside_its_image(name):
    one = Layout()
    signature = one.add(MANIFEST, {"schemaVersion": 2, "mediaType": MANIFEST, "config": one.add(CONFIG, b"{}"), "layers": [
        one.add("application/vnd.dev.cosign.simplesigning.v1+json", b"{}")]})
    one.name(signature, name.split(":")[0] + ":sha256-1.sig")
    return one.name(one.manifest([root()]), name).tar()


@image(refused="contains no image", containerd="mismatched image rootfs and manifest layers")
def oras_artifact(name):
    one = Layout()
    empty = one.add("application/vnd.oci.empty.v1+json", b"{}")
    return one.name(one.add(MANIFEST, {"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": "application/x", "config": empty,
                                       "layers": [one.add("text/plain", b"x")]}), name).tar()


@image(refused="contains no image", containerd="mismatched image rootfs and manifest layers")
def helm_chart(name):
    one = Layout()
    config = one.add("application/vnd.cncf.helm.config.v1+json", b"{}")
    return one.name(one.add(MANIFEST, {"schemaVersion": 2, "config": config, "layers": [
        one.add("application/vnd.cncf.helm.chart.content.v1.tar+gzip", b"x")]}), name).tar()


@image(refused="it is an image of Docker's schema 1, which is not supported",
       containerd="unexpected media type application/vnd.docker.distribution.manifest.v1+prettyjws")
def docker_schema_1(name):
    one = Layout()
    return one.name(one.add(DOCKER + "distribution.manifest.v1+prettyjws",
                            {"schemaVersion": 1, "name": "x", "tag": "1", "fsLayers": [], "history": []}), name).tar()


@image(refused="a layer is encrypted",
       containerd="failed to get stream processor for application/vnd.oci.image.layer.v1.tar+gzip+encrypted")
def skopeo_encrypted(name):
    return layout(name, layer_type=OCI + "layer.v1.tar+gzip+encrypted")


@image(refused="is compressed with xz, which is not supported", containerd="archive/tar: invalid tar header")
def layer_of_xz(name):
    return layout(name, packed=[lzma.compress(root(), preset=0)], layer_type=OCI + "layer.v1.tar")


@image(refused="a layer has the unknown type", containerd="no processor for media-type")
def layer_of_an_unknown_type(name):
    return layout(name, layer_type="application/vnd.example.layer")


@image(refused="the manifest has 2 layers, the configuration 1", containerd="mismatched image rootfs and manifest layers")
def more_layers_than_diff_ids(name):
    return layout(name, config={}, packed=[gzip.compress(root(), 1), gzip.compress(tar(), 1)])


@image(refused="the image is for windows/", containerd=RUNS)
def windows_image(name):
    return layout(name, config={"os": "windows", "os.version": "10.0.17763.1"})


# ---- Cloud Native Buildpacks ----

@image(says="cnb 1002 1000")
def buildpacks(name):
    app = [folder("cnb/process"), entry("cnb/process/web", link="/cnb/lifecycle/launcher"),
           entry("cnb/lifecycle/launcher", b"#!/bin/sh\necho cnb $(id -u) $(id -g)\n", mode=0o755, mtime=315532801),
           folder("workspace", uid=1002, gid=1000), folder("layers", uid=1002, gid=1000),
           entry("etc/passwd", b"root:x:0:0::/root:/bin/sh\ncnb:x:1002:1000::/home/cnb:/bin/sh\n"),
           entry("etc/group", b"root:x:0:\ncnb:x:1000:\n")]
    process = {"Entrypoint": ["/cnb/process/web"], "User": "1002:1000", "WorkingDir": "/workspace", "Env": [
        "PATH=/cnb/process:/cnb/lifecycle:/bin", "CNB_LAYERS_DIR=/layers"], "Labels": {"io.buildpacks.lifecycle.metadata": "{}"}}
    return docker_save(name, [root(), tar(*app), tar()], process, {"created": "1980-01-01T00:00:01Z", "history": None})


@image()
def buildpacks_without_history_entries(name):
    return layout(name, [root(), tar(), tar()], config={"created": "1980-01-01T00:00:01Z", "history": [{}, {}, {}]})


# ---- contents of layers ----

@image(says="lower gone, upper there")
def layers_with_whiteouts(name):
    lower = [folder("d"), entry("d/a", b"a"), folder("o"), entry("o/a", b"a"), entry("f", b"f")]
    upper = tar(folder("d"), entry("d/.wh.a"), folder("o"), entry("o/.wh..wh..opq"), entry("o/b", b"b"), entry(".wh.f"))
    check = "test ! -e /d/a -a ! -e /o/a -a ! -e /f -a -e /o/b && echo lower gone, upper there"
    return layout(name, [root(*lower), upper], say(check))


@image(says="2 same")
def layers_with_hard_links(name):
    links = [entry("one", b"same\n"), hard("two", "./one"), hard("three", "/one")]
    lower = tar(entry("text", b"x\n"))
    upper = tar(entry("a", b"same\n"), hard("b", "a"))
    return layout(name, [root(*links), lower, upper], say("echo $(stat -c %h /a) $(cat /three)"))


@image(says="gnu")
def layers_with_gnu_long_names(name):
    path = "/".join(["a-rather-long-directory-name"] * 8) + "/" + "n" * 120
    data = root(entry(path, b"gnu\n"), entry("short", link="/" + path), form=tarfile.GNU_FORMAT)
    return layout(name, [data], say("cat /short"))


@image(says="pax é")
def layers_with_pax_names(name):
    path = "/".join(["päx-directory"] * 12) + "/" + "ü" * 60
    return layout(name, [root(entry(path, "pax é\n".encode()), entry("short", link="/" + path), form=tarfile.PAX_FORMAT)],
                  say("cat /short"))


@image(says="latin")
def layers_with_names_that_are_not_utf8(name):
    data = tar(entry("text", b"latin\n"), entry("caf\udce9", b"x"))
    return layout(name, [root(), data], say("cat /text"))


def sparse(directory, form):
    path = os.path.join(directory, "holes")
    with open(path, "wb") as file:
        file.truncate(3_000_000)
        file.seek(1_000_000)
        file.write(b"middle")
    run_tool(directory, "tar", "--sparse", f"--format={form}", "--hole-detection=raw", "-cf", "sparse.tar", "holes")
    with open(os.path.join(directory, "sparse.tar"), "rb") as file:
        return file.read()


@image(says="3000000 middle")
def layers_with_gnu_sparse_files(name, directory):
    return layout(name, [root(), sparse(directory, "gnu")],
                  say("echo $(stat -c %s /holes) $(busybox dd if=/holes bs=1 skip=1000000 count=6 2>/dev/null)"))


@image(says="3000000 middle")
def layers_with_pax_sparse_files(name, directory):
    return layout(name, [root(), sparse(directory, "pax")],
                  say("echo $(stat -c %s /holes) $(busybox dd if=/holes bs=1 skip=1000000 count=6 2>/dev/null)"))


@image(says="ok")
def layers_with_capabilities(name):
    headers = {"SCHILY.xattr.security.capability": NET_BIND.decode("latin-1"), "SCHILY.xattr.user.note": "x"}
    info, data = busybox("caps/busybox")
    info.pax_headers = {"SCHILY.xattr.user.note": "x", **headers}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT, encoding="latin-1", errors="strict") as archive:
        archive.addfile(info, io.BytesIO(data))
    return layout(name, [root(), out.getvalue()], say("/caps/busybox echo ok"))


@image(says="4755 2755 1777")
def layers_with_setuid(name):
    data = root(entry("u", b"", mode=0o4755), entry("g", b"", mode=0o2755, gid=5), folder("t", 0o1777))
    return layout(name, [data], say("echo $(stat -c %a /u /g /t)"))


@image()
def layers_with_device_nodes(name):
    nodes = [entry("dev/null", kind=tarfile.CHRTYPE, devmajor=1, devminor=3), entry("dev/sda", kind=tarfile.BLKTYPE, devmajor=8),
             entry("pipe", kind=tarfile.FIFOTYPE)]
    return layout(name, [root(folder("dev"), *nodes)], say("test -p /pipe && echo ok > /dev/null && echo ok"))


@image(says="merged")
def layers_with_a_merged_usr(name):
    data = tar(folder("usr"), folder("usr/bin"), busybox("usr/bin/busybox"), entry("bin", link="usr/bin"),
               entry("bin/sh", link="busybox"), entry("usr/lib/os-release", b"ID=x\n"), entry("etc/os-release", link="../usr/lib/os-release"))
    return layout(name, [data, tar(entry("bin/text", b"merged\n"))], say("/usr/bin/busybox cat /usr/bin/text"))


@image(says="file dir")
def layers_that_change_kinds(name):
    lower = [folder("was-dir"), entry("was-dir/x", b"x"), entry("was-file", b"x")]
    upper = tar(entry("was-dir", b"file\n"), folder("was-file"), entry("was-file/y", b"dir\n"))
    return layout(name, [root(*lower), upper], say("echo $(cat /was-dir /was-file/y)"))


@image(says="clean")
def layers_with_names_that_go_up_and_stay(name):
    return layout(name, [root(), tar(entry("a/b/../../srv/text", b"clean\n"), hard("link", "x/../srv/text"))], say("cat /link"))


@image(refused="leaves the top by '..'", containerd=RUNS)
def layers_with_names_that_leave(name):
    return layout(name, [root(), tar(entry("a/../../etc/text", b"x"))])


@image()
def layers_with_an_entry_without_a_name(name):
    return layout(name, [root(), tar(entry("", b"x"), entry("text", b"ok\n"))], say("cat /text"))


@image()
def layers_without_an_end(name):
    return layout(name, [root(), tar(entry("text", b"ok\n"), end=False)], say("cat /text"))


@image()
def layers_with_bytes_after_the_end(name):
    return layout(name, [root() + b"\0" * 20480], say())


@image()
def layers_with_a_global_pax_header(name):
    """The global header is like that of "git archive"."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "0" * 40}) as archive:
        archive.addfile(entry("text", b"ok\n")[0], io.BytesIO(b"ok\n"))
    return layout(name, [root(), out.getvalue()], say("cat /text"))


@image()
def config_with_another_name_of_the_architecture(name):
    return layout(name, config={"architecture": {"amd64": "x86_64", "arm64": "aarch64"}.get(specs.ARCHITECTURE, specs.ARCHITECTURE)})


@image()
def config_with_unknown_fields_and_nulls(name):
    return layout(name, process=say(Memory=0, MacAddress="", NetworkDisabled=False, Tty=True, OpenStdin=False),
                  config={"history": [None], "os.features": None, "variant": "", "x": {"y": [1, 2.5, None]}, "author": None})


@image(says="last")
def config_with_repeated_variables(name):
    return layout(name, process=say("echo $A", Env=["PATH=/bin", "A=first", "A=last", "NOT_SET"]))
