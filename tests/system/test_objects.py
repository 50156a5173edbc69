# SPDX-License-Identifier: Apache-2.0
"""ConfigMaps and Secrets from files: variables, volumes, pods that wait for them, and updates."""

import base64
import os
import re
import stat

import pytest
import specs
import world


def config_map(name, data, namespace=None, **fields):
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, **fields}


def secret(name, strings, **fields):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": strings, **fields}


def key_ref(kind, name, key, **fields):
    return {f"{kind}KeyRef": {"name": name, "key": key, **fields}}


def variable(name, **source):
    return {"name": name, "valueFrom": source}


def environ(node, name, container="main"):
    return world.environ(node.init(name, container))


def volume_pod(name, volume, **mount):
    return specs.pod(name, specs.container(volumeMounts=[specs.mount("v", "/v", **mount)]),
                     volumes=[{"name": "v", **volume}])


def path_of_volume(node, name, path=""):
    return f"/proc/{node.init(name)}/root/v{path}"


def unquoted(status):
    """The value as text in which Python does not escape quotation marks."""
    return str(status).replace("\\'", "'")


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_termination_messages_are_described_without_control_characters(node):
    words = "first\\n\\033[2Jsecond\\r\\tthird\\n"
    node.drop(specs.script_pod("sad", f"printf '{words}' > /dev/termination-log; exit 1", restartPolicy="Never"))
    node.wait_phase("sad", "Failed")
    assert node.status("sad")["state"]["terminated"]["message"] == "first\n\033[2Jsecond\r\tthird\n"
    described = node.cli("describe", "pod", "sad").stdout
    assert re.search(r"\n      Message: +first\n +\?\[2Jsecond  third\n      Exit Code: +1\n", described), described
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", described)


@pytest.mark.quick
def test_variables_have_values_of_objects_and_pod_fields(node):
    node.drop(specs.text(
        config_map("map", {"a.b": "from the map", "word": "$(NOT_EXPANDED)"}),
        secret("secret", {"password": "hunter2 $(A)"}, data={"bytes": base64.b64encode(b"b\xc3\xa9").decode()}),
        specs.pod("env", specs.container(
            resources={"limits": {"memory": "96Mi", "cpu": "1500m"}, "requests": {"cpu": "250m"}},
            envFrom=[{"prefix": "MAP_", "configMapRef": {"name": "map"}}, {"secretRef": {"name": "secret"}},
                     {"configMapRef": {"name": "nowhere", "optional": True}}],
            env=[variable("A", **key_ref("configMap", "map", "a.b")),
                 variable("B", **key_ref("secret", "secret", "bytes")),
                 variable("NONE", **key_ref("secret", "secret", "missing", optional=True)),
                 variable("NO_MAP", **key_ref("configMap", "nowhere", "missing", optional=True)),
                 {"name": "C", "value": "$(A)/$(password)/$(MAP_word)/$(NONE)"},
                 {"name": "MAP_word", "value": "env wins"},
                 variable("NAME", fieldRef={"fieldPath": "metadata.name"}),
                 variable("NAMESPACE", fieldRef={"fieldPath": "metadata.namespace"}),
                 variable("UID", fieldRef={"fieldPath": "metadata.uid"}),
                 variable("APP", fieldRef={"fieldPath": "metadata.labels['app']"}),
                 variable("NOTE", fieldRef={"fieldPath": "metadata.annotations['example.com/note']"}),
                 variable("NODE", fieldRef={"fieldPath": "spec.nodeName"}),
                 variable("ACCOUNT", fieldRef={"fieldPath": "spec.serviceAccountName"}),
                 variable("HOST_IP", fieldRef={"fieldPath": "status.hostIP"}),
                 variable("POD_IPS", fieldRef={"fieldPath": "status.podIPs"}),
                 variable("MEMORY", resourceFieldRef={"resource": "limits.memory", "divisor": "1Mi"}),
                 variable("CPU", resourceFieldRef={"resource": "limits.cpu"}),
                 variable("REQUEST", resourceFieldRef={"resource": "requests.cpu", "divisor": "1m"})]),
            metadata={"labels": {"app": "shop"}, "annotations": {"example.com/note": "x y"}})), "env.yaml")
    pod = node.wait_running("env")
    env = environ(node, "env")
    expected = {"MAP_a.b": "from the map", "password": "hunter2 $(A)", "bytes": "bé", "A": "from the map", "B": "bé",
                "C": "from the map/hunter2 $(A)/$(NOT_EXPANDED)/$(NONE)", "MAP_word": "env wins",
                "NAME": "env-node1", "NAMESPACE": "default", "UID": pod["metadata"]["uid"], "APP": "shop",
                "NOTE": "x y", "NODE": "node1", "ACCOUNT": "", "HOST_IP": pod["status"]["hostIP"],
                "POD_IPS": pod["status"]["podIP"], "MEMORY": "96", "CPU": "2", "REQUEST": "250"}
    assert {name: env.get(name) for name in expected} == expected
    assert "NONE" not in env and "NO_MAP" not in env


