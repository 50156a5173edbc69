# SPDX-License-Identifier: Apache-2.0
"""Variables and arguments that are too long for a process, from manifests that are short."""

import specs


def doubled(first, count=32):
    """V0 and further variables, each of which is twice as long as the one before."""
    return [{"name": "V0", "value": first},
            *({"name": f"V{i}", "value": f"$(V{i - 1})$(V{i - 1})"} for i in range(1, count + 1))]


def test_variables_that_grow_exponentially_are_an_error_and_other_pods_run(node):
    node.drop(specs.pod("web", specs.container(env=doubled("secret--"))))
    message = node.wait_waiting("web", "CreateContainerConfigError")
    assert message == "the variable V14 is longer than 131071 bytes when its references are expanded"
    node.launch(specs.pod("other"))


def test_an_argument_that_is_too_long_is_an_error_with_its_place(node):
    node.drop(specs.pod("web", specs.container(env=doubled("secret--", 13), args=["$(V13)$(V13)"])))
    message = node.wait_waiting("web", "CreateContainerConfigError")
    assert message == "args[0]: is longer than 131071 bytes when its variables are expanded"


def test_a_path_that_is_too_long_is_an_error_that_names_it(node):
    node.drop(specs.pod("web", specs.container(env=doubled("secret--", 9), volumeMounts=[
        specs.mount("v", "/v", subPathExpr="$(V9)")]), volumes=[{"name": "v", "emptyDir": {}}]))
    message = node.wait_waiting("web", "CreateContainerConfigError")
    assert message == "subPathExpr '$(V9)' is longer than 4095 bytes when its variables are expanded"


def test_a_config_map_of_very_many_keys_is_an_error_and_other_pods_run(make_node):
    # An attempt takes seconds with sanitizers: without a back-off the agent would do nothing else.
    node = make_node(config={"crashLoopBackOff": {"maxContainerRestartPeriod": "300s"}})
    node.drop({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"},
               "data": {f"K{i}": "" for i in range(45000)}})
    node.drop(specs.pod("web", specs.container(
        envFrom=[{"prefix": prefix, "configMapRef": {"name": "map"}} for prefix in ("A", "B", "C")])))
    node.wait_waiting("web", "CreateContainerConfigError",
                      says="the environment takes more than 2097152 bytes, which no process can have")
    node.launch(specs.pod("other"))


def test_a_probe_fails_if_its_command_is_too_long(node):
    word = "x" * 70000
    node.drop(specs.pod("web", specs.container(env=[{"name": "WORD", "value": word}], livenessProbe={
        "exec": {"command": ["true", "$(WORD)$(WORD)"]}, "periodSeconds": 1, "failureThreshold": 1})))
    node.wait_restarts("web", 1)
    said = node.cli("get", "events").stdout
    assert "command[1]: is longer than 131071 bytes when its variables are expanded" in said and word not in said
