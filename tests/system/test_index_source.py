# SPDX-License-Identifier: Apache-2.0
"""mainstay.source: a signed index of manifests. A signed, newer and complete index runs; nothing else starts or stops
anything."""

import http.server
import json
import os
import shutil
import ssl
import threading
import time

import clocked as clocked_nodes
import failing
import harness
import pytest
import specs
import world
from index_source import Index, Key, Nginx, minisign_file, settings, sign
from lone_node import LoneApi
from world import wait


@pytest.fixture(name="keys")
def fixture_keys(tmp_path):
    return [Key(str(tmp_path), name) for name in ("one", "two")]


@pytest.fixture(name="index")
def fixture_index(tmp_path, keys):
    os.mkdir(tmp_path / "root")
    return Index(str(tmp_path / "root"), keys[0])


@pytest.fixture(name="make_nginx")
def fixture_make_nginx(index, tmp_path):
    servers = []

    def make(extra=""):
        server = Nginx(str(tmp_path / f"nginx{len(servers)}"), index.directory, extra)
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.stop()


@pytest.fixture(name="make_sourced")
def fixture_make_sourced(make_node, make_clocked_node, keys):
    """Nodes with a source; at the end the source is removed from all of them, so that their pods stop."""
    nodes = []

    def make(url, trusted=None, node=None, clocked=False, **source):
        config = {"mainstay": {"source": settings(url, trusted or keys[:1], **source)}}
        node = node or (make_clocked_node if clocked else make_node)(config=config)
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.write_config()
        node.restart()
        for pod in node.pods():
            node.wait_gone(pod["metadata"]["name"])


def condition(node):
    return node.node_condition("mainstay.io/SourceFailed")


def wait_failed(node, words):
    wait(lambda: condition(node)["status"] == "True" and words in condition(node)["message"],
         lambda: f"the condition contains '{words}': {condition(node)}\n{node.said()[-3000:]}")


def wait_in_use(node, number):
    wait(lambda: condition(node)["status"] == "False" and f"index {number} of" in condition(node)["message"],
         lambda: f"index {number} is in use: {condition(node)}\n{node.said()[-3000:]}")


def names(node):
    return sorted(pod["metadata"]["name"] for pod in node.pods())


def labelled(name, value):
    return specs.pod(name, metadata={"labels": {"edit": value}})


def test_an_index_is_applied_and_updated_as_a_whole(make_sourced, make_nginx, index):
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}, "data": {"WORD": "hello"}}
    web = specs.pod("web", specs.container(envFrom=[{"configMapRef": {"name": "words"}}]))
    index.write({"web.yaml": web, "words.yaml": config_map, "logd.yaml": specs.daemonset("logd")})
    nginx = make_nginx()
    node = make_sourced(nginx.url(), caFile=nginx.certificate)
    pod = node.wait_running("web")
    assert pod["metadata"]["annotations"]["mainstay.dev/source"] == "index web.yaml"
    assert pod["metadata"]["annotations"]["kubernetes.io/config.source"] == "http"
    wait(lambda: len(node.pods()) == 2, "the DaemonSet has its pod")
    wait_in_use(node, 1)
    init = node.init("web")
    before = len(nginx.asked())
    index.write({"web.yaml": web, "words.yaml": config_map, "db.yaml": specs.pod("db")})
    node.wait_running("db")
    wait(lambda: names(node) == ["db-node1", "web-node1"], lambda: f"the DaemonSet's pod is gone: {names(node)}")
    wait_in_use(node, 2)
    assert node.init("web") == init and node.status("web")["restartCount"] == 0
    fetched = [line[1] for line in nginx.asked()[before:] if line[1].startswith("/sha256/")]
    assert len(fetched) == 1, f"present files are not fetched again: {fetched}"
    assert 'mainstay_source_index_number{source="source"} 2' in node.get("/metrics")[1]
    assert "index 2 of the fleet shops" in node.cli("source", "status").stdout
    assert "Ready" in node.cli("get", "nodes").stdout and "SourceFailed" not in node.cli("get", "nodes").stdout
    index.write({})
    wait(lambda: not node.pods(), lambda: f"an empty index has no pods: {names(node)}")


