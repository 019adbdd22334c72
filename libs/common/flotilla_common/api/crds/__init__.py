"""Builds the CustomResourceDefinitions from the kinds (install.md §2).

Kinds whose versions differ are converted by webhook from the start. With strategy None the apiserver would accept a
v1alpha1 object and silently drop fields that v1beta1 lacks; with a webhook that is not there yet, it refuses the
object.
"""

from typing import Any

from flotilla_common.api.crds.schema import Schema
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind


def manifests() -> list[Schema]:
    """Return all definitions, sorted by name."""
    return [definition(kind) for kind in catalogue.KINDS]


def definition(kind: Kind) -> Schema:
    """Return the manifest of the kind's CRD."""
    resource, rules = kind.resource, kind.rules()
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": kind.singular,
    }
    versions = [
        rules.schema(name).manifest(kind.doc, stored=name == resource.version, scale=kind.scale)
        for name in kind.versions
    ]
    spec: Schema = {
        "group": resource.group,
        "names": names | ({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "versions": versions,
        "conversion": {"strategy": "Webhook", "webhook": _webhook()} if rules.convert else {"strategy": "None"},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.definition_name},
        "spec": spec,
    }


def _webhook() -> Schema:
    """Return the conversion webhook at the Service. Installation or webhook may change that, and add the caBundle."""
    service = {"namespace": "kruise-system", "name": "kruise-webhook-service", "port": 443, "path": "/convert"}
    return {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1", "v1beta1"]}
