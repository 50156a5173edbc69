# SPDX-License-Identifier: Apache-2.0
"""The workloads of the comparison with the kubelet on both nodes: each is a generator, see comparison.Run."""

import specs
from comparison import RESTARTED, all_in, all_ready, all_run, both, deleted, has_ended, has_event, statuses, waits, was_restarted
from node import ClusterNode
from specs import container, mount

# A container that does not end on SIGTERM.
STUBBORN = "trap '' TERM; while :; do sleep 1; done"
ABSENT = "127.0.0.1:1/absent:1"  # a registry that refuses connections
CRASH_TWICE = f"echo >>/data/starts; [ $(wc -l </data/starts) -gt 2 ] || exit 1; {specs.IDLE}"


def data():
    return {"volumeMounts": [mount("data", "/data")]}


def empty_dir(**fields):
    return {"volumes": [{"name": "data", "emptyDir": fields}]}


def probe(*words, **fields):
    return {"exec": {"command": list(words)}, "periodSeconds": 1, **fields}


def program(*words, **fields):
    return {**container(**fields), "command": list(words)}


# Pods that run

def deployment(run):
    run.node.workload("Deployment", run.name, replicas=2)
    yield all_ready(2)
    yield RESTARTED
    run.client.patch("deployments", run.node.namespace, run.name, {"spec": {"replicas": 1}})
    yield all_ready(1)


def deployment_that_crashes_for_a_while(run):
    run.node.workload("Deployment", run.name, container(script=CRASH_TWICE, **data()), replicas=1, template=empty_dir())
    yield both(all_ready(1), was_restarted(2))
    yield RESTARTED
    yield all_ready(1)


def deployment_that_crashes(run):
    run.node.workload("Deployment", run.name, container(script="exit 7"), replicas=1)
    yield waits("CrashLoopBackOff", 2)
    yield RESTARTED
    yield waits("CrashLoopBackOff", 2)


def daemon_set(run):
    run.node.workload("DaemonSet", run.name, container(env=[{"name": "V", "value": "1"}]))
    yield all_ready(1)
    yield RESTARTED
    run.patch("daemonsets", containers=[{"name": "main", "env": [{"name": "V", "value": "2"}]}])
    yield lambda run: len(run.pods()) == 2 and all_ready(1)(run)


def stateful_set(run):
    run.node.workload("StatefulSet", run.name, container(env=[{"name": "V", "value": "1"}]), replicas=2, serviceName=run.name)
    yield all_ready(2)
    yield RESTARTED
    run.patch("statefulsets", containers=[{"name": "main", "env": [{"name": "V", "value": "2"}]}])
    yield lambda run: len(run.pods()) == 4 and all_ready(2)(run)


def sidecar(run):
    run.bind(container(script="sleep 1"), restartPolicy="Never",
             initContainers=[container("side", restartPolicy="Always"), container("first", script="exit 0")])
    yield all_in("Succeeded")


def succeeds(run):
    run.bind(container(script="exit 0"), container("other", script="sleep 1"), restartPolicy="OnFailure")
    yield all_in("Succeeded")
    yield RESTARTED


def fails(run):
    run.bind(container(script="exit 3"), container("other", script="sleep 1"), restartPolicy="Never")
    yield all_in("Failed")
    yield RESTARTED


def completes_again_and_again(run):
    run.bind(container(script="exit 0"))
    yield waits("CrashLoopBackOff", 1)


def says_why_it_ends(run):
    run.bind(container(script="echo first >/dev/termination-log; exit 2"),
             container("other", script="echo second; exit 2", terminationMessagePolicy="FallbackToLogsOnError"),
             restartPolicy="Never")
    yield all_in("Failed")


def host_network(run):
    run.bind(hostNetwork=True)
    yield all_ready(1)


def readiness_gate(run):
    run.bind(readinessGates=[{"conditionType": "example.com/gate"}])
    yield lambda run: any(status["ready"] for pod in run.pods() for status in statuses(pod))


def image_is_changed(run):
    run.bind()
    yield all_ready(1)
    run.client.patch("pods", run.node.namespace, run.name, {"spec": {"containers": [{"name": "main", "image": ABSENT}]}})
    yield waits("ImagePullBackOff")


