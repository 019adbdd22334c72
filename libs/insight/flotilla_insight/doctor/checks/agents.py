"""Checks the node agents: in contact, with a container runtime, and on every node that they are meant for.

An agent is expected if the chart has a pod for it, if credentials were made, and if the bus has copies for the node:
these had a reader within the last ten minutes. Nodes that are not ready, or gone, are left to Kubernetes.
"""

from collections.abc import Iterator, Mapping

from flotilla_common.api.documents import Json, mappings, member, strings, text
from flotilla_common.api.uidranges import MOST_RANGES
from flotilla_common.bus.heartbeat import NODE_AGENT
from flotilla_common.bus.subjects import inbox_node
from flotilla_insight.doctor.expected import AGENT, agents_by_chart, component
from flotilla_insight.doctor.facts import Facts, ReplicaHeartbeat, Stream
from flotilla_insight.doctor.finding import Finding, Looked, broken, warning
from flotilla_insight.doctor.gather.bus import with_copies
from flotilla_insight.installation.objects import is_leaving, is_true, name_of

RUNTIME = "runtime"
"""Name of the container runtime in the agent's readiness."""

_START = "see its pod or process and its log; `flotilla up` starts that of a local cluster (docs/nodeagent.md)"


def check(facts: Facts) -> Looked:
    """Check each agent with heartbeats, each expected one without, and each node that should have one."""
    heard = {one.beat.replica: one for one in facts.heartbeats.get() if one.beat.service == NODE_AGENT}
    ready = {name_of(node): node for node in facts.nodes.get() if is_true(node, "Ready") and not _is_fake(node)}
    for node, one in heard.items():
        yield from _waiting(node, one)
    streams = [one for name, one in (facts.streams.found or {}).items() if one and name in with_copies(MOST_RANGES)]
    reading = {inbox_node(reader.inbox) for stream in streams for reader in stream.consumers}
    for node, because in _expected(facts, streams).items():
        if node in ready and node not in heard:
            yield _silent(node, because, reads=node in reading)
    yield from _without(facts, ready)
    return f"{len(heard)} node agents on {len(facts.nodes.get())} nodes"


def _waiting(node: str, one: ReplicaHeartbeat) -> Iterator[Finding]:
    about = f"agent of {node}"
    if why := one.beat.waiting.get(RUNTIME):
        said = f"it reaches no container runtime: {why}"
        advice = "start the runtime, or name its socket (--cri-socket, `daemon.socketFile`)"
        yield broken("RuntimeUnanswered", about, said, advice)
    others = {part: why for part, why in one.beat.waiting.items() if part != RUNTIME}
    if others:
        said = "; ".join(f"{part}: {why}" for part, why in sorted(others.items()))
        yield broken("AgentWaits", about, f"it is not ready: {said}", _START)


def _expected(facts: Facts, streams: list[Stream]) -> Mapping[str, str]:
    """Return the nodes whose agents should send heartbeats, with the evidence."""
    served = {node for stream in streams for node in stream.nodes}
    chart = agents_by_chart(facts)
    pods = [
        pod
        for pod in facts.pods.found or ()
        if component(pod) == AGENT and is_true(pod, "Ready") and not is_leaving(pod)
    ]
    placed = {text(member(pod, "spec").get("nodeName")) for pod in pods if is_true(pod, "Ready")}
    if chart is not None:
        return dict.fromkeys(sorted(placed - {""}), "its pod is running")
    return dict.fromkeys(sorted(served), "it has recently read the bus") | dict.fromkeys(
        sorted(facts.enrolled), "the node has credentials for it"
    )


def _silent(node: str, because: str, *, reads: bool) -> Finding:
    """Return the finding.

    A node whose copies are still being read does not prove a live agent: the bus keeps a consumer for half a minute.
    """
    said = f"no heartbeat, so nothing is pulled or restarted there; expected because {because}"
    if reads:
        said += "; it reads the bus, so it has just stopped, or is of an earlier release without heartbeats"
    return broken("AgentSilent", f"agent of {node}", said, _START)


def _without(facts: Facts, ready: Mapping[str, Json]) -> Iterator[Finding]:
    """Report nodes that the chart's DaemonSet selects and whose taints keep it away."""
    chart = agents_by_chart(facts)
    if chart is None:
        return
    spec = member(chart, "spec", "template", "spec")
    if spec.get("affinity") or spec.get("nodeSelector"):
        return  # an administrator has chosen the nodes
    tolerations = mappings(spec.get("tolerations"))
    for node, document in ready.items():
        taints = [
            one for one in mappings(member(document, "spec").get("taints")) if one.get("effect") != "PreferNoSchedule"
        ]
        kept = [one for one in taints if not any(_tolerates(each, one) for each in tolerations)]
        if kept:
            said = f"no agent runs on it: taint {text(kept[0].get('key'))} is not tolerated"
            advice = "add it to `daemon.tolerations`, or choose the nodes with `daemon.nodeSelector`"
            yield warning("NodeWithoutAgent", f"node {node}", said, advice)


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return (toleration.get("key"), toleration.get("value") or "") == (taint.get("key"), taint.get("value") or "")


def _is_fake(node: Json) -> bool:
    """Report whether it is a node of kwok, where nothing really runs."""
    return any(key.startswith("kwok.x-k8s.io/") for key in strings(member(node, "metadata").get("annotations")))
