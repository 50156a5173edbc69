# SPDX-License-Identifier: Apache-2.0
"""The package and its service, from the first installation to the purge."""

from pods import MANIFESTS, launch, process, scope, show, values, wait_running
import specs

PIDS = "pgrep -x sleep | sort -n"


def processes(machine):
    """The processes of the containers, each with the time of its start."""
    return machine.run(f"for pid in $({PIDS}); do echo $pid $(cut -d ' ' -f 22 /proc/$pid/stat); done")


def agent(machine):
    return machine.run("systemctl show --property MainPID --value mainstay").strip()


def test_installed_package_runs_pods_without_further_configuration(machine):
    assert machine.run("stat -f -c %T /sys/fs/cgroup").strip() == "cgroup2fs"
    assert machine.run("systemctl is-active mainstay; systemctl is-enabled mainstay").split() == ["active", "enabled"]
    launch(machine, "first")
    assert len(processes(machine).splitlines()) == 1


def test_images_are_handled_outside_of_the_agents_unit(machine):
    """Programs with the necessary privileges handle them, in the file system that the agent sees."""
    status = machine.run(f"cat /proc/{agent(machine)}/status")
    assert "CapBnd:\t000000000000003b\n" in status, status  # CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL
    assert show(machine, "mainstay-launch.service", "ActiveState")["ActiveState"] == "active"
    keeper = "/sys/fs/cgroup/system.slice/mainstay-launch.service/cgroup.procs"
    client = ("env MAINSTAY_LAUNCH_SOCKET=/run/mainstay-launch.sock nsenter --mount --target $(systemctl show -P MainPID mainstay) "
              "/usr/libexec/mainstay/launch/mainstay-image")
    status, said = machine.ask(f"{client} --version")
    assert status == 75, f"a process of root outside of the agent's unit had a program started: {said}"
    machine.run("mkfifo /run/waiting; (echo $BASHPID >/sys/fs/cgroup/system.slice/mainstay.service/cgroup.procs; "
                f"exec {client} pull --store=/var/lib/mainstay/images docker.io/library/none:1 <>/run/waiting >/dev/null 2>&1 & "
                "echo $! >/run/client)")
    machine.wait(f"grep -qx mainstay-image $(sed 's,.*,/proc/&/comm,' {keeper})", "the program runs in the other unit")
    namespaces = machine.run(f"for pid in $(cat {keeper}) {agent(machine)}; do [ $(cat /proc/$pid/comm) = mainstay-launch ] || "
                             "readlink /proc/$pid/ns/mnt; done | sort -u")
    assert len(namespaces.split()) == 1, namespaces
    machine.run("kill -KILL $(cat /run/client)")
    machine.wait(f"! grep -qx mainstay-image $(sed 's,.*,/proc/&/comm,' {keeper})", "it has ended with its client")
    said = machine.ask("mainstay images pull 127.0.0.1:1/none:1")[1]
    assert "Failed to connect to 127.0.0.1 port 1" in said, said


def test_the_unit_s_filter_of_system_calls_kills_no_process_of_the_agent(machine):
    machine.run("systemctl restart mainstay")
    assert machine.ask("journalctl --sync; journalctl -b --no-pager -o cat | grep 'SECCOMP.*mainstay'")[0] != 0


def test_encrypted_secrets_are_decrypted_for_an_agent_with_few_privileges(machine):
    """The Secrets are encrypted for the identity of the node, or sealed by this machine."""
    machine.run(f"printf open >/run/word; mainstay source identity >/run/group; "
                f"mainstay secret encrypt travelled word=/run/word -R /run/group >{MANIFESTS}/travelled.yaml; "
                f"mainstay secret seal sealed word=/run/word >{MANIFESTS}/sealed.yaml; ! grep -l open {MANIFESTS}/travelled.yaml {MANIFESTS}/sealed.yaml")
    launch(machine, "opener", env=[{"name": name, "valueFrom": {"secretKeyRef": {"name": name, "key": "word"}}}
                                   for name in ("travelled", "sealed")])
    environment = machine.run(f"tr '\\0' '\\n' </proc/{process(machine, 'opener')}/environ").splitlines()
    assert {"travelled=open", "sealed=open"} <= set(environment), environment


