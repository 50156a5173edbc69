# SPDX-License-Identifier: Apache-2.0
"""The corpus of manifests with the installed programs: `mainstay validate` reports the same for a whole theme as for
each file, and an agent that reads all invalid files at once reports every place and keeps its pods running."""

import os
import re
import shutil
import subprocess

import harness
import pytest
import specs
import world

CORPUS = os.path.join(harness.TOP, "tests", "corpus")
THEMES = sorted(entry.name for entry in os.scandir(CORPUS) if entry.is_dir())

# Errors of `mainstay validate` that are only warnings of the agent.
WARNING = re.compile(r": (is not a field of|is a field of .*; it belongs|is ignored;|is negative, which|cannot be mounted: it is in)|: and \d+ more$")


def verdicts(theme):
    with open(os.path.join(CORPUS, theme + ".verdicts"), encoding="utf-8") as file:
        return file.read().splitlines()


@pytest.mark.data
@pytest.mark.parametrize("theme", THEMES)
def test_all_manifests_of_a_theme_are_validated_in_one_run(theme):
    directory = os.path.join(CORPUS, theme)
    answer = subprocess.run([harness.program("mainstay"), "validate", *sorted(os.listdir(directory))], cwd=directory,
                            check=False, timeout=world.DEADLINE, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert sorted(answer.stdout.splitlines() + answer.stderr.splitlines()) == sorted(verdicts(theme))
    assert answer.returncode == 1


@pytest.mark.data
@pytest.mark.parametrize("theme", THEMES)
def test_valid_manifests_of_a_theme_are_valid_together(theme):
    directory = os.path.join(CORPUS, theme)
    good = [line.split(": ok (")[0] for line in verdicts(theme) if ": ok (" in line]
    if good:
        subprocess.run([harness.program("mainstay"), "validate", *good], cwd=directory, check=True, timeout=world.DEADLINE,
                       stdout=subprocess.DEVNULL)


def refused():
    """Theme, file and place ("4:9" or "") of manifests that no agent runs. The agent names the first error of a
    file."""
    for theme in THEMES:
        found = set()
        for line in verdicts(theme):
            match = re.match(r"error: ([\w-]+\.(?:yaml|json)):(?:(\d+:\d+):)? ?", line)
            if match and not WARNING.search(line) and match.group(1) not in found:
                found.add(match.group(1))
                yield theme, match.group(1), match.group(2)


def test_the_agent_reports_the_place_of_every_error_and_keeps_running_pods(make_node):
    node = make_node()
    node.launch(specs.pod("bystander"))
    before = node.init("bystander"), world.start_time(node.init("bystander"))
    expected = set()
    for theme, file, place in refused():
        name = f"{theme}-{file}"
        shutil.copyfile(os.path.join(CORPUS, theme, file), os.path.join(node.staging, name))
        os.rename(os.path.join(node.staging, name), node.path(name))
        expected.add(f"{name}:{place}: " if place else f"{name}: ")
    assert len(expected) > 300

    def missing():
        said = node.said()
        return [message for message in expected if message not in said]

    world.wait(lambda: not missing(), lambda: f"the log has {missing()[:5]}")
    assert len(node.pods()) == 1
    assert (node.init("bystander"), world.start_time(node.init("bystander"))) == before
    for entry in os.listdir(node.path("")):
        if entry != "bystander.yaml":
            os.unlink(node.path(entry))
