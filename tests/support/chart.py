"""The objects that the chart renders with given values, found by kind, name and path.

made = rendered(helm, "profile=compact")
made.names("Deployment")
at(made.one("Deployment", "flotilla-compact"), "spec.template.spec.containers.0.args")
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from tests.support.helm import Helm
from tests.testkit.documents import Json

ABSENT = object()
"""Result of `at` for a path that does not exist."""
POD_KINDS = ("Deployment", "StatefulSet", "DaemonSet", "Job")


class Rendered:
    """The objects of one rendering."""

    def __init__(self, objects: list[Json]) -> None:
        self.objects = objects

    def of(self, kind: str) -> dict[str, Json]:
        """Return all objects of a kind, by name."""
        return {one["metadata"]["name"]: one for one in self.objects if one["kind"] == kind}

    def names(self, kind: str) -> set[str]:
        """Return the names of all objects of a kind."""
        return set(self.of(kind))

    def one(self, kind: str, name: str) -> Json:
        """Return the object; raises KeyError."""
        return self.of(kind)[name]

    def args(self, kind: str, name: str) -> list[str]:
        """Return the arguments of the first container of its pods."""
        return at(self.one(kind, name), "spec.template.spec.containers.0.args")

    def settings(self) -> str:
        """Return the settings file of the services."""
        return self.one("ConfigMap", "flotilla-settings")["data"]["settings.yaml"]

    def pods(self) -> Iterator[Json]:
        """Yield the pods of its Deployments, StatefulSet, DaemonSet and Jobs, each under the name of its owner."""
        for kind in POD_KINDS:
            for name, owner in self.of(kind).items():
                template = owner["spec"]["template"]
                metadata = template["metadata"] | {"name": name, "namespace": owner["metadata"]["namespace"]}
                yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _spec(template["spec"], owner)}


@cache
def rendered(helm: Helm, *values: str, namespace: str = "default", kubernetes: str = "") -> Rendered:
    """Render the chart with these values (`name=value`), as a release in a namespace; once for the same values.

    `kubernetes`: the release of the cluster; empty: the one that helm takes without any.
    """
    given = [part for value in values for part in ("--set", value)]
    version = ["--kube-version", kubernetes] if kubernetes else []
    return Rendered(helm.template("--namespace", namespace, *version, *given))


def at(document: Any, path: str) -> Any:
    """Return the value at a dotted path, with numbers as list indices; ABSENT if the path does not exist."""
    for part in path.split("."):
        if isinstance(document, list) and part.isdigit() and int(part) < len(document):
            document = document[int(part)]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            return ABSENT
    return document


def _spec(spec: Json, owner: Json) -> Json:
    """Return the spec with the volumes that a StatefulSet adds."""
    claims = [claim["metadata"]["name"] for claim in owner["spec"].get("volumeClaimTemplates", [])]
    added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return spec | {"volumes": [*spec.get("volumes", []), *added]}
