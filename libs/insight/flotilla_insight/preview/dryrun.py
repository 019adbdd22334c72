"""Sends what `kubectl apply` would send as a dry run.

It goes through our webhook, so that defaults and refusals are those of a real apply.

For kinds of CRDs this is a JSON merge patch made of three documents (`three_way`): it sets what differs from the
manifest, removes what the previous apply had set (an annotation records it) and the manifest no longer has, and leaves
everything else, such as defaults and other writers' fields.
"""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import msgspec

from flotilla_common.api.documents import Json, is_object, mapping, merge_patch, strings
from flotilla_common.api.jsontext import go_json
from flotilla_common.control.plan import PatchType
from flotilla_common.kube.interface import Api, ApiError
from flotilla_insight.installation.objects import Place, get
from flotilla_insight.preview.manifest import Manifest

MANAGER = "kubectl-client-side-apply"
"""Field manager of kubectl's client-side apply."""

SERVER_SIDE = "application/apply-patch+yaml"
_DRY = {"dryRun": "All", "fieldValidation": "Strict"}

_DOCUMENT = re.compile(r"^.*is invalid: patch: Invalid value: \".*\": (?=strict decoding error)", re.DOTALL)
"""Prefix of an error about a field of a patch, which repeats the whole object."""


class Refused(Exception):
    """The apiserver rejects the manifest; the text is the apiserver's."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """An object before and after an apply, in the version of the manifest, and afterwards in the stored version."""

    manifest: Manifest
    namespace: str
    before: Json | None  # None: it is created
    after: Json
    stored: Json


async def dry_run(api: Api, manifest: Manifest, namespace: str, *, server_side: bool = False) -> Applied:
    """Return the result of an apply. Raises Refused, ApiError for failures not about the manifest, Unreachable."""
    namespace = namespace if manifest.kind.resource.namespaced else ""
    document = _placed(manifest.document, namespace)
    before = await get(api, Place(manifest.resource, namespace, manifest.name))
    try:
        raw = await _sent(api, manifest, namespace, document, before, server_side=server_side)
    except ApiError as error:
        if error.code in (401, 404) and before is not None:
            raise
        raise Refused(_DOCUMENT.sub("", error.message)) from error
    after = before if raw is None and before is not None else mapping(msgspec.json.decode(raw or b"{}"))
    return Applied(manifest=manifest, namespace=namespace, before=before, after=after, stored=_stored(manifest, after))


async def _sent(
    api: Api, manifest: Manifest, namespace: str, document: Json, before: Json | None, *, server_side: bool
) -> bytes | None:
    """Send the dry run and return the response, or None if nothing changes."""
    resource, name = manifest.resource, manifest.name
    if server_side:
        body, params = msgspec.json.encode(document), _DRY | {"fieldManager": "kubectl"}
        return await api.patch(resource, namespace, name, body, SERVER_SIDE, params=params)
    modified, params = annotated(document), _DRY | {"fieldManager": MANAGER}
    if before is None:
        path = f"{resource.path(namespace)}?{urlencode(params)}"
        return await api.raw("POST", path, msgspec.json.encode(modified), {"Content-Type": "application/json"})
    patch = three_way(last_applied(before), modified, before)
    if not patch:
        return None
    return await api.patch(resource, namespace, name, msgspec.json.encode(patch), PatchType.MERGE, params=params)


def _placed(document: Json, namespace: str) -> Json:
    """Return the manifest with the namespace that it goes to."""
    metadata = mapping(document.get("metadata"))
    return document | {"metadata": metadata | {"namespace": namespace}} if namespace else document


def _stored(manifest: Manifest, document: Json) -> Json:
    """Convert the object to its stored version, with the function that our webhook uses."""
    version = manifest.kind.resource.api_version
    convert = manifest.kind.rules().convert
    if convert is None or manifest.resource.api_version == version:
        return document | {"apiVersion": version}
    return convert(document, version)


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation that holds the manifest of the last apply."""


def annotated(document: Json) -> Json:
    """Return the manifest with itself in its annotation, as kubectl writes it."""
    metadata = mapping(document.get("metadata"))
    annotations = {key: value for key, value in strings(metadata.get("annotations")).items() if key != LAST_APPLIED}
    bare = document | {"metadata": metadata | {"annotations": annotations}}
    applied = go_json(bare, sort=True).decode() + "\n"
    return bare | {"metadata": metadata | {"annotations": annotations | {LAST_APPLIED: applied}}}


def last_applied(live: Json) -> Json:
    """Return the manifest of the last apply; empty if the object was not created by an apply."""
    found = strings(mapping(live.get("metadata")).get("annotations")).get(LAST_APPLIED, "")
    try:
        return mapping(msgspec.json.decode(found)) if found else {}
    except msgspec.DecodeError:
        return {}


def three_way(original: Json, modified: Json, live: Json) -> Json:
    """Return the merge patch; empty: nothing changes. `original`: applied last, `modified`: applied now."""
    added = _filtered(merge_patch(live, modified), keep=lambda value: value is not None)
    removed = _filtered(merge_patch(original, modified), keep=lambda value: value is None)
    return _merged(removed, added)


def _filtered(patch: Json, keep: Callable[[Any], bool]) -> Json:
    """Return the members whose values `keep` accepts, with the objects around them. An empty object is a value, too."""
    result: Json = {}
    for key, value in patch.items():
        if is_object(value) and value:
            if inner := _filtered(value, keep):
                result[key] = inner
        elif keep(value):
            result[key] = value
    return result


def _merged(first: Json, second: Json) -> Json:
    """Merge two patches; the second has precedence."""
    result = dict(first)
    for key, value in second.items():
        held = result.get(key)
        result[key] = _merged(held, value) if is_object(held) and is_object(value) else value
    return result
