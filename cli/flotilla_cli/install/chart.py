"""What of the chart is made from the code: `python -m flotilla_cli.install.chart helm/flotilla`.

CRDs, roles, policies and webhook entries are those of `flotilla install`, with the namespace left open; the services
are those that are installed beside this command. The templates range over these files, so a new kind or service needs
no template of its own. A test compares what is stored with what the code makes.

Gates do not change the entries: the running webhook takes out those that it does not serve, and puts in the one that a
gate calls for (`Registration`). Where certificates come from outside it writes nothing, so that entry is here, too.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from flotilla_cli.cluster.nats import ENVIRONMENT, LIMITS
from flotilla_cli.install import bus_keys, rbac
from flotilla_cli.install.kinds import name_of
from flotilla_cli.install.manifests import as_yaml, manifests
from flotilla_cli.services import ON_DEMAND, load_all
from flotilla_common.api.documents import Json
from flotilla_common.gates import STAGES, Gates
from flotilla_common.settings import known_flags

FOLDER = "files"
"""Of the chart; everything in it is made here."""

OPEN_NAMESPACE = "{{ .Values.installation.namespace }}"
_KEPT = {"helm.sh/resource-policy": "keep"}
"""Removing the chart must not remove what users made: with a CRD all of its objects go."""

_FILES = dict.fromkeys(("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"), "managed-fields")


def files() -> dict[str, str]:
    """The generated files by their path in the chart."""
    made = {f"{FOLDER}/services.yaml": as_yaml([_declared()]), f"{FOLDER}/nats-limits.conf": LIMITS}
    for name, documents in _sorted().items():
        made[f"{FOLDER}/{name}.yaml"] = as_yaml(documents).replace(rbac.NAMESPACE, OPEN_NAMESPACE)
    return made


def write(chart: Path) -> list[Path]:
    """Write them, and remove what is generated no longer; the paths of all."""
    made = {chart / path: content for path, content in files().items()}
    for stale in set(chart.joinpath(FOLDER).rglob("*.*")) - set(made):
        stale.unlink()
    for path, content in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return sorted(made)


def _sorted() -> Mapping[str, Sequence[Json]]:
    """The objects by the file that they belong in; namespaces are the templates' own business."""
    found: dict[str, list[Json]] = {"bus": bus_keys.rights()}
    for document in manifests(Gates.parse("")):
        kind = document["kind"]
        metadata = document["metadata"]
        if kind == "CustomResourceDefinition":
            kept = metadata | {"annotations": metadata.get("annotations", {}) | _KEPT}
            found[f"crds/{name_of(document)}"] = [document | {"metadata": kept}]
        elif "webhooks" in document:  # their template, too, is written by the templates, which may change the entries
            found.setdefault("webhooks", []).append(document | {"metadata": {"name": metadata["name"]}})
        elif kind != "Namespace":
            found.setdefault(_FILES.get(kind, "objects"), []).append(document)
    return found


def _declared() -> Json:
    """What the templates must know of services, settings and gates."""
    on = Gates.parse("").enabled
    return {
        "services": dict(_facts()),
        "settings": sorted(flag for flag, *_ in known_flags()),
        "gates": {
            stage: {"enabled": sorted(names & on), "disabled": sorted(names - on)} for stage, names in STAGES.items()
        },
        "natsEnvironment": dict(ENVIRONMENT),
    }


def _facts() -> Iterator[tuple[str, Json]]:
    for service in load_all():
        facts = {"sharded": bool(service.parts), "called": service.called, "onDemand": service.name in ON_DEMAND}
        yield service.name, facts


if __name__ == "__main__":
    for written in write(Path(sys.argv[1])):
        print(written)
