# SPDX-License-Identifier: Apache-2.0
"""The requirements of Kubernetes' own tests for variables: test/e2e/common/node, of ConfigMaps, Secrets, the downward
API, expansion and files of variables. README.md lists the corresponding tests."""

import re

import pytest
import specs
from trial import agnhost, field, program, state, terminated, value, variable
from world import wait

CHANGING = {"name": "work", "emptyDir": {}}


def allocatable(trial, resource):
    """The resources of the node for pods, in whole units."""
    text = trial.node.node()["status"]["allocatable"][resource]
    factor = {"": 1, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}
    number, unit = re.fullmatch(r"(\d+)(\w*)", text).groups()
    return -(-int(number) // 1000) if unit == "m" else int(number) * factor[unit]


def resource(name, of, container=None, divisor=None):
    return variable(name, "resourceFieldRef", resource=of, **({"containerName": container} if container else {}),
                    **({"divisor": divisor} if divisor else {}))


# ConfigMaps and Secrets

OBJECTS = {"config map": (lambda trial, data: trial.config_map(data), "configMapKeyRef", "configMapRef"),
           "secret": (lambda trial, data: trial.secret(data), "secretKeyRef", "secretRef")}


@pytest.mark.parametrize("kind", OBJECTS)
def test_variable_has_the_value_of_a_key(trial, kind):
    make, key, _ = OBJECTS[kind]
    make(trial, {"data-1": "value-1"})
    trial.expect(["DATA_1=value-1"], program("env", env=[variable("DATA_1", key, name=trial.name, key="data-1")]))


@pytest.mark.parametrize("kind", OBJECTS)
def test_env_from_adds_all_keys_with_and_without_a_prefix(trial, kind):
    make, _, ref = OBJECTS[kind]
    make(trial, {"data_1": "value-1", "data_2": "value-2", "data_3": "value-3"})
    trial.expect([f"{prefix}data_{i}=value-{i}" for prefix in ("", "p_") for i in (1, 2, 3)],
                 program("env", envFrom=[{ref: {"name": trial.name}}, {"prefix": "p_", ref: {"name": trial.name}}]))


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("prefix", ["p-", "1-", "$_-", "a.b/", "#", "#@,!"])
def test_env_from_prefix_accepts_almost_any_character(trial, kind, prefix):
    make, _, ref = OBJECTS[kind]
    make(trial, {"data-1": "value-1"})
    trial.expect([f"{prefix}data-1=value-1"], program("env", envFrom=[{"prefix": prefix, ref: {"name": trial.name}}]))


# Expansion

def test_variables_refer_to_other_variables(trial):
    trial.expect(["FOO=foo-value", "BAR=bar-value", "FOOBAR=foo-value;;bar-value"], program("env", env=[
        value("FOO", "foo-value"), value("BAR", "bar-value"), value("FOOBAR", "$(FOO);;$(BAR)")]))


def test_variables_are_expanded_in_the_command(trial):
    trial.expect(["test-value"], program("sh", "-c", 'TEST_VAR=wrong echo "$(TEST_VAR)"', env=[value("TEST_VAR", "test-value")]))


def test_variables_are_expanded_in_the_arguments(trial):
    trial.expect(["test-value"], program("sh", "-c", args=['TEST_VAR=wrong echo "$(TEST_VAR)"'],
                                         env=[value("TEST_VAR", "test-value")]))


def test_variable_names_accept_almost_any_printable_character(trial):
    names = ["!\"#$%&'()", "* +,-./0123456789", ":;<>?@", "[\\]^_`{}|~"]
    trial.expect([f"{name}=value" for name in names], program("env", env=[value(name, "value") for name in names]))


def test_variables_are_expanded_in_a_sub_path(trial):
    trial.expect(["0"], specs.container(
        script="test -d /whole/$POD_NAME; echo $?", env=[value("POD_NAME", trial.name)],
        volumeMounts=[specs.mount("work", "/part", subPathExpr="$(POD_NAME)"), specs.mount("work", "/whole")]),
        volumes=[CHANGING])


@pytest.mark.parametrize("path", ["..", "/tmp"])
def test_expanded_sub_path_does_not_lead_out_of_its_volume(trial, path):
    trial.bind(specs.container(env=[value("POD_NAME", path)],
                               volumeMounts=[specs.mount("work", "/part", subPathExpr="$(POD_NAME)")]), volumes=[CHANGING])
    pod = trial.wait_waiting("CreateContainerConfigError")
    assert pod["status"]["phase"] == "Pending"


ANNOTATED = {"env": [value("POD_NAME", "foo"), field("ANNOTATION", "metadata.annotations['mysubpath']")],
             "volumeMounts": [specs.mount("work", "/part", subPathExpr="$(ANNOTATION)/$(POD_NAME)"), specs.mount("work", "/whole")]}


def test_pod_runs_once_its_invalid_sub_path_is_corrected(trial):
    trial.bind(specs.container(**ANNOTATED), volumes=[CHANGING], metadata={"annotations": {"notmysubpath": "mypath"}})
    pod = trial.wait_waiting("CreateContainerConfigError")
    assert pod["status"]["phase"] == "Pending"
    trial.patch("pods", {"metadata": {"annotations": {"mysubpath": "mypath"}}})
    trial.node.wait_api_running(trial.name)


def test_files_can_be_written_in_an_expanded_sub_path(trial):
    trial.start(specs.container(**ANNOTATED), volumes=[CHANGING], metadata={"annotations": {"mysubpath": "mypath"}})
    trial.exec("touch", "/whole/mypath/foo/test.log")
    assert trial.exec("ls", "/part") == "test.log\n"
    trial.patch("pods", {"metadata": {"annotations": {"mysubpath": "mynewpath"}}})
    wait(lambda: trial.node.pod(trial.name)["metadata"]["annotations"]["mysubpath"] == "mynewpath", "the new annotation")
    assert status_is_first(trial)


def status_is_first(trial):
    """Whether the status is that of a container that has not been restarted."""
    return state(trial.read()).get("running") and trial.node.status(trial.name)["restartCount"] == 0


# The downward API

def test_variables_have_the_values_of_pod_fields(trial):
    def lines(pod):
        status, metadata = pod["status"], pod["metadata"]
        return [f"NAME={metadata['name']}", f"NAMESPACE={metadata['namespace']}", f"UID={metadata['uid']}",
                f"IP={status['podIP']}", f"IPS={status['podIP']}", f"HOST_IP={status['hostIP']}", f"HOST_IPS={status['hostIP']}",
                f"NODE={trial.node.node_name}", "ACCOUNT=default", "LABEL=x", "ANNOTATION=y"]

    trial.expect(lines, program("env", env=[
        field("NAME", "metadata.name"), field("NAMESPACE", "metadata.namespace"), field("UID", "metadata.uid"),
        field("IP", "status.podIP"), field("IPS", "status.podIPs"), field("HOST_IP", "status.hostIP"),
        field("HOST_IPS", "status.hostIPs"), field("NODE", "spec.nodeName"), field("ACCOUNT", "spec.serviceAccountName"),
        field("LABEL", "metadata.labels['a']"), field("ANNOTATION", "metadata.annotations['b']")]),
        metadata={"labels": {"a": "x"}, "annotations": {"b": "y"}})


def test_pod_addresses_are_those_of_the_node_in_the_host_network(trial):
    address = trial.node.address_of_node
    pod = trial.expect([f"HOST_IP={address}", f"POD_IP={address}"], program("env", env=[
        field("HOST_IP", "status.hostIP"), field("POD_IP", "status.podIP")]), hostNetwork=True)
    assert pod["status"]["hostIPs"] == [{"ip": address}] and pod["status"]["podIPs"] == [{"ip": address}]


RESOURCES = [resource("CPU_LIMIT", "limits.cpu"), resource("MEMORY_LIMIT", "limits.memory"), resource("CPU_REQUEST", "requests.cpu"),
             resource("MEMORY_REQUEST", "requests.memory")]


def test_variables_have_the_values_of_container_resources(trial):
    trial.expect(["CPU_LIMIT=2", "MEMORY_LIMIT=67108864", "CPU_REQUEST=1", "MEMORY_REQUEST=33554432"], program(
        "env", env=RESOURCES, resources={"requests": {"cpu": "250m", "memory": "32Mi"}, "limits": {"cpu": "1250m", "memory": "64Mi"}}))


def test_resource_variables_default_to_the_allocatable_of_the_node(trial):
    trial.expect([f"CPU_LIMIT={allocatable(trial, 'cpu')}", f"MEMORY_LIMIT={allocatable(trial, 'memory')}"],
                 program("env", env=RESOURCES[:2]))


def test_resource_variables_default_to_the_limits_of_the_pod(trial):
    trial.expect(["CPU_LIMIT=2", "MEMORY_LIMIT=67108864"], program("env", env=RESOURCES[:2]), resources={
        "requests": {"cpu": "250m", "memory": "32Mi"}, "limits": {"cpu": "1250m", "memory": "64Mi"}})


def test_resource_variables_default_to_the_node_if_the_pod_sets_no_limit(trial):
    trial.expect(["CPU_LIMIT=2", f"MEMORY_LIMIT={allocatable(trial, 'memory')}"], program("env", env=RESOURCES[:2]), resources={
        "requests": {"cpu": "250m", "memory": "32Mi"}, "limits": {"cpu": "1250m"}})


STORAGE = [resource("LIMIT", "limits.ephemeral-storage"), resource("REQUEST", "requests.ephemeral-storage")]


def test_variable_has_the_ephemeral_storage_of_the_container(trial):
    trial.expect(["LIMIT=67108864", "REQUEST=33554432"], program("env", env=STORAGE, resources={
        "requests": {"ephemeral-storage": "32Mi"}, "limits": {"ephemeral-storage": "64Mi"}}))


def test_ephemeral_storage_variable_defaults_to_the_allocatable_of_the_node(trial):
    trial.expect([f"LIMIT={allocatable(trial, 'ephemeral-storage')}"], program("env", env=STORAGE[:1]))


def test_huge_pages_variable_is_zero_without_a_request(trial):
    trial.expect(["LIMIT=0", "REQUEST=0"], program("env", env=[
        resource("LIMIT", "limits.hugepages-2Mi"), resource("REQUEST", "requests.hugepages-2Mi")]))


# Files of variables

def from_file(name, key, volume="config", path="config.env", optional=None):
    return variable(name, "fileKeyRef", volumeName=volume, path=path, key=key, **({} if optional is None else {"optional": optional}))


def writer(*lines, name="setup"):
    """An init container that writes a file of variables."""
    script = " && ".join(f"echo \"{line}\" >> /data/config.env" for line in lines)
    return specs.container(name, script, volumeMounts=[specs.mount("config", "/data")])


CONFIG = {"volumes": [{"name": "config", "emptyDir": {}}], "initContainers": [writer("A='value-1'", "B='value-2'")]}


def test_variables_can_come_from_an_env_file(trial):
    trial.expect(["A=value-1", "B=value-2"], program("env", env=[from_file("A", "A"), from_file("B", "B")]), **CONFIG)


def test_variables_of_several_containers_can_come_from_an_env_file(trial):
    trial.expect(["A=value-1"], program("env", env=[from_file("A", "A")]),
                 {**program("env", env=[from_file("A", "B")]), "name": "other"}, **CONFIG)
    assert "A=value-2" in trial.output("other")


@pytest.mark.parametrize("missing", [{"key": "C"}, {"key": "A", "path": "other.env"}])
def test_optional_variable_may_be_missing_in_its_env_file(trial, missing):
    trial.expect(["A=value-1"], program("env", env=[from_file("A", "A"), from_file("MISSING", optional=True, **missing)]), **CONFIG)
    assert not [line for line in trial.output() if line.startswith("MISSING=")]


@pytest.mark.parametrize("missing", [{"key": "C"}, {"key": "A", "path": "other.env"}])
def test_container_waits_while_a_variable_is_missing_in_its_env_file(trial, missing):
    trial.bind(program("env", env=[from_file("A", **missing)]), restartPolicy="Never", **CONFIG)
    trial.wait_waiting("CreateContainerConfigError")


def test_post_start_hook_has_variables_of_an_env_file(trial):
    trial.expect(["PostStart: value-1"], specs.container(
        script="until test -s /tmp/out; do sleep 0.1; done; cat /tmp/out", env=[from_file("A", "A")],
        lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "echo PostStart: $A > /tmp/out"]}}}), **CONFIG)


