# SPDX-License-Identifier: Apache-2.0
"""Checks of the Debian package by lintian, and the rpm of the same files."""

import os
import subprocess


def test_lintian_reports_no_errors(package):
    report = subprocess.run(["lintian", "--allow-root", "--tag-display-limit=0", package], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    assert not [line for line in report.splitlines() if line.startswith("E:")], report


def output(*words, **fields):
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE, **fields).stdout


def files(listing):
    """Programs, units, manual pages and the like, which both packages have."""
    return {path for path in listing if path.startswith(("/usr/", "/etc/")) and "/.build-id" not in path
            and not path.endswith("/") and "/share/doc/" not in path}


def test_rpm_has_the_same_files_as_the_debian_package(package, tmp_path):
    output("cpack", "-G", "RPM", "-B", tmp_path, cwd=os.path.dirname(package), stderr=subprocess.STDOUT)
    (rpm,) = tmp_path.glob("mainstay-*.rpm")
    ours = output("dpkg", "--contents", package).splitlines()
    theirs = output("rpm", "-qp", "--qf", "[%{FILEMODES:perms} %{FILENAMES}\n]", rpm).splitlines()
    assert files(line.split()[5][1:] for line in ours if line[0] == "-") == \
        files(line.split()[1] for line in theirs if line[0] == "-")
    assert output("rpm", "-qpc", rpm).split() == ["/etc/apparmor.d/mainstay-container", "/etc/mainstay/config.yaml"]
    scripts = output("rpm", "-qp", "--scripts", rpm)
    assert "mainstayd --drain" in scripts and "systemctl restart mainstay.service" in scripts
    subprocess.run(["sh", "-n"], input=scripts.replace("scriptlet (using /bin/sh):", ""), text=True, check=True)
