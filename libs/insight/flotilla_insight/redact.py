"""Replaces what may be secret in templates and annotations, without changing any plan.

A text becomes a token, and the same text the same token throughout the file: equal values stay equal, and so does every
decision. The key of the tokens is thrown away. Names of revisions are hashes of templates; a revision that is new in
the recording therefore gets another name in a replay, which `flotilla replay` allows for.
"""

import hashlib
import re
from typing import cast

import msgspec

from flotilla_common.api.documents import Json, mapping
from flotilla_insight.views import all_views

# Members of objects whose values may be secret: in pods and their templates, at any depth. Views of kinds list further
# ones.
TEXTS = frozenset({"command", "args"})
"""Lists of free text: of containers, probes and hooks."""

PAIRS = frozenset({"env", "httpHeaders"})
"""Lists of names with values."""

MAPPINGS = frozenset({"volumeAttributes"})
"""Free text by name: options of CSI drivers."""

_DROPPED = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
"""Annotations that repeat the whole object; no planner reads them."""

_KNOWN = re.compile(r"(.*\.)?(kruise\.io|kubernetes\.io|k8s\.io)/.*|inplace-update-(state|grace)")
"""Annotations of Kubernetes and of our kinds: states, hashes, costs. All others are users' own."""

_FOLLOWED = re.compile(r"metadata\.annotations\['([^']+)'\]")
"""How containers refer to annotations in their environment. In-place updates compare hashes of these."""


class Redactor:
    """Redacts the bodies of one bundle."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self._public = frozenset[str]().union(*(kind.public_variables for kind in all_views()))
        self._followed: set[str] = set()
        self.count = 0

    def body(self, document: Json) -> Json:
        """Return the document with tokens instead of texts that may be secret."""
        self._followed = set(_FOLLOWED.findall(msgspec.json.encode(document).decode()))
        return mapping(self._walk("", document))

    def _walk(self, name: str, value: object) -> object:
        if isinstance(value, dict):
            kept = {key: item for key, item in cast("Json", value).items() if not self._drops(key)}
            if name in MAPPINGS:
                return {key: self._token(item) for key, item in kept.items()}
            if name == "annotations":
                return {key: item if self._is_known(key) else self._token(item) for key, item in kept.items()}
            return {key: self._walk(key, item) for key, item in kept.items()}
        if isinstance(value, list):
            return [self._item(name, item) for item in cast("list[object]", value)]
        return value

    def _item(self, name: str, item: object) -> object:
        if name in TEXTS:
            return self._token(item)
        if name in PAIRS and isinstance(item, dict) and "value" in item:
            pair = cast("Json", item)
            return pair if pair.get("name") in self._public else pair | {"value": self._token(pair["value"])}
        return self._walk("", cast("object", item))

    def _drops(self, key: str) -> bool:
        self.count += key in _DROPPED
        return key in _DROPPED

    def _is_known(self, annotation: str) -> bool:
        return annotation in self._followed or _KNOWN.fullmatch(annotation) is not None

    def _token(self, text: object) -> object:
        if not isinstance(text, str) or not text:
            return text
        self.count += 1
        return f"redacted-{hashlib.blake2b(text.encode(), key=self._key, digest_size=6).hexdigest()}"
