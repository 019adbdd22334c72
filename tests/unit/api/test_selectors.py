"""Label selectors."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.selectors import Selector


def compiled(**members: Any) -> Selector:
    return Selector.compile(msgspec.convert(members, LabelSelector))


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (compiled(), ""),
        (compiled(matchLabels={"b": "2", "a": "1"}), "a=1,b=2"),
        (compiled(matchLabels={"a": "b"}, matchExpressions=[expression("c", "In", "e", "d")]), "a=b,c in (d,e)"),
        (compiled(matchExpressions=[expression("z", "DoesNotExist"), expression("y", "Exists")]), "y,!z"),
        (compiled(matchExpressions=[expression("x.io/k", "NotIn", "v", "")]), "x.io/k notin (,v)"),
        (compiled(matchLabels={"a": ""}), "a="),
    ],
)
def test_canonical_text(selector: Selector, text: str) -> None:
    assert str(selector) == text


@pytest.mark.parametrize(
    ("operator", "values", "labels", "matches"),
    [
        ("In", ["a", "b"], {"k": "b"}, True),
        ("In", ["a"], {"k": "b"}, False),
        ("In", ["a"], {}, False),
        ("NotIn", ["a"], {"k": "b"}, True),
        ("NotIn", ["a"], {"k": "a"}, False),
        ("NotIn", ["a"], {}, True),
        ("Exists", [], {"k": ""}, True),
        ("Exists", [], {}, False),
        ("DoesNotExist", [], {"k": ""}, False),
        ("DoesNotExist", [], {}, True),
    ],
)
def test_expressions(operator: str, values: list[str], labels: dict[str, str], matches: bool) -> None:
    selector = compiled(matchLabels={"app": "x"}, matchExpressions=[expression("k", operator, *values)])
    assert selector.matches({"app": "x", **labels}) is matches
    assert not selector.matches(labels)


def test_empty_matches_everything() -> None:
    assert compiled().empty
    assert compiled().matches({})
    assert not compiled(matchLabels={"a": "b"}).empty


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"matchLabels": {"": "a"}}, r"matchLabels\[\]: name part"),
        ({"matchLabels": {"-a": "a"}}, "name part"),
        ({"matchLabels": {"Upper.io/a": "a"}}, "prefix part"),
        ({"matchLabels": {"/a": "a"}}, "prefix part"),
        ({"matchLabels": {"a": "b c"}}, r"matchLabels\[a\]: label value 'b c'"),
        ({"matchLabels": {"a": "x" * 64}}, "label value"),
        ({"matchExpressions": [expression("a", "Is")]}, r"matchExpressions\[0\].operator: 'Is' is not a valid"),
        ({"matchExpressions": [expression("a", "In")]}, r"matchExpressions\[0\].values: must be specified"),
        ({"matchExpressions": [expression("a", "Exists", "b")]}, "may not be specified"),
        ({"matchExpressions": [expression("a", "NotIn", "b", "?")]}, r"values\[1\]: label value '\?'"),
        ({"matchExpressions": [expression("a b", "Exists")]}, r"matchExpressions\[0\].key"),
    ],
)
def test_invalid(members: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        compiled(**members)


@pytest.mark.parametrize(
    ("written", "labels", "expected"),
    [
        ("app=web", {"app": "web"}, True),
        ("app==web,tier!=db", {"app": "web"}, True),
        ("app=web,tier!=db", {"app": "web", "tier": "db"}, False),
        (" app in (web, api) , !gone ", {"app": "api"}, True),
        ("app notin (web)", {"app": "web"}, False),
        ("example.com/app", {"example.com/app": ""}, True),
        ("app=", {"app": ""}, True),
        ("", {}, True),
    ],
)
def test_a_selector_in_one_line(written: str, labels: dict[str, str], expected: bool) -> None:
    assert Selector.read(written).matches(labels) == expected


@pytest.mark.parametrize("written", ["=web", "app in web", "app=(a", "a b", "app=web)", "-bad=x", "app=web;x", ","])
def test_what_is_no_selector_in_one_line(written: str) -> None:
    with pytest.raises(ValueError, match=r"selector|must be|key"):
        Selector.read(written)
