# SPDX-License-Identifier: Apache-2.0
"""The files of a release: reproducible bits, signatures, the repository, and the installation without a network."""

import glob
import hashlib
import json
import os
import platform
import shutil
import subprocess

import pytest

from conftest import CACHE, PACKAGE, TOP, machine_of
import image
from machine import ARCHITECTURE, RELEASE

pytestmark = pytest.mark.long
MAKE_RELEASE = os.path.join(TOP, "packaging", "release")


def output(*words, **fields):
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE, **fields).stdout


def make_keys(directory):
    """A key for the checksums and one for the repository."""
    os.makedirs(directory)
    output("openssl", "genpkey", "-algorithm", "ed25519", "-out", f"{directory}/release.pem")
    home = f"{directory}/home"
    os.mkdir(home, 0o700)
    gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", ""]
    output(*gpg, "--quick-generate-key", "Test <test@example.com>", "ed25519", "sign", "never")
    output(*gpg, "--export-secret-keys", "--output", f"{directory}/apt.gpg")
    return directory


@pytest.fixture(scope="module", name="release")
def _release(tmp_path_factory):
    """The files of a release for the machines' Debian release, built in a root directory with that release; or those in
    MAINSTAY_RELEASE_FILES if that is set."""
    if os.environ.get("MAINSTAY_RELEASE_FILES"):
        return os.environ["MAINSTAY_RELEASE_FILES"]
    directory = tmp_path_factory.mktemp("release")
    keys = make_keys(str(directory / "keys"))
    output(MAKE_RELEASE, "--only", f"{RELEASE}/{ARCHITECTURE}", "--working-tree", "--keys", keys, str(directory / "out"))
    return str(directory / "out")


def digests(directory):
    """The SHA-256 of the source and of the packages for the machines' Debian release, by name."""
    found = {}
    for path in glob.glob(f"{directory}/*.tar.xz") + glob.glob(f"{directory}/apt/pool/{RELEASE}/*.deb"):
        with open(path, "rb") as file:
            found[os.path.basename(path)] = hashlib.sha256(file.read()).hexdigest()
    return found


def differences(ours, theirs):
    """The report of diffoscope on the files that differ, if it is installed."""
    names = [name for name, digest in digests(ours).items() if digests(theirs).get(name) != digest]
    if not shutil.which("diffoscope"):
        return f"these differ: {names}"
    paths = [[glob.glob(f"{directory}/**/{name}", recursive=True)[0] for directory in (ours, theirs)] for name in names]
    return "\n".join(subprocess.run(["diffoscope", "--max-text-report-size", "20000", *pair], check=False, text=True,
                                    stdout=subprocess.PIPE).stdout for pair in paths)


def another_time_and_place(home):
    """A command prefix that executes a program in another time zone, with another umask and one processor; if the
    required packages are installed on this machine, also as another user and on another day."""
    words = ["taskset", "-c", "0", "env", "TZ=Asia/Tokyo", f"TMPDIR={home}", "LC_ALL=C"]
    if is_of_this_machine():
        words = [*words[:3], "setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "env", "-i", *words[4:],
                 f"PATH={os.environ['PATH']}", f"HOME={home}", "faketime", "-f", "+26h"]
    return [*words, "bash", "-c", 'umask 077; exec "$0" "$@"']


def is_of_this_machine():
    return platform.freedesktop_os_release().get("VERSION_CODENAME") == RELEASE


def test_packages_are_identical_if_built_by_another_user_in_another_place_and_time(release, tmp_path, figures):
    """The suite's own package was built by root in another directory, and that of 'release' in a root directory."""
    ours = digests(release)
    (source,) = [name for name in ours if name.endswith(".tar.xz")]
    assert {name.split("_")[0] for name in ours} == {source, "mainstay", "mainstay-dbgsym", "mainstay-kubelet",
                                                     "mainstay-kubelet-dbgsym"}
    assert digests(PACKAGE) == ours, differences(PACKAGE, release)
    clone = tmp_path / "somewhere else"
    shutil.copytree(TOP, clone, symlinks=True, ignore=lambda path, names: [
        name for name in names if path == TOP and (name.startswith("build") or name == ".git")])
    output("git", "init", "-q", str(clone))
    output("chown", "-R", "nobody", str(tmp_path))
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o755)
    where = ["--here"] if is_of_this_machine() else ["--only", f"{RELEASE}/{ARCHITECTURE}"]
    output(*another_time_and_place(str(tmp_path)), str(clone / "packaging" / "release"), *where, "--working-tree", "--no-offline",
           str(tmp_path / "out"))
    assert digests(tmp_path / "out") == ours, differences(str(tmp_path / "out"), release)
    figures += [f"{digest}  {os.path.getsize(path)} bytes  {name}" for name, digest in sorted(ours.items())
                for path in glob.glob(f"{release}/**/{name}", recursive=True)]


def test_checksums_are_signed(release, tmp_path):
    output("sha256sum", "--strict", "--quiet", "-c", "SHA256SUMS", cwd=release)
    listed = {line.split(None, 1)[1] for line in open(f"{release}/SHA256SUMS", encoding="utf-8").read().splitlines()}
    assert listed == {os.path.relpath(os.path.join(where, name), release) for where, _, names in os.walk(release)
                      for name in names if not name.startswith(("SHA256SUMS", "release.pub"))}
    verify = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", f"{release}/release.pub", "-rawin",
              "-sigfile", f"{release}/SHA256SUMS.sig", "-in"]
    assert "Success" in output(*verify, f"{release}/SHA256SUMS")
    changed = tmp_path / "SHA256SUMS"
    with open(f"{release}/SHA256SUMS", encoding="utf-8") as file:
        changed.write_text(file.read().replace("a", "b", 1))
    assert subprocess.run([*verify, changed], check=False, stdout=subprocess.DEVNULL).returncode != 0


