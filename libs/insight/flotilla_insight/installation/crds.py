"""Reads CRDs: the resource that one defines, and whether Flotilla serves it."""

from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import Resource


def is_served(definition: Json) -> bool:
    """Report whether the kind of a CRD is one of Flotilla's."""
    name = text(member(definition, "metadata").get("name"))
    return any(kind.definition_name == name for kind in catalogue.KINDS)


def stored_version(definition: Json) -> str:
    """Return the storage version of a CRD."""
    versions = mappings(member(definition, "spec").get("versions"))
    return next(text(version["name"]) for version in versions if version.get("storage"))


def resource_of(definition: Json) -> Resource:
    """Return the resource that a CRD defines, in its storage version."""
    spec = member(definition, "spec")
    names = member(spec, "names")
    plural, kind, namespaced = text(names.get("plural")), text(names.get("kind")), spec.get("scope") == "Namespaced"
    return Resource(text(spec.get("group")), stored_version(definition), plural, kind, namespaced)
