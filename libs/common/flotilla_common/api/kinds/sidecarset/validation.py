"""Validation of a SidecarSet by itself, in its hub version and with its defaults (sidecarset.md §4.1, §4.3).

What needs a look around comes in as faults that others found, or as what they saw.
"""

import re
from collections.abc import Iterable, Iterator

from flotilla_common.api.admission.fields import Fault, invalid, required
from flotilla_common.api.admission.workload import order_faults, share_problem
from flotilla_common.api.documents import Json, mapping, mappings, member, text, typed
from flotilla_common.api.kinds.sidecarset.container_validation import container_faults
from flotilla_common.api.kinds.sidecarset.types import PARTIAL
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.selectors import selector_problem

ROLLING_UPDATE = "RollingUpdate"

_STRATEGY = "spec.updateStrategy"

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


def selector_faults(spec: Json) -> Iterator[Fault]:
    """The faults of spec.selector and spec.namespaceSelector."""
    if spec.get("selector") is None:
        yield required("spec.selector", "no selector defined")
    yield from _selector_faults("spec.selector", spec.get("selector"))
    yield from _selector_faults("spec.namespaceSelector", spec.get("namespaceSelector"))


def update_faults(spec: Json) -> Iterator[Fault]:
    """The faults of spec.updateStrategy. Only a rolling update is judged: another type looks at none of it."""
    strategy = member(spec, "updateStrategy")
    if strategy.get("type") != ROLLING_UPDATE:
        return
    for container in mappings(spec.get("initContainers")):
        if container.get("restartPolicy") == "Always":
            detail = "in-place upgrade of init containers is not supported: set type NotUpdate"
            yield required(_STRATEGY, f"init container {container.get('name')}: {detail}")
    selector, partition = strategy.get("selector"), strategy.get("partition")
    yield from _selector_faults(f"{_STRATEGY}.selector", selector)
    if selector is not None and partition not in (None, 0):
        yield invalid("updateStrategy", strategy, "selector and partition cannot be used together")
    for name in ("partition", "maxUnavailable"):
        if (value := strategy.get(name)) is not None and (problem := share_problem(value)):
            yield invalid(f"{_STRATEGY}.{name}", value, problem)
    yield from order_faults(_STRATEGY, strategy)


def injection_faults(spec: Json, *, missing: bool) -> Iterator[Fault]:
    """The faults of spec.injectionStrategy. `missing`: the revision that it names cannot be found."""
    revision = member(spec, "injectionStrategy").get("revision")
    if revision is None:
        return
    choice = mapping(revision)
    if choice.get("revisionName") is None and choice.get("customVersion") is None:
        yield invalid("revision", choice, "revisionName and customVersion cannot be empty at the same time")
    elif missing:
        yield invalid("revision", choice, "cannot find specific ControllerRevision")
    if choice.get("policy") not in (None, "", "Always", PARTIAL):
        yield invalid("revision.policy", choice["policy"], f"must be Always or {PARTIAL}")


def _selector_faults(path: str, given: object) -> Iterator[Fault]:
    if given is None:
        return
    selector = typed(given, LabelSelector)
    if not selector.match_labels and not selector.match_expressions:
        yield invalid(path, mapping(given), "empty selector is not valid for sidecarset.")
    if problem := selector_problem(selector):
        yield invalid(path, mapping(given), problem)
        yield invalid(f"{path}.selector", mapping(given), problem)
