"""Plans the way back: restores everything, OpenKruise's manager included.

The same care in reverse order: admission entries are removed first, then the apiserver lets OpenKruise work again, then
its objects are restored, and its admission entries last, when its webhook runs.

An OpenKruise with fewer versions than Flotilla (1.9.0 stores CloneSets in v1alpha1) cannot read what Flotilla wrote.
Only Flotilla's webhook can convert that back, so the way has two halves then, the first while it still runs.
"""

from collections.abc import Iterator

from flotilla_cli.adopt import backup, helm
from flotilla_cli.adopt.discover import Found, own_places, policy_places
from flotilla_cli.adopt.steps import Available, Delay, MigrationPlan, MigrationStep, Rewritten, Write, WriteVerb, patch
from flotilla_common.api.documents import Json, mappings, member, sequence, text
from flotilla_common.api.resources import CONFIG_MAP, CRD
from flotilla_common.api.resources import NAMESPACE as NAMESPACES
from flotilla_insight.installation.crds import stored_version
from flotilla_insight.installation.objects import Place
from flotilla_insight.installation.rbac import NAMESPACE
from flotilla_insight.openkruise import CONFIGURATIONS, DAEMON, HOLDER, LEADER, MANAGER

NOTICE_SECONDS = 3.0
"""Seconds for apiservers to apply a changed CRD. They watch CRDs, and need far less."""

_LATE = (*CONFIGURATIONS, MANAGER, DAEMON)


def undo(found: Found) -> MigrationPlan:
    """Return the steps and notes, or the reasons to refuse."""
    if not found.before:
        return MigrationPlan(refused=("nothing to undo: this cluster was not taken over",))
    running = found.services
    if strange := list(_in_strange_versions(found)):
        return _convert_back(found, strange, running)
    if running:
        names = ", ".join(running)
        return MigrationPlan(refused=(f"services of Flotilla still run here (leases {names}): stop them first",))
    if found.pods:
        names = ", ".join(sorted(found.pods))
        return MigrationPlan(
            refused=(f"there are still pods of Flotilla ({names}): remove them with helm uninstall --no-hooks",)
        )
    notes = [
        f"{place.name} stays: Flotilla installed it, and there may be objects of it"
        for place in found.definitions
        if place not in found.before
    ]
    steps = [
        *_open_admission(found),
        *_unlock(found),
        *_remove(found),
        *_restore(found, [place for place in found.before if place not in _LATE], "restore the changed objects"),
        *helm.relabel(found, helm.OUT_OF_REACH, "helm", "show {count} records of release {name} to helm again"),
        *_start(found),
        *_restore(found, list(CONFIGURATIONS), "restore OpenKruise's webhook entries"),
        _forget(found),
    ]
    return MigrationPlan(tuple(steps), tuple(notes))


def runs_out(found: Found) -> bool:
    """Report whether only terminating pods and leases that may expire are in the way."""
    if not found.before or any(_in_strange_versions(found)) or set(found.pods) - set(found.ending):
        return False
    return bool(found.services or found.pods)


def _in_strange_versions(found: Found) -> Iterator[Place]:
    """Yield the CRDs with objects in versions that the original CRD does not have."""
    for place, live in found.definitions.items():
        if place in found.before:
            known = {text(version["name"]) for version in mappings(member(found.before[place], "spec").get("versions"))}
            if set(sequence(member(live, "status").get("storedVersions"))) - known:
                yield place


def _convert_back(found: Found, places: list[Place], running: list[str]) -> MigrationPlan:
    """Return the first half of the way back, while Flotilla's webhook can convert."""
    names = ", ".join(place.name for place in places)
    if not running:
        why = (
            f"objects of {names} are stored in a version that this OpenKruise does not have, and only Flotilla's "
            "webhook converts them: start Flotilla again, run this command, stop Flotilla, and run it again"
        )
        return MigrationPlan(refused=(why,))
    steps = tuple(step for place in places for step in _store_as_before(found, place))
    return MigrationPlan(steps, ("this is the first half. Then stop Flotilla's services, and run the command again",))


