"""ResourceDistribution between v1alpha1 and v1beta1, on raw documents (resourcedistribution.md §2).

Two members have other names. What is distributed is not looked at: its bytes are hashed, so it comes out as it went in,
nulls included. A Conversion view always shows all ways to choose namespaces, and no empty lists.
"""

from functools import partial

from flotilla_common.api.documents import Json, ensured, mapping, mappings, member
from flotilla_common.api.versions import Conversion

_ALPHA = {"selector": "namespaceLabelSelector", "failed": "failedNamespace"}
_BETA = {"selector": "namespaceSelector", "failed": "failedNamespaces"}


def _change(document: Json, old: dict[str, str], new: dict[str, str]) -> None:
    spec, status = member(document, "spec"), member(document, "status")
    if "targets" in spec:
        _targets(mapping(spec["targets"]), old["selector"], new["selector"])
    for condition in mappings(status.get("conditions")):
        _rename(condition, old["failed"], new["failed"])
        _drop_empty(condition, new["failed"])
    _drop_empty(status, "conditions")


def _targets(targets: Json, old: str, new: str) -> None:
    _rename(targets, old, new)
    selector = ensured(targets, new)
    for requirement in mappings(selector.get("matchExpressions")):
        _drop_empty(requirement, "values")
    _drop_empty(selector, "matchLabels", "matchExpressions")
    for names in ("includedNamespaces", "excludedNamespaces"):
        _drop_empty(ensured(targets, names), "list")


def _rename(document: Json, old: str, new: str) -> None:
    if old in document:
        document[new] = document.pop(old)


def _drop_empty(document: Json, *keys: str) -> None:
    for key in keys:
        if key in document and not document[key]:
            del document[key]


_VERSIONS = Conversion(
    "ResourceDistribution", partial(_change, old=_ALPHA, new=_BETA), partial(_change, old=_BETA, new=_ALPHA)
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
