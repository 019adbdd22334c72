"""Generates files of the chart from the code: `python -m flotilla_cli.install.chart helm/flotilla`.

CRDs, roles, policies and webhook entries are those of `flotilla install`, with a variable namespace; the services are
those installed with this command. The templates range over these files, so a new kind or service needs no template of
its own. A test compares the stored files with the code.

Gates do not change the entries: the running webhook removes those that it does not serve, and adds the one that a gate
requires (`Registration`). With external certificates it writes nothing, so that entry is included here.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from flotilla_cli.commands import bus_keys
from flotilla_cli.nats_config import ENVIRONMENT, LIMITS
from flotilla_common.api.documents import Json
from flotilla_common.gates import STAGES, Gates
from flotilla_common.settings import known_flags
from flotilla_insight.installation import rbac
from flotilla_insight.installation.manifests import as_yaml, manifests
from flotilla_insight.installation.objects import name_of
from flotilla_insight.services import APART, ON_DEMAND, load_all

FOLDER = "files"
"""Folder of the chart that has only generated files."""

OPEN_NAMESPACE = "{{ .Values.installation.namespace }}"
_KEPT = {"helm.sh/resource-policy": "keep"}
"""Keeps the CRDs when the chart is removed: with a CRD, all of its objects would be deleted."""

SHARDS_OF = {"watcher": "watcher-shards"}
"""The setting for the shards of a service that plans nothing."""

_FILES = dict.fromkeys(("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"), "managed-fields")


def files() -> dict[str, str]:
    """Return the generated files by their path in the chart."""
    made = {f"{FOLDER}/services.yaml": as_yaml([_declared()]), f"{FOLDER}/nats-limits.conf": LIMITS}
    for service in load_all():
        if service.as_users:
            made[f"{FOLDER}/impersonation/{service.name}.yaml"] = as_yaml([{"rules": rbac.impersonation(service)}])
    for name, documents in _sorted().items():
        made[f"{FOLDER}/{name}.yaml"] = as_yaml(documents).replace(rbac.NAMESPACE, OPEN_NAMESPACE)
    return made


def write(chart: Path) -> list[Path]:
    """Write the files, and remove stale ones. Return the paths of all."""
    made = {chart / path: content for path, content in files().items()}
    for stale in set(chart.joinpath(FOLDER).rglob("*.*")) - set(made):
        stale.unlink()
    for path, content in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return sorted(made)


def _sorted() -> Mapping[str, Sequence[Json]]:
    """Return the objects by file; the templates themselves make the namespaces."""
    found: dict[str, list[Json]] = {"bus": bus_keys.rights()}
    for document in manifests(Gates.parse("")):
        kind = document["kind"]
        metadata = document["metadata"]
        if kind == "CustomResourceDefinition":
            kept = metadata | {"annotations": metadata.get("annotations", {}) | _KEPT}
            found[f"crds/{name_of(document)}"] = [document | {"metadata": kept}]
        elif "webhooks" in document:  # the templates write the annotation, too, and may change the entries
            found.setdefault("webhooks", []).append(document | {"metadata": {"name": metadata["name"]}})
        elif kind != "Namespace":
            found.setdefault(_FILES.get(kind, "objects"), []).append(document)
    return found


def _declared() -> Json:
    """Return the facts about services, settings and gates that the templates need."""
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
        shards = "shards" if service.components else SHARDS_OF.get(service.name, "")
        yield (
            service.name,
            {
                "shards": shards,
                "called": service.called,
                "onDemand": service.name in ON_DEMAND,
                "apart": service.name in APART,
            },
        )


if __name__ == "__main__":
    for written in write(Path(sys.argv[1])):
        print(written)
