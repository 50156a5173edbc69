# SPDX-License-Identifier: Apache-2.0
"""The requirements of Kubernetes' own tests for volumes: test/e2e/common/storage, with the test program of Kubernetes. README.md
lists the corresponding tests."""

import base64
import os

import pytest
import specs
from node import condition
from test_conformance_values import allocatable
from trial import agnhost, status_of
from world import wait

USER = {"runAsUser": 1000}
GROUP = {"fsGroup": 1001}


# Files of ConfigMaps and Secrets, alone and projected

def plain(kind):
    def volume(name, items=None, mode=None, optional=None):
        fields = {**({"items": items} if items else {}), **({"defaultMode": mode} if mode is not None else {}),
                  **({"optional": optional} if optional is not None else {})}
        return {kind: {"name" if kind == "configMap" else "secretName": name, **fields}}
    return volume


def projected(kind):
    def volume(name, items=None, mode=None, optional=None):
        source = {kind: {"name": name, **({"items": items} if items else {}),
                         **({"optional": optional} if optional is not None else {})}}
        return {"projected": {"sources": [source], **({"defaultMode": mode} if mode is not None else {})}}
    return volume


VOLUMES = {"config map": ("configMap", plain("configMap")), "secret": ("secret", plain("secret")),
           "projected config map": ("configMap", projected("configMap")), "projected secret": ("secret", projected("secret"))}
KINDS = pytest.mark.parametrize("what", VOLUMES)


def make(trial, what, data, name=None):
    """Creates the object; returns its volume."""
    kind, volume = VOLUMES[what]
    (trial.config_map if kind == "configMap" else trial.secret)(data, name)
    return volume


def plural(what):
    return "configmaps" if VOLUMES[what][0] == "configMap" else "secrets"


def patch_data(trial, what, data, name=None):
    key = "data" if VOLUMES[what][0] == "configMap" else "stringData"
    trial.patch(plural(what), {key: data}, name)


MODES = {"as they are": ({}, None, "-rw-r--r--"), "of a mode": ({}, 0o400, "-r--------"),
         "of a user": (USER, None, "-rw-r--r--"), "of a user and group": ({**USER, **GROUP}, None, "-rw-r--r--"),
         "of a user, group and mode": ({**USER, **GROUP}, 0o440, "-r--r-----")}


@KINDS
@pytest.mark.parametrize("how", MODES)
def test_object_volume_files_have_content_and_mode(trial, what, how):
    volume = make(trial, what, {"data-1": "value-1"})
    security, mode, shown = MODES[how]
    trial.expect(['content of file "/etc/volume/data-1": value-1', f'mode of file "/etc/volume/data-1": {shown}'],
                 agnhost("mounttest", "--file_content=/etc/volume/data-1", "--file_mode=/etc/volume/data-1",
                         volumeMounts=[specs.mount("v", "/etc/volume", readOnly=True)]),
                 volumes=[{"name": "v", **volume(trial.name, mode=mode)}], securityContext=security)


ITEMS = {"as they are": ({}, None, "-rw-r--r--"), "of a mode": ({}, 0o400, "-r--------"), "of a user": (USER, None, "-rw-r--r--"),
         "of a user and group": ({**USER, **GROUP}, None, "-rw-r--r--")}


@KINDS
@pytest.mark.parametrize("how", ITEMS)
def test_object_volume_items_have_path_and_mode(trial, what, how):
    volume = make(trial, what, {"data-1": "value-1", "data-2": "value-2"})
    security, mode, shown = ITEMS[how]
    path = "/etc/volume/path/to/data-2"
    items = [{"key": "data-2", "path": "path/to/data-2", **({"mode": mode} if mode else {})}]
    trial.expect([f'content of file "{path}": value-2', f'mode of file "{path}": {shown}'],
                 agnhost("mounttest", f"--file_content={path}", f"--file_mode={path}",
                         volumeMounts=[specs.mount("v", "/etc/volume", readOnly=True)]),
                 volumes=[{"name": "v", **volume(trial.name, items=items)}], securityContext=security)


