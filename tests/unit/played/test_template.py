"""Recorded objects as templates."""

import msgspec
import pytest

from tests.perf.played.template import Template

RECORDED = b'{"metadata":{"name":"web-1","labels":{"app":"web"},"uid":"u-1"},"spec":{"host":"web-1"}}'


def test_a_copy_differs_in_its_gaps_only() -> None:
    template = Template(RECORDED, {"web-1": "name", "u-1": "uid"})
    copy = msgspec.json.decode(template.render({"name": "shop-7", "uid": "u-7"}))
    expected = {"metadata": {"name": "shop-7", "labels": {"app": "web"}, "uid": "u-7"}, "spec": {"host": "shop-7"}}
    assert copy == expected


def test_the_longer_of_two_texts_counts() -> None:
    template = Template(RECORDED, {"web": "app", "web-1": "name"})
    assert template.render({"app": "a", "name": "n"}) == RECORDED.replace(b"web-1", b"n").replace(b"web", b"a")


def test_with_the_recorded_values_the_copy_is_the_recording() -> None:
    assert Template(RECORDED, {"web-1": "name"}).render({"name": "web-1"}) == RECORDED


def test_a_text_that_does_not_occur_is_an_error() -> None:
    with pytest.raises(ValueError, match="web-2"):
        Template(RECORDED, {"web-2": "name"})
