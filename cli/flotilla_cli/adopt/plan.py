"""Plans a migration from one look at the cluster, without steps that are done already.

The steps before OpenKruise's manager stops only make the cluster safer: its state is backed up, and its admission
entries are removed, because with `failurePolicy: Fail` and no backend they would block every new pod. No step touches a
pod of a workload.
"""

from collections.abc import Iterator

from flotilla_cli.adopt import backup, helm
from flotilla_cli.adopt.discover import Found
from flotilla_cli.adopt.steps import (
    LeaseFree,
    MigrationPlan,
    MigrationStep,
    PodsGone,
    PolicyEnforced,
    Write,
    WriteVerb,
    patch,
)
from flotilla_common.api.documents import Json, mappings, member, sequence
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.webhooks import POD_ENTRY, mutating_entries, validating_entries
from flotilla_common.gates import Gates
from flotilla_insight.installation.objects import place_of
from flotilla_insight.installation.rbac import NAMESPACE
from flotilla_insight.openkruise import (
    CONFIGURATIONS,
    DAEMON,
    HOLDER,
    LEADER,
    MANAGER,
    ROLE,
    STANDSTILL,
    TAKEN,
    covers,
    gates,
    is_theirs,
    namespaces,
    standstill,
)

LEASE_SECONDS = 10 * 365 * 24 * 3600
"""Duration of Flotilla's hold on Lease kruise-manager; the policy keeps it anyway."""

_TAKEN_ANNOTATION = {"metadata": {"annotations": {TAKEN: "true"}}}


def plan(found: Found, *, leave_unserved: bool = False) -> MigrationPlan:
    """Return the steps and notes, or the reasons to refuse."""
    refused = list(_refusals(found, leave_unserved=leave_unserved))
    if refused:
        return MigrationPlan((), tuple(_notes(found)), tuple(refused))
    steps = [
        *_keep(found),
        *helm.protect(found),
        *_open_admission(found),
        *_stop_manager(found),
        *_stop_daemon(found),
        *_seal(found),
        *_reduce_rights(found),
    ]
    return MigrationPlan(tuple(steps), tuple(_notes(found)))


def unserved(found: Found) -> dict[str, int]:
    """Return the numbers of objects of kinds without a controller in Flotilla, by CRD; without zeros."""
    return {name: count for name, count in sorted(found.counts.items()) if count}


def _refusals(found: Found, *, leave_unserved: bool) -> Iterator[str]:
    if not found.definitions and MANAGER not in found.objects:
        yield "OpenKruise is not installed on this cluster: run flotilla install instead"
    manager = found.objects.get(MANAGER)
    if found.services and not found.before and not (manager and is_theirs(manager)):
        yield "Flotilla already runs on this cluster, and OpenKruise is not installed: there is nothing to take over"
    elsewhere = {name for place in CONFIGURATIONS for name in namespaces(found.objects.get(place, {}))} - {NAMESPACE}
    if elsewhere:
        yield (
            f"OpenKruise is installed in namespace {', '.join(sorted(elsewhere))}: only one in {NAMESPACE} can be "
            "taken over. Move it there with its own chart first"
        )
    if (left := unserved(found)) and not leave_unserved:
        listed = ", ".join(f"{count} {name}" for name, count in left.items())
        yield (
            f"no controller would reconcile {listed}: Flotilla does not serve these kinds yet. The objects "
            "and their pods stay as they are. --leave-unserved accepts that"
        )


def _notes(found: Found) -> Iterator[str]:
    for name, count in unserved(found).items():
        yield f"{name}: {count} objects stay as they are, and no controller reconciles them"
    if MANAGER in found.objects and (named := gates(found.original(MANAGER))):
        yield f"OpenKruise ran with --feature-gates={named}: set the same for Flotilla"
    if not found.policies:
        yield (
            "this apiserver serves no ValidatingAdmissionPolicy: nothing keeps OpenKruise's manager from being scaled "
            "up again, so make sure of it yourself"
        )


def _keep(found: Found) -> Iterator[MigrationStep]:
    places = [
        place
        for place in found.objects
        if place != LEADER and place not in found.before and not place.name.startswith("flotilla-")
    ]
    if places:
        writes = tuple(backup.backup_of(place, found.objects[place]) for place in places)
        yield MigrationStep(f"back up {len(places)} objects, each in a ConfigMap", writes)


def _open_admission(found: Found) -> Iterator[MigrationStep]:
    every = Gates.parse("AllAlpha=true,AllBeta=true")
    ours = {POD_ENTRY, *(entry["name"] for entry in (*mutating_entries(), *validating_entries(every)))}
    for place in CONFIGURATIONS:
        if (live := found.objects.get(place)) is None:
            continue
        entries = mappings(live.get("webhooks"))
        foreign = [entry for entry in entries if entry.get("name") not in ours]
        marked = TAKEN in member(live, "metadata", "annotations")
        if foreign or not marked:
            annotations = {TAKEN: "true", "template": ""}
            body: Json = {"metadata": {"annotations": annotations}, "webhooks": []}
            what = f"remove the {len(entries)} entries of {place}, so that no request waits for a missing webhook"
            yield MigrationStep(what, (patch(place, body),))


