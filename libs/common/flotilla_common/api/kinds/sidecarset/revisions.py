"""What a revision of a SidecarSet holds, and how a SidecarSet looks that is set back to one (sidecarset.md §6.3, §7.4).

It holds what is injected, and nothing of whom or how: five members of the spec, null where they are empty.
"""

import msgspec

from flotilla_common.api.documents import Json, member, strings, text
from flotilla_common.api.jsontext import go_json
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_HASH_WITHOUT_IMAGE
from flotilla_common.api.kinds.sidecarset.canonical import INJECTED, canonical_list, hash_annotations
from flotilla_common.api.kinds.sidecarset.types import SidecarSet

_HASHES = (SIDECAR_SET_HASH, SIDECAR_SET_HASH_WITHOUT_IMAGE)


def revision_source(sidecar_set: SidecarSet) -> bytes:
    """The data of its revision, as the user wrote it."""
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
    """The data as it is stored, hashed and compared, from data as anybody may have written it. Raises ValueError for
    data that cannot be read."""
    spec = member(msgspec.json.decode(data, type=Json), "spec")
    stored: Json = {name: canonical_list(spec, name) or None for name in INJECTED}
    return go_json({"spec": stored | {"$patch": "replace"}}, sort=True)


def restored(document: Json, revision: Json) -> Json:
    """The SidecarSet to inject, as a new document: `document` as it is stored, with the content of a ControllerRevision
    for its whole spec, its hashes and its name. Raises ValueError for a revision that cannot be read."""
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
