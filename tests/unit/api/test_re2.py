"""Patterns of administrators: the syntax of Go's regexp works, and other syntax is refused."""

import pytest

from flotilla_common.api import re2
from tests.support.timing import within


@pytest.mark.parametrize(
    ("pattern", "found", "not_found"),
    [
        pytest.param("", ["", "a"], [], id="everything"),
        pytest.param("app", ["app", "my-app-1"], ["ap"], id="anywhere"),
        pytest.param("^app", ["app-1"], ["my-app"], id="begin"),
        pytest.param("app$", ["my-app"], ["app-1"], id="end"),
        pytest.param(r"\Aapp\z", ["app"], ["app1", "my-app"], id="whole"),
        pytest.param("^(app|web)-[0-9]+$", ["app-1", "web-22"], ["app-", "db-1"], id="group"),
        pytest.param("^(?:a|b)c$", ["ac"], ["c"], id="group that is not kept"),
        pytest.param("^(?P<x>a)(?<y>b)$", ["ab"], ["a"], id="names"),
        pytest.param("^a{2}b{1,}c{1,2}$", ["aabc", "aabbcc"], ["abc", "aabccc"], id="counts"),
        pytest.param("^a{,3}$", ["a{,3}"], ["aa"], id="braces that are no count"),
        pytest.param("^{a}$", ["{a}"], ["a"], id="braces"),
        pytest.param("^a+?b*?c??$", ["aab", "a"], ["b"], id="as little as possible"),
        pytest.param("(?U)^a+$", ["aa"], ["ab"], id="ungreedy"),
        pytest.param("(?i)^App", ["APP", "app"], ["web"], id="whatever case"),
        pytest.param("^a(?i)b|c$", ["aB", "C"], ["AB"], id="from the middle on"),
        pytest.param("^(x(?i)y)z$", ["xYz"], ["xYZ"], id="until the group ends"),
        pytest.param("(?i)^a(?-i)b$", ["Ab"], ["aB"], id="and back"),
        pytest.param("^(?i:a)b$", ["Ab"], ["AB"], id="within"),
        pytest.param(r"^\d\D\w\W\s\S$", ["1aa- a"], ["aaa- a"], id="classes"),
        pytest.param(r"\bapp\b", ["my-app-1"], ["myapp"], id="words"),
        pytest.param(r"^my\Bapp$", ["myapp"], ["my-app"], id="no word"),
        pytest.param(r"^example\.com/a$", ["example.com/a"], ["example-com/a"], id="escaped"),
        pytest.param(r"^\Qa.b\E.$", ["a.bc"], ["axbc"], id="quoted"),
        pytest.param(r"\Qa.b", ["a.b"], ["axb"], id="quoted to the end"),
        pytest.param(r"^\x41\x{42}\103$", ["ABC"], ["abc"], id="codes"),
        pytest.param("^[a-c-]+$", ["a-b"], ["d"], id="range and dash"),
        pytest.param("^[^a-c]$", ["d"], ["a"], id="not in range"),
        pytest.param("^[]a]$", ["]", "a"], ["b"], id="a bracket first"),
        pytest.param(r"^[\d\-\]]+$", ["1-]"], ["a"], id="escaped in a set"),
        pytest.param("^[[&|~-]+$", ["[&|~-"], ["a"], id="what means something to Python only"),
        pytest.param("^[[:lower:][:digit:]_]+$", ["a1_"], ["A"], id="named sets"),
        pytest.param("^[[:^digit:]]$", ["a", "é"], ["1"], id="all but a named set"),
        pytest.param(r"^\p{Lu}\pL$", ["Éa"], ["éa"], id="classes of Unicode"),
    ],
)
def test_what_is_found(pattern: str, found: list[str], not_found: list[str]) -> None:
    search = re2.compiled(pattern).search
    assert [text for text in found if not search(text)] == []
    assert [text for text in not_found if search(text)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "(?#a)", "(?x)a", "(?P=a)", "(?(1)a)"),
        *(r"(a)\1", r"\Z", r"\G", r"\N{DASH}", "\\", r"[\b]"),
        *("a**", "a*+", "a++", "a{2}{3}", "a{2,1}", "a{1001}", "*a", "a|*", "(+)"),
        *("(a", "a)", "[a", "[z-a]", r"[a-\d]", "[[:nothing:]]", "[a-"),
    ],
)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^'"):
        re2.compiled(pattern)


def test_a_hostile_pattern_is_searched_in_linear_time() -> None:
    with within(1.0):
        assert not re2.compiled("^(a+)+$").search("a" * 399 + "b")
        assert not re2.compiled("(x+x+)+y").search("x" * 399)


def test_texts_that_are_no_names_are_not_found() -> None:
    assert re2.compiled("a").search("a" * 317)
    assert not re2.compiled("a").search("a" * 1000)


@pytest.mark.parametrize("pattern", ["a" * 5000, r"((\pL{100}){10}|x)"])
def test_what_is_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"pattern"):
        re2.compiled(pattern)
