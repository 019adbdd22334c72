"""Facts of a healthy installation, and ways to spoil it."""

import base64
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.uidranges import MOST_RANGES
from flotilla_common.bus.heartbeat import VERSION, Heartbeat
from flotilla_common.bus.jetstream import stream_config
from flotilla_common.bus.subjects import Marker
from flotilla_common.control.leases import micro_time
from flotilla_common.gates import Gates
from flotilla_insight.doctor import expected
from flotilla_insight.doctor.catalogue import examine
from flotilla_insight.doctor.facts import (
    Account,
    Backend,
    Banner,
    Certificate,
    Fact,
    Facts,
    Leases,
    Probe,
    ReplicaHeartbeat,
    Rights,
    Sample,
    Server,
    Stream,
)
from flotilla_insight.doctor.finding import Finding, Outcome
from flotilla_insight.doctor.gather.bus import wanted, with_markers
from flotilla_insight.doctor.gather.cluster import INVALID, OLD, VALID
from flotilla_insight.installation import rbac
from flotilla_insight.installation.endpoint import clients
from flotilla_insight.installation.manifests import OWN_LEASES, manifests
from flotilla_webhook.server.certificates import issue
from tests.testkit import pods as pods_of
from tests.testkit.documents import conditions

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
SERVICES = expected.ALL
DENIED = 'admission webhook "vcloneset.kb.io" denied the request: spec.template.metadata.labels: Invalid value'
UNREACHED = (
    'Internal error occurred: failed calling webhook "mcloneset.kb.io": failed to call webhook: Post "https://…": '
)


def well(**changes: Any) -> Facts:
    """Return the facts of an installation by `flotilla run`, with one node and its agent."""
    facts = Facts(
        now=NOW,
        namespace=rbac.NAMESPACE,
        server=Fact(Server("v1.36.3", 0.1)),
        definitions=Fact(all_definitions()),
        hooks=Fact(configurations()),
        backends=Fact({(rbac.NAMESPACE, "kruise-webhook-service"): Backend(True, 1)}),
        home=Fact({"metadata": {"name": rbac.NAMESPACE, "labels": {"control-plane": "openkruise"}}}),
        probes=Fact(probes()),
        rights=Fact(rights()),
        policies=Fact(frozenset({OWN_LEASES})),
        leases=Fact(Leases([lease(one, version="1") for one in SERVICES], [lease(one) for one in SERVICES])),
        leader=Fact(Json()),
        nodes=Fact([node("worker-1")]),
        node_leases=Fact([node_lease("worker-1")]),
        workloads=Fact(list[Json]()),
        pods=Fact(list[Json]()),
        foreign=Fact(dict[str, int]()),
        webhook_certificate=Fact(Certificate(NOW - timedelta(days=1), NOW + timedelta(days=3000))),
        banners=Fact([Banner("nats://bus:4222", "2.15.2")]),
        account=Fact(Account(1 << 20, 1 << 30)),
        streams=Fact({name: stream(name) for name in wanted()}),
        heartbeats=Fact([*map(heard, SERVICES), agent("worker-1")]),
        samples=Fact({resource.id: Sample(20, version="1000") for resource in with_markers().values()}),
        enrolled=frozenset({"worker-1"}),
    )
    return msgspec.structs.replace(facts, **changes)


def found(facts: Facts) -> list[Finding]:
    """Return the findings of all checks."""
    return [finding for outcome in outcomes(facts) for finding in outcome.findings]


def outcomes(facts: Facts) -> Sequence[Outcome]:
    """Return the outcomes of all checks."""
    return examine(facts)


def codes(facts: Facts) -> list[str]:
    """Return the codes of all findings."""
    return [finding.code for finding in found(facts)]


def definition(name: str = "clonesets.apps.kruise.io") -> Json:
    """Return a CRD as the apiserver has it."""
    return all_definitions()[name]


def all_definitions(**changed: Json) -> dict[str, Json]:
    """Return all CRDs by name."""
    conditions = [{"type": one, "status": "True"} for one in ("NamesAccepted", "Established")]
    made = [one for one in _documents() if one["kind"] == "CustomResourceDefinition"]
    status = {"status": {"conditions": conditions}}
    return {one["metadata"]["name"]: trusting(one, bundle()) | status for one in made} | changed


@cache
def bundle(age: timedelta = timedelta(days=1)) -> str:
    """Return a caBundle: of an authority that was created this long ago, for ten years."""
    return base64.b64encode(issue("webhook", NOW - age).ca_cert).decode()


def configurations(authority: str = "") -> list[Json]:
    """Return both configurations, as the running webhook keeps them."""
    return [trusting(one, authority or bundle()) for one in _documents() if "webhooks" in one]


def trusting(document: Json, authority: str) -> Json:
    """Return the document with that caBundle in every entry."""
    for client in clients(document).values():
        client["caBundle"] = authority
    return document


def _documents() -> list[Json]:
    return msgspec.json.decode(_encoded(), type=list[Json])


