# SPDX-License-Identifier: Apache-2.0
"""Checks of the Debian package by lintian, and the rpm with the same files."""

import subprocess

import pytest

from conftest import TOP


def test_lintian_reports_nothing_without_an_override(package):
    kubelet = package.replace("/mainstay_", "/mainstay-kubelet_")
    report = subprocess.run(["lintian", "--allow-root", "-EviIL", "+pedantic", "--show-overrides", "--tag-display-limit=0", package,
                             kubelet], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    tags = [line for line in report.splitlines() if line[1:3] == ": " and line[0] != "N"]
    assert {line[0] for line in tags} == {"O"}, report


def output(*words, **fields):
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE, **fields).stdout


def files(listing):
    """Programs, units, manual pages and other files that both packages contain."""
    return {path for path in listing if path.startswith(("/usr/", "/etc/")) and "/.build-id" not in path
            and not path.endswith("/") and "/share/doc/" not in path and "/share/lintian/" not in path}


@pytest.mark.long
def test_rpm_has_the_same_files_as_the_debian_package(package, tmp_path):
    build = str(tmp_path / "build")
    output("cmake", "-G", "Ninja", "-S", TOP, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_INSTALL_PREFIX=/usr",
           "-DMAINSTAY_TESTS=OFF")
    output("ninja", "-C", build, "--quiet")
    output("cpack", "-G", "RPM", "-B", tmp_path, cwd=build, stderr=subprocess.STDOUT)
    (rpm,) = tmp_path.glob("mainstay-*.rpm")
    ours = output("dpkg", "--contents", package).splitlines()
    theirs = output("rpm", "-qp", "--qf", "[%{FILEMODES:perms} %{FILENAMES}\n]", rpm).splitlines()
    assert files(line.split()[5][1:] for line in ours if line[0] == "-") == \
        files(line.split()[1] for line in theirs if line[0] == "-")
    assert output("rpm", "-qpc", rpm).split() == ["/etc/apparmor.d/mainstay-container", "/etc/mainstay/config.yaml"]
    scripts = output("rpm", "-qp", "--scripts", rpm)
    assert "mainstayd --drain" in scripts and "systemctl restart mainstay.service" in scripts
    subprocess.run(["sh", "-n"], input=scripts.replace("scriptlet (using /bin/sh):", ""), text=True, check=True)
