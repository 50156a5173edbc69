# SPDX-License-Identifier: Apache-2.0
"""The correct and incorrect inputs of the soak test's node: manifests, objects, images of archives and of a registry,
indexes, DaemonSets, labels. Each kind has settle(), after which the node can reach the desired state."""

import hashlib
import os
import subprocess
import tarfile
import time

import harness
import index_source
import registry
import specs
from soak_pods import SCRIPTS, STARTS_MOUNT, SoakPod, script, starts_volume

PODS_AT_MOST = 7
ARCHIVES = 3
TAGS = 3


class Objects:
    """A ConfigMap and a Secret whose values change while pods see them."""

    def __init__(self, soak):
        self.soak, self.number, self.secret = soak, 0, f"hunter-{soak.seed}-"
        self.settle()

    def documents(self):
        return {"settings.yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"k": self.values()["settings"]}},
                "secrets.yaml": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secrets"},
                                 "stringData": {"k": self.values()["secrets"]}}}

    def values(self):
        return {"settings": f"value-{self.number}", "secrets": f"{self.secret}{self.number}"}

    def change(self):
        self.number += 1
        self.soak.count("edits of objects")
        self.settle()

    def break_file(self):
        self.soak.node.drop(f"kind: Secret\nstringData: {{k: '{self.secret}{self.number}', [", "secrets.yaml")
        self.soak.count("broken manifests")

    def settle(self):
        for name, document in self.documents().items():
            self.soak.node.drop(document, name)

    def actions(self):
        return [(3, self.change), (1, self.break_file)]


class Churn:
    """Pods of the manifest directory that come, change and go."""

    def __init__(self, soak):
        self.soak, self.pods, self.number = soak, {}, 0

    def add(self):
        if len(self.pods) >= PODS_AT_MOST:
            return self.remove()
        chance = self.soak.random
        self.number += 1
        kind = chance.choice(["idle", "idle", "deaf", "counter", "completes", "completes", "crashes"])
        names = ("init", "side", "probes", "objects", "disk", "network")
        pod = SoakPod(self.soak.node, f"p{self.number}", kind, **{name: chance.random() < 0.3 for name in names})
        pod.duration = chance.uniform(0, 3)
        pod.image = self.soak.some_image()
        self.pods[pod.name] = pod
        self.soak.count("pods")
        return self.write(pod)

    def some_pod(self):
        return self.pods[self.soak.random.choice(sorted(self.pods))] if self.pods else None

    def edit(self):
        pod, chance = self.some_pod(), self.soak.random
        if not pod:
            return
        change = chance.choice([pod.change_command, pod.change_label, lambda: pod.change_image(self.soak.some_image()),
                                lambda: pod.change_memory(chance), lambda: pod.change_feature(chance)])
        change()
        pod.edits += 1
        self.soak.count("edits of pods")
        self.write(pod)

    def write(self, pod):
        if self.soak.disk.is_full:
            pod.excuse_from_start()
        pod.write()

    def remove(self):
        pod = self.some_pod()
        if pod:
            del self.pods[pod.name]
            self.unlink(pod)
            self.soak.count("pods removed")

    def remove_all(self):
        for pod in self.pods.values():
            self.unlink(pod)
        self.pods = {}

    def unlink(self, pod):
        if os.path.exists(self.soak.node.path(pod.file())):
            self.soak.node.remove(pod.file())

    def break_file(self):
        """Breaks the file of any pod; no pod may stop because of that."""
        pod = self.soak.random.choice([*self.pods.values(), *self.soak.steady.values()])
        self.soak.node.drop(self.soak.random.choice(["spec: [", "", "kind: Pod\napiVersion: v1\n", "\0\1"]), pod.file())
        self.soak.count("broken manifests")

    def label_steady(self):
        pod = self.soak.steady[self.soak.random.choice(sorted(self.soak.steady))]
        pod.change_label()
        pod.write()
        self.soak.count("edits of pods")

    def delete(self):
        """Deletes a pod like an administrator would: it starts again, because its file is still there."""
        pod = self.some_pod()
        if pod and pod.kind not in ("completes", "crashes") and self.soak.is_answering():
            pod.excuse()
            self.soak.node.cli("delete", "pod", pod.name, "--now")
            self.soak.count("pods deleted by hand")

    def settle(self):
        for pod in [*self.pods.values(), *self.soak.steady.values()]:
            pod.write()

    def actions(self):
        return [(14, self.add), (10, self.edit), (4, self.remove), (2, self.break_file), (2, self.label_steady), (1, self.delete)]


