"""Encodes a SidecarSet's content in revisions, and restores it from one (sidecarset.md §6.3, §7.4).

A revision holds the injected content, but no selectors or strategies: five members of the spec, null where they are
empty.
"""

import msgspec

from flotilla_common.api.documents import Json, member, strings, text
from flotilla_common.api.jsontext import go_json
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_HASH_WITHOUT_IMAGE
from flotilla_common.api.kinds.sidecarset.canonical import INJECTED, canonical_list, hash_annotations
from flotilla_common.api.kinds.sidecarset.types import SidecarSet

_HASHES = (SIDECAR_SET_HASH, SIDECAR_SET_HASH_WITHOUT_IMAGE)


def revision_source(sidecar_set: SidecarSet) -> bytes:
    """Return the data of the SidecarSet's revision, as the user wrote it."""
    spec = sidecar_set.spec
    members = (
        spec.volumes,
        spec.containers,
        spec.init_containers,
        spec.image_pull_secrets,
        msgspec.json.encode(spec.patch_pod_metadata),
    )
    named = b",".join(b'"%b":%b' % (name.encode(), bytes(raw)) for name, raw in zip(INJECTED, members, strict=True))
    return b'{"spec":{%b}}' % named


def canonical_revision(data: bytes) -> bytes:
    """Return the data as it is stored, hashed and compared. Raises ValueError for unreadable data."""
    spec = member(msgspec.json.decode(data, type=Json), "spec")
    stored: Json = {name: canonical_list(spec, name) or None for name in INJECTED}
    return go_json({"spec": stored | {"$patch": "replace"}}, sort=True)


def restored(document: Json, revision: Json) -> Json:
    """Return a new document with the revision's content, for injection.

    It is the stored `document`, with the content of a ControllerRevision as its whole spec, and its hashes and name.
    Raises ValueError for an unreadable revision.
    """
    metadata, kept = member(document, "metadata"), member(revision, "metadata")
    data = member(revision, "data", "spec")
    spec: Json = {name: data[name] for name in INJECTED if data.get(name)}
    theirs = strings(kept.get("annotations"))
    annotations = hash_annotations(spec) | {key: theirs[key] for key in _HASHES if key in theirs}
    return document | {
        "metadata": metadata | {"annotations": strings(metadata.get("annotations")) | annotations},
        "spec": spec,
        "status": member(document, "status") | {"latestRevision": text(kept.get("name"))},
    }