def _stop_manager(found: Found) -> Iterator[MigrationStep]:
    live = found.objects.get(MANAGER)
    if live is not None and is_theirs(live):
        replicas = member(live, "spec").get("replicas", 1)
        writes = (patch(MANAGER, _TAKEN_ANNOTATION | {"spec": {"replicas": 0}}),) if replicas else ()
        status = member(live, "status").get("replicas", 0)
        if writes or status:
            yield MigrationStep(
                f"scale {MANAGER} from {replicas} to 0, and wait for its pods", writes, (PodsGone(MANAGER),)
            )


def _stop_daemon(found: Found) -> Iterator[MigrationStep]:
    live = found.objects.get(DAEMON)
    if live is None or not is_theirs(live):
        return
    away = TAKEN in member(live, "spec", "template", "spec", "nodeSelector")
    if not away or member(live, "status").get("currentNumberScheduled", 0):
        body: Json = {"spec": {"template": {"spec": {"nodeSelector": {TAKEN: "true"}}}}}
        what = f"keep {DAEMON} off all nodes, and wait for its pods (containers keep running)"
        yield MigrationStep(what, () if away else (patch(DAEMON, body),), (PodsGone(DAEMON),))


def _seal(found: Found) -> Iterator[MigrationStep]:
    held = member(found.objects.get(LEADER, {}), "spec").get("holderIdentity") == HOLDER
    if not held:
        now = rfc3339(found.now).replace("Z", ".000000Z")
        spec: Json = {
            "holderIdentity": HOLDER,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": now,
            "renewTime": now,
        }
        body: Json = {
            "apiVersion": LEADER.resource.api_version,
            "kind": "Lease",
            "metadata": {"name": LEADER.name, "namespace": LEADER.namespace},
            "spec": spec,
        }
        yield MigrationStep(f"wait until {LEADER} is no longer renewed", until=(LeaseFree(LEADER),))
        yield MigrationStep(f"hold {LEADER} for Flotilla", (Write(WriteVerb.APPLY, LEADER, body),))
    changed = [one for one in standstill() if not covers(found.objects.get(place_of(one)), one)]
    if changed and found.policies:
        another = patch(LEADER, {"spec": {"holderIdentity": "another"}})
        yield MigrationStep(
            "add a policy that rejects what would start it again",
            tuple(Write(WriteVerb.APPLY, place_of(document), document) for document in changed),
            (PolicyEnforced(another, STANDSTILL),),
        )


def _reduce_rights(found: Found) -> Iterator[MigrationStep]:
    rules = mappings(found.objects.get(ROLE, {}).get("rules"))
    users = rules_of_users(rules)
    if users != rules:
        what = f"{ROLE}: keep {len(users)} rules of users, remove the rights of OpenKruise's manager"
        yield MigrationStep(what, (patch(ROLE, _TAKEN_ANNOTATION | {"rules": users}),))


_KNOWN = {
    "": (
        "pods events configmaps persistentvolumeclaims pods/status pods/resize pods/ephemeralcontainers pods/eviction "
        "secrets namespaces nodes services endpoints persistentvolumes serviceaccounts"
    ),
    "apps": "deployments statefulsets controllerrevisions replicasets daemonsets",
    "batch": "jobs",
    "apps.kruise.io": "*",
    "policy.kruise.io": "*",
    "admissionregistration.k8s.io": "mutatingwebhookconfigurations validatingwebhookconfigurations",
    "apiextensions.k8s.io": "customresourcedefinitions",
    "storage.k8s.io": "storageclasses",
    "coordination.k8s.io": "leases",
    "*": "* */scale",
}


def rules_of_users(rules: list[Json]) -> list[Json]:
    """Return the rules of ClusterRole kruise-manager-role that OpenKruise does not ship (install.md §9).

    The result is one rule per API group, without the resources that OpenKruise lists. The role holds all rights of
    OpenKruise's manager, and Flotilla binds it to its services because users extend it for their own kinds (install.md
    §1). Services declare their own rights themselves.
    """
    found: list[Json] = []
    for rule in rules:
        for group in sequence(rule.get("apiGroups")):
            resources = [one for one in sequence(rule.get("resources")) if not _is_known(group, one)]
            if resources:
                found.append(rule | {"apiGroups": [group], "resources": resources})
        if "nonResourceURLs" in rule:
            found.append(rule)
    return found


def _is_known(group: str, resource: str) -> bool:
    known = _KNOWN.get(group, "").split()
    main = resource.removesuffix("/status").removesuffix("/finalizers").removesuffix("/scale")
    return known == ["*"] or resource in known or main in known