@KINDS
def test_object_can_be_mounted_in_several_volumes(trial, what):
    volume = make(trial, what, {"data-1": "value-1"})
    trial.expect(['content of file "/etc/one/data-1": value-1'],
                 agnhost("mounttest", "--file_content=/etc/one/data-1",
                         volumeMounts=[specs.mount("one", "/etc/one"), specs.mount("two", "/etc/two")]),
                 volumes=[{"name": name, **volume(trial.name)} for name in ("one", "two")])


@KINDS
def test_optional_volumes_follow_updates_of_their_objects(trial, what):
    """One of the objects is deleted, one is changed, and one is created."""
    deleted, updated, created = (f"{trial.name}-{suffix}" for suffix in ("del", "upd", "new"))
    volume = make(trial, what, {"data-1": "value-1"}, deleted)
    make(trial, what, {"data-1": "value-1"}, updated)
    names = {"delete": deleted, "update": updated, "create": created}
    trial.start(specs.container(volumeMounts=[specs.mount(name, f"/v/{name}") for name in names]),
                volumes=[{"name": name, **volume(names[name], optional=True)} for name in names])

    def files(name):
        return trial.exec("sh", "-c", f"cd /v/{name} && for i in *; do echo $i; cat $i; echo; done 2>&-").split()

    assert files("delete") == ["data-1", "value-1"] and files("create") == ["*"]
    trial.node.client.delete(plural(what), trial.node.namespace, deleted)
    patch_data(trial, what, {"data-1": None, "data-3": "value-3"} if plural(what) == "configmaps" else {"data-3": "value-3"}, updated)
    make(trial, what, {"data-1": "value-1"}, created)
    wait(lambda: files("create") == ["data-1", "value-1"], lambda: f"what is created is there: {files('create')}", 120)
    wait(lambda: files("update")[-2:] == ["data-3", "value-3"], lambda: f"what is changed is changed: {files('update')}", 120)
    wait(lambda: files("delete") == ["*"], lambda: f"what is deleted is not there: {files('delete')}", 120)


@KINDS
def test_pod_waits_for_a_required_object(trial, what):
    _, volume = VOLUMES[what]
    trial.bind(specs.container(volumeMounts=[specs.mount("v", "/v")]), volumes=[{"name": "v", **volume("absent", optional=False)}])
    trial.node.wait_event(trial.name, "FailedMount")
    assert trial.read()["status"]["phase"] == "Pending"


@KINDS
def test_pod_waits_for_a_required_key(trial, what):
    volume = make(trial, what, {"data-1": "value-1"})
    trial.bind(specs.container(volumeMounts=[specs.mount("v", "/v")]), volumes=[
        {"name": "v", **volume(trial.name, items=[{"key": "absent", "path": "p"}], optional=False)}])
    event = trial.node.wait_event(trial.name, "FailedMount")
    assert "absent" in event["message"] and trial.read()["status"]["phase"] == "Pending"


@pytest.mark.parametrize("what", ["config map", "projected config map"])
def test_config_map_volume_is_updated(trial, what):
    volume = make(trial, what, {"data-1": "value-1"})
    trial.start(specs.container(volumeMounts=[specs.mount("v", "/v")]), volumes=[{"name": "v", **volume(trial.name)}])
    assert trial.exec("cat", "/v/data-1") == "value-1"
    patch_data(trial, what, {"data-1": "value-2"})
    wait(lambda: trial.exec("cat", "/v/data-1") == "value-2", "the new value", 120)


def test_config_map_volume_contains_binary_data(trial):
    trial.create("ConfigMap", "configmaps", data={"data-1": "value-1"},
                 binaryData={"dump.bin": base64.b64encode(bytes([0xde, 0xca, 0xfe, 0xba, 0xd0, 0xfe, 0xff])).decode()})
    trial.start(specs.container(volumeMounts=[specs.mount("v", "/v")]), volumes=[
        {"name": "v", "configMap": {"name": trial.name}}])
    assert trial.exec("hexdump", "-e", '16/1 "%02x "', "/v/dump.bin").split() == ["de", "ca", "fe", "ba", "d0", "fe", "ff"]
    assert trial.exec("cat", "/v/data-1") == "value-1"


