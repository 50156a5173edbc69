# SPDX-License-Identifier: Apache-2.0
"""Image archives that are made layer by layer, as "docker save" writes them."""

import functools
import hashlib
import importlib.machinery
import importlib.util
import io
import json
import os
import tarfile

import harness
import specs


class Link(str):
    """The target of a symbolic link."""


def tar(entries):
    """A layer made of {name: bytes or Link}; a name that ends with a slash is a directory."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in entries.items():
            info = tarfile.TarInfo(name.rstrip("/"))
            info.mode = 0o755
            if isinstance(data, Link):
                info.type, info.linkname, data = tarfile.SYMTYPE, str(data), b""
            elif name.endswith("/"):
                info.type = tarfile.DIRTYPE
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


@functools.lru_cache(maxsize=None)
def make_image():
    """The module of the program tests/make-image."""
    loader = importlib.machinery.SourceFileLoader("make_image", os.path.join(harness.TOP, "tests", "make-image"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_image", loader))
    loader.exec_module(module)
    return module


@functools.lru_cache(maxsize=None)
def busybox_layer():
    """The one layer of the common test image."""
    return make_image().layer("/bin/busybox")


def save(path, name, layers, config=None):
    """Writes an archive of layers, which are given as the bytes of tars, the lowest first."""
    document = json.dumps({"architecture": specs.ARCHITECTURE, "os": "linux", "config": config or {},
                           "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"
                                                                     for layer in layers]}}).encode()
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": [f"layer{i}.tar" for i in range(len(layers))]}]
    make_image().write_atomically(path, tar({"manifest.json": json.dumps(manifest).encode(), "config.json": document,
                                             **{f"layer{i}.tar": layer for i, layer in enumerate(layers)}}))
    return path
