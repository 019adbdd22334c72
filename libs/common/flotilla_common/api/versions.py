"""Converts objects between the two versions of our kinds; v1beta1 is the hub of every conversion."""

from collections.abc import Callable

import msgspec

from flotilla_common.api.documents import Json, mapping, text
from flotilla_common.api.preserved import Path, hide, path, put_back, show, take

V1ALPHA1 = "apps.kruise.io/v1alpha1"
V1BETA1 = "apps.kruise.io/v1beta1"

Step = Callable[[Json], None]
"""Changes the fields of a document from one version to the other."""


class Conversion(msgspec.Struct, frozen=True):
    """The conversion of a kind between its versions."""

    kind: str
    to_beta: Step
    to_alpha: Step
    only_beta: tuple[Path, ...] = ()
    """The fields that v1alpha1 cannot express: an annotation keeps them (docs/adr/0034)."""
    group: str = "apps.kruise.io"

    def convert(self, document: Json, version: str) -> Json:
        """Return the object in the wanted `group/version`, as a new document.

        Raises ValueError for any other version, and for annotations that cannot be read as fields.
        """
        source, alpha, beta = text(document.get("apiVersion")), f"{self.group}/v1alpha1", f"{self.group}/v1beta1"
        steps = {(alpha, beta): self._upward, (beta, alpha): self._downward}
        if (source, version) not in steps:
            raise ValueError(f"cannot convert {self.kind} from {source} to {version}")
        result = msgspec.json.decode(msgspec.json.encode(document), type=Json)  # no recursion, however deep
        result["apiVersion"] = version
        steps[source, version](result)
        return result

    def _upward(self, document: Json) -> None:
        put_back(document, hide(document), self.only_beta)
        self.to_beta(document)

    def _downward(self, document: Json) -> None:
        self.to_alpha(document)
        show(document, take(document, self.only_beta))

    def to_hub(self, document: Json) -> Json:
        """Return the object as v1beta1; the same document if it already is."""
        hub = f"{self.group}/v1beta1"
        return document if document.get("apiVersion") == hub else self.convert(document, hub)


def annotate(document: Json, annotations: dict[str, str]) -> None:
    """Add annotations to the document, if there are any: an older version keeps fields there that it lacks."""
    if annotations:
        metadata = document.setdefault("metadata", {})
        metadata["annotations"] = mapping(metadata.get("annotations")) | annotations


def only_beta(*paths: str) -> tuple[Path, ...]:
    """Return the paths of fields, for a Conversion."""
    return tuple(map(path, paths))