@pytest.mark.parametrize("what", ["secret", "projected secret"])
def test_secret_volume_uses_the_secret_in_the_namespace_of_the_pod(trial, what):
    """Another namespace has a Secret of the same name."""
    other = "default"
    volume = make(trial, what, {"data-1": "value-1"})
    trial.node.client.create({"apiVersion": "v1", "kind": "Secret", "stringData": {"data-1": "value-2"}, "metadata": {
        "name": f"{trial.node.namespace}-{trial.name}", "namespace": other}})
    try:
        trial.expect(['content of file "/v/data-1": value-1'],
                     agnhost("mounttest", "--file_content=/v/data-1", volumeMounts=[specs.mount("v", "/v")]),
                     volumes=[{"name": "v", **volume(trial.name)}])
    finally:
        trial.node.client.delete("secrets", other, f"{trial.node.namespace}-{trial.name}")


def test_projected_volume_combines_all_sources(trial):
    trial.config_map({"configmap-data": "configmap-value-1"})
    trial.secret({"secret-data": "secret-value-1"})
    trial.expect([trial.name, "secret-value-1", "configmap-value-1"], specs.container(
        script="for i in podname secret-data configmap-data; do cat /all/$i; echo; done", volumeMounts=[specs.mount("v", "/all")]),
        volumes=[{"name": "v", "projected": {"sources": [
            {"downwardAPI": {"items": [{"path": "podname", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"secret": {"name": trial.name, "items": [{"key": "secret-data", "path": "secret-data"}]}},
            {"configMap": {"name": trial.name, "items": [{"key": "configmap-data", "path": "configmap-data"}]}}]}}])


# Files of the downward API, alone and projected

DOWNWARD = {"plain": lambda items, mode: {"downwardAPI": {"items": items, **mode}},
            "projected": lambda items, mode: {"projected": {"sources": [{"downwardAPI": {"items": items}}], **mode}}}
WAYS = pytest.mark.parametrize("way", DOWNWARD)
RESOURCES = {"requests": {"cpu": "250m", "memory": "32Mi"}, "limits": {"cpu": "1250m", "memory": "64Mi"}}


def info(way, item, mode=None, item_mode=None):
    items = [{**item, **({"mode": item_mode} if item_mode else {})}]
    return {"name": "info", **DOWNWARD[way](items, {} if mode is None else {"defaultMode": mode})}


def of_field(path):
    return {"path": "info", "fieldRef": {"fieldPath": path}}


def of_resource(resource, divisor):
    return {"path": "info", "resourceFieldRef": {"containerName": "main", "resource": resource, "divisor": divisor}}


@WAYS
@pytest.mark.parametrize("security, mode, item_mode, shown", [
    ({}, None, None, "-rw-r--r--"), ({}, 0o400, None, "-r--------"), ({}, None, 0o400, "-r--------"),
    ({**USER, **GROUP}, None, None, "-rw-r--r--"), ({**USER, **GROUP}, 0o440, None, "-r--r-----")])
def test_downward_api_file_contains_the_name_of_the_pod(trial, way, security, mode, item_mode, shown):
    trial.expect([f'content of file "/info/info": {trial.name}',
                  f'mode of file "/info/info": {shown}'],
                 agnhost("mounttest", "--file_content=/info/info", "--file_mode=/info/info",
                         volumeMounts=[specs.mount("info", "/info")]),
                 volumes=[info(way, of_field("metadata.name"), mode, item_mode)], securityContext=security)


@WAYS
@pytest.mark.parametrize("what", ["labels", "annotations"])
def test_downward_api_file_follows_labels_and_annotations(trial, way, what):
    trial.start(specs.container(volumeMounts=[specs.mount("info", "/info")]), volumes=[info(way, of_field(f"metadata.{what}"))],
                metadata={what: {"key1": "value1"}})
    assert 'key1="value1"' in trial.exec("cat", "/info/info")
    trial.patch("pods", {"metadata": {what: {"key3": "value3"}}})
    wait(lambda: 'key3="value3"' in trial.exec("cat", "/info/info"), "the new one", 120)


@WAYS
@pytest.mark.parametrize("resource, divisor, shown", [
    ("limits.cpu", "1m", "1250"), ("limits.memory", "1", "67108864"), ("requests.cpu", "1m", "250"),
    ("requests.memory", "1", "33554432"), ("limits.cpu", "1", "2"), ("requests.memory", "1Mi", "32")])
def test_downward_api_file_contains_container_resources(trial, way, resource, divisor, shown):
    trial.expect([f'content of file "/info/info": {shown}'],
                 agnhost("mounttest", "--file_content=/info/info", volumeMounts=[specs.mount("info", "/info")], resources=RESOURCES),
                 volumes=[info(way, of_resource(resource, divisor))])


@WAYS
@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_downward_api_file_defaults_to_the_allocatable_of_the_node(trial, way, resource):
    trial.expect([f'content of file "/info/info": {allocatable(trial, resource)}'],
                 agnhost("mounttest", "--file_content=/info/info", volumeMounts=[specs.mount("info", "/info")]),
                 volumes=[info(way, of_resource(f"limits.{resource}", "1"))])


# Empty directories

MEDIA = pytest.mark.parametrize("medium", ["", "Memory"])


def check_empty(trial, medium, user, group, words, lines, **mount):
    security = {**({"runAsUser": user} if user else {}), **({"fsGroup": group} if group else {})}
    trial.expect([*lines, *(['mount type of "/test": tmpfs'] if medium else [])],
                 agnhost("mounttest", "--fs_type=/test", *words, volumeMounts=[specs.mount("v", "/test", **mount)]),
                 volumes=[{"name": "v", "emptyDir": {"medium": medium}}], securityContext=security)


@MEDIA
@pytest.mark.parametrize("user", [0, 1001])
@pytest.mark.parametrize("mode, shown", [("0644", "-rw-r--r--"), ("0666", "-rw-rw-rw-"), ("0777", "-rwxrwxrwx")])
def test_new_file_in_an_empty_dir_has_its_mode(trial, medium, user, mode, shown):
    check_empty(trial, medium, user, None, [f"--new_file_{mode}=/test/file", "--file_perm=/test/file"],
                [f'perms of file "/test/file": {shown}', 'content of file "/test/file": mount-tester new file'])


@MEDIA
@pytest.mark.parametrize("group", [None, 1001])
def test_empty_dir_is_writable_by_all(trial, medium, group):
    check_empty(trial, medium, None, group, ["--file_perm=/test"], ['perms of file "/test": -rwxrwxrwx'])


@MEDIA
@pytest.mark.parametrize("user", [0, 1001])
def test_new_file_in_an_empty_dir_belongs_to_its_group(trial, medium, user):
    check_empty(trial, medium, user, 123, ["--new_file_0660=/test/file", "--file_perm=/test/file", "--file_owner=/test/file"],
                ['perms of file "/test/file": -rw-rw----', 'content of file "/test/file": mount-tester new file',
                 'owner GID of "/test/file": 123'])


@pytest.mark.parametrize("medium, mode", [("", "dgrwxrwxrwx"), ("Memory", "dgtrwxrwxrwx")])
def test_new_directory_in_an_empty_dir_belongs_to_its_group(trial, medium, mode):
    check_empty(trial, medium, None, 123, ["--file_perm=/test", "--file_owner=/test", "--file_mode=/test"],
                ['perms of file "/test": -rwxrwxrwx', 'owner UID of "/test": 0', 'owner GID of "/test": 123',
                 f'mode of file "/test": {mode}'], subPath="test-sub")


def test_containers_share_an_empty_dir(trial):
    shared = [specs.mount("v", "/shared")]
    trial.start(specs.container(script=f"echo hello > /shared/file; {specs.IDLE}", volumeMounts=shared),
                specs.container("other", volumeMounts=shared), volumes=[{"name": "v", "emptyDir": {}}])
    wait(lambda: trial.exec("cat", "/shared/file", container="other") == "hello\n", "the file of the other container")


def test_empty_dir_in_memory_has_its_size(trial):
    trial.start(specs.container(volumeMounts=[specs.mount("v", "/share")]),
                volumes=[{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "10Mi"}}])
    assert trial.exec("sh", "-c", "df | grep /share | awk '{print $2}'") == "10240\n"


@MEDIA
def test_volumes_are_removed_with_their_pod(trial, medium):
    pod = trial.start(specs.container(volumeMounts=[specs.mount("v", "/v")]), volumes=[{"name": "v", "emptyDir": {"medium": medium}}])
    path = f"{trial.node.state}/pods/{pod['metadata']['uid']}"
    assert os.path.exists(path)
    trial.delete()
    trial.wait_gone()
    wait(lambda: not os.path.exists(path), "its directory is removed")


# Directories of the host

def test_host_path_volume_keeps_the_mode_of_the_directory(trial):
    path = f"{trial.node.data}/{trial.name}"
    os.mkdir(path)
    os.chmod(path, 0o1777)
    trial.expect(['mode of file "/test": dtrwxrwxrwx'],
                 agnhost("mounttest", "--file_mode=/test", volumeMounts=[specs.mount("v", "/test")]),
                 volumes=[specs.host_path("v", path)])


@pytest.mark.parametrize("part", [None, "sub-path"])
def test_host_path_volume_is_readable_and_writable(trial, part):
    below = {"subPath": part} if part else {}
    path = f"/test/{part}/file" if part else "/test/file"
    trial.bind(agnhost("mounttest", "--new_file_0644=/test/file", volumeMounts=[specs.mount("v", "/test", **below)]),
               {**agnhost("mounttest", f"--file_content_in_loop={path}", "--retry_time=30",
                          volumeMounts=[specs.mount("v", "/test")]), "name": "reader"},
               volumes=[specs.host_path("v", f"{trial.node.data}/{trial.name}", type="DirectoryOrCreate")], restartPolicy="Never")
    trial.wait_output(f'content of file "{path}": mount-tester new file', container="reader")


# Missing volumes

@pytest.mark.parametrize("volume", [{"configMap": {"name": "absent"}}, {"secret": {"secretName": "absent"}}])
@pytest.mark.parametrize("init", [False, True])
def test_pod_conditions_are_false_while_a_volume_is_missing(trial, volume, init):
    trial.bind(specs.container(volumeMounts=[specs.mount("v", "/v")]), volumes=[{"name": "v", **volume}],
               **({"initContainers": [specs.container("init", "true")]} if init else {}))
    trial.node.wait_event(trial.name, "FailedMount")
    pod = trial.wait(lambda pod: condition(pod, "PodReadyToStartContainers").get("status") == "False", "has no sandbox")
    assert condition(pod, "PodScheduled")["status"] == "True"
    assert condition(pod, "Initialized")["status"] == ("False" if init else "True")
    assert condition(pod, "ContainersReady")["status"] == condition(pod, "Ready")["status"] == "False"
    assert status_of(pod)["state"]["waiting"]["reason"] == ("PodInitializing" if init else "ContainerCreating")


def test_pod_can_be_deleted_while_it_waits_for_a_volume(trial):
    trial.bind(specs.container(volumeMounts=[specs.mount("v", "/v")]), volumes=[{"name": "v", "configMap": {"name": "absent"}}])
    trial.node.wait_event(trial.name, "FailedMount")
    trial.delete()
    trial.wait_gone()
