"""A member that is null is absent, as everywhere in Kubernetes: charts write `nodeSelector:` with nothing behind it."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from flotilla_common.api.documents import Json, typed, without_nulls
from flotilla_common.api.kinds.broadcastjob import api as broadcastjob
from flotilla_common.api.kinds.cloneset import validation as cloneset
from flotilla_common.api.kinds.daemonset import validation as daemonset
from flotilla_common.api.kinds.statefulset import validation as statefulset
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.podtemplate import canonical_template
from flotilla_common.api.versions import V1BETA1
from flotilla_common.workload.placement import Placement
from flotilla_common.workload.strict_placement import StrictPlacement

POD_NULLS = ("nodeSelector", "affinity", "tolerations", "volumes", "initContainers", "overhead", "readinessGates")
CONTAINER_NULLS = ("env", "envFrom", "ports", "resources", "volumeMounts", "command", "lifecycle")


def template(**spec: Any) -> Json:
    container = {"name": "a", "image": "b"} | dict.fromkeys(CONTAINER_NULLS)
    return {"metadata": {"labels": None}, "spec": {"containers": [container], **dict.fromkeys(POD_NULLS), **spec}}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"affinity": {"nodeAffinity": None}},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}}},
        {"tolerations": [{"key": None, "operator": "Exists"}]},
        {"containers": [{"name": "a", "resources": {"requests": None, "limits": {"cpu": "1"}}}]},
    ],
)
@pytest.mark.parametrize("read", [Placement.of_daemons, StrictPlacement.of, canonical_template])
def test_a_template_with_nulls_is_read(read: Callable[[bytes], object], more: Json) -> None:
    read(msgspec.json.encode(template(**more)))


def test_nulls_do_not_change_what_a_revision_holds() -> None:
    written = template()
    assert canonical_template(msgspec.json.encode(written)) == canonical_template(
        msgspec.json.encode(without_nulls(written))
    )


@pytest.mark.parametrize("kind", [broadcastjob, cloneset, daemonset, statefulset])
def test_a_spec_with_nulls_has_the_types_that_it_must_have(kind: Any) -> None:
    nulls = dict.fromkeys(("updateStrategy", "scaleStrategy", "lifecycle", "replicas", "minReadySeconds", "paused"))
    selector = {"matchLabels": None, "matchExpressions": None}
    document = {"apiVersion": V1BETA1, "metadata": {"labels": None, "annotations": None}}
    kind.check_types(document | {"spec": {"template": template(), "selector": selector, **nulls}})


def test_typed() -> None:
    assert typed({"matchLabels": None, "matchExpressions": [{"key": "a", "values": None}]}, LabelSelector)
    assert typed({"matchLabels": None}, LabelSelector) == LabelSelector()
    with pytest.raises(ValueError, match="matchLabels"):
        typed({"matchLabels": 7}, LabelSelector)


def test_nulls_in_lists_stay() -> None:
    assert without_nulls({"a": [None, {"b": None, "c": 1}], "d": None}) == {"a": [None, {"c": 1}]}
