# SPDX-License-Identifier: Apache-2.0
"""helm template | mainstay validate -, and kustomize build | mainstay validate -, with what these programs print."""

import os
import re
import subprocess

import harness
import pytest
import specs
import world

RENDERED = os.path.join(harness.TOP, "tests", "corpus", "rendered")
FILES = sorted(os.listdir(RENDERED))


def verdicts(name):
    with open(RENDERED + ".verdicts", encoding="utf-8") as file:
        return [line for line in file.read().splitlines() if re.search(rf"(^|: ){re.escape(name)}:", line)]


@pytest.mark.parametrize("name", FILES)
def test_output_that_is_piped_is_validated_like_a_file(name):
    said = subprocess.run(["sh", "-c", f"cat {RENDERED}/{name} | {harness.program('mainstay')} validate -"],
                          capture_output=True, text=True, check=False, timeout=world.DEADLINE)
    expected = [line.replace(name, "stdin", 1) for line in verdicts(name)]
    assert expected and sorted(said.stdout.splitlines() + said.stderr.splitlines()) == sorted(expected)
    assert said.returncode == (1 if any(line.startswith("error: ") for line in expected) else 0)


@pytest.mark.parametrize("name", ["helm-agent-chart.yaml", "kustomize-overlay.yaml"])
@pytest.mark.slow
def test_rendered_daemonsets_run(node, name):
    """The DaemonSets run as printed, except for their images, which no registry has, and the fields that depend on
    those."""
    with open(os.path.join(RENDERED, name), encoding="utf-8") as file:
        text = re.sub(r"image: .*", f"image: {specs.IMAGE}\n{'          ' if 'helm' in name else '        '}command: [/bin/sleep, inf]", file.read())
    text = re.sub(r" *(livenessProbe:\n(.*\n){5}|ports:\n.*containerPort.*\n)", "", text) if "helm" in name else text
    node.write(text.replace("          args:\n            - --config=/etc/agent/agent.yaml\n", "").replace("hostNetwork: false", "hostNetwork: true")
               .replace("      priorityClassName:", "      hostNetwork: true\n      priorityClassName:"), "rendered.yaml")
    world.wait(lambda: [pod for pod in node.pods() if pod["status"]["phase"] == "Running"], lambda: f"its pod runs: {node.complaints()}")
