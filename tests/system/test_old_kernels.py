# SPDX-License-Identifier: Apache-2.0
"""Kernels without a certain system call: pods run as usual, or the agent exits and names the call. Here a filter hides
the call from the agent and from all programs that it starts."""

import ctypes
import errno

import harness
import pytest
import specs
import world

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NO_NEW_PRIVILEGES = 3  # an attribute of a filter

NEEDED = ["close_range", "getrandom", "memfd_create", "mount_setattr", "move_mount", "open_tree", "openat2", "pidfd_open", "renameat2"]
DISPENSABLE = ["clone3", "copy_file_range", "epoll_pwait2", "execveat", "faccessat2", "fsconfig", "fsmount", "fsopen", "io_uring_setup",
               "landlock_create_ruleset", "membarrier", "name_to_handle_at", "pidfd_getfd", "pidfd_send_signal", "preadv2", "rseq",
               "sched_setattr", "statx"]


def hide(calls):
    """Installs the filter in a child that is about to execute a program."""
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))
    library.seccomp_attr_set(context, NO_NEW_PRIVILEGES, 0)
    for call in calls:
        number = library.seccomp_syscall_resolve_name(call.encode())
        added = library.seccomp_rule_add(context, ctypes.c_uint32(ERRNO | errno.ENOSYS), number, 0)
        assert number >= 0 and added == 0, call
    assert library.seccomp_load(context) == 0


class OldNode(harness.Node):
    hidden = ()

    def spawn(self, **options):
        return super().spawn(preexec_fn=lambda: hide(self.hidden), **options)


@pytest.fixture(name="make_old_node")
def fixture_make_old_node(archive):
    nodes = []

    def make(hidden):
        """Makes a node that has an archive to import."""
        nodes.append(OldNode(archive, start=False))
        nodes[-1].hidden = hidden
        return nodes[-1]

    yield make
    for node in nodes:
        node.hidden = ()
        node.finish()


def test_an_agent_on_a_kernel_without_a_required_call_exits_and_names_it(make_old_node):
    node = make_old_node(())
    node.drop(specs.pod("web"))
    for call in NEEDED:
        node.hidden = [call]
        node.start(ready=False)
        assert node.agent.wait(60) == 1, node.said()
        assert f"mainstay-shim: this kernel has no system call '{call}'; Mainstay needs Linux 5.12 or later\n" in node.said()
    node.hidden = ()
    node.start()
    node.wait_running("web")


def test_a_kernel_without_landlock_is_reported_once_and_described(make_old_node):
    node = make_old_node(["landlock_create_ruleset"])
    node.start()
    node.launch(specs.pod("web"))
    assert node.said().count("The kernel does not support Landlock") == 1, node.said()
    lines = [line.split(maxsplit=1) for line in node.cli("describe", "node").stdout.splitlines() if line.startswith("Landlock:")]
    assert lines == [["Landlock:", "missing: mainstay-image is not confined to its directory"]]


def pod_with_volumes(node):
    mounts = [specs.mount("data", "/data", subPath="sub"), specs.mount("fixed", "/fixed", readOnly=True), specs.mount("empty", "/empty"),
              specs.mount("settings", "/settings")]
    script = "cat /settings/word; echo written | tee /data/file > /empty/file; echo no > /fixed/file\n" + specs.IDLE
    return specs.pod("web", specs.container(script=script, volumeMounts=mounts, securityContext={"privileged": True}),
                     volumes=[specs.host_path("data", node.data), specs.host_path("fixed", node.staging), {"name": "empty", "emptyDir": {}},
                              {"name": "settings", "configMap": {"name": "settings"}}])


@pytest.mark.parametrize("hidden", [DISPENSABLE, *(pytest.param([call], marks=pytest.mark.long) for call in DISPENSABLE)],
                         ids=["all", *DISPENSABLE])
def test_pods_run_without_system_calls_that_have_a_substitute(make_old_node, hidden):
    node = make_old_node(hidden)
    node.start()
    node.drop({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"word": "hello\n"}}, "settings.yaml")
    node.launch(pod_with_volumes(node))
    assert world.status(node.agent.pid, "Seccomp") == world.status(node.shim("web"), "Seccomp") == "2"
    world.wait(lambda: world.read(f"{node.data}/sub/file") == "written\n", "the container writes")
    world.wait(lambda: node.logged("web")[:1] == ["hello"], lambda: f"it has read: {node.logged('web')}")
    assert world.read(f"{node.staging}/file") is None
    assert node.cli("logs", "web").stdout.startswith("hello\n")
    done = node.cli("exec", "web", "--", "sh", "-c", "cat /empty/file; exit 7")
    assert (done.returncode, done.stdout) == (7, "written\n"), done.stderr
    pid = node.init("web")
    node.restart()
    assert node.init("web") == pid
    world.kill_all([pid])
    assert node.wait_restarts("web", 1)["lastState"]["terminated"]["exitCode"] == 137
    node.remove("web")
    node.wait_gone("web")
