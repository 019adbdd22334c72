"""The CRDs: there, served, as this release makes them, and converted by our webhook."""

from collections.abc import Iterator, Sequence

from flotilla_cli.adopt.interlock import covers
from flotilla_cli.doctor.facts import Facts
from flotilla_cli.doctor.finding import WARNING, Finding
from flotilla_cli.install.live import is_leaving
from flotilla_cli.install.manifests import definitions
from flotilla_common.api.documents import Json, mappings, member, text

APPLY = "`flotilla install` or `helm upgrade` puts it right"
_LOST = "objects that there were of it are gone with it"


def seen(facts: Facts) -> str:
    """What was looked at."""
    return f"{len(definitions())} of {len(facts.definitions.get())} CRDs"


def check(facts: Facts) -> Iterator[Finding]:
    """Each CRD of this release."""
    live = facts.definitions.get()
    for wanted in definitions():
        name = text(member(wanted, "metadata").get("name"))
        yield from _one(name, wanted, live[name]) if name in live else _missing(name)


def _missing(name: str) -> Iterator[Finding]:
    yield _finding("CRDMissing", name, f"there is no such CRD: its kind is not served, and {_LOST}", APPLY)


def _one(name: str, wanted: Json, live: Json) -> Iterator[Finding]:
    if is_leaving(live):
        since = text(member(live, "metadata").get("deletionTimestamp"))
        advice = "objects with finalizers hold it up; when it is gone, install again"
        yield _finding("CRDLeaving", name, f"it is being deleted since {since}", advice)
        return
    for condition in ("NamesAccepted", "Established"):
        if why := _not_true(live, condition):
            yield _finding(
                "CRDNotServed", name, f"{condition} is not True: {why}", "another CRD may have the same names"
            )
    spec, want = member(live, "spec"), member(wanted, "spec")
    if lacking := set(_served(want)) - set(_served(spec)):
        yield _finding("CRDVersions", name, f"it does not serve {', '.join(sorted(lacking))}", APPLY)
    elif _stored(spec) != _stored(want):
        text_ = f"objects are stored as {_stored(spec)}, and Flotilla reads and writes {_stored(want)}"
        yield _finding("CRDVersions", name, text_, APPLY)
    elif not covers(_schemas(spec), _schemas(want)):
        text_ = "its schema is not the one of this release: fields may be refused or dropped"
        yield _finding("CRDOtherRelease", name, text_, APPLY, WARNING)
    if member(spec, "conversion").get("strategy") != member(want, "conversion").get("strategy", "None"):
        text_ = f"conversion is {member(spec, 'conversion').get('strategy')}: fields are lost between versions"
        yield _finding("CRDConversion", name, text_, APPLY)


def _not_true(live: Json, condition: str) -> str:
    """What the CRD says instead; empty when the condition is True."""
    found = [one for one in mappings(member(live, "status").get("conditions")) if one.get("type") == condition]
    if found and found[0].get("status") == "True":
        return ""
    return text(found[0].get("message")) if found else "the apiserver has not judged it"


def _served(spec: Json) -> Sequence[str]:
    return [text(one.get("name")) for one in mappings(spec.get("versions")) if one.get("served")]


def _schemas(spec: Json) -> Json:
    return {text(one.get("name")): member(one, "schema") for one in mappings(spec.get("versions"))}


def _stored(spec: Json) -> str:
    return next((text(one.get("name")) for one in mappings(spec.get("versions")) if one.get("storage")), "nothing")


def _finding(code: str, name: str, said: str, advice: str, severity: str = "broken") -> Finding:
    return Finding(code=code, about=f"CRD {name}", text=said, advice=advice, severity=severity)
