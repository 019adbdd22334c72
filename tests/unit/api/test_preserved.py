"""Fields that an older version keeps in an annotation (docs/adr/0034)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.versions import ANNOTATION, TOO_LARGE, hide, path, put_back, show, take
from tests.testkit.documents import Json

MODE = (path("spec.images.*.secrets[namespace,name].mode"),)
DEEP = (path("status.subsets[name].conditions[type].seen"), path("spec.only"), path("spec.scale.fine"))


def secret(name: str, namespace: str = "a", **more: str) -> Json:
    return {"namespace": namespace, "name": name, **more}


def images(*secrets: object) -> Json:
    return {"spec": {"images": {"nginx": {"secrets": list(secrets), "tag": "1"}, "redis": {"secrets": []}}}}


def kept_over(document: Json, paths: tuple[Any, ...]) -> Json:
    show(document, take(document, paths))
    return document


def test_items_are_found_by_their_keys() -> None:
    view = kept_over(images(secret("x", mode="batch"), secret("x", "b"), secret("y", mode="own")), MODE)
    assert view["spec"] == images(secret("x"), secret("x", "b"), secret("y"))["spec"]
    # Another order, one item less, one more, and a foreign one.
    view["spec"]["images"]["nginx"]["secrets"] = [secret("z"), secret("y"), secret("x", "b"), {}, "odd"]
    put_back(view, hide(view), MODE)
    assert view == images(secret("z"), secret("y", mode="own"), secret("x", "b"), {}, "odd") | {"metadata": {}}


def test_members_at_any_depth() -> None:
    conditions = [{"type": "A", "seen": 1}, {"type": "B"}]
    stored = {
        "spec": {"only": [1], "scale": {"fine": False}},
        "status": {"subsets": [{"name": "s", "conditions": conditions}]},
    }
    text = msgspec.json.encode(stored)
    view = kept_over(stored, DEEP)
    assert view["spec"] == {"scale": {}}
    assert view["status"] == {"subsets": [{"name": "s", "conditions": [{"type": "A"}, {"type": "B"}]}]}
    del view["spec"]["scale"]
    put_back(view, hide(view), DEEP)
    del view["metadata"]
    assert view == msgspec.json.decode(text)


def test_what_the_client_wrote_wins() -> None:
    view = kept_over({"spec": {"only": 1}}, DEEP)
    view["spec"]["only"] = 2
    put_back(view, hide(view), DEEP)
    assert view["spec"] == {"only": 2}


@pytest.mark.parametrize(
    "document", [{}, {"spec": None}, {"spec": {"only": None}}, {"spec": [], "status": {"subsets": {}}}]
)
def test_nothing_to_keep_leaves_no_annotation(document: Json) -> None:
    assert "metadata" not in kept_over(document, DEEP)


def test_an_annotation_of_somebody_else_is_no_news() -> None:
    """Only a view has it. In storage it would be put back over what is there now."""
    view = kept_over({"metadata": {"annotations": {ANNOTATION: '{"spec":{"only":1}}', "a": "b"}}}, DEEP)
    assert view["metadata"]["annotations"] == {"a": "b"}


@pytest.mark.parametrize(
    ("written", "said"),
    [("[", "invalid value of annotation"), ("[1]", "invalid value of annotation"), ("[" * 2000, "invalid value")],
)
def test_an_annotation_that_cannot_be_read_is_an_error(written: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        hide({"metadata": {"annotations": {ANNOTATION: written}}})


@pytest.mark.parametrize(
    "kept", [{"spec": 1}, {"spec": {"scale": "x"}}, {"status": {"subsets": {"name": "s"}}}, {"spec": {"other": 1}}]
)
def test_what_fits_no_field_is_left_out(kept: Json) -> None:
    view: Json = {"spec": {}, "status": {"subsets": [{"name": "s"}]}}
    put_back(view, kept, DEEP)
    assert view["status"] == {"subsets": [{"name": "s"}]}
    assert not view["spec"].get("scale")
    assert "other" not in view["spec"]


def test_fields_that_do_not_fit_can_be_read_and_not_written() -> None:
    """The apiserver takes 256 KiB of annotations from a conversion, and fails every LIST with more."""
    fits = kept_over({"spec": {"only": "x" * 250_000}}, DEEP)
    assert hide(fits) == {"spec": {"only": "x" * 250_000}}
    view = kept_over({"metadata": {"annotations": {"a": "é" * 10_000}}, "spec": {"only": "x" * 250_000}}, DEEP)
    assert view["metadata"]["annotations"][ANNOTATION] == TOO_LARGE
    with pytest.raises(ValueError, match="write it as v1beta1"):
        hide(view)


def test_an_object_without_status_gets_none() -> None:
    """The apiserver takes the status off what is created, the annotation of a copied object is still there."""
    paths = (path("spec.only"), path("status.count"))
    view = kept_over({"spec": {"only": 1}, "status": {"count": 3, "other": 1}}, paths)
    del view["status"]
    put_back(view, hide(view), paths)
    assert view == {"spec": {"only": 1}, "metadata": {}}
    gone = kept_over({"spec": {"only": 1}, "status": {"count": 3}}, paths)
    assert gone["status"] == {}  # the view of a status of which it has no field
    put_back(gone, hide(gone), paths)
    assert gone["status"] == {"count": 3}
