"""Kinds whose pods are recorded like those of StatefulSets (persistentpodstate.md §7)."""

import pytest

from flotilla_common.api.kinds.persistentpodstate.types import WHITE_LIST, CustomWorkload, custom_workloads, supported

GAME_SET = CustomWorkload("apps.example.io", "v1", "GameSet")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("{}", [], id="no workloads"),
        pytest.param(
            '{"workloads":[{"Group":"apps.example.io","Version":"v1","Kind":"GameSet"}]}', [GAME_SET], id="one"
        ),
        pytest.param(
            '{"Workloads":[{"group":"apps.example.io","VERSION":"v1","kind":"GameSet"},{"Kind":"Pod"}]}',
            [GAME_SET, CustomWorkload("", "", "Pod")],
            id="names of fields in any case",
        ),
    ],
)
def test_what_is_listed(written: str, expected: list[CustomWorkload]) -> None:
    assert custom_workloads({WHITE_LIST: written, "other": "{"}) == expected


def test_without_the_key_nothing_is_listed() -> None:
    assert custom_workloads({}) == []


@pytest.mark.parametrize("written", ["{", "[]", "GameSet"])
def test_what_is_no_list(written: str) -> None:
    with pytest.raises(ValueError, match="of ConfigMap kruise-configuration cannot be read"):
        custom_workloads({WHITE_LIST: written})


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("apps/v1", "StatefulSet", True),
        ("apps.kruise.io/v1alpha1", "StatefulSet", True),
        ("apps.example.io/v9", "GameSet", True),
        ("apps.example.io/v1", "StatefulSet", False),
        ("apps/v1", "GameSet", False),
        ("apps/v1", "Deployment", False),
    ],
)
def test_supported(api_version: str, kind: str, expected: bool) -> None:
    assert supported(api_version, kind, [GAME_SET]) == expected