class Daemons:
    """DaemonSets, and the label of the node that selects some of them."""

    def __init__(self, soak):
        self.soak, self.versions, self.role = soak, {"daemon-a": 0, "daemon-b": 0}, "a"
        self.settle()

    def write(self, name, **template):
        node = self.soak.node
        body = script(node, name, "main", self.versions.get(name, 0), specs.IDLE)
        node.drop(specs.daemonset(name, specs.container(script=body, volumeMounts=[STARTS_MOUNT]), volumes=[starts_volume(node)],
                                  **template))

    def settle(self):
        self.write("daemon-steady")
        for name in self.versions:
            self.write(name, nodeSelector={"role": name[-1]})

    def edit(self):
        self.versions[self.soak.random.choice(sorted(self.versions))] += 1
        self.soak.count("edits of DaemonSets")
        self.settle()

    def relabel(self):
        self.role = "b" if self.role == "a" else "a"
        self.soak.write_config()
        self.soak.count("labels of the node")

    def selected(self):
        return ["daemon-steady", f"daemon-{self.role}"]

    def expected(self):
        return {(name, "main"): [self.versions.get(name, 0)] for name in self.selected()}

    def actions(self):
        return [(2, self.edit), (2, self.relabel)]


class Archives:
    """Images in preload/, each with its name in a file. They are added and removed."""

    def __init__(self, soak, directory):
        self.soak, self.paths = soak, {}
        self.common = os.path.basename(soak.node.archive)
        for i in range(ARCHIVES):
            name, path = f"docker.io/library/soak:{i}", os.path.join(directory, f"soak{i}.tar")
            with open(os.path.join(directory, f"soak{i}"), "w", encoding="utf-8") as file:
                file.write(name)
            subprocess.run([os.path.join(harness.TOP, "tests", "make-image"), name, path, "--program", f"{file.name}:etc/soak"], check=True)
            self.paths[name] = path

    def target(self, name):
        return os.path.join(self.soak.node.state, "preload", os.path.basename(self.paths[name]))

    def some_name(self):
        return self.soak.random.choice(sorted(self.paths))

    def add(self):
        self.provide(self.some_name())

    def provide(self, name):
        if os.path.exists(self.target(name)):
            return
        try:
            self.soak.node.preload(self.paths[name])
            self.soak.count("archives added")
        except OSError:  # the disk is full
            if os.path.exists(self.target(name) + ".part"):
                os.unlink(self.target(name) + ".part")

    def remove(self):
        name = self.some_name()
        if os.path.exists(self.target(name)):
            os.unlink(self.target(name))
            self.soak.count("archives removed")
            if self.soak.is_answering():
                self.soak.node.cli("images", "rm", name)

    def remove_all(self):
        for name in self.paths:
            if os.path.exists(self.target(name)):
                os.unlink(self.target(name))

    def settle(self):
        for name in self.paths:
            self.provide(name)

    def actions(self):
        return [(3, self.add), (3, self.remove)]


class BusyboxBlobs(registry.Blobs):
    """The layers of the image are already tars."""

    @staticmethod
    def tar(files):
        return files if isinstance(files, bytes) else registry.Blobs.tar(files)


