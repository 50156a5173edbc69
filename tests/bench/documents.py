# SPDX-License-Identifier: Apache-2.0
"""Writes the figures of a run into the documents: the section "Latest run" of FIGURES.md, and in the table of README.md
the columns of the agents that were measured in that run, with the lines below it that describe the machine."""

import datetime
import os
import re
import subprocess
import textwrap

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIGURES = os.path.join(TOP, "tests", "bench", "FIGURES.md")
README = os.path.join(TOP, "README.md")
KUBELET, PODMAN = "kubelet and containerd", "podman kube play"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def replace(text, start, end, new):
    """The text with 'new' in place of the part from 'start' to 'end', or to the end of the text."""
    first = text.index(start)
    last = text.find(end, first)
    return text[:first] + new + (text[last:] if last >= 0 else "")


def find_commit():
    return subprocess.run(["git", "-C", TOP, "rev-parse", "--short", "HEAD"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip() or "unknown"


def format_figures(text, document):
    machine = document["machine"]
    lines = ["## Latest run", "",
             f"Measured on {datetime.date.today().isoformat()} at commit {find_commit()}: {machine['cores']} cores, "
             f"{machine['cpu']}, Linux {machine['kernel']},", f"cgroup {machine['cgroup']}, {machine['system']}, "
             f"{machine['runtime']}.", "",
             "| figure | goal | measured | |", "|---|---|---|---|"]
    for figure in document["figures"]:
        detail = f"{figure['ours_ms']} ms over {figure['bare_ms']} ms" if "ours_ms" in figure else ""
        measured = f"{figure['value']:g} {figure['unit']}".strip()
        name, goal = figure["name"].replace("|", "\\|"), f"≤ {figure['goal']:g} {figure['unit']}".strip()
        lines.append(f"| {name} | {goal} | {measured}{'' if figure['met'] else ', **not met**'} | {detail} |")
    return replace(text, "## Latest run\n", "\n## ", "\n".join(lines) + "\n")


def span(milliseconds):
    return f"{milliseconds / 1000:.2g} s" if milliseconds >= 1000 else f"{milliseconds:.0f} ms"


class Cells:
    """The cells of README.md's table: those of Mainstay, the kubelet and podman, for each row."""

    def __init__(self, document):
        self.figures = document["figures"]

    def find(self, prefix):
        found = [figure for figure in self.figures if figure["name"].startswith(prefix)]
        if len(found) != 1:
            raise SystemExit(f"bench: {len(found)} figures are called '{prefix}…': README.md needs one")
        return found[0]

    def times(self, what):
        others = [self.find(f"{what}, over {other}")["bare_ms"] for other in (KUBELET, PODMAN)]
        return [span(milliseconds) for milliseconds in (self.find(f"{what}, over runc run")["ours_ms"], *others)]

    def pairs(self, prefix, form):
        kubelet, podman = (self.find(f"{prefix}, beside {other}") for other in (KUBELET, PODMAN))
        return [form(value) for value in (kubelet["value"], kubelet["goal"], podman["goal"])]

    def edit(self):
        figure = self.find("pods that a broken edit stops")
        return [f"{stopped:g}" for stopped in (figure["value"], figure["goal"])] + ["–"]

    def all(self):
        memory, cpu = ([figure["name"] for figure in self.figures if figure["name"].startswith(prefix)]
                       for prefix in ("PSS of agent and shims", "CPU, "))
        memory, cpu = (names[0].split(", beside")[0] for names in (memory, cpu))
        return {"manifest to process": self.times("manifest renamed -> container runs"),
                "crash to restart": self.times("exit -> restarted process runs"),
                f"memory, {memory.split(', ')[1]}": self.pairs(memory, lambda value: f"{value:.3g} MiB"),
                cpu: self.pairs(cpu, lambda value: f"{value:g} ticks"),
                "pods stopped by a broken edit": self.edit()}


def runtime_version(machine):
    return re.sub(" version ", " ", machine["runtime"])


def version(*command):
    """The first number with several parts ("1.1.5") in the version output of a command."""
    text = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    return re.search(r"\d+(\.\d+)+", text).group(0)


def find_kubelet():
    return os.path.join(os.environ.get("MAINSTAY_KUBERNETES", ""), "bin", "kubelet")


def format_readme(text, document):
    cells = Cells(document).all()
    for name, measured in cells.items():
        row = re.compile(rf"^\| {re.escape(name)} \|[^|]*\|[^|]*\|[^|]*\|", re.M)
        text, count = row.subn(lambda _, name=name, measured=measured: f"| {name} | {' | '.join(measured)} |", text)
        if count != 1:
            raise SystemExit(f"bench: README.md has {count} rows '{name}'")
    machine = document["machine"]
    bare = next(figure["bare_ms"] for figure in document["figures"] if "bare_ms" in figure)
    place = (f"Measured in one run of [tests/bench/run](tests/bench/FIGURES.md) on {datetime.date.today().isoformat()}: kubelet "
             f"{version(find_kubelet(), '--version')}, containerd {version('containerd', '--version')}, podman "
             f"{version('podman', '--version')}, {runtime_version(machine)} (a bare `runc run` takes {span(bare)}), "
             f"{machine['cores']} cores of {machine['cpu']}, Linux {machine['kernel']}, {machine['system']}, "
             f"cgroup {machine['cgroup']}. Memory is PSS of agents and shims; a tick is {1000 // machine['ticks_per_second']} ms.")
    return replace(text, "Measured in one run of ", "\n\n", textwrap.fill(place, 100, break_long_words=False, break_on_hyphens=False))


def write(document):
    """Neither document is changed if the run does not have a figure that the other one needs."""
    texts = {FIGURES: format_figures(read(FIGURES), document), README: format_readme(read(README), document)}
    for path, text in texts.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