def _store_as_before(found: Found, place: Place) -> Iterator[MigrationStep]:
    live, before_it = found.definitions[place], found.before[place]
    stored = stored_version(before_it)
    versions = [
        version | {"storage": version["name"] == stored} for version in mappings(member(live, "spec").get("versions"))
    ]
    changed = live | {"spec": member(live, "spec") | {"versions": versions}}
    write = patch(place, {"spec": {"versions": versions}})
    yield MigrationStep(f"{place.name}: store in {stored} again", (write,), (Delay(NOTICE_SECONDS), Rewritten(changed)))
    status = Write(WriteVerb.STATUS, place, {"status": {"storedVersions": [stored]}})
    yield MigrationStep(f"{place.name}: all objects are stored in {stored}", (status,))


def _open_admission(found: Found) -> Iterator[MigrationStep]:
    for place in CONFIGURATIONS:
        live = found.objects.get(place)
        if live is not None and mappings(live.get("webhooks")) and not _is_back(found, place):
            body: Json = {"metadata": {"annotations": {"template": ""}}, "webhooks": []}
            yield MigrationStep(f"remove Flotilla's entries from {place}", (patch(place, body),))
        if live is None and place in found.before:
            yield MigrationStep(
                f"create {place} without entries: OpenKruise does not start without it", (_emptied(found, place),)
            )


def _emptied(found: Found, place: Place) -> Write:
    kept = found.before[place]
    meta = member(kept, "metadata")
    annotations = member(meta, "annotations") | {"template": ""}
    return Write(WriteVerb.RESTORE, place, kept | {"metadata": meta | {"annotations": annotations}, "webhooks": []})


def _unlock(found: Found) -> Iterator[MigrationStep]:
    places = [place for place in reversed(policy_places()) if place in found.objects]
    if member(found.objects.get(LEADER, {}), "spec").get("holderIdentity") == HOLDER:
        places.append(LEADER)
    if places:
        writes = tuple(Write(WriteVerb.DELETE, place) for place in places)
        yield MigrationStep("let OpenKruise work again: remove the policies, release its lease", writes)


def _remove(found: Found) -> Iterator[MigrationStep]:
    places = [
        place
        for place in reversed(own_places())
        if place in found.objects and place not in found.before and place.resource not in (CRD, NAMESPACES)
    ]
    if places:
        writes = tuple(Write(WriteVerb.DELETE, place) for place in places)
        yield MigrationStep(f"remove {len(places)} objects of Flotilla", writes)


def _start(found: Found) -> Iterator[MigrationStep]:
    yield from _restore(found, [DAEMON], f"allow {DAEMON} on the nodes")
    if MANAGER in found.before:
        replicas = member(found.before[MANAGER], "spec").get("replicas", 1)
        for step in _restore(found, [MANAGER], f"scale {MANAGER} to {replicas}, and wait for its pods"):
            yield MigrationStep(step.what, step.writes, (Available(MANAGER),))


def _restore(found: Found, places: list[Place], what: str) -> Iterator[MigrationStep]:
    changed = [place for place in places if place in found.before and not _is_back(found, place)]
    if changed:
        listed = f" ({len(changed)} objects)" if len(changed) > 1 else ""
        writes = tuple(Write(WriteVerb.RESTORE, place, found.before[place]) for place in changed)
        yield MigrationStep(what + listed, writes)


def _is_back(found: Found, place: Place) -> bool:
    return place in found.before and backup.is_as_before(found.before[place], found.objects.get(place))


def _forget(found: Found) -> MigrationStep:
    """Return the last step; until then the command can be run again."""
    places = [Place(CONFIG_MAP, NAMESPACE, backup.name_for(place)) for place in found.before]
    return MigrationStep("remove the backups", tuple(Write(WriteVerb.DELETE, place) for place in places))
