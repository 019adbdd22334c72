"""Objects that the webhook would refuse: they disturb no others, and their errors are reported."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_common.control.plan import Plan
from flotilla_sidecar.sidecarset.plan import plan
from flotilla_sidecar.sidecarset.snapshot import SidecarSetSnapshot
from tests.testkit.documents import Json, decoded
from tests.testkit.plans import codes
from tests.unit.sidecarset.build import (
    HASH,
    NOW,
    PLAIN,
    STATE,
    WORKING,
    Builder,
    hot_pod,
    hot_side,
    image,
    planned,
    pod,
    side,
    updated,
)

RUBBISH = ["", "no JSON", "null", "[]", "7", '{"side": 7}', '{"side": null}', '{"side": {"hash": 7}}', "{" * 500]
RUBBISH += ['{"side":' * depth + "{}" + "}" * depth for depth in (200, 1_000, 20_000)]
KEYS = [HASH, PLAIN, STATE, WORKING, "kruise.io/sidecarset-injected-list"]


@pytest.mark.parametrize("text", RUBBISH)
@pytest.mark.parametrize("key", KEYS)
def test_annotations_that_say_nothing(key: str, text: str) -> None:
    """The pod is planned somehow, and the others as if it were not there."""
    broken, good = pod("p0", "A", age=0, annotations={key: text}), pod("p1", "A", age=9)
    assert "p1" in updated(planned(side("B").m(2), [broken, good]))
    mesh = hot_pod(image("A"), "empty:1", annotations={key: text})
    assert codes(planned(hot_side("B"), [mesh])) - {"NoPods", "Updating", "NotUpgradable", "Complete", "Busy"} == set()


@pytest.mark.parametrize("text", RUBBISH)
def test_a_condition_that_says_nothing(text: str) -> None:
    conditions = [
        {"type": "Ready", "status": "True"},
        {"type": "SidecarSetUpgradable", "status": "True", "message": text},
    ]
    assert updated(planned(side("B"), [pod(letter="A", status={"conditions": conditions})])) == ["p00"]


def without_parts(document: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Json]]:
    """Yield the document without each of its members, and with each of them null."""
    for key, value in document.items():
        rest = {name: other for name, other in document.items() if name != key}
        yield ".".join((*path, key)), rest
        if isinstance(value, dict):
            for name, part in without_parts(value, (*path, key)):
                yield name, {**rest, key: part}


def parts_of(obj: Any) -> list[Any]:
    document = msgspec.json.decode(msgspec.json.encode(obj))
    return [pytest.param(part, id=name) for name, part in without_parts(document)]


@pytest.mark.parametrize("document", [*parts_of(pod(letter="A")), *parts_of(hot_pod(image("A"), "empty:1"))])
def test_pods_that_lack_something(document: Json) -> None:
    there: Pod = decoded(document, Pod)
    for builder in (side("B"), hot_side("B")):
        assert isinstance(planned(builder, [there]), Plan)


SET = side("B").strategy(partition=1, maxUnavailable="10%", selector={"matchLabels": {"a": "b"}}).document()


@pytest.mark.parametrize("document", [pytest.param(part, id=name) for name, part in without_parts(SET)])
def test_sidecarsets_that_lack_something(document: Json) -> None:
    sidecar_set = decoded(document, SidecarSet)
    result = plan(SidecarSetSnapshot(sidecar_set=sidecar_set, pods=[pod(letter="A")]), NOW)
    assert result.reasons


def refused(builder: Builder) -> str:
    result = planned(builder, "A", revisions=[])
    assert (result.stages, result.status, codes(result)) == ((), None, {"InvalidSpec"})
    (event,) = result.events
    assert (event.reason, event.warning) == ("InvalidSpec", True)
    return event.message


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"selector": {}}, "spec.selector is empty"),
        ({"selector": None}, "spec.selector is empty"),
        ({"selector": {"matchLabels": {"-": "x"}}}, "spec.selector: matchLabels"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}, "'Is' is not a valid"),
        ({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}, "spec.namespaceSelector"),
        ({"containers": [{"name": 7}]}, "spec.containers: Expected `str`"),
        ({"containers": {}}, "spec.containers: Expected `array`"),
        ({"initContainers": [1]}, "spec.initContainers: Expected `object`"),
    ],
)
def test_specs_that_cannot_be_read(spec: Json, problem: str) -> None:
    builder = side("B").meta(annotations={HASH: "h", PLAIN: "p"})
    builder.document = lambda: {"metadata": builder.metadata, "spec": builder.spec | spec}  # type: ignore[method-assign]
    assert problem in refused(builder)


def test_containers_that_are_gone() -> None:
    """Only init containers are left: there is nothing to update."""
    builder = Builder([]).set(initContainers=[{"name": "i", "image": "i:1"}])
    assert codes(planned(builder, [pod()])) <= {"Updating", "NotUpgradable", "Complete"}
