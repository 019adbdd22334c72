"""The canonical typed form of what a SidecarSet injects (sidecarset.md Appendix A).

Hashes and revisions are made of it, and other programs make the same ones. A sidecar is a container of core/v1 with
members of its own behind it.
"""

from functools import cache

import msgspec

from flotilla_common.api.documents import Json, sequence
from flotilla_common.api.podtemplate import Canonical, Members, core_types

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
"""What a sidecar has beside the members of a container; no pod knows it."""


INJECTED = {
    "volumes": "Volume",
    "containers": "Sidecar",
    "initContainers": "Sidecar",
    "imagePullSecrets": "LocalObjectReference",
    "patchPodMetadata": "PatchPodMetadata",
}
"""The members of a spec that are injected into pods, and of what type their items are."""


def canonical_list(spec: Json, name: str) -> list[Json]:
    """The items of one of these members; none if it is no list. Raises ValueError for one that cannot be read."""
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
