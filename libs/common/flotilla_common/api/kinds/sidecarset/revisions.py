"""Computes the canonical form of a SidecarSet's injected content, its hashes, and its revisions.

Other programs compute the same hashes and revisions (sidecarset.md Appendix A, §5, §6.3, §7.4). A sidecar is a
container of core/v1 followed by members of its own. Hashes include `containers` only, and init containers if one of
them is a native sidecar: all other changes affect new pods only, and existing ones stay as updated as they were. A
revision holds the injected content, but no selectors or strategies: five members of the spec, null where they are
empty.
"""

import hashlib
import itertools
from functools import cache

import msgspec

from flotilla_common.api.documents import Json, mapping, member, sequence, strings, text
from flotilla_common.api.jsontext import go_json
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_HASH_WITHOUT_IMAGE
from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_common.api.podtemplate import Canonical, Members, core_types

_LETTERS = b"bcdfghjklmnpqrstvwxz2456789"
_ALPHABET = bytes.maketrans(b"0123456789abcdef", bytes(_LETTERS[code % len(_LETTERS)] for code in b"0123456789abcdef"))

_SIDECAR: Members = [
    ("podInjectPolicy", "o", "string"),
    ("upgradeStrategy", "o", "UpgradeStrategy"),
    ("shareVolumePolicy", "o", "ShareVolumePolicy"),
    ("shareVolumeDevicePolicy", "op", "ShareVolumePolicy"),
    ("transferEnv", "o", "[]TransferEnv"),
    ("resourcesPolicy", "op", "ResourcesPolicy"),
]
_TYPES: dict[str, Members] = {
    "UpgradeStrategy": [("upgradeType", "o", "string"), ("hotUpgradeEmptyImage", "o", "string")],
    "ShareVolumePolicy": [("type", "o", "string")],
    "TransferEnv": [
        ("sourceContainerName", "o", "string"),
        ("sourceContainerNameFrom", "op", "SourceContainerName"),
        ("envName", "o", "string"),
        ("envNames", "o", "[]string"),
    ],
    "SourceContainerName": [("fieldRef", "op", "ObjectFieldSelector")],
    "ResourcesPolicy": [
        ("targetContainersMode", "", "string"),
        ("targetContainersNameRegex", "o", "string"),
        ("resourcesExpr", "", "ResourcesExpr"),
    ],
    "ResourcesExpr": [("limits", "op", "ResourceExpressions"), ("requests", "op", "ResourceExpressions")],
    "ResourceExpressions": [("cpu", "o", "string"), ("memory", "o", "string")],
    "PatchPodMetadata": [("annotations", "o", "{}string"), ("patchPolicy", "o", "string")],
}

SIDECAR_MEMBERS = tuple(name for name, _, _ in _SIDECAR)
"""The members of a sidecar that a container in a pod does not have."""


INJECTED = {
    "volumes": "Volume",
    "containers": "Sidecar",
    "initContainers": "Sidecar",
    "imagePullSecrets": "LocalObjectReference",
    "patchPodMetadata": "PatchPodMetadata",
}
"""The members of a spec that are injected into pods, and the types of their items."""


def canonical_list(spec: Json, name: str) -> list[Json]:
    """Return the canonical items of such a member; empty unless a list. Raises ValueError for unreadable items."""
    return [_item(f"spec.{name}[{index}]", INJECTED[name], one) for index, one in enumerate(sequence(spec.get(name)))]


def _item(path: str, type_name: str, item: object) -> Json:
    try:
        return _canonical().write(type_name, msgspec.json.encode(item))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


@cache
def _canonical() -> Canonical:
    core = core_types()
    return Canonical(core | _TYPES | {"Sidecar": core["Container"] + _SIDECAR})


def hash_of_spec(spec: Json) -> str:
    """Return the hash of a spec, in any version. Raises ValueError for unreadable containers."""
    return _hash(_hashed(spec))


def hash_without_image(spec: Json) -> str:
    """Return the hash without images; while it stays, pods can be updated in place. Raises ValueError."""
    document = _hashed(spec)
    for container in itertools.chain(*document.values()):
        container.pop("image", None)
    return _hash(document)


def hash_annotations(spec: Json) -> dict[str, str]:
    """Return the annotations with both hashes. Raises ValueError for unreadable containers."""
    return {SIDECAR_SET_HASH: hash_of_spec(spec), SIDECAR_SET_HASH_WITHOUT_IMAGE: hash_without_image(spec)}


def _hashed(spec: Json) -> dict[str, list[Json]]:
    counted = ["containers"]
    if any(mapping(one).get("restartPolicy") == "Always" for one in sequence(spec.get("initContainers"))):
        counted.append("initContainers")
    return {name: canonical_list(spec, name) for name in counted}


def _hash(document: dict[str, list[Json]]) -> str:
    text = go_json({name: containers or None for name, containers in document.items()})  # Go's form of an empty list
    digest = hashlib.sha256(text).hexdigest()
    return digest.encode().translate(_ALPHABET).decode()


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