def ephemeral_container(run):
    run.bind()
    yield all_ready(1)
    run.client.patch("pods", run.node.namespace, run.name, {"spec": {"ephemeralContainers": [
        container("debug", script="exit 6")]}}, "ephemeralcontainers")
    yield lambda run: any("terminated" in status["state"] for pod in run.pods()
                          for status in pod["status"].get("ephemeralContainerStatuses", []))


# Jobs

def job(run):
    run.job(container(script="exit 0"), completions=2)
    yield both(lambda run: run.job_is("Complete"), all_in("Succeeded"))
    yield RESTARTED


def job_that_fails(run):
    run.job(container(script="exit 1"), backoffLimit=2)
    yield both(lambda run: run.job_is("Failed"), all_in("Failed"))
    yield RESTARTED


def job_that_is_restarted(run):
    """The container of the job runs when the controller gives up."""
    run.job(container(script="trap 'exit 1' TERM; [ -e /data/again ] || { touch /data/again; exit 1; }; sleep 100000 & wait", **data()),
            restart="OnFailure", backoffLimit=1, **empty_dir())
    yield lambda run: run.job_is("Failed") and run.all_deleted()


def job_with_a_deadline(run):
    run.job(container(script="trap 'exit 1' TERM; sleep 100000 & wait"), activeDeadlineSeconds=30)
    yield lambda run: run.job_is("Failed") and run.all_deleted()


# Pods that cannot start

def image_is_never_pulled(run):
    run.replica_set(container(image=ABSENT, imagePullPolicy="Never"))
    yield waits("ErrImageNeverPull")
    yield RESTARTED
    yield waits("ErrImageNeverPull")


def image_is_absent(run):
    run.replica_set(container(image=ABSENT))
    yield waits("ImagePullBackOff")
    yield RESTARTED
    yield waits("ImagePullBackOff")


def image_has_a_bad_name(run):
    run.replica_set(container(image="Upper//case"))
    yield waits("InvalidImageName")


def variable_of_an_absent_config_map(run):
    run.replica_set(container(env=[{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "absent", "key": "k"}}}]))
    yield waits("CreateContainerConfigError")
    yield RESTARTED
    yield waits("CreateContainerConfigError")


def volume_of_an_absent_config_map(run):
    run.replica_set(container(**data()), volumes=[{"name": "data", "configMap": {"name": "absent"}}])
    yield both(waits("ContainerCreating"), has_event("FailedMount"))
    yield RESTARTED
    yield waits("ContainerCreating")


def absent_claim(run):
    """A pod with a missing claim, which no scheduler would place."""
    run.replica_set(container(**data()), nodeName=run.node.node_name,
                    volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "absent"}}])
    yield both(waits("ContainerCreating"), has_event("FailedMount"))
    yield RESTARTED
    yield waits("ContainerCreating")


def absent_csi_driver(run):
    run.replica_set(container(**data()), volumes=[{"name": "data", "csi": {"driver": "absent.example.com"}}])
    yield both(waits("ContainerCreating"), has_event("FailedMount"))
    yield RESTARTED
    yield waits("ContainerCreating")


def absent_pull_secret(run):
    run.bind(imagePullSecrets=[{"name": "absent"}])
    yield both(all_ready(1), has_event("FailedToRetrieveImagePullSecret"))


def absent_host_path(run):
    run.bind(container(**data()), volumes=[specs.host_path("data", "/absent/directory", type="Directory")])
    yield both(waits("ContainerCreating"), has_event("FailedMount"))


def absent_seccomp_profile(run):
    run.bind(container(securityContext={"seccompProfile": {"type": "Localhost", "localhostProfile": "absent.json"}}))
    yield waits("CreateContainerError")


def root_is_refused(run):
    run.bind(container(securityContext={"runAsNonRoot": True}))
    yield waits("CreateContainerConfigError")


def absent_program(run):
    """The kubelet alternates between two reasons; Mainstay keeps the one that contains the cause."""
    run.bind(program("/absent"))
    yield waits("RunContainerError" if isinstance(run.node, ClusterNode) else "CrashLoopBackOff", 1)


def absent_program_once(run):
    run.bind(program("/absent"), restartPolicy="Never")
    yield all_in("Failed")


# Pods that the node refuses

def host_port(run):
    run.bind(container(ports=[{"containerPort": 80, "hostPort": 8080}]))
    yield all_ready(1)
    run.bind(container(ports=[{"containerPort": 80, "hostPort": 8080}]), suffix="-2")
    yield lambda run: any(pod["status"].get("phase") == "Failed" for pod in run.pods())
    yield RESTARTED


