"""Backups of objects before the migration: one ConfigMap per object.

One each, because a CRD alone may have a few hundred KiB and a ConfigMap holds one MiB. A ConfigMap is only ever
created, so that a second run does not back up what the first one changed.
"""

import msgspec

from flotilla_cli.adopt.steps import Write, WriteVerb
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.resources import CONFIG_MAP, Resource
from flotilla_insight.installation.objects import Place
from flotilla_insight.installation.rbac import NAMESPACE

LABEL = "flotilla.kruise.io/before-take-over"
_KEY = "object.json"
_ADDRESSES = ("clusterIP", "clusterIPs")
_SERVERS = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")


def backup_of(place: Place, live: Json) -> Write:
    """Return the write of the object's backup."""
    document = _stripped(live) | place.resource.type_meta
    body: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name_for(place), "namespace": NAMESPACE, "labels": {LABEL: "true"}},
        "data": {_KEY: msgspec.json.encode(document).decode(), "plural": place.resource.plural},
    }
    return Write(WriteVerb.RESTORE, Place(CONFIG_MAP, NAMESPACE, name_for(place)), body)


def name_for(place: Place) -> str:
    """Return the name of the object's ConfigMap."""
    where = f"-{place.namespace}" if place.namespace else ""
    return f"flotilla-before-{place.resource.plural}{where}-{place.name}"


def read(config_map: Json) -> tuple[Place, Json]:
    """Return the object in a ConfigMap, and its place."""
    data = member(config_map, "data")
    document: Json = msgspec.json.decode(text(data.get(_KEY)))
    group, _, version = text(document.get("apiVersion")).rpartition("/")
    meta = member(document, "metadata")
    namespace = text(meta.get("namespace"))
    resource = Resource(group, version, text(data.get("plural")), text(document.get("kind")), bool(namespace))
    return Place(resource, namespace, text(meta.get("name"))), document


def restored(document: Json, live: Json | None) -> Json:
    """Return the object to write to restore the live one; the write conflicts if the live one changes meanwhile."""
    if live is None:
        return document
    held = {key: value for key, value in member(live, "metadata").items() if key in ("resourceVersion", "uid")}
    return document | {"metadata": member(document, "metadata") | held}


def is_as_before(document: Json, live: Json | None) -> bool:
    """Report whether the live object equals its backup."""
    if live is None:
        return False
    kind = {key: document.get(key) for key in ("apiVersion", "kind")}
    return _stripped(live) | kind == document


def _stripped(live: Json) -> Json:
    """Return the object without the apiserver's fields. A re-created Service gets another address."""
    metadata = {key: value for key, value in member(live, "metadata").items() if key not in _SERVERS}
    rest = {key: value for key, value in live.items() if key not in ("status", "spec")} | {"metadata": metadata}
    if "spec" not in live:
        return rest
    return rest | {"spec": {key: value for key, value in member(live, "spec").items() if key not in _ADDRESSES}}
