"""The hashes of a SidecarSet: which of its states a pod has (sidecarset.md §5).

Only `containers` count, and the init containers where one of them is a native sidecar: what else changes reaches new
pods only, and leaves the existing ones as updated as they were.
"""

import hashlib
import itertools

from flotilla_common.api.documents import Json, mapping, sequence
from flotilla_common.api.gojson import go_json
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_HASH_WITHOUT_IMAGE
from flotilla_common.api.kinds.sidecarset.canonical import canonical_list

_LETTERS = b"bcdfghjklmnpqrstvwxz2456789"
_ALPHABET = bytes.maketrans(b"0123456789abcdef", bytes(_LETTERS[code % len(_LETTERS)] for code in b"0123456789abcdef"))


def hash_of_spec(spec: Json) -> str:
    """The hash of a spec, in any version. Raises ValueError for containers that cannot be read."""
    return _hash(_hashed(spec))


def hash_without_image(spec: Json) -> str:
    """The same without the images: pods can be updated in place while it stays. Raises ValueError."""
    document = _hashed(spec)
    for container in itertools.chain(*document.values()):
        container.pop("image", None)
    return _hash(document)


def hash_annotations(spec: Json) -> dict[str, str]:
    """The annotations that hold both. Raises ValueError."""
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
