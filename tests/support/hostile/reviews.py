"""Requests to the webhook: reviews of admission and of conversion, for every path."""

import random
from collections.abc import Mapping
from functools import cache

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.webhooks import CONVERT_PATH, paths
from tests.support.hostile.documents import Documents
from tests.support.hostile.values import Value, Values

MAX_BODY = 3 << 20
"""Bytes: what an apiserver takes of a user."""

_SPITE = (0.0, 0.002, 0.01, 0.05, 0.3)
_DENSITY = (0.05, 0.2, 0.5)


class Reviews:
    """Draws requests; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)

    def draw(self, path: str) -> bytes:
        """Return the body of a request to the path: at most `MAX_BODY` bytes."""
        while len(body := msgspec.json.encode(self._review(path))) > MAX_BODY:
            pass
        return body

    def _review(self, path: str) -> Json:
        kind = kinds_by_path().get(path)
        if path == CONVERT_PATH:
            return self._conversion()
        dice = self._dice
        operation = dice.choice(("CREATE", "CREATE", "UPDATE", "UPDATE", "DELETE"))
        request: Json = {"uid": "u", "operation": operation, "namespace": "shop", "name": "web"}
        request["resource"] = self._resource(path, kind)
        version = dice.choice(kind.versions) if kind is not None else ""
        drawn = self._object(kind, version)
        if operation != "DELETE":
            request["object"] = drawn
        if operation != "CREATE":
            request["oldObject"] = drawn if dice.random() < 0.3 else self._object(kind, version)
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}

    def _conversion(self) -> Json:
        dice = self._dice
        kind = dice.choice([kind for kind in catalogue.KINDS if len(kind.versions) > 1])
        source, target = dice.sample(kind.api_versions, 2)
        objects = [self._object(kind, source.partition("/")[2]) for _ in range(dice.choice((1, 1, 3)))]
        request = {"uid": "u", "desiredAPIVersion": target, "objects": objects}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}

    def _object(self, kind: Kind | None, version: str) -> Json:
        dice = self._dice
        room = dice.choice((0, 0, 0, 0, 0, 0, 20_000, 200_000, MAX_BODY // 2))
        documents = Documents(Values(dice, dice.choice(_SPITE), room), dice.choice(_DENSITY))
        metadata = documents.metadata(name="web", namespace="shop", uid="u")
        if kind is None:
            return {**_members(documents.of_struct("PodTemplateSpec")), "metadata": metadata}
        drawn = _members(documents.of_schema(schema_of(kind, version)))
        api_version = f"{kind.resource.group}/{version}"
        return {**drawn, "apiVersion": api_version, "kind": kind.name, "metadata": metadata}

    def _resource(self, path: str, kind: Kind | None) -> Json:
        if kind is not None:
            resource = kind.resource
            return {"group": resource.group, "version": resource.version, "resource": resource.plural}
        return {"group": "", "version": "v1", "resource": f"{path.rpartition('-')[2]}s"}


@cache
def kinds_by_path() -> Mapping[str, Kind]:
    """Return the kind that each path is about, of the paths that are about one of ours."""
    found: dict[str, Kind] = {}
    for kind in catalogue.KINDS:
        for verb in kind.rules().admission.handlers:
            found |= dict.fromkeys(paths(kind, verb), kind)
    return found


@cache
def schema_of(kind: Kind, version: str) -> Json:
    """Return the OpenAPI schema of a version of the kind."""
    stored = kind.rules().schema(version).manifest(kind.doc, stored=True, scale=kind.scale)
    return stored["schema"]["openAPIV3Schema"]


def _members(drawn: Value) -> Json:
    """Return the drawn object: an apiserver passes on nothing else."""
    return drawn if isinstance(drawn, dict) else {}
