"""What services see: up to date, over the bus, readable; and the bus holds what the apiserver holds."""

from collections.abc import Iterator, Sequence

from flotilla_cli.ages import span
from flotilla_cli.doctor.facts import Facts, Heard
from flotilla_cli.doctor.finding import WARNING, Finding

LAG_SECONDS = 120.0
"""Proof that a mirror is up to date comes every five seconds over the bus, and about once a minute past it."""

SHOWN = 3

_RESTART = "restart the watcher: it publishes everything anew; if that does not help, report it with `flotilla bundle`"
_WATCHER = "bring the watcher and the bus back; services return to it by themselves"


def seen(facts: Facts) -> str:
    """What was looked at."""
    samples = facts.samples.get()
    return f"{sum(one.compared for one in samples.values())} objects of {len(samples)} resources compared with the bus"


def check(facts: Facts) -> Iterator[Finding]:
    """Each replica's mirrors, then the streams themselves."""
    for one in facts.heard.get():
        yield from _mirrors(one)
    for resource, sample in facts.samples.get().items():
        about = f"objects {resource}"
        for code, what, names in (
            ("BusLacksObjects", "missing on the bus", sample.missing),
            ("BusObjectsStale", "older on the bus than at the apiserver", sample.stale),
            ("BusKeepsObjects", "still on the bus, although the apiserver has them no more", sample.ghosts),
        ):
            if names:
                yield Finding(code=code, about=about, text=f"{_some(names)}: {what}", advice=_RESTART)


def _mirrors(one: Heard) -> Iterator[Finding]:
    beat = one.beat
    about = f"{beat.service} {beat.replica}"
    if beat.direct:
        said = f"it watches the apiserver by itself instead of the bus: {_some(beat.direct)}"
        yield Finding(code="MirrorDirect", about=about, text=said, advice=_WATCHER, severity=WARNING)
    if beat.lag > LAG_SECONDS:
        said = f"its view of the cluster may be {span(beat.lag)} old"
        yield Finding(code="MirrorStale", about=about, text=said, advice=_WATCHER)
    if beat.undecodable:
        which = ", ".join(f"{count} {resource}" for resource, count in sorted(beat.undecodable.items()))
        said = f"it cannot read {which}, and does nothing for them"
        advice = "`flotilla explain` and the service's log name field and object: correct them"
        yield Finding(code="Undecodable", about=about, text=said, advice=advice)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
