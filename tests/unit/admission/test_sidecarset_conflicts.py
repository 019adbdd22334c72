"""Conflicts between SidecarSets (sidecarset.md §4.6, §11.5), and the rules of canaries (§4.4)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.sidecarset.conflicts import canary_faults, conflict_faults, overlapping
from flotilla_common.api.meta import LabelSelector
from tests.testkit.documents import Json

X = {"matchLabels": {"app": "x"}}
LOG = {"name": "log", "image": "l:1"}
HOT = LOG | {"upgradeStrategy": {"upgradeType": "HotUpgrade"}}


def sidecarset(name: str = "a", annotations: Json | None = None, **spec: Any) -> Json:
    metadata = {"name": name, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"selector": X} | spec}


def expressions(*terms: tuple[str, str, list[str]]) -> Json:
    return {
        "matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, values in terms]
    }


def labels(**given: str) -> Json:
    return {"matchLabels": given}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(labels(a="1"), labels(a="1"), True, id="the same"),
        pytest.param(labels(a="1"), labels(a="2"), False, id="other values"),
        pytest.param(labels(a="1"), labels(b="1"), True, id="other keys"),
        pytest.param(labels(a="1", b="1"), labels(a="1", b="2"), False, id="one key of two"),
        pytest.param(labels(a="1"), expressions(("a", "In", ["1", "2"])), True, id="In"),
        pytest.param(labels(a="3"), expressions(("a", "In", ["1", "2"])), False, id="In others"),
        pytest.param(expressions(("a", "In", ["1"])), expressions(("a", "In", ["2"])), False, id="In and In"),
        pytest.param(labels(a="1"), expressions(("a", "NotIn", ["1", "2"])), False, id="NotIn"),
        pytest.param(labels(a="1"), expressions(("a", "NotIn", ["2"])), True, id="NotIn others"),
        pytest.param(
            expressions(("a", "In", ["1", "2"])), expressions(("a", "NotIn", ["1"])), True, id="one value is left"
        ),
        pytest.param(labels(b="1"), expressions(("a", "NotIn", ["1"])), True, id="NotIn of a key that nobody names"),
        pytest.param(labels(a="1"), expressions(("a", "Exists", [])), True, id="Exists"),
        pytest.param(labels(b="1"), expressions(("a", "Exists", [])), False, id="Exists, and the key is not named"),
        pytest.param(
            expressions(("a", "Exists", [])), expressions(("a", "In", ["1"])), True, id="Exists covers all values"
        ),
        pytest.param(
            expressions(("a", "Exists", [])), expressions(("a", "NotIn", ["1"])), False, id="NotIn names no key"
        ),
        pytest.param(labels(a="1"), expressions(("a", "DoesNotExist", [])), False, id="DoesNotExist"),
        pytest.param(labels(b="1"), expressions(("a", "DoesNotExist", [])), True, id="DoesNotExist of another key"),
        pytest.param({}, labels(a="1"), True, id="everything"),
    ],
)
def test_selectors(one: Json, other: Json, expected: bool) -> None:
    compiled = [msgspec.convert(selector, LabelSelector) for selector in (one, other)]
    assert [overlapping(*compiled), overlapping(*reversed(compiled))] == [expected, expected]


def pinned(namespace: str) -> Json:
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def patched(policy: str | None) -> Json:
    return {"patchPodMetadata": [{"annotations": {"k": "1"}} | ({"patchPolicy": policy} if policy else {})]}


def conflicts(one: Json, other: Json) -> list[str]:
    return [str(fault) for fault in conflict_faults(sidecarset("a", **one), [sidecarset("b", **other)])]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"containers": [LOG]}, {"containers": [LOG], "selector": labels(app="y")}, id="other pods"),
        pytest.param(
            {"containers": [LOG], "namespaceSelector": pinned("n")},
            {"containers": [LOG], "namespaceSelector": pinned("m")},
            id="other namespaces",
        ),
        pytest.param({"containers": [LOG]}, {"containers": [LOG | {"name": "mesh"}]}, id="other names"),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"emptyDir": {}, "name": "v", "hostPath": None}]},
            id="the same volume",
        ),
        pytest.param(patched("MergePatchJson"), patched("MergePatchJson"), id="both merge"),
        pytest.param(patched("Retain"), patched("Overwrite"), id="one retains"),
        pytest.param(patched(None), patched("Overwrite"), id="one retains by default"),
    ],
)
def test_no_conflict(one: Json, other: Json) -> None:
    assert (conflicts(one, other), conflicts(other, one)) == ([], [])


EXISTS = 'spec.{}: Invalid value: "log": container log already exists in SidecarSet b'
PATCHED = 'spec.patchPodMetadata: Invalid value: "k": annotation k is patched by SidecarSet b, too'


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param({"containers": [LOG]}, {"containers": [LOG]}, EXISTS.format("containers"), id="containers"),
        pytest.param(
            {"containers": [LOG]},
            {"containers": [LOG], "namespaceSelector": pinned("n")},
            EXISTS.format("containers"),
            id="all namespaces and one",
        ),
        pytest.param(
            {"initContainers": [LOG]}, {"initContainers": [LOG]}, EXISTS.format("initContainers"), id="init containers"
        ),
        pytest.param(
            {"containers": [LOG]}, {"initContainers": [LOG]}, EXISTS.format("containers"), id="container and init"
        ),
        pytest.param(
            {"initContainers": [LOG]}, {"containers": [LOG]}, EXISTS.format("initContainers"), id="init and container"
        ),
        pytest.param(
            {"initContainers": [LOG | {"restartPolicy": "Always"}]},
            {"containers": [LOG]},
            EXISTS.format("initContainers"),
            id="native and container",
        ),
        pytest.param(
            {"containers": [HOT]},
            {"initContainers": [LOG | {"name": "log-2"}]},
            'spec.containers: Invalid value: "log": container log-2 already exists in SidecarSet b',
            id="one of two twins",
        ),
        pytest.param({"containers": [HOT]}, {"containers": [HOT]}, EXISTS.format("containers"), id="twins"),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]},
            'spec.volumes: Invalid value: "v": volume v is another one in SidecarSet b',
            id="another volume",
        ),
        pytest.param(patched("Overwrite"), patched("Overwrite"), PATCHED, id="both overwrite"),
        pytest.param(patched("MergePatchJson"), patched("Overwrite"), PATCHED, id="one merges, one overwrites"),
        pytest.param(patched("Overwrite"), patched("MergePatchJson"), PATCHED, id="one overwrites, one merges"),
    ],
)
def test_conflict(one: Json, other: Json, expected: str) -> None:
    assert conflicts(one, other) == [expected]


CANARY = {"apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "mesh"}
NOT_UPDATED = {"updateStrategy": {"type": "NotUpdate"}}


def test_who_is_not_compared() -> None:
    content = {"containers": [LOG]}
    base, canary = sidecarset("mesh", **content), sidecarset("canary", CANARY, **content)
    assert [*conflict_faults(base, [base])] == []
    assert [*conflict_faults(canary, [base, canary])] == []
    assert len([*conflict_faults(base, [base, canary])]) == 1, "a base does not know its canaries"


def canary(annotations: Json = CANARY, name: str = "canary", **spec: Any) -> Json:
    return sidecarset(name, annotations, **(NOT_UPDATED | spec))


BASE = sidecarset("mesh")
OTHER_BASE = CANARY | {"apps.kruise.io/sidecarset-base": "other"}


@pytest.mark.parametrize(
    ("document", "old", "stored", "problems"),
    [
        pytest.param(canary(), None, [BASE], [], id="a canary"),
        pytest.param(canary(), canary(), [BASE], [], id="an update"),
        pytest.param(sidecarset(), None, [], [], id="no canary"),
        pytest.param(
            sidecarset("a", {"apps.kruise.io/sidecarset-base": "mesh"}), None, [], [], id="a base alone says nothing"
        ),
        pytest.param(
            sidecarset("a", {"apps.kruise.io/sidecarset-canary": "true"}), None, [], [], id="nor does the other one"
        ),
        pytest.param(
            canary(name="mesh"),
            None,
            [],
            ["a canary cannot be its own base", "base SidecarSet mesh not found"],
            id="own",
        ),
        pytest.param(
            canary(),
            canary(OTHER_BASE),
            [BASE],
            ["annotation apps.kruise.io/sidecarset-base of a canary is immutable"],
            id="another base",
        ),
        pytest.param(canary(), None, [], ["base SidecarSet mesh not found"], id="no base"),
        pytest.param(
            canary(),
            None,
            [canary(OTHER_BASE, "mesh")],
            ["base SidecarSet mesh is a canary itself"],
            id="canary of a canary",
        ),
        pytest.param(
            canary(updateStrategy={"type": "RollingUpdate"}),
            None,
            [BASE],
            ["updateStrategy.type of a canary must be NotUpdate"],
            id="updated",
        ),
    ],
)
def test_canaries(document: Json, old: Json | None, stored: list[Json], problems: list[str]) -> None:
    faults = [*canary_faults(document, old, {one["metadata"]["name"]: one for one in stored})]
    assert {fault.path for fault in faults} <= {"metadata"}
    assert [fault.body.rpartition("}: ")[2] for fault in faults] == problems