def test_pre_stop_hook_has_variables_of_an_env_file(trial):
    command = ["sh", "-c", "echo PreStop: $A >> /proc/1/fd/1; until test -e /tmp/seen; do sleep 0.1; done"]
    trial.start(specs.container(env=[from_file("A", "A")], lifecycle={"preStop": {"exec": {"command": command}}}),
                **{**CONFIG, "terminationGracePeriodSeconds": 60})
    trial.delete()
    trial.wait_output("PreStop: value-1")
    trial.exec("touch", "/tmp/seen")
    trial.wait_gone()


@pytest.mark.parametrize("volume", [{}, {"volumes": [{"name": "config", "secret": {"secretName": "s"}}]}])
def test_env_file_must_be_in_an_emptyDir_of_the_pod(trial, volume):
    message = trial.refused(program("env", env=[from_file("A", "A", volume="config")]), **volume)
    assert "fileKeyRef" in message


def test_init_container_has_variables_of_an_env_file(trial):
    trial.expect(["A=value-1"], specs.container(script="true"), container="user", **{**CONFIG, "initContainers": [
        *CONFIG["initContainers"], {**program("env", env=[from_file("A", "A")]), "name": "user"}]})


def test_ephemeral_container_has_variables_of_an_env_file(trial):
    trial.start(specs.container(), **CONFIG)
    trial.patch("pods", {"spec": {"ephemeralContainers": [{**program("env", env=[from_file("A", "A")]), "name": "debugger"}]}},
                subresource="ephemeralcontainers")
    trial.wait(lambda pod: terminated(pod, "debugger"), "the debugger has ended")
    assert "A=value-1" in trial.output("debugger")


# Commands

def test_image_arguments_are_used_by_default(trial):
    """The image's entrypoint prints its help if it has no arguments."""
    container = agnhost()
    del container["args"]
    trial.end(container)
    assert any("Usage" in line for line in trial.output()), trial.output()


def test_container_args_replace_those_of_the_image(trial):
    trial.expect(["[/agnhost entrypoint-tester override arguments]"], agnhost("entrypoint-tester", "override", "arguments"))


def test_container_command_replaces_that_of_the_image(trial):
    container = {**agnhost(), "command": ["/agnhost", "entrypoint-tester"]}
    del container["args"]
    trial.expect(["[/agnhost entrypoint-tester]"], container)


def test_container_command_and_args_replace_those_of_the_image(trial):
    trial.expect(["[/agnhost entrypoint-tester override arguments]"],
                 {**agnhost("entrypoint-tester", "override", "arguments"), "command": ["/agnhost"]})