def test_software_bill_of_materials_has_the_libraries_and_their_versions(release):
    (path,) = glob.glob(f"{release}/*.spdx.json")
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    assert (document["spdxVersion"], document["dataLicense"], document["SPDXID"]) == ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT")
    packages = {package["SPDXID"]: package for package in document["packages"]}
    related = document["relationships"]
    assert len(packages) == len(document["packages"])
    assert all(relation["relatedSpdxElement"] in packages for relation in related)
    (ours,) = [package for package in packages.values() if package["name"] == "mainstay"]
    assert ours["checksums"][0]["checksumValue"] == digests(release)[ours["packageFileName"]]
    (file,) = glob.glob(f"{release}/apt/pool/*/{ours['packageFileName']}")
    depends = {word.split()[0] for word in output("dpkg-deb", "-f", file, "Depends").replace("|", ",").split(",")}
    linked = {packages[relation["relatedSpdxElement"]]["name"] for relation in related
              if relation["relationshipType"] == "DYNAMIC_LINK"}
    assert any(name.startswith("libgnutls30") for name in linked) and linked < depends
    assert all(package["versionInfo"] for package in packages.values())
    names = {package["name"] for package in packages.values()}
    libcurl = "libcurl3-gnutls" if RELEASE == "bookworm" else "libcurl3t64-gnutls"
    assert {"runc", "containernetworking-plugins", libcurl, "iptables"} <= names


def make_disk(root, release, *more):
    """A disk with files of the release in /opt/test."""
    cache = f"{CACHE}/release"
    os.makedirs(cache, exist_ok=True)
    archive = f"{cache}/release.tar"
    output("tar", "c", "-f", archive, "-C", release, *more)
    image.build(root, cache, [archive, f"{TOP}/packaging/debian/tests/pod"])
    os.unlink(archive)
    return image.paths(cache)


def source_of(url):
    """Arguments of apt that use only the repository at this address."""
    return (f"echo 'deb [signed-by=/opt/test/apt/mainstay.gpg] {url} {RELEASE} main' >/etc/apt/sources.list.d/mainstay.list && "
            "apt='apt-get -q -y -o Dir::Etc::sourcelist=sources.list.d/mainstay.list -o Dir::Etc::sourceparts=-' && "
            "rm -rf /var/lib/apt/lists/* && ")


def list_files(machine):
    return machine.run("find / -xdev -not -path '/proc/*' -not -path '/sys/*' -not -path '/run/*' -not -path '/var/log/*' "
                       "-not -path '/var/lib/systemd/*' -not -path '/var/lib/apt/*' -not -path '/var/cache/*' "
                       "-not -path '/var/lib/dpkg/*' -not -path '/tmp/*' -not -path '/var/tmp/*' -not -path '/opt/test/*' "
                       "| LC_ALL=C sort").splitlines()


def test_repository_installs_from_files_and_a_web_server_and_leaves_nothing_behind(release):
    with image.locked_root() as root:
        disk = make_disk(root, release, "apt")
    with machine_of(disk) as machine:
        machine.boot()
        machine.run("mkdir -p /var/www && tar x -f /opt/test/release.tar -C /opt/test && rm /opt/test/release.tar && "
                    "ln -s /opt/test/apt /var/www/apt && busybox httpd -p 127.0.0.1:8081 -h /var/www")
        before = list_files(machine)
        for url in "file:/opt/test/apt", "http://127.0.0.1:8081/apt":
            machine.run(source_of(url) + "$apt update && $apt install mainstay", 600)
            assert machine.run("systemctl is-active mainstay").strip() == "active"
            print(machine.run("/opt/test/pod", 600))
            machine.run("apt-get -y purge mainstay && rm /etc/apt/sources.list.d/mainstay.list", 600)
            left = set(list_files(machine)) - set(before)
            assert not {path for path in left if "/__pycache__" not in path}
        machine.run(f"sed -i 's/^Origin: .*/Origin: Somebody/' /opt/test/apt/dists/{RELEASE}/InRelease")
        status, text = machine.ask(source_of("file:/opt/test/apt") + "$apt update -o APT::Update::Error-Mode=any")
        assert status != 0 and "signature" in text


def test_offline_archive_installs_on_a_minimal_machine_without_a_network(release):
    (archive,) = glob.glob(f"{release}/*-offline-*.tar")
    with image.locked_root("minimal") as root:
        disk = make_disk(root, release, os.path.basename(archive))
    with machine_of(disk) as machine:
        machine.boot()
        assert "lo" in machine.run("ls /sys/class/net") and "eth" not in machine.run("ls /sys/class/net")
        machine.run("rm -rf /var/lib/apt/lists/* /etc/apt/sources.list*; ! command -v runc && ! command -v busybox && cd /opt && "
                    "tar x -f /opt/test/release.tar && tar x -f *-offline-*.tar && rm *.tar")
        machine.run("printf x >>/opt/mainstay-*/packages/runc_*.deb")
        status, text = machine.ask("/opt/mainstay-*/install")
        assert status != 0 and "damaged" in text and machine.ask("command -v runc")[0] != 0
        machine.run("truncate -s -1 /opt/mainstay-*/packages/runc_*.deb")
        machine.run("/opt/mainstay-*/install", 600)
        print(machine.run("/opt/test/pod", 600))
        assert "installed already" in machine.run("/opt/mainstay-*/install", 600)