@pytest.mark.parametrize("kind,word", [("ConfigMap", "configmap"), ("Secret", "secret")])
def test_a_container_waits_for_objects_of_its_variables(node, kind, word):
    source = key_ref(word.replace("map", "Map"), "late", "key")
    node.drop(specs.pod("waits", specs.container(env=[variable("KEY", **source)])))
    assert node.wait_waiting("waits", "CreateContainerConfigError") == f'{word} "late" not found'
    document = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "late"}}
    node.drop({**document, "data": {"other": "eA=="}}, "late.yaml")
    world.wait(lambda: node.status("waits")["state"]["waiting"]["message"] ==
               f"couldn't find key key in {kind} default/late", "says that the key is missing")
    node.drop({**document, "data": {"key": "dmFsdWU="}}, "late.yaml")
    node.wait_running("waits")
    assert environ(node, "waits")["KEY"] == ("dmFsdWU=" if kind == "ConfigMap" else "value")
    assert node.status("waits")["restartCount"] == 0


def test_objects_of_other_namespaces_are_not_found(node):
    node.drop(config_map("map", {"key": "x"}, namespace="other"))
    node.drop(specs.pod("waits", specs.container(env=[variable("KEY", **key_ref("configMap", "map", "key"))])))
    assert node.wait_waiting("waits", "CreateContainerConfigError") == 'configmap "map" not found'


def test_values_of_secrets_are_not_logged(node):
    node.drop(secret("secret", {"password": "hunter2"}))
    node.drop("apiVersion: v1\nkind: Secret\nmetadata: {name: number}\nstringData: {pin: 40711}\n", "number.yaml")
    node.drop("apiVersion: v1\nkind: Secret\nmetadata: {name: text}\ndata: {pin: 'hunter 3'}\n", "text.yaml")
    node.launch(specs.pod("user", specs.container(envFrom=[{"secretRef": {"name": "secret"}}])))
    said = node.complaints() + node.cli("describe", "pod", "user").stdout + str(node.pods())
    assert "number.yaml:4:19: stringData[pin]: must be a string; quote it" in said
    assert "text.yaml:4:13: data[pin]: must be base64; text belongs into stringData" in said
    assert "hunter" not in said and "40711" not in said
    assert environ(node, "user")["password"] == "hunter2"


def test_an_object_volume_has_read_only_files_for_each_key(node):
    node.drop(specs.text(config_map("map", {"a": "1", "b.txt": "two\n"},
                                    binaryData={"bytes": base64.b64encode(b"\0\xff").decode()}),
                         volume_pod("reader", {"configMap": {"name": "map"}})), "reader.yaml")
    node.wait_running("reader")
    at = path_of_volume(node, "reader")
    assert sorted(name for name in os.listdir(at) if not name.startswith("..")) == ["a", "b.txt", "bytes"]
    assert world.read(f"{at}/a") == "1" and world.read(f"{at}/b.txt") == "two\n"
    with open(f"{at}/bytes", "rb") as file:
        assert file.read() == b"\0\xff"
    assert os.readlink(f"{at}/a") == "..data/a" and mode(f"{at}/a") == 0o644
    assert "ro" in world.mount_at(node.init("reader"), "/v")["options"]
    with pytest.raises(OSError):
        with open(f"{at}/new", "w", encoding="utf-8"):
            pass