@cache
def _encoded() -> bytes:
    return msgspec.json.encode(manifests(Gates.parse("")))


def probes(**told: Probe) -> list[Probe]:
    """Return the results of the dry runs, with some replaced by name."""
    usual = {
        INVALID: Probe(INVALID, 403, DENIED),
        VALID: Probe(VALID, 201, body={"spec": {"revisionHistoryLimit": 10}}),
        OLD: Probe(OLD, 201),
    }
    return list((usual | told).values())


def rights(made: list[Json] | None = None) -> Rights:
    """Return the rights that `flotilla install` creates."""
    documents = rbac.objects() if made is None else made
    return Rights([one for one in documents if "rules" in one], [one for one in documents if "roleRef" in one])


def lease(
    service: str,
    shard: str = "0",
    *,
    version: str = "2",
    holder: str | None = None,
    role: str = "shard",
    number: str = "1",
    ago: float = 1,
    held: float = 3600,
    namespace: str = rbac.NAMESPACE,
) -> Json:
    """Return one lease, renewed `ago` seconds before now, and acquired `held` seconds before."""
    labels = {f"flotilla.kruise.io/{key}": value for key, value in (("service", service), ("role", role))}
    metadata = {
        "name": f"flotilla-{service}-{shard}",
        "namespace": namespace,
        "resourceVersion": version,
        "labels": labels | ({"flotilla.kruise.io/shards": number} if number else {}),
    }
    spec = {
        "holderIdentity": f"{service}-r1-abc" if holder is None else holder,
        "leaseDurationSeconds": 15,
        "renewTime": micro_time(NOW - timedelta(seconds=ago)),
        "acquireTime": micro_time(NOW - timedelta(seconds=held)),
    }
    return {"metadata": metadata, "spec": spec}


def heard(service: str, replica: str = "", **more: Any) -> ReplicaHeartbeat:
    """Return one live replica; `ahead` and `ago` are those of `Heard`."""
    name = replica or f"{service}-r1"
    ahead = more.pop("ahead", 0.05)
    usual: dict[str, Any] = {"version": VERSION, "at": NOW, "holder": f"{name}-abc", "gates": ""}
    return ReplicaHeartbeat(Heartbeat(service=service, replica=name, **usual | more), ahead)


def agent(name: str, **more: Any) -> ReplicaHeartbeat:
    """Return the agent of a node."""
    return heard("nodeagent", name, **{"gates": None, "holder": "", **more})


def node(name: str, *, ready: bool = True, taints: Sequence[Json] = ()) -> Json:
    """Return a Node."""
    state = conditions({"Ready": ready or "Unknown"})
    return {"metadata": {"name": name}, "spec": {"taints": list(taints)}, "status": {"conditions": state}}


def node_lease(name: str, ahead: float = -3) -> Json:
    """Return a node's lease, renewed with a clock that is `ahead` seconds fast."""
    return {"metadata": {"name": name}, "spec": {"renewTime": micro_time(NOW + timedelta(seconds=ahead))}}


def stream(name: str, *, state: str = "synced", age: float = 2, rv: str = "900", **more: Any) -> Stream:
    """Return a stream as the server has it, whose marker is `age` seconds old."""
    config = {key: value for key, value in stream_config(wanted(MOST_RANGES)[name]).items() if value}
    usual: dict[str, Any] = {"config": config, "now": NOW}
    if name in with_markers(MOST_RANGES):
        usual |= {"marker": Marker(epoch="0.a", state=state, rv=rv), "marked": NOW - timedelta(seconds=age)}
    return Stream(**usual | more)


def workload(kind: str, name: str, component: str = "", *, namespace: str = rbac.NAMESPACE, **spec: Any) -> Json:
    """Return a workload whose rollout is complete."""
    replicas = spec.get("replicas", 1)
    labels = {"app.kubernetes.io/component": component, "app.kubernetes.io/version": VERSION}
    status = {"replicas": replicas, "updatedReplicas": replicas, "observedGeneration": 1}
    if kind == "DaemonSet":
        status = {"updatedNumberScheduled": 1, "desiredNumberScheduled": 1, "observedGeneration": 1}
    account = {"serviceAccountName": name} if component else {}
    template = {
        "spec": {"tolerations": spec.pop("tolerations", []), "nodeSelector": spec.pop("selector", {}), **account}
    }
    metadata = {"name": name, "namespace": namespace, "generation": 1, "labels": labels if component else {}}
    return {"kind": kind, "metadata": metadata, "spec": {"template": template, **spec}, "status": status}


def pod(name: str, component: str = "cloneset", *, where: str = "worker-1", **status: Any) -> Json:
    """Return a pod of the chart."""
    labels, made = {"app.kubernetes.io/component": component}, NOW - timedelta(hours=1)
    ready = conditions({"Ready": True})
    meta = {"labels": labels, "created": made.isoformat()}
    return pods_of.pod(name, rbac.NAMESPACE, node=where, conditions=ready, status=status, **meta)
