"""Validation of a SidecarSet by itself, in its hub version and with its defaults (sidecarset.md §4.1, §4.3).

Results of checks that need other objects are passed in.
"""

import re
from collections.abc import Iterable, Iterator

from flotilla_common.api import re2
from flotilla_common.api.admission.fields import Fault, invalid, required
from flotilla_common.api.admission.workload import order_faults, share_problem
from flotilla_common.api.documents import Json, mapping, mappings, member, text, typed
from flotilla_common.api.kinds.sidecarset.expressions import evaluate
from flotilla_common.api.kinds.sidecarset.resources import RESOURCES
from flotilla_common.api.kinds.sidecarset.types import AFTER_APP, BEFORE_APP, ENABLED, PARTIAL
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.selectors import key_problem, selector_problem, value_problem

_FIELD_PATH = re.compile(r"metadata\.(?:labels|annotations)\['([^']*)'\]")

ROLLING_UPDATE = "RollingUpdate"

_STRATEGY = "spec.updateStrategy"

_NAME = re.compile(r"[a-zA-Z0-9\-]+")
_NAME_LIMIT = 63


def validate(
    document: Json, old: Json | None = None, looked_up: Iterable[Fault] = (), *, missing_revision: bool = False
) -> list[Fault]:
    """Return all faults of a SidecarSet, and of forbidden changes to `old`.

    `looked_up`: faults found by checks of other objects. `missing_revision`: the revision that it names does not exist.
    """
    spec = mapping(document.get("spec"))
    return [
        *_name_faults(text(member(document, "metadata").get("name"))),
        *selector_faults(spec),
        *injection_faults(spec, missing=missing_revision),
        *update_faults(spec),
        *_version_faults(spec, mapping(old.get("spec")) if old is not None else {}),
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


def _version_faults(spec: Json, old: Json) -> Iterator[Fault]:
    """Yield the fault of a new custom version that is not a label value. Stored ones stay writable."""
    version = text(spec.get("customVersion"))
    if version != old.get("customVersion") and (problem := value_problem(version)):
        yield invalid("spec.customVersion", version, problem)


def _content_faults(spec: Json) -> Iterator[Fault]:
    if not spec.get("initContainers") and not spec.get("containers"):
        yield required("spec", "no initContainer or container defined for sidecarset")


def _change_faults(spec: Json, old: Json) -> Iterator[Fault]:
    """Yield faults of added or renamed containers, and of changed upgrade types."""
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
    """Yield the faults of spec.selector and spec.namespaceSelector."""
    if spec.get("selector") is None:
        yield required("spec.selector", "no selector defined")
    yield from _selector_faults("spec.selector", spec.get("selector"))
    yield from _selector_faults("spec.namespaceSelector", spec.get("namespaceSelector"))


def update_faults(spec: Json) -> Iterator[Fault]:
    """Yield the faults of spec.updateStrategy, which only a rolling update uses."""
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
    """Yield the faults of spec.injectionStrategy. `missing`: the revision that it names does not exist."""
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


def container_faults(spec: Json) -> Iterator[Fault]:
    """Yield the faults of spec.initContainers (their resources only) and spec.containers."""
    for index, container in enumerate(mappings(spec.get("initContainers"))):
        path = f"spec.initContainers[{index}].resourcesPolicy"
        policy = container.get("resourcesPolicy")
        if policy is not None and container.get("restartPolicy") != "Always":
            yield invalid(path, policy, "only allowed for init containers with restartPolicy Always")
        else:
            yield from _resources_faults(path, container)
    for index, container in enumerate(mappings(spec.get("containers"))):
        path = f"spec.containers[{index}]"
        inject = container.get("podInjectPolicy")
        if inject not in (BEFORE_APP, AFTER_APP):
            yield invalid(f"{path}.podInjectPolicy", inject, f"must be {BEFORE_APP} or {AFTER_APP}")
        share = member(container, "shareVolumePolicy").get("type")
        if share not in (ENABLED, "disabled"):
            yield invalid(f"{path}.shareVolumePolicy", share, "must be enabled or disabled")
        for number, entry in enumerate(mappings(container.get("transferEnv"))):
            source = member(entry, "sourceContainerNameFrom").get("fieldRef")
            if source is not None:
                yield from _source_faults(
                    f"{path}.transferEnv[{number}].sourceContainerNameFrom.fieldRef", mapping(source)
                )
        yield from _resources_faults(f"{path}.resourcesPolicy", container)


def _source_faults(path: str, source: Json) -> Iterator[Fault]:
    """Yield the faults of a reference to the label or annotation with the container's name."""
    version, field = text(source.get("apiVersion")), text(source.get("fieldPath"))
    if not version:
        yield required(f"{path}.apiVersion")
    elif version != "v1":
        yield invalid(f"{path}.apiVersion", version, "must be v1")
    found = _FIELD_PATH.fullmatch(field)
    if not field:
        yield required(f"{path}.fieldPath")
    elif found is None:
        yield invalid(f"{path}.fieldPath", field, "must be metadata.labels['<key>'] or metadata.annotations['<key>']")
    elif problem := key_problem(found[1]):
        yield invalid(f"{path}.fieldPath", field, problem)


def _resources_faults(path: str, container: Json) -> Iterator[Fault]:
    if container.get("resourcesPolicy") is None:
        return
    policy, given = member(container, "resourcesPolicy"), member(container, "resources")
    if given.get("limits") or given.get("requests"):
        yield invalid(path, policy, "cannot be used together with resources.limits or resources.requests")
        return
    yield from _regex_faults(f"{path}.targetContainersNameRegex", text(policy.get("targetContainersNameRegex")))
    expressions = member(policy, "resourcesExpr")
    if expressions.get("limits") is None and expressions.get("requests") is None:
        yield invalid(f"{path}.resourcesExpr", expressions, "limits or requests must be set")
    for kind in ("limits", "requests"):
        for name in RESOURCES:
            expression = text(member(expressions, kind).get(name))
            if expression and (problem := _expression_problem(expression, name)):
                yield invalid(f"{path}.resourcesExpr.{kind}.{name}", expression, problem)


def _regex_faults(path: str, pattern: str) -> Iterator[Fault]:
    if not pattern:
        yield required(path)
        return
    try:
        re2.compiled(pattern)
    except ValueError as problem:
        yield invalid(path, pattern, str(problem))


def _expression_problem(expression: str, name: str) -> str:
    """Return why the expression has no value for one core or one byte; empty if it has one."""
    try:
        evaluate(expression, name, 1.0)
    except ValueError as problem:
        return str(problem)
    return ""
