# SPDX-License-Identifier: Apache-2.0
"""Runs the same workloads on several nodes of one control plane at the same time, and converts the API server's data
about them to facts: lines of text without names, times and numbers that depend on either."""

import collections
import http.client
import json
import re
import threading
import time

import specs
from client import Refused
from node import condition, is_ready

# The events for which a workload waits: its start and, if it yields this one, a restart of its node's agent.
START, RESTARTED = object(), object()
AGENTS = ("kubelet", "mainstay")  # the components of their events
KINDS = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
STEP_SECONDS = 240
PACE = 0.7  # seconds between two workloads: otherwise the deadline of a slow pod could pass before its container runs


class Pods(threading.Thread):
    """All pods that the namespace has ever had, each in its last state."""

    def __init__(self, plane, namespace):
        super().__init__(daemon=True)
        self.client = plane.make_client("admin")
        self.path = f"/api/v1/namespaces/{namespace}/pods?watch=true"
        self.latest, self.deleted, self.problem = {}, set(), None
        self.start()

    def run(self):
        try:
            self.client.connection.timeout = None
            self.client.connection.request("GET", self.path)
            response = self.client.connection.getresponse()
            for line in response:
                self.take(json.loads(line))
            self.problem = "the watch ended"
        except (OSError, ValueError, http.client.HTTPException, AttributeError) as error:
            self.problem = f"the watch failed: {error!r}"

    def take(self, event):
        if event["type"] == "ERROR":
            self.problem = str(event["object"])
            return
        uid = event["object"]["metadata"]["uid"]
        self.latest[uid] = event["object"]
        if event["type"] == "DELETED":
            self.deleted.add(uid)

    def of(self, app):
        """The pods in the order of their creation."""
        pods = [pod for pod in list(self.latest.values()) if pod["metadata"].get("labels", {}).get("app") == app]
        return sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))


class Run:
    """One workload on one node. 'make' is a generator: it creates objects, and yields the event that it waits for: a
    predicate of this run, or RESTARTED."""

    def __init__(self, node, pods, make):
        self.node, self.client, self.watched, self.make = node, node.client, pods, make
        self.name = make.__name__.replace("_", "-")
        self.steps = make(self)
        self.awaited, self.since, self.facts, self.step = START, time.monotonic(), set(), 0
        self.compares_pods = True  # otherwise only their number and the events are compared

    def advance(self):
        self.awaited, self.since, self.step = next(self.steps, None), time.monotonic(), self.step + 1

    def poll(self):
        """Does everything that can be done now; the states of the pods at the end of each step are facts."""
        while self.is_busy() and self.awaited(self):
            for pod in self.pods() if self.compares_pods else ():
                self.facts.update(describe_pod(pod))
            self.advance()
        assert not self.is_busy() or time.monotonic() < self.since + STEP_SECONDS, \
            f"{self.name} on {type(self.node).__name__}, step {self.step} did not come to its end: {self.state()}"

    def is_busy(self):
        return self.awaited not in (None, START, RESTARTED)

    def state(self):
        return json.dumps([[pod["metadata"]["name"], pod["status"]] for pod in self.pods()])[:4000] + \
            f"\n{self.describe_events()}\nthe log of the agent:\n{self.node.said()[-3000:]}"

    def describe_events(self):
        return [f"{event['type']} {event['reason']}: {event['message']}" for pod in self.pods()
                for event in self.node.events(pod["metadata"]["name"])]

    # The pods

    def pods(self):
        return self.watched.of(self.name)

    def live(self):
        return [pod for pod in self.pods() if pod["metadata"]["uid"] not in self.watched.deleted]

    def all_deleted(self):
        return bool(self.pods()) and not self.live()

    # Actions of workloads

    def labels(self):
        return {"labels": {"app": self.name}}

    def bind(self, *containers, suffix="", **fields):
        self.node.bind(self.name + suffix, *containers, metadata=self.labels(), **fields)

    def replica_set(self, *containers, **template):
        self.node.workload("ReplicaSet", self.name, *containers, replicas=1, template=template)

    def job(self, *containers, restart="Never", volumes=(), **fields):
        self.node.create("Job", self.name, "batch/v1", spec={"template": {
            "metadata": self.labels(), "spec": self.node.spec(*containers, restartPolicy=restart, volumes=list(volumes))}, **fields})

    def job_is(self, kind):
        job = self.node.read("jobs", self.name)
        return condition(job, kind).get("status") == "True"

    def patch(self, plural, **fields):
        self.client.patch(plural, self.node.namespace, self.name, self.node.template_patch(**fields))

    def delete(self, suffix="", grace=None):
        self.client.delete("pods", self.node.namespace, self.name + suffix, grace=grace)

    def evict(self, name):
        self.client.post("pods", self.node.namespace, name, "eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": self.node.namespace}})