def test_limits_are_set_in_cgroup_v2(machine):
    launch(machine, "limited", resources={"limits": {"cpu": "200m", "memory": "64Mi"}})
    assert values(machine, scope(machine, "limited"), "memory.max", "cpu.max") == {"memory.max": str(64 << 20),
                                                                                   "cpu.max": "20000 100000"}


def test_containers_have_the_apparmor_profile_of_the_package_by_default(machine):
    admin = {"capabilities": {"add": ["SYS_ADMIN"]}}
    for name, context in [("confined", admin), ("plain", {"allowPrivilegeEscalation": False}),
                          ("free", {**admin, "appArmorProfile": {"type": "Unconfined"}}), ("privileged", {"privileged": True})]:
        launch(machine, name, securityContext=context)
    current = {name: machine.run(f"mainstay exec {name}-machine -- cat /proc/1/attr/current").strip("\n\0 ")
               for name in ("confined", "plain", "free", "privileged")}
    # In Debian 13 a profile with the name of the OCI runtime leaves it, and processes that inherit the profile,
    # unconfined.
    assert current.pop("privileged") in ("unconfined", "runc (unconfined)")
    assert current == {"confined": "mainstay-container (enforce)", "plain": "mainstay-container (enforce)", "free": "unconfined"}
    mount = "mainstay exec {}-machine -- mount -t tmpfs none /tmp"
    assert machine.ask(mount.format("confined"))[0] != 0
    machine.run(mount.format("free"))
    # That profile may send signals to a confined container.
    machine.run(f"! test -e /etc/apparmor.d/runc || aa-exec -p runc kill -CONT {process(machine, 'plain')}")
    for name in (*current, "privileged"):
        machine.run(f"rm {MANIFESTS}/{name}.yaml")
        machine.wait(f"! mainstay get pods | grep -q '^{name}-machine'", f"pod {name} is removed")


def test_localhost_profile_of_a_pod_must_be_loaded_and_confine_something(machine):
    """The kernel accepts some names that are not profiles, and then confines nothing."""
    machine.run("echo 'profile nothing flags=(unconfined) {}' | apparmor_parser -r")
    for number, name in enumerate(("unconfined", "::unconfined", "&unconfined", "nothing", "missing")):
        context = {"appArmorProfile": {"type": "Localhost", "localhostProfile": name}}
        machine.write(f"{MANIFESTS}/bad{number}.yaml", specs.text(specs.pod(f"bad{number}", specs.container(securityContext=context))))
        machine.wait(f"mainstay describe pod bad{number}-machine | grep -q 'Cannot enforce AppArmor: profile \"{name}\"'",
                     f"{name} is refused")
        machine.run(f"rm {MANIFESTS}/bad{number}.yaml")
    launch(machine, "good", securityContext={"appArmorProfile": {"type": "Localhost", "localhostProfile": "mainstay-container"}})
    assert machine.run("mainstay exec good-machine -- cat /proc/1/attr/current").strip("\n\0 ") == "mainstay-container (enforce)"
    machine.run(f"rm {MANIFESTS}/good.yaml")


def test_pod_with_user_namespace_sees_its_control_group(machine):
    pod = specs.pod("apart", specs.container(script="exec sleep 100000"), hostUsers=False, hostNetwork=False)
    machine.write(f"{MANIFESTS}/apart.yaml", specs.text(pod))
    wait_running(machine, "apart")
    assert "pids.current" in machine.run("mainstay exec apart-machine -- ls /sys/fs/cgroup").split()
    machine.run(f"rm {MANIFESTS}/apart.yaml")
    machine.wait("! mainstay get pods | grep -q '^apart-machine'", "the pod is removed")


def test_service_restart_does_not_restart_containers(machine):
    before, old = processes(machine), agent(machine)
    machine.run("systemctl restart mainstay")
    assert agent(machine) != old
    wait_running(machine, "first")
    assert processes(machine) == before


def test_killed_agent_is_restarted_without_its_containers(machine):
    before, old = processes(machine), agent(machine)
    machine.run(f"kill -KILL {old}")
    machine.wait(f'pid=$(systemctl show -P MainPID mainstay); [ "$pid" != 0 ] && [ "$pid" != {old} ] && '
                 "systemctl is-active mainstay", "the next agent runs")
    wait_running(machine, "first")
    assert processes(machine) == before


