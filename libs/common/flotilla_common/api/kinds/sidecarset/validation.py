"""Validation of a SidecarSet by itself, in its hub version and with its defaults (sidecarset.md §4.1, §4.3).

What needs a look around comes in as faults that others found, or as what they saw.
"""

import re
from collections.abc import Iterable, Iterator

from flotilla_common.api.admission.fields import Fault, invalid, required
from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.kinds.sidecarset.container_validation import container_faults
from flotilla_common.api.kinds.sidecarset.strategy_validation import injection_faults, selector_faults, update_faults

_NAME = re.compile(r"[a-zA-Z0-9\-]+")
_NAME_LIMIT = 63


def validate(
    document: Json, old: Json | None = None, looked_up: Iterable[Fault] = (), *, missing_revision: bool = False
) -> list[Fault]:
    """All faults of a SidecarSet, and of what an update of `old` must not change. `looked_up`: what others found wrong
    with it. `missing_revision`: the revision that it names cannot be found."""
    spec = mapping(document.get("spec"))
    return [
        *_name_faults(text(member(document, "metadata").get("name"))),
        *selector_faults(spec),
        *injection_faults(spec, missing=missing_revision),
        *update_faults(spec),
        *_content_faults(spec),
        *container_faults(spec),
        *looked_up,
        *(_change_faults(spec, mapping(old.get("spec"))) if old is not None else ()),
    ]


def _name_faults(name: str) -> Iterator[Fault]:
    if not _NAME.fullmatch(name):
        yield invalid("metadata.name", name, f"must match {_NAME.pattern}")
    if len(name) > _NAME_LIMIT:
        yield invalid("metadata.name", name, f"must be no more than {_NAME_LIMIT} characters")


def _content_faults(spec: Json) -> Iterator[Fault]:
    if not spec.get("initContainers") and not spec.get("containers"):
        yield required("spec", "no initContainer or container defined for sidecarset")


def _change_faults(spec: Json, old: Json) -> Iterator[Fault]:
    """Pods cannot get another container, and the two of a hot upgrade cannot become one."""
    before = {text(container.get("name")): container for container in mappings(old.get("containers"))}
    for container in mappings(spec.get("containers")):
        name = text(container.get("name"))
        if name not in before:
            yield invalid("spec.containers.name", name, "containers cannot be added or renamed")
            continue
        kind, held = (member(one, "upgradeStrategy").get("upgradeType") for one in (container, before[name]))
        if held and kind != held:
            yield invalid("spec.containers.upgradeStrategy.upgradeType", kind, f"is immutable: {name} has {held}")
