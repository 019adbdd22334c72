"""Validation of what sidecars have beside the fields of a container (sidecarset.md §4.1, §4.2)."""

import re
from collections.abc import Iterator

from flotilla_common.api import re2
from flotilla_common.api.admission.fields import Fault, invalid, required
from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.kinds.sidecarset.expressions import evaluate
from flotilla_common.api.kinds.sidecarset.resources import RESOURCES
from flotilla_common.api.kinds.sidecarset.types import AFTER_APP, BEFORE_APP, ENABLED
from flotilla_common.api.selectors import key_problem

_FIELD_PATH = re.compile(r"metadata\.(?:labels|annotations)\['([^']*)'\]")


def container_faults(spec: Json) -> Iterator[Fault]:
    """The faults of spec.initContainers and spec.containers. Init containers are judged by their resources only."""
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
    """A label or an annotation holds the name of the container."""
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
    """Why the expression has no value where the pod's containers have one core, or one byte; empty if it has one."""
    try:
        evaluate(expression, name, 1.0)
    except ValueError as problem:
        return str(problem)
    return ""
