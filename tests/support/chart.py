"""What the chart makes of values, to be asked by kind, name and path.

made = rendered(helm, "profile=compact")
made.names("Deployment")
at(made.one("Deployment", "flotilla-compact"), "spec.template.spec.containers.0.args")
"""

from collections.abc import Iterator
from typing import Any

from tests.support.helm import Helm
from tests.testkit.documents import Json

ABSENT = object()
"""What `at` says of a path that leads nowhere."""
POD_KINDS = ("Deployment", "StatefulSet", "DaemonSet", "Job")


class Rendered:
    """The objects of one rendering."""

    def __init__(self, objects: list[Json]) -> None:
        self.objects = objects

    def of(self, kind: str) -> dict[str, Json]:
        """All objects of a kind, by name."""
        return {one["metadata"]["name"]: one for one in self.objects if one["kind"] == kind}

    def names(self, kind: str) -> set[str]:
        """Their names."""
        return set(self.of(kind))

    def one(self, kind: str, name: str) -> Json:
        """The object; raises KeyError."""
        return self.of(kind)[name]

    def args(self, kind: str, name: str) -> list[str]:
        """The arguments of the first container of its pods."""
        return at(self.one(kind, name), "spec.template.spec.containers.0.args")

    def settings(self) -> str:
        """The settings file of the services."""
        return self.one("ConfigMap", "flotilla-settings")["data"]["settings.yaml"]

    def pods(self) -> Iterator[Json]:
        """The pods that its Deployments, StatefulSet, DaemonSet and Jobs make, each under the name of its owner."""
        for kind in POD_KINDS:
            for name, owner in self.of(kind).items():
                template = owner["spec"]["template"]
                metadata = template["metadata"] | {"name": name, "namespace": owner["metadata"]["namespace"]}
                yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _spec(template["spec"], owner)}


def rendered(helm: Helm, *values: str, namespace: str = "default") -> Rendered:
    """The chart with these values (`name=value`), as a release in a namespace."""
    given = [part for value in values for part in ("--set", value)]
    return Rendered(helm.template("--namespace", namespace, *given))


def at(document: Any, path: str) -> Any:
    """What stands at a dotted path, numbers for places in lists; ABSENT where it leads nowhere."""
    for part in path.split("."):
        if isinstance(document, list) and part.isdigit() and int(part) < len(document):
            document = document[int(part)]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            return ABSENT
    return document


def _spec(spec: Json, owner: Json) -> Json:
    """The spec, with the volumes that a StatefulSet adds."""
    claims = [claim["metadata"]["name"] for claim in owner["spec"].get("volumeClaimTemplates", [])]
    added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return spec | {"volumes": [*spec.get("volumes", []), *added]}
