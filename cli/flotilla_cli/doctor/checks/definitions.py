"""Checks the CRDs: present, served, of this release, and converted by our webhook."""

from collections.abc import Iterator, Sequence

from flotilla_cli.adopt.policies import covers
from flotilla_cli.doctor.facts import Facts
from flotilla_cli.doctor.finding import Finding, Looked, broken, warning
from flotilla_cli.install.kinds import name_of
from flotilla_cli.install.live import is_leaving
from flotilla_cli.install.manifests import definitions
from flotilla_common.api.documents import Json, mappings, member, text

APPLY = "`flotilla install` or `helm upgrade` fixes it"


def check(facts: Facts) -> Looked:
    """Check each CRD of this release."""
    live = facts.definitions.get()
    for wanted in definitions():
        name = name_of(wanted)
        if name in live:
            yield from _one(f"CRD {name}", wanted, live[name])
        else:
            said = "the CRD does not exist: its kind is not served, and its objects were deleted with it"
            yield broken("CRDMissing", f"CRD {name}", said, APPLY)
    return f"{len(definitions())} of {len(facts.definitions.get())} CRDs"


def _one(about: str, wanted: Json, live: Json) -> Iterator[Finding]:
    if is_leaving(live):
        since = text(member(live, "metadata").get("deletionTimestamp"))
        advice = "objects with finalizers block it; install again when it is gone"
        yield broken("CRDLeaving", about, f"it is being deleted since {since}", advice)
        return
    for condition in ("NamesAccepted", "Established"):
        if why := _not_true(live, condition):
            yield broken(
                "CRDNotServed", about, f"{condition} is not True: {why}", "another CRD may have the same names"
            )
    spec, want = member(live, "spec"), member(wanted, "spec")
    if lacking := set(_served(want)) - set(_served(spec)):
        yield broken("CRDVersions", about, f"it does not serve {', '.join(sorted(lacking))}", APPLY)
    elif _stored(spec) != _stored(want):
        said = f"objects are stored as {_stored(spec)}, and Flotilla reads and writes {_stored(want)}"
        yield broken("CRDVersions", about, said, APPLY)
    elif not covers(_schemas(spec), _schemas(want)):
        said = "its schema is not the one of this release: fields may be refused or dropped"
        yield warning("CRDOtherRelease", about, said, APPLY)
    if member(spec, "conversion").get("strategy") != member(want, "conversion").get("strategy", "None"):
        said = f"conversion is {member(spec, 'conversion').get('strategy')}: fields are lost between versions"
        yield broken("CRDConversion", about, said, APPLY)


def _not_true(live: Json, condition: str) -> str:
    """Return the message of a condition that is not True; empty if it is."""
    found = [one for one in mappings(member(live, "status").get("conditions")) if one.get("type") == condition]
    if found and found[0].get("status") == "True":
        return ""
    return text(found[0].get("message")) if found else "the apiserver has not set the condition"


def _served(spec: Json) -> Sequence[str]:
    return [text(one.get("name")) for one in mappings(spec.get("versions")) if one.get("served")]


def _schemas(spec: Json) -> Json:
    return {text(one.get("name")): member(one, "schema") for one in mappings(spec.get("versions"))}


def _stored(spec: Json) -> str:
    return next((text(one.get("name")) for one in mappings(spec.get("versions")) if one.get("storage")), "nothing")