# Events that workloads wait for

def statuses(pod):
    return [status for kind in KINDS for status in pod["status"].get(kind, [])]


def all_ready(count):
    """Whether this number of pods exists, all of them ready."""
    return lambda run: len(run.live()) == count and all(
        is_ready(pod) and "deletionTimestamp" not in pod["metadata"] for pod in run.live())


def all_run(run):
    """Whether all pods run, ready or not."""
    return bool(run.live()) and all(pod["status"].get("phase") == "Running" and all(
        "running" in status["state"] for status in statuses(pod)) for pod in run.live())


def all_in(phase):
    """Whether all pods are in this phase and have no sandbox, which a kubelet may remove later."""
    return lambda run: bool(run.pods()) and all(
        pod["status"].get("phase") == phase and condition(pod, "PodReadyToStartContainers").get("status") != "True"
        for pod in run.pods())


def has_ended(run):
    return bool(run.pods()) and all(pod["status"].get("phase") in ("Succeeded", "Failed") for pod in run.pods())


def waits(reason, restarts=0):
    """Whether a container of each pod waits for this reason."""
    return lambda run: bool(run.live()) and all(any(
        status["state"].get("waiting", {}).get("reason") == reason and status["restartCount"] >= restarts
        for status in statuses(pod)) for pod in run.live())


def was_restarted(count):
    return lambda run: any(status["restartCount"] >= count for pod in run.live() for status in statuses(pod))


def has_event(reason):
    return lambda run: bool(run.pods()) and all(run.node.events(pod["metadata"]["name"], reason) for pod in run.pods())


def both(*predicates):
    return lambda run: all(predicate(run) for predicate in predicates)


def deleted(run):
    return run.all_deleted()


# Facts

def describe_pod(pod):
    """The facts about a pod, without those that depend on the time."""
    status = pod["status"]
    yield "pod: " + " ".join(word for word in (status.get("phase"), status.get("reason")) if word)
    if status.get("message"):
        yield f"pod says: {neutral(status['message'], pod)}"
    for one in status.get("conditions", []):
        yield " ".join(word for word in ("condition", one["type"], one["status"], one.get("reason")) if word)
        if one.get("message"):
            yield f"condition {one['type']} says: {neutral(one['message'], pod)}"
    for field in status:
        yield f"pod has {field}"
    for kind in KINDS:
        for one in status.get(kind, []):
            yield from describe_container(one)


def describe_container(status):
    name = status["name"]
    yield f"{name}: {describe_state(status['state'])}"
    if status["lastState"]:
        yield f"{name} before: {describe_state(status['lastState'])}"
    yield f"{name}: {'was' if status['restartCount'] else 'was not'} restarted"
    yield f"{name}: {'ready' if status['ready'] else 'not ready'}, {'started' if status.get('started') else 'not started'}"
    for field in status:
        yield f"{name} has {field}"


def describe_state(state):
    kind, fields = next(iter(state.items()), ("none", {}))
    message = fields.get("message", "").strip() if fields.get("reason") in ("Error", "Completed") else ""
    return " ".join(str(word) for word in (kind, fields.get("reason"), fields.get("exitCode"), fields.get("signal"), message)
                    if word not in (None, ""))


def neutral(text, pod):
    """The text without parts that differ between any two nodes."""
    metadata = pod["metadata"]
    for value, word in ((metadata["uid"], "UID"), (metadata["name"], "POD"), (metadata["namespace"], "NAMESPACE")):
        text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", word, text)
    return re.sub(r"\b(containerd|mainstay)://[0-9a-f]+", "CONTAINER", text)


