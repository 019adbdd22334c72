"""Asks the apiserver what it would store, with a dry run of what `kubectl apply` would send: through our webhook, so
that defaults and refusals are those of a real apply.

For a kind that a CRD defines that is a JSON merge patch, made of three documents (`three_way`). What the manifest says
and the object does not is set. What an earlier apply had set, as an annotation remembers, and the manifest says no
longer, is taken away. Everything else, such as defaults and what others have written, stays.
"""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import msgspec

from flotilla_cli.foresee.manifest import Manifest
from flotilla_cli.install.kinds import Place
from flotilla_cli.install.live import get
from flotilla_common.api.documents import Json, is_object, mapping, merge_patch, strings
from flotilla_common.api.jsontext import go_json
from flotilla_common.control.plan import PatchType
from flotilla_common.kube.interface import Api, ApiError

MANAGER = "kubectl-client-side-apply"
"""Whose fields they are, as kubectl calls itself."""

SERVER_SIDE = "application/apply-patch+yaml"
_DRY = {"dryRun": "All", "fieldValidation": "Strict"}


_DOCUMENT = re.compile(r"^.*is invalid: patch: Invalid value: \".*\": (?=strict decoding error)", re.DOTALL)
"""The whole object, which stands before what is wrong with a field of a patch."""


class Refused(Exception):
    """The apiserver would not take the manifest; the text is its own."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """An object before and after an apply, in the version of the manifest, and afterwards as it would be stored."""

    manifest: Manifest
    namespace: str
    before: Json | None  # None: it is made
    after: Json
    stored: Json


async def dry_run(api: Api, manifest: Manifest, namespace: str, *, server_side: bool = False) -> Applied:
    """What an apply would do. Raises Refused, ApiError for what has nothing to do with the manifest, Unreachable."""
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
    """The apiserver's answer; None when there is nothing to send."""
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
    """The manifest in the namespace that it goes to."""
    metadata = mapping(document.get("metadata"))
    return document | {"metadata": metadata | {"namespace": namespace}} if namespace else document


def _stored(manifest: Manifest, document: Json) -> Json:
    """The object in the version in which it is stored. Our webhook converts by the same function."""
    version = manifest.kind.resource.api_version
    convert = manifest.kind.rules().convert
    if convert is None or manifest.resource.api_version == version:
        return document | {"apiVersion": version}
    return convert(document, version)


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation: the manifest of the last apply."""


def annotated(document: Json) -> Json:
    """The manifest with itself in its annotation, as it is written."""
    metadata = mapping(document.get("metadata"))
    annotations = {key: value for key, value in strings(metadata.get("annotations")).items() if key != LAST_APPLIED}
    bare = document | {"metadata": metadata | {"annotations": annotations}}
    applied = go_json(bare, sort=True).decode() + "\n"
    return bare | {"metadata": metadata | {"annotations": annotations | {LAST_APPLIED: applied}}}


def last_applied(live: Json) -> Json:
    """The manifest of the last apply; empty for an object that was made otherwise."""
    found = strings(mapping(live.get("metadata")).get("annotations")).get(LAST_APPLIED, "")
    try:
        return mapping(msgspec.json.decode(found)) if found else {}
    except msgspec.DecodeError:
        return {}


def three_way(original: Json, modified: Json, live: Json) -> Json:
    """The patch. `original`: what was applied last, `modified`: what is applied now. Empty: nothing changes."""
    added = _filtered(merge_patch(live, modified), keep=lambda value: value is not None)
    removed = _filtered(merge_patch(original, modified), keep=lambda value: value is None)
    return _merged(removed, added)


def _filtered(patch: Json, keep: Callable[[Any], bool]) -> Json:
    """The members whose values are to be kept, and the way to them. An empty object is a value like others."""
    result: Json = {}
    for key, value in patch.items():
        if is_object(value) and value:
            if inner := _filtered(value, keep):
                result[key] = inner
        elif keep(value):
            result[key] = value
    return result


def _merged(first: Json, second: Json) -> Json:
    """Both patches in one; the second has the last word."""
    result = dict(first)
    for key, value in second.items():
        held = result.get(key)
        result[key] = _merged(held, value) if is_object(held) and is_object(value) else value
    return result
