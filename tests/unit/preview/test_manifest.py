"""Manifests as users write them."""

import json
from pathlib import Path

import pytest

from flotilla_common.api.documents import Json
from flotilla_insight.preview.manifest import Manifest, UnreadableManifest, Unsupported, parse, read

WEB: Json = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "web"}}


def only(text: str) -> Manifest:
    (found,) = parse(text, "here")
    assert isinstance(found, Manifest)
    return found


def test_documents_lists_and_strangers_keep_their_order():
    items = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [WEB, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}],
    }
    text = f"---\n{json.dumps(items)}\n---\n---\n{json.dumps(WEB | {'apiVersion': 'apps.kruise.io/v1beta1'})}\n"
    found = parse(text, "here")
    assert [one.version if isinstance(one, Manifest) else one.what for one in found] == [
        "v1alpha1",
        "Service s",
        "v1beta1",
    ]


def test_a_manifest_goes_where_its_version_is_served():
    found = only(json.dumps(WEB | {"metadata": {"name": "web", "namespace": "shop"}}))
    assert found.resource.path("shop", "web") == "/apis/apps.kruise.io/v1alpha1/namespaces/shop/clonesets/web"
    assert (found.name, found.namespace) == ("web", "shop")


def test_what_looks_like_a_time_stays_a_text():
    found = only(f"{json.dumps(WEB)[:-1]}, spec: {{since: 2026-01-01, at: 2026-01-01T10:00:00Z}}}}")
    assert found.document["spec"] == {"since": "2026-01-01", "at": "2026-01-01T10:00:00Z"}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}},
            "StatefulSet of apps/v1 is not one of",
        ),
        (WEB | {"apiVersion": "apps.kruise.io/v9"}, "apps.kruise.io/v9 is not served: CloneSet has v1alpha1, v1beta1"),
    ],
)
def test_strangers_are_passed_over_with_a_word(document: Json, words: str):
    (found,) = parse(json.dumps(document), "here")
    assert isinstance(found, Unsupported)
    assert found.why.startswith(words)


@pytest.mark.parametrize("text", ["a: [", "just words", "kind: CloneSet", json.dumps(WEB | {"metadata": {}})])
def test_what_is_no_manifest_is_refused(text: str):
    with pytest.raises(UnreadableManifest, match="here"):
        parse(text, "here")


def test_a_folder_is_read_file_by_file(tmp_path: Path):
    for name in ("b.yaml", "a.json", "c.txt"):
        (tmp_path / name).write_text(json.dumps(WEB | {"metadata": {"name": name[0]}}), encoding="utf-8")
    assert [one.name for one in read(str(tmp_path)) if isinstance(one, Manifest)] == ["a", "b"]
