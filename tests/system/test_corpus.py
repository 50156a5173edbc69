# SPDX-License-Identifier: Apache-2.0
"""The corpus of manifests, as the shipped programs see it: `mainstay validate` says of a whole theme what it says of
each file, and an agent that finds all that is bad at once names every place and keeps what runs."""

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

# What is an error to who asks, and only a warning to the agent.
WARNING = re.compile(r": (is not a field of|is ignored;|is negative, which)|: and \d+ more$")


def verdicts(theme):
    with open(os.path.join(CORPUS, theme + ".verdicts"), encoding="utf-8") as file:
        return file.read().splitlines()


@pytest.mark.parametrize("theme", THEMES)
def test_a_theme_is_validated_in_one_run(theme):
    directory = os.path.join(CORPUS, theme)
    answer = subprocess.run([harness.program("mainstay"), "validate", *sorted(os.listdir(directory))], cwd=directory,
                            check=False, timeout=60, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert sorted(answer.stdout.splitlines() + answer.stderr.splitlines()) == sorted(verdicts(theme))
    assert answer.returncode == 1


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_good_of_a_theme_is_good_together(theme):
    directory = os.path.join(CORPUS, theme)
    good = [line.split(": ok (")[0] for line in verdicts(theme) if not line.startswith("error: ")]
    if good:
        subprocess.run([harness.program("mainstay"), "validate", *good], cwd=directory, check=True, timeout=60,
                       stdout=subprocess.DEVNULL)


def refused():
    """Theme, file and place ("4:9" or "") of what no agent runs. The agent names the first error of a file."""
    for theme in THEMES:
        found = set()
        for line in verdicts(theme):
            match = re.match(r"error: ([\w-]+\.(?:yaml|json)):(?:(\d+:\d+):)? ?", line)
            if match and not WARNING.search(line) and match.group(1) not in found:
                found.add(match.group(1))
                yield theme, match.group(1), match.group(2)


def test_an_agent_names_the_place_in_each_of_all_bad_manifests_and_keeps_what_runs(make_node):
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
        return [sentence for sentence in expected if sentence not in said]

    world.wait(lambda: not missing(), lambda: f"the log has {missing()[:5]}", deadline=60)
    assert len(node.pods()) == 1
    assert (node.init("bystander"), world.start_time(node.init("bystander"))) == before
    for entry in os.listdir(node.path("")):
        if entry != "bystander.yaml":
            os.unlink(node.path(entry))