def test_service_restarts_without_limit_and_does_not_wait_for_the_network(machine):
    before = processes(machine)
    unit = show(machine, "mainstay.service", "After", "Wants", "Requires", "StartLimitIntervalUSec", "Type", "KillMode", "Restart")
    for key in "After", "Wants", "Requires":
        assert "network-online.target" not in unit[key].split()
    assert [unit[key] for key in ("StartLimitIntervalUSec", "Type", "KillMode", "Restart")] == ["0", "notify", "process", "always"]
    for _ in range(8):
        machine.run("systemctl kill -s KILL mainstay")
        machine.wait("systemctl is-active mainstay", "the next agent runs")
    wait_running(machine, "first")
    assert processes(machine) == before


def test_package_contains_manuals_completion_examples_and_a_user(machine):
    there = machine.run("dpkg -L mainstay").splitlines()
    for path in ("/usr/share/doc/mainstay/alerts.yaml", "/usr/share/doc/mainstay/dashboard.json",
                 "/usr/share/doc/mainstay/99-mainstay.conflist", "/usr/share/man/man8/mainstayd.8.gz",
                 "/usr/share/man/man1/mainstay.1.gz", "/usr/share/man/man5/mainstay-config.5.gz",
                 "/usr/share/man/man7/mainstay-pods.7.gz", "/usr/share/man/man7/mainstay-troubleshooting.7.gz",
                 "/usr/share/bash-completion/completions/mainstay", "/etc/mainstay/config.yaml"):
        assert path in there
    assert "The agent has started" in machine.run("journalctl --list-catalog | grep Mainstay")
    assert machine.run("getent passwd mainstay-image").endswith("/usr/sbin/nologin\n")
    assert machine.run("stat -c '%a %U %G' /var/lib/mainstay /run/mainstay").splitlines() == [
        "700 root root", "710 root mainstay-api"]
    # Pods with their own users may be on this machine, and must be able to traverse the directory.
    assert machine.run("stat -c '%a %U %G' /run/mainstay/pods") in ("700 root root\n", "711 root root\n")


def test_watchdog_restarts_a_hanging_agent(machine):
    machine.write("/run/systemd/system/mainstay.service.d/watchdog.conf", "[Service]\nWatchdogSec=20\n")
    machine.run("systemctl daemon-reload && systemctl restart mainstay")
    wait_running(machine, "first")
    before, old = processes(machine), agent(machine)
    machine.run(f"kill -STOP {old}")
    machine.wait(f'pid=$(systemctl show -P MainPID mainstay); [ "$pid" != 0 ] && [ "$pid" != {old} ] && '
                 "systemctl is-active mainstay", "the next agent runs")
    wait_running(machine, "first")
    assert processes(machine) == before
    assert "atchdog" in machine.run("journalctl -u mainstay --no-pager -o cat | grep -i watchdog")
    machine.run("rm -r /run/systemd/system/mainstay.service.d && systemctl daemon-reload && systemctl restart mainstay")


def test_upgrade_restarts_the_agent_but_not_containers(machine):
    wait_running(machine, "first")
    before, old = processes(machine), agent(machine)
    machine.run("dpkg --install /opt/test/mainstay_*.deb")
    assert agent(machine) not in (old, "0")
    wait_running(machine, "first")
    assert processes(machine) == before


def test_remove_stops_all_pods_and_purge_leaves_nothing_behind(machine):
    machine.run("dpkg --remove mainstay")
    assert machine.ask(PIDS)[1] == ""
    machine.wait("! pgrep mainstay", "no program of the package runs")
    machine.run(f"rm {MANIFESTS}/*.yaml && dpkg --purge mainstay")
    left = machine.run("find / -xdev -name '*mainstay*' -not -path '/opt/test/*' -not -path '/var/log/*' -not -path '/proc/*'")
    assert left == ""
    assert machine.ask("ls -R /var/lib/kubelet")[0] != 0
    assert machine.ask("getent passwd mainstay-image; getent group mainstay-image")[1] == ""
    machine.wait("! find /sys/fs/cgroup -name '*kubepods*' | grep .", "the slices of pods are gone")
    assert "mainstay" not in machine.run("ip -brief link")
    assert "mainstay" not in machine.run("cat /proc/self/mountinfo")
