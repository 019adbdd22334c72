"""The address of the webhook in CRDs and webhook configurations: a Service, or a URL.

The two exclude each other, and the running webhook maintains them, so an installation changes them only on request:
without `--webhook-url`, existing objects keep theirs. On request, server-side apply is not enough: a field with a
second owner would remain beside the new one, and the apiserver rejects the pair.

A webhook configuration has its entries twice: as the apiserver uses them, and as the template from which the running
webhook generates them (webhooks.md §3.4). An installation writes both, so that an upgrade can add and remove entries.
"""

import copy
from collections.abc import Sequence

import msgspec

from flotilla_common.api.documents import Json, mappings, member, text

TEMPLATE = "template"
"""Annotation with the template."""


def as_template(entries: Sequence[Json]) -> str:
    """Encode entries for the annotation."""
    return msgspec.json.encode(entries).decode()


def clients(document: Json) -> dict[str, Json]:
    """Return the clientConfigs of a CRD or a webhook configuration, by the name of the entry."""
    found = _by_entry(mappings(document.get("webhooks")))
    conversion = member(document, "spec", "conversion", "webhook", "clientConfig")
    return found | ({"": conversion} if conversion else {})


def services_behind(configuration: Json) -> set[tuple[str, str]]:
    """Return the Services of the entries of a webhook configuration, by namespace and name."""
    found = [member(entry, "clientConfig", "service") for entry in mappings(configuration.get("webhooks"))]
    return {(text(one["namespace"]), text(one["name"])) for one in found if one}


def keep(wanted: Json, live: Json) -> Json:
    """Return the wanted object with the live one's endpoints; the webhook writes the caBundle."""
    result = copy.deepcopy(wanted)
    _adopt(clients(result), clients(live))
    if template := template_of(result):
        _adopt(_by_entry(template), _by_entry(template_of(live)) or clients(live))
        member(result, "metadata", "annotations")[TEMPLATE] = as_template(template)
    return result


def switched(wanted: Json, live: Json) -> Json | None:
    """Return the live object with endpoints switched between URL and Service; None without any change."""
    result = copy.deepcopy(live)
    target = clients(wanted)
    changed = False
    for name, client in clients(result).items():
        want = target.get(name, client)
        if ("url" in want) != ("url" in client):
            changed = True
            client.pop("url", None)
            client.pop("service", None)
            client.update(want)
    return result if changed else None


def _adopt(wanted: dict[str, Json], present: dict[str, Json]) -> None:
    for name, client in wanted.items():
        if held := {key: value for key, value in present.get(name, {}).items() if key in ("service", "url")}:
            client.clear()
            client.update(held)


def _by_entry(entries: Sequence[Json]) -> dict[str, Json]:
    return {text(entry.get("name")): member(entry, "clientConfig") for entry in entries}


def template_of(document: Json) -> list[Json]:
    """Return the entries of the template; empty without a template, or if it cannot be decoded."""
    content = text(member(document, "metadata", "annotations").get(TEMPLATE))
    try:
        return mappings(msgspec.json.decode(content)) if content else []
    except msgspec.DecodeError:
        return []
