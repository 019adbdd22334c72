"""Hashes for names, labels and annotations (common.md §7.2, §7.6, §9.8).

All of them are FNV over 32 bits of a JSON text that has to match other programs byte for byte, so the texts are built
here too. Templates are hashed in every pass, and rarely change: results are cached by the template's bytes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from flotilla_common.api.core import Container
from flotilla_common.api.jsontext import go_json
from flotilla_common.api.podtemplate import canonical_object, canonical_template

_OFFSET = 0x811C9DC5
_PRIME = 0x01000193
_MASK = 0xFFFFFFFF
_ALPHABET = bytes.maketrans(b"0123456789", b"456789bcdf")  # no vowels: a hash spells no words
_METADATA_PATH = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_IGNORED_ENV = frozenset({"SIDECARSET_VERSION", "SIDECARSET_VERSION_ALT"})


def revision_data(template: bytes | msgspec.Raw) -> bytes:
    """Return `data` of a revision of this template: canonical, members sorted, as it is hashed and compared.

    Raises ValueError for an invalid template.
    """
    return _revision_data(bytes(template))


@lru_cache(maxsize=1024)
def _revision_data(template: bytes) -> bytes:
    document = {"spec": {"template": {**canonical_template(template), "$patch": "replace"}}}
    return go_json(document, sort=True)


@lru_cache(maxsize=4096)
def revision_hash(data: bytes, collision_count: int | None) -> str:
    """Return the hash at the end of a revision's name."""
    value = _fnv1(data + str(collision_count or 0).encode())
    return str(value).encode().translate(_ALPHABET).decode()


def claim_templates_hash(templates: Sequence[msgspec.Raw]) -> str:
    """Return the annotation's value for these volumeClaimTemplates; empty if there are none (common.md §7.6)."""
    return _claim_templates_hash(tuple(bytes(template) for template in templates)) if templates else ""


@lru_cache(maxsize=1024)
def _claim_templates_hash(templates: tuple[bytes, ...]) -> str:
    claims = [canonical_object("PersistentVolumeClaimTemplate", template) for template in templates]
    counted = [
        {"metadata": {"name": claim["metadata"].get("name", ""), "creationTimestamp": None}, "spec": claim["spec"]}
        for claim in claims
    ]
    counted.sort(key=lambda claim: str(claim["metadata"]["name"]))
    return str(object_hash(go_json([claim | {"status": {}} for claim in counted])))


@lru_cache(maxsize=8192)
def object_hash(document: bytes) -> int:
    """Return FNV-1a over the printed bytes of a JSON document (common.md §9.8)."""
    return _fnv1a(b"([]uint8)[" + " ".join(map(str, document)).encode() + b"]")


def plain_hash(container: Container) -> int:
    """Return the hash of a container as kubelets from 1.31 on compute it."""
    return object_hash(go_json({"image": container.image, "name": container.name}))


def env_hash(container: Container, labels: Mapping[str, str], annotations: Mapping[str, str]) -> int:
    """Return the expected hash of the env values that a container reads from its pod's metadata."""
    metadata = {"labels": labels, "annotations": annotations}
    entries: list[dict[str, str]] = []
    for name, (kind, key) in sorted(env_from_metadata(container).items()):
        value = metadata[kind].get(key, "")
        entries.append({"name": name, "value": value} if value else {"name": name})
    return object_hash(go_json(entries or None))


def env_from_metadata(container: Container) -> dict[str, tuple[str, str]]:
    """Return env entries that read a label or annotation: name → (labels or annotations, key) (common.md §9.3)."""
    found: dict[str, tuple[str, str]] = {}
    for env in container.env:
        if env.value or env.name in _IGNORED_ENV or env.value_from is None or env.value_from.field_ref is None:
            continue
        match = _METADATA_PATH.fullmatch(env.value_from.field_ref.field_path)
        if match:
            found[env.name] = (match[1], match[2])
    return found


def _fnv1(data: Iterable[int]) -> int:
    value = _OFFSET
    for byte in data:
        value = (value * _PRIME & _MASK) ^ byte
    return value


def _fnv1a(data: Iterable[int]) -> int:
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value
