"""Protects the cluster from OpenKruise's helm release.

The CRDs are templates of OpenKruise's chart: to uninstall the release, or to upgrade it to a chart without them, would
delete them with all objects of all users. Helm finds a release by the labels of its records, so records with another
owner are hidden from it until the label is restored. Flotilla's chart is a release of its own, and takes over the
objects that both have (`helm install --take-ownership`).
"""

from collections.abc import Iterator

from flotilla_cli.adopt.discover import Found
from flotilla_cli.adopt.steps import MigrationStep, patch
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.resources import SECRET
from flotilla_insight.installation.objects import Place

KEEP = {"helm.sh/resource-policy": "keep"}
OUT_OF_REACH = "flotilla-keeps-this-away-from-helm"
"""Owner of a hidden record, instead of `helm`."""


def protect(found: Found) -> Iterator[MigrationStep]:
    """Yield the steps after which no operation of helm on the old release deletes a CRD."""
    places = [
        place
        for place, live in found.definitions.items()
        if KEEP.items() - member(live, "metadata", "annotations").items()
    ]
    if places:
        writes = tuple(patch(place, {"metadata": {"annotations": KEEP}}) for place in places)
        yield MigrationStep(f"annotate {len(places)} CRDs with helm.sh/resource-policy: keep", writes)
    yield from relabel(found, "helm", OUT_OF_REACH, "hide {count} records of release {name} from helm")


def relabel(found: Found, owner: str, other: str, what: str) -> Iterator[MigrationStep]:
    """Yield the step that gives the records of the old release another owner."""
    records = [meta for meta in found.releases if member(meta, "labels").get("owner") == owner]
    if records:
        name = text(member(records[0], "labels").get("name"))
        body: Json = {"metadata": {"labels": {"owner": other}}}
        writes = tuple(patch(Place(SECRET, meta["namespace"], meta["name"]), body) for meta in records)
        yield MigrationStep(what.format(count=len(records), name=name), writes)
