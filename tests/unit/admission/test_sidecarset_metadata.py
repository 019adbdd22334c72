"""Annotations that a SidecarSet may put on pods (sidecarset.md §4.1, §4.5)."""

import pytest

from flotilla_common.api.kinds.sidecarset.metadata_validation import MAX_SIZE, WHITE_LIST, metadata_faults
from tests.testkit.documents import Json

PATH = "spec.patchPodMetadata: Required value: "
SILENT = f"{PATH}annotations are not in the white list, which has no rule for this SidecarSet"
NOT_LISTED = "is not in the white list"
SIZE = f"annotations size {MAX_SIZE + 1} is larger than limit {MAX_SIZE}"


def faults(
    *entries: Json, white_list: str | None = None, allowed: bool = False, labels: Json | None = None
) -> list[str]:
    document = {
        "metadata": {"name": "side", "labels": labels or {"team": "mesh"}},
        "spec": {"patchPodMetadata": [{"annotations": entry, "patchPolicy": "Retain"} for entry in entries]},
    }
    configuration = {} if white_list is None else {WHITE_LIST: white_list}
    return [str(fault) for fault in metadata_faults(document, configuration, allowed=allowed)]


RULES = '{"rules":[{"allowedAnnotationKeyExprs":["^mesh"]}]}'
SELECTING = (
    '{"rules":[{"selector":{"matchLabels":{"team":"mesh"}},"allowedAnnotationKeyExprs":["^a$","b"],"future":1},'
    '{"selector":{"matchLabels":{"team":"other"}},"allowedAnnotationKeyExprs":["c"]}]}'
)


@pytest.mark.parametrize(
    ("key", "white_list", "allowed", "expected"),
    [
        pytest.param("mesh/a", RULES, False, [], id="in the list"),
        pytest.param("other", RULES, False, [f"{PATH}annotation other {NOT_LISTED}"], id="not in it"),
        pytest.param("other", RULES, True, [f"{PATH}annotation other {NOT_LISTED}"], id="whatever the gate"),
        pytest.param("a", SELECTING, False, [], id="selected"),
        pytest.param("xbx", SELECTING, False, [], id="found anywhere"),
        pytest.param("c", SELECTING, False, [f"{PATH}annotation c {NOT_LISTED}"], id="selected for others"),
        pytest.param("a", None, False, [SILENT], id="no list"),
        pytest.param("a", None, True, [], id="no list and the gate"),
        pytest.param("a", '{"rules":[]}', False, [SILENT], id="no rules"),
        pytest.param("a", '{"rules":[{"allowedAnnotationKeyExprs":[]}]}', True, [], id="no patterns and the gate"),
        pytest.param("a", "{}", False, [SILENT], id="an empty list"),
        pytest.param(
            "a",
            SELECTING.replace("mesh", "nobody").replace("other", "none"),
            True,
            [],
            id="nothing about this one, and the gate",
        ),
    ],
)
def test_white_list(key: str, white_list: str | None, allowed: bool, expected: list[str]) -> None:
    assert faults({key: "1"}, white_list=white_list, allowed=allowed) == expected


@pytest.mark.parametrize(
    "white_list",
    [
        pytest.param("nonsense", id="no JSON"),
        pytest.param('{"rules":1}', id="no rules"),
        pytest.param('{"rules":[{"allowedAnnotationKeyExprs":["("]}]}', id="pattern"),
        pytest.param('{"rules":[{"selector":{"matchExpressions":[{"key":"a","operator":"Is"}]}}]}', id="selector"),
    ],
)
def test_a_list_that_cannot_be_read_allows_nothing(white_list: str) -> None:
    (fault,) = faults({"a": "1"}, white_list=white_list, allowed=True)
    assert fault.startswith(f"{PATH}the white list {WHITE_LIST} cannot be read: ")


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], [], id="nothing is patched"),
        pytest.param([{"a": "1"}, {"b": "1"}], [], id="two entries"),
        pytest.param([{"A/b": "1"}], [], id="capital letters"),
        pytest.param([{}], [f"{PATH}no annotations defined"], id="an empty entry"),
        pytest.param([{"a": "1", "b": "1"}, {"b": "2"}], [f"{PATH}duplicated annotation keys: b"], id="a key twice"),
    ],
)
def test_entries(entries: list[Json], expected: list[str]) -> None:
    assert faults(*entries, allowed=True) == expected


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        pytest.param({"a b": "1"}, "name part of 'a b' must be", id="key"),
        pytest.param({"a": "x" * MAX_SIZE}, SIZE, id="size"),
    ],
)
def test_what_no_pod_could_have(entry: Json, problem: str) -> None:
    (fault,) = faults(entry, allowed=True)
    assert fault.startswith("patchPodMetadata.annotations: Invalid value: ")
    assert problem in fault