class Registry:
    """A registry that gets new tags and sometimes answers wrongly."""

    def __init__(self, soak, archive):
        self.soak, self.mode, self.tags = soak, "good", []
        with tarfile.open(archive) as tar:
            (name,) = [member.name for member in tar if member.name.endswith(".tar")]
            self.layer = tar.extractfile(name).read()
        self.server = registry.BadRegistry(BusyboxBlobs([self.layer]), self.behave)
        self.publish()

    def publish(self):
        tag = f"v{len(self.tags)}"
        name = f"{self.server.host}/team/app:{tag}"
        new = BusyboxBlobs([self.layer, {"etc/soak": name.encode()}])
        self.server.image.blobs.update(new.blobs)
        self.server.image.manifests.update({new.digest: new.manifests[new.digest], tag: new.manifests[new.digest]})
        self.tags.append(name)
        self.soak.count("tags published")

    def behave(self, handler):
        self.server.seen.clear()
        if self.mode == "errors":
            return handler.answer(503)
        if self.mode == "slow":
            time.sleep(1)
        if self.mode == "hangs":
            while self.mode == "hangs":
                time.sleep(0.1)
        found = self.server.find(handler.path)
        if self.mode in ("cut", "wrong") and found:
            data = found[1]
            wrong = data[:len(data) // 2] if self.mode == "cut" else bytes(len(data))
            handler.answer(200, wrong, Content_Type=found[0], Content_Length=str(len(data)))
            handler.close_connection = True
            return True
        return False

    def misbehave(self):
        self.mode = self.soak.random.choice(["good", "errors", "slow", "hangs", "cut", "wrong"])
        self.soak.count(f"registry: {self.mode}")

    def pull(self):
        """Pulls an image by the command line; nothing waits for the end."""
        self.soak.sessions.open("images", "pull", self.some_name())

    def some_name(self):
        return self.soak.random.choice(self.tags[-TAGS:])

    def settle(self):
        self.mode = "good"

    def stop(self):
        self.settle()
        self.server.stop()

    def actions(self):
        return [(2, self.misbehave), (2, self.publish), (2, self.pull)]


class Source:
    """A source of signed indexes over HTTPS: good ones with pods that change, and bad ones, which change nothing."""

    def __init__(self, soak, directory):
        self.soak, self.versions = soak, {"indexed-a": 0, "indexed-b": 0}
        os.mkdir(os.path.join(directory, "root"))
        self.keys = [index_source.Key(directory, name) for name in ("key", "other")]
        self.index = index_source.Index(os.path.join(directory, "root"), self.keys[0])
        self.nginx = index_source.Nginx(os.path.join(directory, "nginx"), self.index.directory)
        self.settle()

    def settings(self):
        return index_source.settings(self.nginx.url(), self.keys[:1], interval="3s", caFile=self.nginx.certificate)

    def manifest(self, name, version):
        node = self.soak.node
        return specs.pod(name, specs.container(script=script(node, name, "main", version, SCRIPTS["idle"]), volumeMounts=[STARTS_MOUNT]),
                         volumes=[starts_volume(node)])

    def manifests(self):
        return {f"{name}.yaml": self.manifest(name, version)
                for name, version in [("indexed-steady", 0), *self.versions.items()] if version is not None}

    def settle(self):
        self.index.write(self.manifests())

    def change(self):
        name = self.soak.random.choice(sorted(self.versions))
        was = self.versions[name]
        self.versions[name] = None if was is not None and self.soak.random.random() < 0.3 else self.index.number
        self.soak.count("indexes")
        self.settle()

    def be_bad(self):
        surplus = {"wrong.yaml": self.manifest("wrong", 0)}
        choices = {
            "of another key": lambda: self.index.write(surplus, key=self.keys[1]),
            "expired": lambda: self.index.write(surplus, expires="2001-01-01T00:00:00Z"),
            "of another fleet": lambda: self.index.write(surplus, fleet="banks"),
            "older": lambda: self.index.write(surplus, number=0),
            "with a broken manifest": lambda: self.index.write({**surplus, "x.yaml": b"kind: Pod\n"}),
            "with a missing file": lambda: self.index.write(surplus, files=[
                {"name": "wrong.yaml", "size": 9, "sha256": hashlib.sha256(str(self.index.number).encode()).hexdigest()}]),
            "cut": lambda: self.index.write(surplus, spoil=lambda path: os.truncate(path, 20)),
            "absent": lambda: (self.index.write(surplus, key=self.keys[1]), os.unlink(self.index.path)),
        }
        choices[self.soak.random.choice(sorted(choices))]()
        self.soak.count("bad indexes")

    def remove_all(self):
        self.versions = dict.fromkeys(self.versions)
        self.settle()

    def names(self):
        return ["indexed-steady", *[name for name, version in self.versions.items() if version is not None]]

    def expected(self):
        return {(name, "main"): [self.versions.get(name, 0)] for name in self.names()}

    def stop(self):
        self.nginx.stop()

    def actions(self):
        return [(3, self.change), (2, self.be_bad)]
