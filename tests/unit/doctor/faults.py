"""Faults, each in an otherwise healthy installation, with the codes of the expected findings."""

from datetime import timedelta

from flotilla_common.api.documents import Json
from flotilla_common.control.leases import micro_time
from flotilla_insight.doctor.facts import (
    Account,
    Backend,
    Banner,
    Certificate,
    Consumer,
    Fact,
    Facts,
    Leases,
    Probe,
    Sample,
    Server,
)
from flotilla_insight.doctor.gather.cluster import INVALID, OLD, VALID
from flotilla_insight.installation.manifests import NO_MANAGED_FIELDS
from tests.unit.doctor import build
from tests.unit.doctor.build import NOW, heard, lease, pod, stream, well, workload
from tests.unit.doctor.spoil import (
    AGENTS,
    ALL_RIGHTS,
    CHART,
    CLONE_SETS,
    DAEMON,
    FAR,
    MANAGER,
    OPENKRUISE,
    PODS,
    TAINT,
    UNREACHED,
    beside_hooks,
    bound_beside,
    changed_definition,
    entries_without,
    entry_changed,
    foreign_configuration,
    instead,
    one_bundle_changed,
    others,
    role_changed,
    with_leases,
    with_stream,
    without,
)

FAULTS: dict[str, tuple[Facts, list[str]]] = {
    "no apiserver": (well(server=Fact(why="the apiserver does not answer: refused")), ["ApiserverUnreachable"]),
    "an old apiserver": (well(server=Fact(Server("v1.31.4", 0))), ["ApiserverTooOld"]),
    "nothing is installed": (well(definitions=Fact(dict[str, Json]())), ["NotInstalled"]),
    "a CRD is missing": (well(definitions=without(well().definitions, CLONE_SETS)), ["CRDMissing"]),
    "a CRD lacks a version": (
        well(definitions=changed_definition(versions=build.definition()["spec"]["versions"][1:])),
        ["CRDVersions"],
    ),
    "a CRD has no conversion": (
        well(definitions=changed_definition(conversion={"strategy": "None"})),
        ["CRDConversion"],
    ),
    "a CRD of another release": (
        well(
            definitions=changed_definition(
                versions=[one | {"schema": {}} for one in build.definition()["spec"]["versions"]]
            )
        ),
        ["CRDOtherRelease"],
    ),
    "a CRD that is not established": (
        well(definitions=Fact(build.all_definitions(**{CLONE_SETS: build.definition() | {"status": {}}}))),
        ["CRDNotServed", "CRDNotServed"],
    ),
    "no bus": (
        well(banners=Fact([Banner("nats://bus", trouble="refused")]), heartbeats=Fact(why="refused")),
        ["BusUnreachable"],
    ),
    "an open bus": (well(banners=Fact([Banner("nats://bus", "2.15.2", users_needed=False)])), ["BusOpen"]),
    "no JetStream": (well(banners=Fact([Banner("nats://bus", "2.15.2", jetstream=False)])), ["BusWithoutJetStream"]),
    "an old nats-server": (well(banners=Fact([Banner("nats://bus", "2.10.9")])), ["BusTooOld"]),
    "a nats-server with a leak": (well(banners=Fact([Banner("nats://bus", "2.14.5")])), ["BusOutdated"]),
    "no credentials": (well(heartbeats=Fact(why="Authorization Violation")), ["BusRefuses"]),
    "a full bus": (well(account=Fact(Account(95, 100))), ["BusFull"]),
    "a silent service": (well(heartbeats=Fact(others("jobs"))), ["ServiceSilent"]),
    "a service that waits": (
        well(heartbeats=instead(heard("jobs", waiting={"mirror": "waiting for pods"}))),
        ["ServiceWaits"],
    ),
    "the webhook is not reached": (
        well(probes=Fact(build.probes(valid=Probe(VALID, 500, f"{UNREACHED} connection refused")))),
        ["WebhookUnreachable"],
    ),
    "the webhook does not answer": (
        well(probes=Fact(build.probes(old=Probe(OLD, 0, "no answer")))),
        ["WebhookUnreachable"],
    ),
    "the webhook is not believed": (
        well(probes=Fact(build.probes(valid=Probe(VALID, 500, f"{UNREACHED} tls: x509: unknown authority")))),
        ["WebhookUntrusted"],
    ),
    "nobody validates": (well(probes=Fact(build.probes(invalid=Probe(INVALID, 201)))), ["WebhookDoesNotValidate"]),
    "nobody completes": (well(probes=Fact(build.probes(valid=Probe(VALID, 201)))), ["WebhookDoesNotDefault"]),
    "somebody refuses": (well(probes=Fact(build.probes(valid=Probe(VALID, 403, "quota")))), ["WebhookRefuses"]),
    "nobody converts": (well(probes=Fact(build.probes(old=Probe(OLD, 500, "no")))), ["WebhookDoesNotConvert"]),
    "a configuration is gone": (well(hooks=Fact(build.configurations()[:1])), ["WebhookConfigurationMissing"]),
    "an entry is gone for good": (well(hooks=entries_without("mcloneset.kb.io")), ["WebhookEntriesMissing"]),
    "an entry is gone": (well(hooks=entries_without("mcloneset.kb.io", template=False)), ["WebhookEntriesChanged"]),
    "an entry was changed": (well(hooks=entry_changed(failurePolicy="Ignore")), ["WebhookEntriesChanged"]),
    "no Service": (
        well(backends=Fact(dict.fromkeys(well().backends.get(), Backend(False)))),
        ["WebhookServiceMissing"] * 2,
    ),
    "no endpoint": (
        well(backends=Fact(dict.fromkeys(well().backends.get(), Backend(True)))),
        ["WebhookServiceEmpty"] * 2,
    ),
    "one caBundle differs": (well(hooks=one_bundle_changed()), ["CABundleDiffers"]),
    "the namespace is not exempt": (well(home=Fact({"metadata": {"labels": {}}})), ["NamespaceNotExempt"]),
    "a certificate that has ended": (
        well(webhook_certificate=Fact(Certificate(NOW - timedelta(90), NOW - timedelta(hours=1), "expired"))),
        ["CertificateExpired"],
    ),
    "a certificate that ends": (
        well(heartbeats=instead(heard("webhook", certificate_end=NOW + timedelta(days=3)))),
        ["CertificateEnds"],
    ),
    "a certificate of somebody else": (
        well(webhook_certificate=Fact(Certificate(FAR.begin, FAR.end, "self-signed certificate"))),
        ["CertificateUntrusted"],
    ),
    "an authority that has ended": (
        well(
            hooks=Fact(build.configurations(build.bundle(timedelta(days=4000)))),
            definitions=Fact(
                {
                    name: build.trusting(one, build.bundle(timedelta(days=4000)))
                    for name, one in build.all_definitions().items()
                }
            ),
        ),
        ["CertificateExpired"],
    ),
    "a bus's certificate that ends": (
        well(
            banners=Fact([Banner("tls://bus", "2.15.2", certificate=Certificate(FAR.begin, NOW + timedelta(days=1)))])
        ),
        ["CertificateEnds"],
    ),
    "a lease that nobody renews": (well(leases=with_leases(lease("jobs", version="1", ago=60))), ["LeaseExpired"]),
    "a lease that nobody holds": (well(leases=with_leases(lease("jobs", holder=""))), ["ShardWithoutHolder"]),
    "a holder on another bus": (well(leases=with_leases(lease("jobs", holder="stranger-1"))), ["HolderNotHeard"]),
    "a dead member": (
        well(
            leases=with_leases(
                lease("jobs", "member-x", role="member", ago=600),
                first=(lease("jobs", "member-x", role="member", ago=600),),
            )
        ),
        ["MemberLeaseLeft"],
    ),
    "two numbers of shards": (
        well(leases=with_leases(lease("jobs", "member-y", role="member", number="4", holder="jobs-r1-abc"))),
        ["ShardsDisagree"],
    ),
    "two holders": (
        well(heartbeats=Fact([*others("jobs"), heard("jobs", shards=[0]), heard("jobs", "second", shards=[0])])),
        ["TwoHolders"],
    ),
    "a stream of too many subjects": (
        well(streams=with_stream(PODS, stream(PODS, subjects=400_001))),
        ["StreamLarge"],
    ),
    "reasons with many gaps": (well(streams=with_stream("why", stream("why", gaps=250_001))), ["StreamGaps"]),
    "no stream": (well(streams=with_stream(PODS, None)), ["StreamMissing"]),
    "another limit": (
        well(streams=with_stream(PODS, stream(PODS, config=stream(PODS).config | {"max_msgs": 10}))),
        ["StreamSettings"],
    ),
    "a replica of a stream is away": (
        well(streams=with_stream(PODS, stream(PODS, offline=["n2"]))),
        ["StreamReplicaAway"],
    ),
    "an old marker": (well(streams=with_stream(PODS, stream(PODS, age=60))), ["MarkerStale"]),
    "a LIST that does not end": (
        well(streams=with_stream(PODS, stream(PODS, state="listing", age=90))),
        ["MarkerListing"],
    ),
    "no marker": (well(streams=with_stream(PODS, stream(PODS, marker=None))), ["MarkerMissing"]),
    "etcd was restored": (well(streams=with_stream(PODS, stream(PODS, rv="5000"))), ["BusAhead"]),
    "a slow reader": (
        well(streams=with_stream(PODS, stream(PODS, consumers=[Consumer("_INBOX.jobs.x", 50_000)]))),
        ["ReaderBehind"],
    ),
    "objects are missing": (well(samples=Fact({"core.pods": Sample(3, missing=["a/b"])})), ["BusLacksObjects"]),
    "objects are old": (well(samples=Fact({"core.pods": Sample(3, stale=["a/b"])})), ["BusObjectsStale"]),
    "objects stay": (well(samples=Fact({"core.pods": Sample(3, ghosts=["a.b"])})), ["BusKeepsObjects"]),
    "a mirror without the bus": (well(heartbeats=instead(heard("jobs", direct=["core.pods"]))), ["MirrorDirect"]),
    "pods are not shared": (
        well(heartbeats=instead(heard("watcher", idle={"core.pods-1": "idle: the pods have 1 shard"}))),
        ["PodsNotShared"],
    ),
    "a stream of a shard is missing": (well(streams=with_stream("kube_core_pods-1", None)), ["StreamMissing"]),
    "a shard is not published": (
        well(streams=with_stream("kube_core_pods-1", stream("kube_core_pods-1", age=60))),
        ["MarkerStale"],
    ),
    "an old mirror": (well(heartbeats=instead(heard("jobs", lag=200.0))), ["MirrorStale"]),
    "an unreadable object": (well(heartbeats=instead(heard("jobs", undecodable={"core.pods": 1}))), ["Undecodable"]),
    "a silent agent": (well(heartbeats=Fact(others("nodeagent"))), ["AgentSilent"]),
    "an agent without a runtime": (
        well(heartbeats=instead(build.agent("worker-1", waiting={"runtime": "no container runtime works"}))),
        ["RuntimeUnanswered"],
    ),
    "an agent that waits": (well(heartbeats=instead(build.agent("worker-1", waiting={"pods": "no"}))), ["AgentWaits"]),
    "an earlier agent": (
        well(
            heartbeats=Fact(others("nodeagent")),
            streams=with_stream("node_pods", stream("node_pods", consumers=[Consumer("_INBOX_node.worker-1.x", 0)])),
        ),
        ["AgentSilent"],
    ),
    "a verb is missing": (
        well(rights=role_changed({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]})),
        ["RightsLacking"],
    ),
    "a role that may all": (well(rights=role_changed(ALL_RIGHTS)), ["RightsTooBroad"]),
    "another role beside": (well(rights=bound_beside("cluster-admin", [ALL_RIGHTS])), ["RightsTooBroad"]),
    "no policy of leases": (well(policies=Fact(frozenset({"another"}))), ["LeasePolicyMissing"]),
    "another release": (well(heartbeats=instead(heard("jobs", version="9.9.9"))), ["VersionSkew"]),
    "another gate": (well(heartbeats=instead(heard("jobs", gates="SidecarTerminator=true"))), ["GatesDiffer"]),
    "other kinds": (well(heartbeats=instead(heard("jobs", kinds="CloneSet"))), ["KindsDiffer"]),
    "an unknown gate": (
        well(heartbeats=Fact([heard(one, gates="Newest=true") for one in build.SERVICES] + [build.agent("worker-1")])),
        ["GateUnknown"] * len(build.SERVICES),
    ),
    "managed fields": (
        well(
            policies=Fact(frozenset({NO_MANAGED_FIELDS, *well().policies.get()})),
            heartbeats=instead(heard("cloneset", planning={"clonesets": {"options": {"drop_field_owners": False}}})),
        ),
        ["ManagedFieldsDiffer"],
    ),
    "this machine's clock": (
        well(server=Fact(Server("v1.36.3", 300)), heartbeats=Fact([]), local=(), leases=Fact(Leases([], []))),
        ["ServiceSilent", "AgentSilent", "ClockOff", "ClockOff"],
    ),
    "a service's clock": (well(heartbeats=instead(heard("jobs", ahead=-180.0))), ["ClockOff"]),
    "a node's clock": (well(node_leases=Fact([build.node_lease("worker-1", 240)])), ["ClockOff"]),
    "OpenKruise's manager": (well(workloads=Fact([MANAGER])), ["OpenKruiseRuns"]),
    "OpenKruise's daemon": (well(workloads=Fact([DAEMON])), ["OpenKruiseRuns"]),
    "OpenKruise's lease": (
        well(leader=Fact(OPENKRUISE | {"spec": OPENKRUISE["spec"] | {"renewTime": micro_time(NOW)}})),
        ["OpenKruiseRuns"],
    ),
    "a second Flotilla": (
        well(leases=with_leases(lease("jobs", "0", namespace="other"), lease("jobs"))),
        ["SecondInstallation"],
    ),
    "a webhook without a Service": (well(**beside_hooks(foreign_configuration())), ["WebhookNobodyAnswers"]),
    "a webhook of OpenKruise": (
        well(
            **beside_hooks(
                foreign_configuration(group="apps.kruise.io", path="/validate-apps-kruise-io-cloneset", service="there")
            )
        ),
        ["ForeignWebhook"],
    ),
    "a kind that nobody serves": (well(foreign=Fact({"daemonsets.apps.kruise.io": 3})), ["KindNotServed"]),
    "a pod that crashes": (
        well(
            workloads=Fact(CHART),
            pods=Fact(
                [
                    pod(
                        "flotilla-cloneset-1",
                        containerStatuses=[
                            {
                                "name": "cloneset",
                                "restartCount": 4,
                                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
                                "lastState": {"terminated": {"exitCode": 2}},
                            }
                        ],
                    )
                ]
            ),
        ),
        ["PodNotReady"],
    ),
    "a pod without a node": (
        well(
            workloads=Fact(CHART),
            pods=Fact(
                [
                    pod(
                        "flotilla-cloneset-1",
                        conditions=[
                            {
                                "type": "PodScheduled",
                                "status": "False",
                                "reason": "Unschedulable",
                                "message": "0/3 nodes",
                            }
                        ],
                    )
                ]
            ),
        ),
        ["PodNotReady"],
    ),
    "a Deployment at zero": (
        well(workloads=Fact([*CHART[1:], workload("Deployment", "flotilla-cloneset", "cloneset", replicas=0)])),
        ["ScaledToZero"],
    ),
    "a node that the agent may not run on": (
        well(
            workloads=Fact([*CHART, AGENTS]),
            nodes=Fact([build.node("worker-1"), build.node("worker-2", taints=[TAINT])]),
        ),
        ["NodeWithoutAgent"],
    ),
}