def component(event):
    found = event.get("reportingComponent") or event.get("source", {}).get("component", "")
    return "agent" if found in AGENTS else found


def describe_events(run, events):
    """The set of events about the pods; if nothing was restarted or retried, also the number of those that must
    occur exactly once for each occurrence."""
    pods = {pod["metadata"]["name"] for pod in run.pods()}
    counts = collections.Counter()
    backs_off = any(": waiting CrashLoopBackOff" in fact or ": waiting ImagePullBackOff" in fact for fact in run.facts)
    for event in events:
        about = event["involvedObject"]
        # A busy agent may miss the waiting state of a container between two starts, which lasts only a moment.
        if event["reason"] == "BackOff" and not backs_off:
            continue
        # A pod that is not in the server's caches yet gets no token at first.
        if event["reason"] == "FailedMount" and '"kube-api-access-' in event["message"]:
            continue
        if about["kind"] == "Pod" and about["name"] in pods:
            yield " ".join(word for word in ("event", component(event), event["type"], event["reason"], about.get("fieldPath"))
                           if word)
            counts[event["reason"]] += event.get("count") or 1
        elif about["kind"] != "Pod" and re.match(rf"{run.name}(-[0-9a-f]+)?$", about["name"]):
            yield f"event {component(event)} {event['type']} {event['reason']} of a {about['kind']}"
    if not any(": was restarted" in fact or ": waiting" in fact for fact in run.facts):
        yield from (f"events {reason}: {counts[reason]}" for reason in ("Scheduled", "Created", "Started", "Killing"))


def describe_node(node):
    """The Node itself, as if it were a workload."""
    obj = node.node()
    facts = {f"condition {one['type']} {one['status']} {one['reason']}" for one in obj["status"]["conditions"]}
    facts.update(f"taint {taint['key']}" for taint in obj["spec"].get("taints", []))
    facts.update(f"label {label}" for label in obj["metadata"]["labels"])
    return facts | {f"event {component(event)} {event['type']} {event['reason']}" for event in node.client.all(
        "events", "default", fieldSelector=f"involvedObject.kind=Node,involvedObject.name={node.node_name}")}


def describe(run, events):
    return {*run.facts, *describe_events(run, events), f"pods that were ever made: {len(run.pods())}"}


# All of it

def poll_all(runs):
    for run in runs:
        run.poll()
    for pods in {id(run.watched): run.watched for run in runs}.values():
        assert not pods.problem, pods.problem
    time.sleep(0.2)


def compare(nodes, workloads, restart):
    """Returns each node's facts by workload, and the events. 'restart' restarts the agents of all nodes."""
    runs = [Run(node, pods, make) for node, pods in [(node, Pods(node.plane, node.namespace)) for node in nodes]
            for make in workloads]
    for make in workloads:
        for run in runs:
            if run.make is make:
                run.advance()
        started = time.monotonic()
        while time.monotonic() < started + PACE:
            poll_all(runs)
    while any(run.is_busy() for run in runs):
        poll_all(runs)
    restart()
    for run in runs:
        if run.awaited is RESTARTED:
            run.advance()
    while any(run.is_busy() for run in runs):
        poll_all(runs)
    time.sleep(2)  # the last events may not have arrived yet
    events = {node: node.client.all("events", node.namespace) for node in nodes}
    return [{"node": describe_node(node), **{run.name: describe(run, events[node]) for run in runs if run.node is node}}
            for node in nodes], list(events.values())


def print_events(workload, events):
    return [f"{event['involvedObject']['name']}: {event.get('firstTimestamp')} to {event.get('lastTimestamp')}: {event['reason']} "
            f"x{event.get('count')}: {event['message']}" for event in events if event["involvedObject"]["name"].startswith(workload)]


def differences(names, facts):
    """(workload, fact, the only node that has it)."""
    first, second = facts
    return sorted((workload, fact, names[0] if fact in first[workload] else names[1])
                  for workload in first for fact in first[workload] ^ second[workload])