def test_a_write_is_refused_with_the_file_of_the_index(make_sourced, make_nginx, index):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"a": "b"}}
    index.write({"web.yaml": specs.pod("web"), "keys.yaml": secret})
    nginx = make_nginx()
    node = make_sourced(nginx.url(), caFile=nginx.certificate)
    node.wait_running("web")
    lone = LoneApi(node)
    for path, file in ("pods/web-node1", "web.yaml"), ("secrets/keys", "keys.yaml"):
        status, answer = lone.ask(f"/api/v1/namespaces/default/{path}", method="PATCH", body={})
        assert status == 405 and f"of a signed index; edit {file} " in answer["message"] and node.manifests not in answer["message"]
    lone.api.stop()
    index.write({})
    wait(lambda: not node.pods(), "the pod is gone")


def test_unchanged_content_causes_only_one_small_request(make_sourced, make_nginx, index):
    index.write({"web.yaml": specs.pod("web"), "filler.yaml": b"# " + b"x" * 9000 + b"\n" + specs.text(specs.pod("db")).encode()})
    os.utime(index.path, (time.time() - 60,) * 2)
    nginx = make_nginx()
    node = make_sourced(nginx.url(), caFile=nginx.certificate)
    node.wait_running("web")
    wait_in_use(node, 1)
    before = len(nginx.asked())
    wait(lambda: len(nginx.asked()) >= before + 3, "it is queried again")
    for line in nginx.asked()[before:before + 3]:
        assert line[1:3] == ["/index.json", "304"] and int(line[3]) + int(line[4]) <= 1024, line


def test_an_index_that_changes_within_a_second_is_noticed(make_sourced, make_nginx, index):
    """nginx builds its ETag from the size and the second of the last change."""
    later = time.time() + 600  # so that the change counts as recent regardless of the time of the fetch

    def write(value):
        index.write({"web.yaml": labelled("web", value)})
        os.utime(index.path, (later, later))
        return os.path.getsize(index.path)

    first = write("1")
    nginx = make_nginx()
    node = make_sourced(nginx.url(), caFile=nginx.certificate)
    node.wait_pod("web", lambda pod: pod["metadata"]["labels"]["edit"] == "1", "is that of the first index")
    assert write("2") == first
    node.wait_pod("web", lambda pod: pod["metadata"]["labels"]["edit"] == "2", "is that of the second one")


def _append(path, data):
    with open(path, "ab") as file:
        file.write(data)


def _flip(path, position):
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)
        file.seek(position)
        file.write(bytes([byte[0] ^ 1]))


BAD_POD = {"other.yaml": specs.pod("other")}


def _bad_blob(index, value, change):
    def spoil(staged):
        change(index.blob(json.loads(world.read(staged))["files"][0]["sha256"]))
    index.write({"o.yaml": labelled("other", value)}, spoil=spoil)


# Errors of a server, each after a good index: the cause, and the message of the condition. test_tampering.py has all kinds, on a stick.
BAD = {
    "a byte of a file was changed": (lambda i, k: _bad_blob(i, "a", lambda p: _flip(p, 5)),
                                     "o.yaml: does not match its digest in the index"),
    "a file is longer": (lambda i, k: _bad_blob(i, "b", lambda p: _append(p, b"#")),
                         "o.yaml: the response is larger than"),
    "a file is missing": (lambda i, k: _bad_blob(i, "d", os.unlink),
                          "o.yaml: the server answered with status 404"),
    "another key": (lambda i, k: i.write(BAD_POD, key=k[1]), "is not signed by one of the known keys"),
    "a manifest that is broken": (lambda i, k: i.write({**BAD_POD, "x.yaml": b"kind: Pod\napiVersion: v1\n"}), "source/x.yaml"),
    "a manifest without an object": (lambda i, k: i.write({**BAD_POD, "x.yaml": b"# later\n"}), "source/x.yaml: holds no object"),
    "too large an index": (lambda i, k: i.write_bytes(b" " * 1100000), "the response is larger than 1048576 bytes"),
    "no signature": (lambda i, k: (i.write(BAD_POD, key=k[1]), os.unlink(i.path + ".sig")),
                     "the signature of the index: the server answered with status 404"),
    "no index": (lambda i, k: os.unlink(i.path), "the index: the server answered with status 404"),
}


