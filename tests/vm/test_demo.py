# SPDX-License-Identifier: Apache-2.0
"""packaging/demo: a machine that starts a pod, and answers kubectl from outside."""

import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import urllib.request

from conftest import PACKAGE, TOP
import pytest
import yaml

pytestmark = pytest.mark.long
KUBERNETES = os.environ.get("MAINSTAY_KUBERNETES")
KUBECTL = os.path.join(KUBERNETES, "bin", "kubectl") if KUBERNETES else shutil.which("kubectl")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="module", name="directory")
def _directory(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(name="demo")
def _demo(directory, figures):
    """A demo machine that has reported its first container; the directory keeps its disk."""
    words = [f"{TOP}/packaging/demo", "--tcg", "--port", str(free_port()), "--release", PACKAGE, str(directory)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = []
            while not lines or not lines[-1].startswith("kubectl "):
                lines.append(process.stdout.readline())
                assert lines[-1], lines
            figures.append(f"demo machine, emulated: {lines[-2].strip()}")
            yield process
        finally:
            process.terminate()
            assert process.wait(60) == 0


def get_pods(path):
    """Sends the request of 'kubectl get pods', because the machine may have no kubectl."""
    with open(path, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    for member, name in ("client-certificate-data", "crt"), ("client-key-data", "key"):
        with open(f"{path}.{name}", "wb") as file:
            file.write(base64.b64decode(user[member]))
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    context.load_cert_chain(f"{path}.crt", f"{path}.key")
    context.check_hostname = False  # the name on its certificate is in tls-server-name
    with urllib.request.urlopen(f"{cluster['server']}/api/v1/namespaces/default/pods", context=context) as answer:
        return [(pod["metadata"]["name"], pod["status"]["phase"]) for pod in json.load(answer)["items"]]


@pytest.mark.parametrize("start", ["first", "second"])
def test_pod_of_the_demo_machine_is_reachable_from_the_host(demo, directory, start):
    assert demo.poll() is None
    path = f"{directory}/demo.kubeconfig"
    assert os.stat(path).st_mode & 0o077 == 0
    assert get_pods(path) == [("hello-demo", "Running")], start
    if KUBECTL:
        output = subprocess.run([KUBECTL, "--kubeconfig", path, "get", "pods"], check=True, text=True, stdout=subprocess.PIPE).stdout
        assert output.splitlines()[1].split()[:3] == ["hello-demo", "1/1", "Running"]


def test_no_account_of_the_demo_machine_has_a_password(directory):
    accounts = subprocess.run(["debugfs", "-R", "cat /etc/shadow", f"{directory}/disk.ext4"], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.splitlines()
    assert accounts and all(line.split(":")[1][:1] in ("*", "!") for line in accounts)
