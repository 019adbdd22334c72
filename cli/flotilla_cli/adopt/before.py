"""What an object was before the take-over: kept in one ConfigMap per object, and put back.

One each, because a CRD alone may be a few hundred KiB and a ConfigMap holds one MiB. A ConfigMap is only ever created:
a take-over that is run again does not take what the first run left for the original.
"""

import msgspec

from flotilla_cli.adopt.steps import Verb, Write
from flotilla_cli.install.kinds import Place
from flotilla_cli.install.rbac import NAMESPACE
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.resources import CONFIG_MAP, Resource

LABEL = "flotilla.kruise.io/before-take-over"
_KEY = "object.json"
_ADDRESSES = ("clusterIP", "clusterIPs")
_SERVERS = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")


def kept(place: Place, live: Json) -> Write:
    """The ConfigMap that keeps the object."""
    document = _stripped(live) | place.resource.type_meta
    body: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name_for(place), "namespace": NAMESPACE, "labels": {LABEL: "true"}},
        "data": {_KEY: msgspec.json.encode(document).decode(), "plural": place.resource.plural},
    }
    return Write(Verb.RESTORE, Place(CONFIG_MAP, NAMESPACE, name_for(place)), body)


def name_for(place: Place) -> str:
    """The name of the ConfigMap of an object."""
    where = f"-{place.namespace}" if place.namespace else ""
    return f"flotilla-before-{place.resource.plural}{where}-{place.name}"


def read(config_map: Json) -> tuple[Place, Json]:
    """The object that a ConfigMap keeps, and where it belongs."""
    data = member(config_map, "data")
    document: Json = msgspec.json.decode(text(data.get(_KEY)))
    group, _, version = text(document.get("apiVersion")).rpartition("/")
    meta = member(document, "metadata")
    namespace = text(meta.get("namespace"))
    resource = Resource(group, version, text(data.get("plural")), text(document.get("kind")), bool(namespace))
    return Place(resource, namespace, text(meta.get("name"))), document


def restored(document: Json, live: Json | None) -> Json:
    """The object to write so that the live one becomes what it was; fails if somebody writes it in between."""
    if live is None:
        return document
    held = {key: value for key, value in member(live, "metadata").items() if key in ("resourceVersion", "uid")}
    return document | {"metadata": member(document, "metadata") | held}


def is_as_before(document: Json, live: Json | None) -> bool:
    """Whether the live object is what it was."""
    if live is None:
        return False
    kind = {key: document.get(key) for key in ("apiVersion", "kind")}
    return _stripped(live) | kind == document


def _stripped(live: Json) -> Json:
    """Without what the apiserver says. A Service that is made anew gets another address."""
    metadata = {key: value for key, value in member(live, "metadata").items() if key not in _SERVERS}
    rest = {key: value for key, value in live.items() if key not in ("status", "spec")} | {"metadata": metadata}
    if "spec" not in live:
        return rest
    return rest | {"spec": {key: value for key, value in member(live, "spec").items() if key not in _ADDRESSES}}
