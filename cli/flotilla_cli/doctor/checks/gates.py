"""Settings that have to be the same everywhere: gates, the kinds that are served, managed fields."""

from collections.abc import Iterator, Mapping

from flotilla_cli.doctor.checks.versions import is_rolling
from flotilla_cli.doctor.facts import Facts, Heard
from flotilla_cli.doctor.finding import WARNING, Finding
from flotilla_cli.install.policies import NO_MANAGED_FIELDS
from flotilla_common.api.documents import member
from flotilla_common.gates import Gates

_SAME = "give all services the same, and `flotilla install` (or the chart's `featureGates`) too, then restart them"


def seen(facts: Facts) -> str:
    """What was looked at."""
    gates = sorted({one.beat.gates or "" for one in facts.heard.get() if one.beat.gates is not None})
    return f"gates: {' | '.join(one or 'all as by default' for one in gates) or 'nobody says'}"


def check(facts: Facts) -> Iterator[Finding]:
    """Replicas against each other, and against what was installed."""
    heard = [one for one in facts.heard.get() if one.beat.gates is not None]
    for one in heard:
        yield from _unknown(one)
    if not is_rolling(facts):
        yield from _differing("GatesDiffer", "feature gates", {_who(one): _gates(one) for one in heard})
        yield from _differing("KindsDiffer", "CUSTOM_RESOURCE_ENABLE", {_who(one): _kinds(one) for one in heard})
    yield from _managed_fields(facts, heard)


def _unknown(one: Heard) -> Iterator[Finding]:
    try:
        Gates.parse(one.beat.gates or "")
    except ValueError as error:
        said = f"{error}: this release does not know it"
        yield Finding(code="GateUnknown", about=_who(one), text=said, advice=_SAME, severity=WARNING)


def _differing(code: str, what: str, given: Mapping[str, frozenset[str]]) -> Iterator[Finding]:
    """Names what only some have, and who."""
    common = frozenset(name for own in given.values() for name in own if all(name in each for each in given.values()))
    differing = {who: sorted(own - common) for who, own in given.items() if own - common}
    if differing:
        others = sorted(given.keys() - differing.keys())
        said = "; ".join(f"{who} has {', '.join(own)}" for who, own in sorted(differing.items()))
        rest = f"; {', '.join(others)} {'has' if len(others) == 1 else 'have'} not" if others else ""
        yield Finding(code=code, about=what, text=said + rest, advice=_SAME)


def _managed_fields(facts: Facts, heard: list[Heard]) -> Iterator[Finding]:
    kept = [_who(one) for one in heard if any(_keeps(one, plural) for plural in one.beat.planning)]
    if kept and NO_MANAGED_FIELDS in facts.policies.get():
        said = f"{', '.join(kept)} keep metadata.managedFields, and policy {NO_MANAGED_FIELDS} takes them from new pods"
        advice = "`flotilla install --keep-managed-fields` removes the policy; or take the flag from the services"
        yield Finding(code="ManagedFieldsDiffer", about="managed fields", text=said, advice=advice, severity=WARNING)


def _keeps(one: Heard, plural: str) -> bool:
    return member(one.beat.planning, plural, "options").get("drop_field_owners") is False


def _gates(one: Heard) -> frozenset[str]:
    return frozenset(filter(None, (one.beat.gates or "").split(",")))


def _kinds(one: Heard) -> frozenset[str]:
    return frozenset(filter(None, (kind.strip() for kind in one.beat.kinds.split(","))))


def _who(one: Heard) -> str:
    return f"{one.beat.service} {one.beat.replica}"