def test_items_set_names_and_modes_and_secrets_are_not_written_to_disk(node):
    node.drop(secret("secret", {"a": "1", "b": "2", "c": "3"}))
    node.launch(volume_pod("reader", {"secret": {
        "secretName": "secret", "defaultMode": 0o400,
        "items": [{"key": "a", "path": "dir/sub/x"}, {"key": "b", "path": "file", "mode": 0o640}]}}))
    at = path_of_volume(node, "reader")
    assert world.read(f"{at}/dir/sub/x") == "1" and mode(f"{at}/dir/sub/x") == 0o400
    assert world.read(f"{at}/file") == "2" and mode(f"{at}/file") == 0o640
    assert not os.path.exists(f"{at}/c")
    uid = node.pod("reader")["metadata"]["uid"]
    assert os.path.isdir(f"{node.run}/pods/{uid}/volumes/kubernetes.io~secret/v")
    assert not os.path.exists(f"{node.state}/pods/{uid}/volumes")


def test_a_secret_is_readable_for_the_group_of_its_pod(node):
    node.drop(secret("secret", {"key": "1"}))
    pod = volume_pod("group", {"secret": {"secretName": "secret", "defaultMode": 0o400}})
    pod["spec"]["securityContext"] = {"fsGroup": 4711, "runAsUser": 1000}
    pod["spec"]["containers"][0]["command"][2] = "echo $(cat /v/key); " + specs.IDLE
    node.launch(pod)
    world.wait(lambda: node.logged("group") == ["1"], "the container can read it")
    assert os.stat(path_of_volume(node, "group", "/key")).st_gid == 4711 and mode(path_of_volume(node, "group", "/key")) == 0o440


@pytest.mark.quick
def test_a_volume_follows_its_object_without_a_restart(node):
    node.drop(config_map("map", {"kept": "1", "gone": "g", "dir": "d"}))
    node.launch(volume_pod("reader", {"configMap": {"name": "map"}}))
    at, pid = path_of_volume(node, "reader"), node.init("reader")
    with open(f"{at}/kept", encoding="utf-8") as before:
        node.drop(config_map("map", {"kept": "2", "new": "word"}))
        world.wait(lambda: world.read(f"{at}/kept") == "2", "the new value is seen")
        assert before.read() == "1"
    world.wait(lambda: not os.path.lexists(f"{at}/gone"), "the old key is gone")
    assert world.read(f"{at}/new") == "word"
    world.wait(lambda: len([name for name in os.listdir(at) if name.startswith("..2")]) == 1, "the old files are gone")
    assert node.init("reader") == pid and node.status("reader")["restartCount"] == 0
    data = os.readlink(f"{at}/..data")
    node.drop(specs.pod("other"))
    node.wait_running("other")
    assert os.readlink(f"{at}/..data") == data, "unchanged files are not written"
    node.remove("map")
    world.wait(lambda: 'configmap "map" not found; the volume stays as it was' in node.said(), "reports what is missing")
    assert world.read(f"{at}/kept") == "2" and node.init("reader") == pid


def test_a_volume_follows_an_object_that_changed_while_no_agent_ran(node):
    node.drop(config_map("map", {"key": "1"}))
    node.launch(volume_pod("reader", {"configMap": {"name": "map"}}))
    at, pid = path_of_volume(node, "reader", "/key"), node.init("reader")
    node.kill9()
    node.drop(config_map("map", {"key": "2"}))
    node.start()
    world.wait(lambda: world.read(at) == "2", "the new value is seen")
    assert node.init("reader") == pid