@pytest.mark.slow
def test_an_invalid_source_neither_stops_nor_starts_a_pod(make_sourced, make_nginx, index, keys):
    index.number = 99
    index.write({"web.yaml": specs.pod("web")})
    nginx = make_nginx()
    node = make_sourced(nginx.url(), caFile=nginx.certificate)
    node.wait_running("web")
    init = node.init("web")
    for name, (spoil, words) in BAD.items():
        spoil(index, keys)
        before = len(nginx.asked())
        wait(lambda: len(nginx.asked()) >= before + 2, "the source is queried")
        wait_failed(node, words)
        assert node.init("web") == init and names(node) == ["web-node1"], name
        if name in ("another key", "a manifest that is broken"):
            node.restart()
            wait_failed(node, words)
            assert node.init("web") == init and names(node) == ["web-node1"], name
    assert node.status("web")["restartCount"] == 0
    assert "SourceFailed" in node.cli("get", "nodes").stdout
    assert "mainstay.io/SourceFailed" in node.cli("describe", "node").stdout
    assert 'mainstay_source_failed{source="source"} 1' in node.get("/metrics")[1]
    events = node.cli("get", "events").stdout
    assert "SourceFailed" in events and "SourceRefused" in events
    assert "SourceFailed" in node.cli("source", "status").stdout
    nginx.stop()
    wait_failed(node, "the index: ")
    nginx.start()
    number = index.write({"web.yaml": labelled("web", "good")})["number"]
    node.wait_pod("web", lambda pod: pod["metadata"].get("labels", {}).get("edit") == "good", "has the label")
    wait_in_use(node, number)
    assert node.init("web") == init


class Misbehaving(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):  # pylint: disable=invalid-name
        self.server.hits.append(self.path)
        self.server.act(self)


def _hang(handler):
    time.sleep(40)


def _reply(head, body=b""):
    def act(handler):
        handler.close_connection = True
        handler.wfile.write(head + b"\r\n\r\n" + body)
    return act


