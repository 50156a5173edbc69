# SPDX-License-Identifier: Apache-2.0
"""The certificate authority of a test cluster: server and client certificates of any validity, signed requests,
kubeconfigs."""

import base64
import os
import subprocess
import time

LIFETIME = 30 * 86400  # seconds
CONFIG = """[ca]
default_ca=a
[a]
new_certs_dir={base}.certs
database={base}.db
rand_serial=yes
policy=p
default_md=sha256
unique_subject=no
copy_extensions=copy
[p]
commonName=supplied
organizationName=optional
[req]
distinguished_name=d
[d]
[authority]
basicConstraints=critical,CA:true
keyUsage=critical,keyCertSign,digitalSignature
subjectKeyIdentifier=hash
[server]
basicConstraints=critical,CA:false
extendedKeyUsage=serverAuth
authorityKeyIdentifier=keyid
subjectAltName={alt}
[serving]
basicConstraints=critical,CA:false
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth
authorityKeyIdentifier=keyid
[client]
basicConstraints=critical,CA:false
keyUsage=critical,digitalSignature
extendedKeyUsage=clientAuth
authorityKeyIdentifier=keyid
"""


def openssl(*words):
    return subprocess.run(["openssl", *words], check=True, capture_output=True).stdout


def moment(offset):
    """A time of X.509, relative to now, in seconds."""
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + offset))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Authority:
    """Signs with its own key; everything is in 'directory'. An existing authority is reused, and each of the
    certificates in 'issued' is used once."""

    def __init__(self, directory, name="ca", alt="IP:127.0.0.1,DNS:localhost,DNS:kubernetes", issued=()):
        self.issued = set(issued)
        self.directory, self.base = directory, os.path.join(directory, name)
        self.cert, self.key, self.config = self.base + ".crt", self.base + ".key", self.base + ".cnf"
        if not os.path.exists(self.cert):
            self.make(name, alt)

    def make(self, name, alt):
        os.makedirs(self.base + ".certs", exist_ok=True)
        open(self.base + ".db", "w", encoding="utf-8").close()
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(base=self.base, alt=alt))
        request = self.request(name, "/CN=test-cluster-" + name, self.key)
        self.run_ca(request, self.cert, "authority", -3600, LIFETIME, "-selfsign")

    def request(self, name, subject, key):
        path = os.path.join(self.directory, name + ".csr")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                "-out", path, "-subj", subject, "-config", self.config)
        return path

    def run_ca(self, request, cert, kind, start, end, *more):
        openssl("ca", "-batch", "-config", self.config, "-keyfile", self.key, "-in", request, "-out", cert, "-notext",
                "-preserveDN", "-extensions", kind, "-startdate", moment(start), "-enddate", moment(end),
                *(more or ("-cert", self.cert)))

    def issue(self, name, subject, kind="client", start=-3600, end=LIFETIME):
        """A key and a certificate, valid from 'start' to 'end' (seconds from now); returns the paths of both."""
        cert, key = (os.path.join(self.directory, name + suffix) for suffix in (".crt", ".key"))
        if name in self.issued and (start, end) == (-3600, LIFETIME):
            self.issued.remove(name)
            return cert, key
        self.run_ca(self.request(name, subject, key), cert, kind, start, end)
        return cert, key

    def server(self, name="server", **times):
        return self.issue(name, "/CN=kube-apiserver", "server", **times)

    def node(self, name, **times):
        """The certificate of a kubelet."""
        return self.issue("node-" + name, f"/O=system:nodes/CN=system:node:{name}", **times)

    def sign(self, request, seconds, kind="client", start=-60):
        """The certificate for a request in PEM, as text."""
        base = os.path.join(self.directory, "signed")
        with open(base + ".csr", "w", encoding="utf-8") as file:
            file.write(request)
        self.run_ca(base + ".csr", base + ".crt", kind, start, seconds)
        return read(base + ".crt")


def kubeconfig(path, server, authority=None, cert=None, key=None, token=None, inline=False, name=None, **user):
    """Writes a kubeconfig for a server (whose certificate contains 'name'), with files or with the data itself; 'user'
    contains further fields of the user."""
    def reference(field, file):
        if inline:
            return {field + "-data": base64.b64encode(read(file).encode()).decode()}
        return {field: file}

    cluster = {"server": server, **(reference("certificate-authority", authority) if authority else {})}
    if name:
        cluster["tls-server-name"] = name
    if cert:
        user = {**user, **reference("client-certificate", cert), **reference("client-key", key)}
    if token:
        user = {**user, "token": token}
    lines = ["apiVersion: v1", "kind: Config", "current-context: test", "clusters:", "- name: test", "  cluster:"]
    lines += [f"    {name}: {value}" for name, value in cluster.items()]
    lines += ["contexts:", "- name: test", "  context: {cluster: test, user: test}", "users:", "- name: test"]
    lines += ["  user:"] + [f"    {name}: {value}" for name, value in user.items()] if user else ["  user: {}"]
    with open(path + ".new", "w", encoding="utf-8") as file:
        os.chmod(path + ".new", 0o600)
        file.write("\n".join(lines) + "\n")
    os.rename(path + ".new", path)
    return path