def test_a_pod_waits_for_the_object_of_its_volume(node):
    node.drop(volume_pod("reader", {"secret": {"secretName": "late", "items": [{"key": "k", "path": "k"}]}}))
    assert node.wait_waiting("reader", "ContainerCreating", says="MountVolume") == \
        'MountVolume.SetUp failed for volume "v" : secret "late" not found'
    node.restart()
    node.drop(secret("late", {"x": "1"}))
    assert node.wait_waiting("reader", "ContainerCreating", says="key") == \
        'MountVolume.SetUp failed for volume "v" : secret references non-existent secret key: k'
    node.drop(secret("late", {"k": "1"}))
    node.wait_running("reader")
    assert world.read(path_of_volume(node, "reader", "/k")) == "1"


def test_an_optional_volume_is_empty_until_its_object_appears(node):
    node.launch(volume_pod("reader", {"configMap": {"name": "late", "optional": True}}))
    assert os.listdir(path_of_volume(node, "reader")) == ["..data"] or not os.path.exists(path_of_volume(node, "reader", "/k"))
    node.drop(config_map("late", {"k": "1"}))
    world.wait(lambda: world.read(path_of_volume(node, "reader", "/k")) == "1", "the value is seen")


def test_downward_api_files_follow_the_labels_of_the_pod(node):
    def write_pod_with_labels(labels):
        pod = specs.pod("fields", specs.container(
            resources={"limits": {"memory": "64Mi"}}, volumeMounts=[specs.mount("v", "/v")]),
            metadata={"labels": labels, "annotations": {"note": 'a "b"\n\\'}},
            volumes=[{"name": "v", "downwardAPI": {"items": [
                {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                {"path": "one", "fieldRef": {"fieldPath": "metadata.labels['a']"}},
                {"path": "note", "fieldRef": {"fieldPath": "metadata.annotations['note']"}},
                {"path": "notes", "fieldRef": {"fieldPath": "metadata.annotations"}},
                {"path": "memory", "mode": 0o440, "resourceFieldRef": {
                    "containerName": "main", "resource": "limits.memory", "divisor": "1Ki"}}]}}])
        node.drop(pod)
    write_pod_with_labels({"b": "2", "a": "1"})
    node.wait_running("fields")
    at, pid = path_of_volume(node, "fields"), node.init("fields")
    assert world.read(f"{at}/labels") == 'a="1"\nb="2"'
    assert world.read(f"{at}/one") == "1"
    assert world.read(f"{at}/note") == 'a "b"\n\\'
    assert 'note="a \\"b\\"\\n\\\\"' in world.read(f"{at}/notes").split("\n")
    assert world.read(f"{at}/memory") == "65536" and mode(f"{at}/memory") == 0o440
    write_pod_with_labels({"a": "3"})
    world.wait(lambda: world.read(f"{at}/labels") == 'a="3"', "the new label is seen")
    assert node.init("fields") == pid


def test_a_projected_volume_combines_several_sources_in_one_directory(node):
    node.drop(specs.text(config_map("map", {"a": "map", "b": "map"}), secret("secret", {"b": "secret"})), "objects.yaml")
    node.launch(volume_pod("all", {"projected": {"defaultMode": 0o600, "sources": [
        {"configMap": {"name": "map"}}, {"secret": {"name": "secret", "items": [{"key": "b", "path": "dir/b"}]}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}}))
    at = path_of_volume(node, "all")
    assert [world.read(f"{at}/{name}") for name in ("a", "b", "dir/b", "name")] == ["map", "map", "secret", "all-node1"]
    assert mode(f"{at}/dir/b") == 0o600


def test_a_single_key_is_mounted_by_its_sub_path(node):
    node.drop(config_map("map", {"app.conf": "setting\n"}))
    node.launch(volume_pod("conf", {"configMap": {"name": "map"}}, subPath="app.conf"))
    assert os.path.isfile(path_of_volume(node, "conf")) and world.read(path_of_volume(node, "conf")) == "setting\n"
    assert "ro" in world.mount_at(node.init("conf"), "/v")["options"]


def test_a_sub_path_is_created_with_the_mode_of_its_volume_and_expanded_variables(node):
    node.launch(specs.pod("sub", specs.container(
        env=[variable("POD", fieldRef={"fieldPath": "metadata.name"})],
        volumeMounts=[specs.mount("v", "/v/deep", subPath="deep"), specs.mount("v", "/v", subPathExpr="a #b/$(POD)")]),
        volumes=[{"name": "v", "emptyDir": {}}]))
    uid = node.pod("sub")["metadata"]["uid"]
    volume = f"{node.state}/pods/{uid}/volumes/kubernetes.io~empty-dir/v"
    assert os.path.samefile(f"{volume}/a #b/sub-node1", path_of_volume(node, "sub"))
    assert os.path.samefile(f"{volume}/deep", path_of_volume(node, "sub", "/deep"))
    assert mode(f"{volume}/deep") == 0o777


def test_a_sub_path_without_its_variable_is_refused(node):
    node.drop(specs.pod("sub", specs.container(volumeMounts=[specs.mount("v", "/v", subPathExpr="x/$(NOWHERE)")]),
                        volumes=[{"name": "v", "emptyDir": {}}]))
    message = node.wait_waiting("sub", "CreateContainerConfigError")
    assert message == 'missing value for "NOWHERE" in subPathExpr \'x/$(NOWHERE)\''


def test_a_sub_path_does_not_lead_out_of_its_volume(node):
    os.mkdir(f"{node.data}/volume")
    os.symlink("..", f"{node.data}/volume/out")
    os.symlink("inside", f"{node.data}/volume/in")
    os.mkdir(f"{node.data}/volume/inside")
    node.drop(volume_pod("out", {"hostPath": {"path": f"{node.data}/volume"}}, subPath="out"))
    node.launch(volume_pod("in", {"hostPath": {"path": f"{node.data}/volume"}}, subPath="in"))
    assert os.path.samefile(path_of_volume(node, "in"), f"{node.data}/volume/inside")
    world.wait(lambda: "the subPath 'out' leaves its volume: 'out' is a link to '..'" in unquoted(node.pod("out")["status"]), "is refused")
    assert not node.find_init("out")


@pytest.mark.parametrize("path,says", [
    ("out/below", "the subPath 'out/below' leaves its volume: 'out' is a link to '/etc'; a subPath must stay in the volume"),
    ("dir/out", "the subPath 'dir/out' leaves its volume: 'dir/out' is a link to '../../x'; a subPath must stay in the volume"),
    ("file/below", "the subPath 'file/below' goes through 'file', which is not a directory"),
    ("dir/file/far/below", "the subPath 'dir/file/far/below' goes through 'dir/file', which is not a directory"),
    ("nowhere/below", "the subPath 'nowhere/below' cannot be followed: 'nowhere' is a link to 'missing', which does not exist"),
    ("loop", "the subPath 'loop' cannot be followed: 'loop' is a link to 'loop', which does not exist, or"),
])
@pytest.mark.parametrize("field", ["subPath", "subPathExpr"])
def test_a_sub_path_that_cannot_be_followed_is_reported_with_place_and_reason(node, field, path, says):
    os.makedirs(f"{node.data}/dir")
    for target, link in (("/etc", "out"), ("../../x", "dir/out"), ("missing", "nowhere"), ("loop", "loop")):
        os.symlink(target, f"{node.data}/{link}")
    for file in ("file", "dir/file"):
        with open(f"{node.data}/{file}", "w", encoding="ascii"):
            pass
    written = path if field == "subPath" else path.replace("out", "$(OUT)")
    node.drop(specs.pod("bad", specs.container(env=[{"name": "OUT", "value": "out"}], volumeMounts=[
        specs.mount("v", "/v", **{field: written})]), volumes=[specs.host_path("v", node.data)]))
    node.wait_pod("bad", lambda pod: f'volume "v": {says}' in unquoted(pod["status"]), "reports the place and the reason")
    assert not node.find_init("bad")


def test_the_same_object_in_two_files_belongs_to_the_first(node):
    node.drop(config_map("map", {"key": "first"}), "b.yaml")
    node.launch(volume_pod("reader", {"configMap": {"name": "map"}}))
    node.drop(config_map("map", {"key": "second"}), "a.yaml")
    world.wait(lambda: "a.yaml: configmap default/map is already defined by b.yaml" in node.complaints(), "reports it")
    assert world.read(path_of_volume(node, "reader", "/key")) == "first"
    node.remove("b")
    world.wait(lambda: world.read(path_of_volume(node, "reader", "/key")) == "second", "the other one takes over")


def test_a_broken_file_leaves_the_last_good_object(node):
    node.drop(config_map("map", {"key": "good"}))
    node.launch(volume_pod("reader", {"configMap": {"name": "map"}}))
    node.drop("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {key: 1}\n", "map.yaml")
    world.wait(lambda: "map.yaml:4:13: data[key]: must be a string, not the number 1; quote it" in node.complaints(),
               "reports the error")
    node.drop(specs.pod("env", specs.container(env=[variable("KEY", **key_ref("configMap", "map", "key"))])))
    node.wait_running("env")
    assert environ(node, "env")["KEY"] == "good"


def test_an_immutable_object_stays_as_it_is(node):
    node.drop(config_map("map", {"key": "1"}, immutable=True))
    node.launch(volume_pod("reader", {"configMap": {"name": "map"}}))
    node.drop(config_map("map", {"key": "2"}, immutable=True))
    world.wait(lambda: "map.yaml: configmap default/map: is immutable" in node.complaints(), "reports it")
    assert world.read(path_of_volume(node, "reader", "/key")) == "1"


@pytest.mark.parametrize("propagation,arrives", [(None, False), ("None", False), ("HostToContainer", True)])
def test_mounts_of_the_host_propagate_as_configured(node, propagation, arrives):
    shared = f"{node.data}/shared"
    os.makedirs(f"{shared}/inner")
    world.run("mount", "--bind", shared, shared)
    try:
        world.run("mount", "--make-shared", shared)
        mount = {"mountPropagation": propagation} if propagation else {}
        node.launch(volume_pod("sees", {"hostPath": {"path": shared}}, **mount))
        world.run("mount", "-t", "tmpfs", "tmpfs", f"{shared}/inner")
        with open(f"{shared}/inner/file", "w", encoding="utf-8") as file:
            file.write("x")
        assert os.path.exists(path_of_volume(node, "sees", "/inner/file")) == arrives
    finally:
        world.run("umount", "--recursive", shared)


def test_mounts_of_a_privileged_container_propagate_to_the_host(node):
    shared = f"{node.data}/shared"
    os.makedirs(f"{shared}/inner")
    world.run("mount", "--bind", shared, shared)
    try:
        world.run("mount", "--make-shared", shared)
        node.launch(specs.pod("mounts", specs.container(
            script="mount -t tmpfs tmpfs /v/inner && echo x > /v/inner/file\n" + specs.IDLE,  # sets its trap after it has closed the file
            securityContext={"privileged": True},
            volumeMounts=[specs.mount("v", "/v", mountPropagation="Bidirectional")]),
            volumes=[specs.host_path("v", shared)]))
        world.wait(lambda: os.path.exists(f"{shared}/inner/file"), "the host sees the container's mount")
    finally:
        world.run("umount", "--recursive", shared)


@pytest.mark.parametrize("recursive", [None, "Disabled", "IfPossible", "Enabled"])
def test_recursive_read_only_applies_to_mounts_below(node, recursive):
    os.makedirs(f"{node.data}/inner")
    world.run("mount", "-t", "tmpfs", "tmpfs", f"{node.data}/inner")
    try:
        mount = {"recursiveReadOnly": recursive} if recursive else {}
        node.launch(volume_pod("ro", {"hostPath": {"path": node.data}}, readOnly=True, **mount))
        assert "ro" in world.mount_at(node.init("ro"), "/v")["options"]
        options = world.mount_at(node.init("ro"), "/v/inner")["options"]
        assert ("ro" in options) == (recursive in ("IfPossible", "Enabled"))
    finally:
        world.run("umount", f"{node.data}/inner")


def test_describe_names_references_without_values(node):
    node.drop(specs.text(config_map("map", {"key": "visible"}), secret("secret", {"key": "hunter2"})), "objects.yaml")
    node.launch(specs.pod("described", specs.container(
        envFrom=[{"prefix": "P_", "configMapRef": {"name": "map"}}],
        env=[variable("A", **key_ref("secret", "secret", "key")),
             variable("B", **key_ref("configMap", "map", "key", optional=True)),
             variable("C", fieldRef={"fieldPath": "metadata.name"})],
        volumeMounts=[specs.mount("map", "/m", subPath="key"), specs.mount("all", "/a")]),
        volumes=[{"name": "map", "configMap": {"name": "map"}},
                 {"name": "all", "projected": {"sources": [{"secret": {"name": "secret"}}]}}]))
    said = " ".join(node.cli("describe", "pod", "described").stdout.split())
    for words in ("map ConfigMap with prefix 'P_' Optional: false",
                  "A: <set to the key 'key' in secret 'secret'> Optional: false",
                  "B: <set to the key 'key' of config map 'map'> Optional: true", "C: (v1:metadata.name)",
                  '/m from map (rw,path="key")', "Type: ConfigMap (a volume populated by a ConfigMap) Name: map",
                  "Type: Projected (a volume that contains injected data from multiple sources) SecretName: secret"):
        assert words in said
    assert "hunter2" not in said and "visible" not in said


def last_words(node, script, **fields):
    node.drop(specs.pod("ends", specs.container(script=script, **fields), restartPolicy="Never"))
    node.wait_pod("ends", lambda pod: pod["status"]["phase"] in ("Succeeded", "Failed"), "has ended")
    return node.status("ends")["state"]["terminated"].get("message")


def test_the_termination_message_is_read_from_its_file(node):
    assert last_words(node, "ls -l /dev/termination-log; echo disk full > /dev/termination-log; exit 3") == "disk full\n"
    assert any(line.startswith("-rw-rw-rw-") for line in node.logged("ends"))


def test_the_end_of_a_long_message_is_kept(node):
    message = last_words(node, "seq 100000 > /last/words; exit 1", terminationMessagePath="/last/words")
    assert len(message) == 4096 and message.endswith("99999\n100000\n")


def test_the_termination_message_falls_back_to_the_log_on_failure(node):
    message = last_words(node, "seq 200; echo; echo bye >&2; exit 1", terminationMessagePolicy="FallbackToLogsOnError")
    assert message == "".join(f"{n}\n" for n in range(123, 201)) + "\nbye\n"


@pytest.mark.parametrize("script,expected", [("seq 3", None), ("echo own > /dev/termination-log; seq 3; exit 1", "own\n")])
def test_the_log_is_not_used_on_success_or_with_a_message(node, script, expected):
    assert last_words(node, script, terminationMessagePolicy="FallbackToLogsOnError") == expected


def test_the_termination_message_is_read_by_a_later_agent(node):
    node.drop(specs.pod("ends", specs.container(
        script="while [ ! -e /data/go ]; do sleep 0.05; done; echo gone > /dev/termination-log; exit 1",
        volumeMounts=[specs.mount("data", "/data")]), restartPolicy="Never",
        volumes=[specs.host_path("data", node.data)]))
    node.wait_running("ends")
    pid = node.init("ends")
    node.kill9()
    open(f"{node.data}/go", "w", encoding="utf-8").close()
    world.wait(lambda: not world.is_alive(pid), "the container has ended")
    node.start()
    node.wait_phase("ends", "Failed")
    assert node.status("ends")["state"]["terminated"]["message"] == "gone\n"
