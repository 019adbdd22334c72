"""Where the apiserver reaches the webhook, in CRDs and webhook configurations: through the Service, or at a URL.

The two exclude each other, and the running webhook keeps them right, so an installation changes them only when it is
told to: without `--webhook-url`, what stands in an object stays. When it is told to, server-side apply is not enough:
a field that somebody else owns too would stay beside the new one, and the apiserver refuses the pair.
"""

import copy

from flotilla_common.api.documents import Json, mappings, member, text


def clients(document: Json) -> dict[str, Json]:
    """The clientConfigs of a CRD or a webhook configuration, by the name of the entry."""
    found = {text(entry.get("name")): member(entry, "clientConfig") for entry in mappings(document.get("webhooks"))}
    conversion = member(document, "spec", "conversion", "webhook", "clientConfig")
    return found | ({"": conversion} if conversion else {})


def keep(wanted: Json, live: Json) -> Json:
    """The wanted object with the endpoints that the live one has; the caBundle stays its owner's business."""
    result = copy.deepcopy(wanted)
    present = clients(live)
    for name, client in clients(result).items():
        if held := {key: value for key, value in present.get(name, {}).items() if key in ("service", "url")}:
            client.clear()
            client.update(held)
    return result


def switched(wanted: Json, live: Json) -> Json | None:
    """The live object with the wanted endpoints where they are of the other sort; None if there are none such."""
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
