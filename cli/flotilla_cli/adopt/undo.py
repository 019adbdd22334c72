"""The steps back: everything as it was before the take-over, OpenKruise's manager included.

The same care the other way round: first nobody is asked any more, then the apiserver lets OpenKruise work again, then
its objects come back, and its admission entries come last, when its webhook runs.
"""

from collections.abc import Iterator

from flotilla_cli.adopt import before, helm
from flotilla_cli.adopt.found import Found, own_places, policy_places
from flotilla_cli.adopt.leader import held_by
from flotilla_cli.adopt.original import CONFIGURATIONS, DAEMON, HOLDER, LEADER, MANAGER
from flotilla_cli.adopt.steps import Available, Plan, Step, Verb, Write, patch
from flotilla_cli.install.kinds import Place
from flotilla_cli.install.rbac import NAMESPACE
from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.resources import CONFIG_MAP, CRD
from flotilla_common.api.resources import NAMESPACE as NAMESPACES

_LATE = (*CONFIGURATIONS, MANAGER, DAEMON)


def undo(found: Found) -> Plan:
    """What is to be done, and what speaks against it."""
    if not found.before:
        return Plan(refused=("nothing to go back to: this cluster was not taken over",))
    if running := list(_running(found)):
        names = ", ".join(running)
        return Plan(refused=(f"services of Flotilla still work here (leases {names}): stop them first",))
    notes = [
        f"{place.name} stays: it came with Flotilla, and objects may be left of it"
        for place in found.definitions
        if place not in found.before
    ]
    steps = [
        *_open_admission(found),
        *_unlock(found),
        *_remove(found),
        *_restore(found, [place for place in found.before if place not in _LATE], "put back what was changed"),
        *helm.relabel(found, helm.OUT_OF_REACH, "helm", "give helm back {count} records of release {name}"),
        *_start(found),
        *_restore(found, list(CONFIGURATIONS), "put back OpenKruise's webhook entries"),
        _forget(found),
    ]
    return Plan(tuple(steps), tuple(notes))


def _running(found: Found) -> Iterator[str]:
    for lease in found.leases:
        name = text(member(lease, "metadata").get("name"))
        if name.startswith("flotilla-") and held_by(lease, found.now):
            yield name


def _open_admission(found: Found) -> Iterator[Step]:
    for place in CONFIGURATIONS:
        live = found.objects.get(place)
        if live is not None and mappings(live.get("webhooks")) and not _is_back(found, place):
            body: Json = {"metadata": {"annotations": {"template": ""}}, "webhooks": []}
            yield Step(f"take Flotilla's entries out of {place}", (patch(place, body),))


def _unlock(found: Found) -> Iterator[Step]:
    places = [place for place in reversed(policy_places()) if place in found.objects]
    if member(found.objects.get(LEADER, {}), "spec").get("holderIdentity") == HOLDER:
        places.append(LEADER)
    if places:
        writes = tuple(Write(Verb.DELETE, place) for place in places)
        yield Step("let OpenKruise work again: remove the policies, release its lease", writes)


def _remove(found: Found) -> Iterator[Step]:
    places = [
        place
        for place in reversed(own_places())
        if place in found.objects and place not in found.before and place.resource not in (CRD, NAMESPACES)
    ]
    if places:
        writes = tuple(Write(Verb.DELETE, place) for place in places)
        yield Step(f"remove {len(places)} objects that came with Flotilla", writes)


def _start(found: Found) -> Iterator[Step]:
    yield from _restore(found, [DAEMON], f"let {DAEMON} onto the nodes")
    if MANAGER in found.before:
        replicas = member(found.before[MANAGER], "spec").get("replicas", 1)
        for step in _restore(found, [MANAGER], f"scale {MANAGER} to {replicas}, and wait for its pods"):
            yield Step(step.what, step.writes, (Available(MANAGER),))


def _restore(found: Found, places: list[Place], what: str) -> Iterator[Step]:
    changed = [place for place in places if place in found.before and not _is_back(found, place)]
    if changed:
        listed = f" ({len(changed)} objects)" if len(changed) > 1 else ""
        writes = tuple(Write(Verb.RESTORE, place, found.before[place]) for place in changed)
        yield Step(what + listed, writes)


def _is_back(found: Found, place: Place) -> bool:
    return place in found.before and before.is_as_before(found.before[place], found.objects.get(place))


def _forget(found: Found) -> Step:
    """Last: until then the command can be run again."""
    places = [Place(CONFIG_MAP, NAMESPACE, before.name_for(place)) for place in found.before]
    return Step("remove what was kept for the way back", tuple(Write(Verb.DELETE, place) for place in places))