def too_many_processors(run):
    run.bind(container(resources={"requests": {"cpu": "1000"}}))
    yield all_in("Failed")
    yield RESTARTED


def too_much_memory(run):
    run.bind(container(resources={"requests": {"memory": "1000Ti"}}))
    yield all_in("Failed")


def another_node_is_selected(run):
    run.bind(nodeSelector={"absent": "label"})
    yield all_in("Failed")


def sysctl_is_not_allowed(run):
    run.bind(securityContext={"sysctls": [{"name": "net.core.somaxconn", "value": "100"}]})
    yield all_in("Failed")


# Hooks, probes, init containers

def pre_stop_fails(run):
    run.bind(container(lifecycle={"preStop": {"exec": {"command": ["false"]}}}))
    yield all_ready(1)
    run.delete()
    yield deleted


def post_start_fails(run):
    run.bind(container(lifecycle={"postStart": {"exec": {"command": ["false"]}}}))
    yield both(waits("PostStartHookError", 1), has_event("FailedPostStartHook"))


def liveness_fails(run):
    run.bind(container(livenessProbe=probe("false", failureThreshold=2)))
    yield both(all_ready(1), was_restarted(1))
    run.delete()
    yield deleted


def readiness_fails(run):
    run.bind(container(readinessProbe=probe("false")))
    yield both(has_event("Unhealthy"), all_run)
    yield RESTARTED


def startup_fails(run):
    run.bind(container(script=STUBBORN, startupProbe=probe("false", failureThreshold=2)), restartPolicy="Never")
    yield all_in("Failed")


def init_fails(run):
    run.bind(initContainers=[container("first", script="exit 4")], restartPolicy="Never")
    yield all_in("Failed")


def init_fails_again_and_again(run):
    run.bind(initContainers=[container("first", script="exit 4")])
    yield waits("CrashLoopBackOff", 1)


# Ends

def deadline_of_a_pod(run):
    run.bind(activeDeadlineSeconds=30)
    yield all_in("Failed")
    yield RESTARTED


def deadline_of_a_stubborn_one(run):
    run.bind(container(script=STUBBORN), activeDeadlineSeconds=30)
    yield all_in("Failed")


def out_of_memory(run):
    run.bind(program("tail", "/dev/zero", resources={"limits": {"memory": "32Mi"}}), restartPolicy="Never")
    yield all_in("Failed")
    yield RESTARTED


def empty_dir_is_too_large(run):
    """The kubelet's last status of such a pod depends on a race: sometimes it is Succeeded, without a reason."""
    run.compares_pods = False
    run.bind(container(script=f"head -c 20000000 /dev/zero >/data/file; {specs.IDLE}", **data()),
             **empty_dir(sizeLimit="10Mi"))
    yield both(has_event("Evicted"), has_event("Killing"), has_ended)
    yield RESTARTED
    yield has_ended


def eviction(run):
    run.node.workload("Deployment", run.name, replicas=1)
    yield all_ready(1)
    run.evict(run.pods()[0]["metadata"]["name"])
    yield lambda run: len(run.pods()) == 2 and all_ready(1)(run)


def deletion(run):
    """The pod takes a while to end after SIGTERM."""
    run.bind(container(script="trap 'sleep 1; exit 5' TERM; while :; do sleep 0.2; done"), terminationGracePeriodSeconds=20)
    yield all_ready(1)
    yield RESTARTED
    run.delete()
    yield deleted


def deletion_of_a_stubborn_one(run):
    run.bind(container(script=STUBBORN))
    yield all_ready(1)
    run.delete(grace=1)
    yield deleted


def deletion_by_force(run):
    run.bind()
    yield all_ready(1)
    run.delete(grace=0)
    yield deleted


def deletion_before_it_starts(run):
    run.bind(container(image=ABSENT))
    yield waits("ImagePullBackOff")
    run.delete()
    yield deleted


def find_workloads():
    """All workloads in this file; long ones start first."""
    slow = [empty_dir_is_too_large, job_that_fails, deployment_that_crashes, deadline_of_a_pod, deadline_of_a_stubborn_one,
            job_with_a_deadline, image_is_absent]
    helpers = (data, empty_dir, probe, program, find_workloads)
    return slow + [one for one in globals().values() if getattr(one, "__module__", "") == __name__ and callable(one)
                   and one not in slow and one not in helpers]
