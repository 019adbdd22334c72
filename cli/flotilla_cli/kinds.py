"""Kinds as people type them: `clone`, `cloneset`, `clonesets`, `CloneSet`."""

import click

from flotilla_common.api import crds
from flotilla_common.api.resources import Resource


def find_kind(word: str) -> Resource:
    """The resource, in its storage version, for a kind, a plural or a short name. Raises click.BadParameter."""
    known: dict[str, Resource] = {}
    for definition in crds.manifests():
        spec = definition["spec"]
        names = spec["names"]
        storage = next(version["name"] for version in spec["versions"] if version["storage"])
        resource = Resource(spec["group"], storage, names["plural"], names["kind"], spec["scope"] == "Namespaced")
        words = [names["singular"], names["plural"], *names.get("shortNames", ())]
        known |= dict.fromkeys([*words, f"{names['plural']}.{spec['group']}"], resource)
    if word.lower() not in known:
        kinds = sorted({resource.kind.lower() for resource in known.values()})
        raise click.BadParameter(f"there is no kind {word!r}; there are {', '.join(kinds)}")
    return known[word.lower()]