def _drip(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n")
    for _ in range(40):
        handler.wfile.write(b" ")
        time.sleep(1)


def _endless(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n")
    while True:
        handler.wfile.write(b" " * 65536)


# Further attacks by a server.
SERVERS = {
    "204": (_reply(b"HTTP/1.1 204 Nothing"), "status 204"),
    "a redirect to itself": (_reply(b"HTTP/1.1 302 F\r\nContent-Length: 0\r\nLocation: /index.json"), "redirect"),
    "a word that is not HTTP": (_reply(b"SSH-2.0-OpenSSH_9.2p1"), ""),
    "500": (_reply(b"HTTP/1.1 500 Oh\r\nContent-Length: 0"), "status 500"),
    "a redirect to http": (_reply(b"HTTP/1.1 302 F\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:9/index.json"), "which is not https"),
    "a redirect to a file": (_reply(b"HTTP/1.1 302 F\r\nContent-Length: 0\r\nLocation: file:///etc/shadow"), "which is not https"),
    "half": (_reply(b"HTTP/1.1 200 OK\r\nContent-Length: 500", b'{"format":1'), ""),
    "no end": (_reply(b"HTTP/1.1 200 OK\r\nConnection: close", b'{"format":1}'), ""),
    "endless": (_endless, "larger than"),
    "hanging": (_hang, "too slow"),
    "slow": (_drip, "too slow"),
}


@pytest.mark.slow
def test_a_misbehaving_server_stops_no_pod(make_sourced, make_nginx, index, tmp_path):
    """The server of a good index is replaced by one that misbehaves in many ways at the same port."""
    index.write({"web.yaml": specs.pod("web")})
    nginx = make_nginx()
    node = make_sourced(nginx.url(), caFile=nginx.certificate)
    node.wait_running("web")
    init = node.init("web")
    nginx.stop()
    for name, (act, words) in SERVERS.items():
        http.server.ThreadingHTTPServer.allow_reuse_address = True
        server = http.server.ThreadingHTTPServer(("127.0.0.1", nginx.port), Misbehaving)
        server.act, server.hits, server.daemon_threads, server.handle_error = act, [], True, lambda *a: None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(nginx.certificate, os.path.join(nginx.directory, "server.key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        wait(lambda hits=server.hits: len(hits) >= 2, f"{name}: the source is queried")
        wait_failed(node, words)
        server.shutdown()
        server.server_close()
        assert node.init("web") == init and names(node) == ["web-node1"], name
    assert node.status("web")["restartCount"] == 0


def test_a_usb_stick_can_be_the_source(make_sourced, index, keys, tmp_path):
    index.write({"web.yaml": specs.pod("web")})
    node = make_sourced("file://" + index.path)
    node.wait_running("web")
    init = node.init("web")
    os.rename(index.directory, index.directory + ".away")
    wait_failed(node, "No such file or directory")
    node.restart()
    wait_failed(node, "No such file or directory")
    assert node.init("web") == init
    os.rename(index.directory + ".away", index.directory)
    os.unlink(index.path)
    os.mkfifo(index.path)
    wait_failed(node, "index.json: is not a regular file")
    os.unlink(index.path)
    number = index.write({"web.yaml": labelled("web", "good")})["number"]
    with open(index.path + ".sig", "w", encoding="utf-8") as file:
        file.write(minisign_file(keys[0].path, index.path))
    wait_in_use(node, number)
    node.wait_pod("web", lambda pod: pod["metadata"].get("labels", {}).get("edit") == "good", "has the label")
    assert node.init("web") == init


def test_an_index_delivers_the_next_keys(make_sourced, index, keys):
    index.write({"web.yaml": specs.pod("web")})
    node = make_sourced("file://" + index.path)
    node.wait_running("web")
    index.write({"web.yaml": specs.pod("web")}, keys=[keys[1].public])
    wait_in_use(node, 2)
    index.write({"web.yaml": specs.pod("web"), "other.yaml": specs.pod("other")})
    wait_failed(node, "is not signed by one of the known keys")
    node.restart()
    wait_failed(node, "is not signed by one of the known keys")
    number = index.write({"web.yaml": specs.pod("web"), "db.yaml": specs.pod("db")}, key=keys[1])["number"]
    wait_in_use(node, number)
    node.wait_running("db")
    assert names(node) == ["db-node1", "web-node1"]


def expect_second_key_only(node, index, keys):
    """Asserts that no index of the first key is accepted, nor one with a number that was used, but that the next one of
    the second key is."""
    other = {"other.yaml": specs.pod("other")}
    index.write(other)
    wait_failed(node, "is not signed by one of the known keys")
    index.write(other, key=keys[1], number=1)
    wait_failed(node, "has the number 1, and an index with the number 2 was verified before")
    assert "other-node1" not in names(node)
    number = index.write({"web.yaml": specs.pod("web"), "next.yaml": specs.pod("next")}, key=keys[1])["number"]
    wait_in_use(node, number)
    node.wait_running("next")


@pytest.mark.parametrize("restarted", [False, True])
def test_rolled_back_index_still_revokes_keys_and_numbers(make_sourced, index, keys, restarted):
    run_first(node := make_sourced("file://" + index.path, clocked=True), index)
    index.write({"web.yaml": bad_pod("web"), "db.yaml": labelled("db", "2")}, keys=[keys[1].public], **DEADLINE)
    let_deadline_pass(node)
    wait_back(node, "pod default/")
    if restarted:
        node.restart()
        wait_failed(node, ROLLED_BACK)
    expect_second_key_only(node, index, keys)


def test_refused_index_still_revokes_keys_and_numbers(make_sourced, index, keys):
    index.write({"web.yaml": specs.pod("web")})
    node = make_sourced("file://" + index.path)
    node.wait_running("web")
    index.write({"web.yaml": b"kind: Pod\napiVersion: v1\n"}, keys=[keys[1].public])
    wait_failed(node, "source/web.yaml")
    expect_second_key_only(node, index, keys)


def test_loss_of_the_manifests_does_not_restore_revoked_keys(make_sourced, index, keys):
    index.write({"web.yaml": specs.pod("web")})
    node = make_sourced("file://" + index.path)
    wait_in_use(node, 1)
    index.write({"web.yaml": specs.pod("web")}, keys=[keys[1].public])
    wait_in_use(node, 2)
    node.stop()
    for name in ("current", "next"):
        shutil.rmtree(os.path.join(node.state, "sources", "source", name))
    node.start()
    expect_second_key_only(node, index, keys)


def test_index_in_use_restores_its_keys_after_the_configured_ones_change(make_sourced, index, keys):
    index.write({"web.yaml": specs.pod("web")}, keys=[keys[1].public])
    index.write({"web.yaml": specs.pod("web")}, keys=[keys[1].public])
    node = make_sourced("file://" + index.path)
    wait_in_use(node, 2)
    path = os.path.join(node.state, "sources", "source", "current", "source.json")
    before = json.loads(world.read(path))
    node.write_config(mainstay={"source": settings("file://" + index.path, keys)})
    node.restart()
    wait(lambda: json.loads(world.read(path))["configuredKeys"] != before["configuredKeys"],
         lambda: f"the index is judged again: {node.said()[-3000:]}")
    expect_second_key_only(node, index, keys)


@pytest.mark.parametrize("damage", ["cut", "changed", "removed", "a directory"])
def test_damaged_record_of_trusted_keys_is_reported_and_accepts_no_new_index(make_sourced, index, damage):
    index.write({"web.yaml": specs.pod("web")})
    node = make_sourced("file://" + index.path)
    wait_in_use(node, 1)
    node.wait_running("web")
    init = node.init("web")
    path = os.path.join(node.state, "sources", "source", "trust", "shops")
    node.stop()  # otherwise a process might have read the record before
    text = world.read(path)
    os.unlink(path)
    if damage == "a directory":
        os.mkdir(path)
    elif damage != "removed":
        with open(path, "w", encoding="utf-8") as file:
            file.write(text[:-9] if damage == "cut" else text.replace('"number":1', '"number":0'))
    node.start()
    index.write({"web.yaml": specs.pod("web"), "other.yaml": specs.pod("other")})
    wait_failed(node, "trust/shops")
    node.restart()
    wait_failed(node, "trust/shops")
    assert names(node) == ["web-node1"] and node.init("web") == init


def test_records_of_an_earlier_version_are_continued(make_sourced, index, keys):
    index.write({"web.yaml": specs.pod("web")}, keys=[keys[1].public])
    node = make_sourced("file://" + index.path)
    wait_in_use(node, 1)
    node.stop()
    directory = os.path.join(node.state, "sources", "source")
    shutil.rmtree(os.path.join(directory, "trust"))
    state = json.loads(world.read(os.path.join(directory, "current", "source.json")))
    del state["hasTrust"]
    with open(os.path.join(directory, "current", "source.json"), "w", encoding="utf-8") as file:
        json.dump(state, file)
    node.start()
    index.write({"other.yaml": specs.pod("other")})
    wait_failed(node, "is not signed by one of the known keys")
    wait_in_use(node, index.write({"web.yaml": specs.pod("web")}, key=keys[1])["number"])


def test_an_index_in_use_is_judged_again_by_other_keys_and_another_fleet(make_sourced, make_nginx, index, keys):
    index.write({"web.yaml": specs.pod("web")})
    os.utime(index.path, (time.time() - 60,) * 2)
    nginx = make_nginx()
    node = make_sourced(nginx.url(), caFile=nginx.certificate)
    node.wait_running("web")
    wait_in_use(node, 1)
    for trusted, fleet, words in ((keys[1:], "shops", "is not signed by one of the known keys"),
                                  (keys[:1], "offices", "is of the fleet 'shops', not of 'offices'")):
        node.write_config(mainstay={"source": settings(nginx.url(), trusted, caFile=nginx.certificate, **{"fleet": fleet})})
        node.restart()
        wait_failed(node, words)
    node.write_config(mainstay={"source": settings(nginx.url(), keys, caFile=nginx.certificate)})
    node.restart()
    wait_in_use(node, 1)
    assert names(node) == ["web-node1"]


@pytest.mark.slow
def test_an_interrupted_download_continues_at_its_end(make_sourced, make_nginx, index):
    """The server sends a file of 400 KiB at 16 KiB a second, and the agent is killed twice."""
    big = specs.text(labelled("web", "big")).encode() + b"# " + b"z" * 400000 + b"\n"
    index.write({"web.yaml": specs.pod("web")})
    nginx = make_nginx()
    node = make_sourced(nginx.url(), caFile=nginx.certificate, downloadRate="16Ki")
    node.wait_running("web")
    init = node.init("web")
    document = index.write({"web.yaml": big})
    part = os.path.join(node.state, "sources", "source", "parts", document["files"][0]["sha256"])
    size = 0

    def find_more():
        now = os.path.getsize(part) if os.path.exists(part) else 0
        return now if now > size + 20000 else None
    for _ in range(2):
        size = wait(find_more, "a part has arrived")
        node.kill9()
        node.start(ready=False)
    wait(node.is_ready, "the agent is ready")
    wait_in_use(node, 2)
    node.wait_pod("web", lambda pod: pod["metadata"].get("labels", {}).get("edit") == "big", "has the label")
    assert node.init("web") == init and not os.path.exists(part)
    wait(lambda: [line for line in nginx.asked() if line[1].startswith("/sha256/") and line[2] == "206"],
         lambda: f"the download was resumed: {nginx.asked()}")


@pytest.mark.slow
def test_node_boots_offline_with_the_index_that_it_has_although_it_expired(make_sourced, make_nginx, index):
    nginx = make_nginx()
    node = make_sourced(nginx.url(), caFile=nginx.certificate)
    index.write({"web.yaml": specs.pod("web")}, expires=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 40)))
    node.wait_running("web")
    init = node.init("web")
    wait_failed(node, "the index 1 has expired at")
    nginx.stop()
    node.kill9()
    world.kill_all([init, *node.shims()])
    node.start()
    node.wait_running("web")
    assert node.init("web") != init


def test_source_is_not_fetched_outside_of_its_hours(make_sourced, make_nginx, index):
    """A node that has no index yet does not wait for its hours; later it does."""
    hour = time.localtime().tm_hour
    index.write({"web.yaml": specs.pod("web")})
    nginx = make_nginx()
    node = make_sourced(nginx.url(), caFile=nginx.certificate,
                        downloadWindow=f"{(hour + 12) % 24:02}:00-{(hour + 13) % 24:02}:00")
    node.wait_running("web")
    asked = len(nginx.asked())
    index.write({"web.yaml": labelled("web", "new")})
    node.restart()
    os.kill(node.init("web"), 9)
    node.wait_restarts("web", 1)
    assert len(nginx.asked()) == asked, "a restart sends no request to the source"
    assert "edit" not in node.pod("web")["metadata"].get("labels", {})


def test_sign_command_creates_an_index_that_a_node_accepts(make_sourced, index, keys, tmp_path):
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "web.yaml").write_text(specs.text(specs.pod("web")))
    made = sign("sign", str(manifests), index.directory, "--no-images", "--key", keys[0].path, "--fleet", "shops", "--next-keys",
                f"{keys[0].public},{keys[1].public}")
    assert made.returncode == 0 and "index 1 of the fleet shops: 1 files" in made.stdout, made.stderr
    checked = sign("verify", index.directory, "--keys", keys[0].public, "--fleet", "shops")
    assert checked.returncode == 0 and "all as they were signed" in checked.stdout, checked.stderr
    node = make_sourced("file://" + index.path)
    node.wait_running("web")
    (manifests / "db.yaml").write_text(specs.text(specs.pod("db")))
    made = sign("sign", str(manifests), index.directory, "--no-images", "--key", keys[1].path, "--fleet", "shops", "--expires", "7d")
    assert "index 2 of the fleet shops: 2 files" in made.stdout, made.stderr
    node.wait_running("db")
    (manifests / "bad.yaml").write_text("kind: Pod\n")
    made = sign("sign", str(manifests), index.directory, "--no-images", "--key", keys[1].path, "--fleet", "shops")
    assert made.returncode == 1 and "bad.yaml:" in made.stderr
    _flip(index.path, 30)
    assert sign("verify", index.directory, "--keys", keys[1].public).returncode == 1
    assert sign("sign").returncode == 2 and sign("other").returncode == 2


# ---- the progress deadline of an index ----

DEADLINE = {"progressDeadlineSeconds": 40}
ROLLED_BACK = "rolled back index 2: not everything was ready within 40s: "


def bad_pod(name, **fields):
    return specs.pod(name, specs.failing_container(), **fields)


def run_first(node, index):
    """Runs the first index, which has two pods and a DaemonSet."""
    index.write({"web.yaml": specs.pod("web"), "db.yaml": labelled("db", "1"), "logd.yaml": specs.daemonset("logd")}, **DEADLINE)
    for name in ("web", "db"):
        node.wait_running(name)
    wait_in_use(node, 1)


def let_deadline_pass(node, again=False):
    """Lets the deadline of the second index pass once the index is in use and its good pod runs; with 'again', also the
    time by which a new agent extends it."""
    if not again:
        wait_in_use(node, 2)
        node.wait_pod("db", lambda pod: pod["metadata"]["labels"]["edit"] == "2" and harness.is_running(pod), "is the second one")
    passed = 80 if again else 40
    node.write_clock(passed, passed)
    node.cli("get", "pods")  # the agent reads the clock


def wait_back(node, words):
    """Waits until the first index is in use again, as a whole."""
    wait_failed(node, ROLLED_BACK + words)
    node.wait_pod("web", lambda pod: "exit 1" not in str(pod["spec"]["containers"]) and harness.is_running(pod), "is the first one")
    node.wait_pod("db", lambda pod: pod["metadata"]["labels"]["edit"] == "1", "has its old label")
    wait(lambda: len(node.pods()) == 3, lambda: f"the pods are those of the first index: {names(node)}")


def test_an_index_that_is_not_ready_in_time_is_rolled_back_once(make_sourced, make_nginx, index):
    nginx = make_nginx()
    node = make_sourced(nginx.url(), clocked=True, caFile=nginx.certificate)
    run_first(node, index)
    index.write({"web.yaml": bad_pod("web"), "db.yaml": labelled("db", "2"), "new.yaml": specs.pod("new")}, **DEADLINE)
    wait(lambda: "Started container 'default/new-node1/main'" in node.said(), "the third pod starts")
    let_deadline_pass(node)
    wait_back(node, "pod default/web-node1: container main: ")
    assert "SourceRefused" in node.cli("get", "events").stdout
    assert ROLLED_BACK in node.cli("source", "status").stdout
    node.restart()
    wait_back(node, "pod default/web-node1: container main: ")
    before = len(nginx.asked())
    wait(lambda: len(nginx.asked()) >= before + 3, "it is queried again")
    assert not [line for line in nginx.asked()[before:] if line[1].startswith("/sha256/")], "a rejected index is not fetched"
    assert "new-node1" not in names(node) and node.said().count(ROLLED_BACK + "pod") >= 1
    index.write({"web.yaml": labelled("web", "3"), "db.yaml": labelled("db", "3")}, **DEADLINE)
    wait_in_use(node, 3)
    node.wait_pod("web", lambda pod: pod["metadata"].get("labels", {}).get("edit") == "3", "has the label of the third index")


def test_index_with_a_deadline_edits_a_running_pod(make_sourced, index):
    """The index is evaluated at once, which does not stop its pods."""
    index.write({"web.yaml": labelled("web", "1")})
    node = make_sourced("file://" + index.path)
    node.wait_running("web")
    init = node.init("web")
    index.write({"web.yaml": labelled("web", "2")}, **DEADLINE)
    wait_in_use(node, 2)
    node.wait_pod("web", lambda pod: pod["metadata"].get("labels", {}).get("edit") == "2", "has the label of the second index")
    assert node.init("web") == init and node.status("web")["restartCount"] == 0
    assert "Stopping pod default/web" not in node.said()


def test_a_daemonset_that_is_not_available_rolls_the_index_back(make_sourced, make_nginx, index):
    nginx = make_nginx()
    node = make_sourced(nginx.url(), clocked=True, caFile=nginx.certificate)
    run_first(node, index)
    index.write({"web.yaml": specs.pod("web"), "db.yaml": labelled("db", "2"),
                 "logd.yaml": specs.daemonset("logd", specs.failing_container())}, **DEADLINE)
    let_deadline_pass(node)
    wait_back(node, "")
    assert "default/logd" in condition(node)["message"]


def test_an_index_that_is_ready_in_time_stays_and_is_followed(make_sourced, make_nginx, index):
    nginx = make_nginx()
    node = make_sourced(nginx.url(), caFile=nginx.certificate)
    run_first(node, index)
    index.write({"web.yaml": specs.pod("web"), "db.yaml": labelled("db", "2")}, **DEADLINE)
    wait_in_use(node, 2)
    wait(lambda: os.path.exists(f"{node.state}/sources/source/current/proven"), "it counts as good")
    # An index without a deadline is never rolled back.
    index.write({"web.yaml": bad_pod("web"), "db.yaml": labelled("db", "3")})
    wait_in_use(node, 3)
    node.wait_waiting("web", "CrashLoopBackOff")
    assert "rolled back" not in node.said()


def test_pods_of_an_index_with_a_deadline_are_not_rolled_back_individually(make_sourced, make_nginx, index):
    own = {"metadata": {"annotations": {"mainstay.dev/progress-deadline-seconds": "1"}}}
    nginx = make_nginx()
    node = make_sourced(nginx.url(), clocked=True, caFile=nginx.certificate)
    run_first(node, index)
    index.write({"web.yaml": bad_pod("web", **own), "db.yaml": labelled("db", "2"), "logd.yaml": specs.daemonset("logd")}, **DEADLINE)
    let_deadline_pass(node)
    wait_back(node, "pod default/")
    assert "Rolled back: revision" not in node.said() and not os.path.exists(f"{node.state}/rollouts")


def greeter(container):
    return specs.daemonset("greeter", container)


def test_an_index_that_corrects_a_rolled_back_one_is_applied(make_sourced, make_nginx, index):
    """The content of the index is that to which the node has returned, so nothing changes on the node."""
    nginx = make_nginx()
    node = make_sourced(nginx.url(), caFile=nginx.certificate)
    good = {"greeter.yaml": greeter(specs.container()), "till.yaml": specs.daemonset("till")}
    index.write({**good, "greeter.yaml": greeter(specs.container(script="exec sleep 1000"))})
    wait_in_use(node, 1)
    index.write(good, progressDeadlineSeconds=60)
    wait_in_use(node, 2)
    wait(lambda: os.path.exists(f"{node.state}/sources/source/current/proven"), "it counts as good")
    index.write({**good, "greeter.yaml": greeter(specs.failing_container())}, progressDeadlineSeconds=3)
    wait_failed(node, "rolled back index 3: not everything was ready within 3s: ")
    index.write(good, progressDeadlineSeconds=60)
    wait_in_use(node, 4)
    index.write({**good, "till.yaml": specs.daemonset("till", specs.container(script="exec sleep 2000"))}, progressDeadlineSeconds=60)
    wait_in_use(node, 5)


class ClockedFailingNode(clocked_nodes.Clocked, failing.FailingNode):
    """A node whose programs fail, and for which the test makes time pass."""


@pytest.fixture(name="make_failing_sourced")
def fixture_make_failing_sourced(make_failing, make_sourced, make_nginx, index, keys, library):
    """A node with failpoints that runs the first index."""
    ClockedFailingNode.library = library

    def make():
        nginx = make_nginx()
        config = {"mainstay": {"source": settings(nginx.url(), keys[:1], caFile=nginx.certificate)}}
        node = make_sourced(nginx.url(), node=make_failing(ClockedFailingNode, config=config), caFile=nginx.certificate)
        run_first(node, index)
        return node
    return make


@pytest.mark.parametrize("point", ["source.rollback", "source.noted", "source.rolled-back"])
def test_index_is_rolled_back_once_although_the_agent_dies(make_failing_sourced, index, point):
    node = make_failing_sourced()
    node.arm({f"mainstayd:{point}": "1*panic"})
    index.write({"web.yaml": bad_pod("web"), "db.yaml": labelled("db", "2"), "new.yaml": specs.pod("new")}, **DEADLINE)
    let_deadline_pass(node)
    wait(lambda: node.is_ready() and node.n_deaths == 1, "the agent has died, and another one runs")
    let_deadline_pass(node, again=True)
    wait_back(node, "pod default/")
    assert node.hits()[f"mainstayd:{point}"] == (2 if point == "source.rollback" else 1)


@pytest.mark.parametrize("term", ["1*panic", "1*return(ENOSPC)"])
def test_trusted_keys_are_written_later_after_a_failed_write(make_failing_sourced, index, keys, term):
    node = make_failing_sourced()
    node.arm({"mainstay-image:source.trust": term})
    index.write({"web.yaml": specs.pod("web"), "db.yaml": labelled("db", "2")}, keys=[keys[1].public])
    wait_in_use(node, 2)
    assert node.hits()["mainstay-image:source.trust"] == 2
    index.write({"other.yaml": specs.pod("other")})
    wait_failed(node, "is not signed by one of the known keys")


def test_a_rollback_is_repeated_later_if_the_disk_refuses_it(make_failing_sourced, index):
    node = make_failing_sourced()
    node.arm({"mainstayd:source.rollback": "1*return(ENOSPC)"})
    index.write({"web.yaml": bad_pod("web"), "db.yaml": labelled("db", "2"), "new.yaml": specs.pod("new")}, **DEADLINE)
    let_deadline_pass(node)
    wait_back(node, "pod default/")
    assert "cannot return to the previous index: No space left on device" in node.said()
    assert node.hits()["mainstayd:source.rollback"] == 2
