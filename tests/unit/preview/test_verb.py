"""The command: requests to the apiserver, output, exit codes."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flotilla_cli.commands import plan as verb
from flotilla_cli.commands.plan import settings_of
from flotilla_common.api.documents import Json
from flotilla_common.api.resources import Resource
from flotilla_common.kube.interface import ApiError, Page
from flotilla_insight.preview.dryrun import LAST_APPLIED
from tests.support.fake_clock import FakeClock

WEB: Json = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "CloneSet",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
        },
    },
}


class Apiserver:
    """Answers dry runs with the object sent; records all requests. Has one object at most."""

    def __init__(self, live: Json | None = None, refusal: ApiError | None = None) -> None:
        self.live = live
        self.refusal = refusal
        self.sent: list[tuple[str, str, Json, Mapping[str, str]]] = []

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        if self.live is None:
            raise ApiError(404, "NotFound", "not found")
        return json.dumps(self.live).encode()

    async def list(self, resource: Resource, namespace: str = "", **_: Any) -> Page:
        if resource.plural == "nodes":
            raise ApiError(403, "Forbidden", "nodes is forbidden")
        return Page([], "7")

    async def raw(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        self.sent.append((method, path, json.loads(body), headers))
        return self._answer(json.loads(body))

    async def patch(
        self, resource: Resource, namespace: str, name: str, body: bytes, kind: str, *, params: Mapping[str, str]
    ) -> bytes:
        self.sent.append((kind, resource.path(namespace, name), json.loads(body), params))
        return self._answer(
            (self.live or {}) | {"spec": (self.live or {}).get("spec", {}) | json.loads(body).get("spec", {})}
        )

    def _answer(self, document: Json) -> bytes:
        if self.refusal is not None:
            raise self.refusal
        meta = document["metadata"] | {"uid": "u", "resourceVersion": "8", "generation": 2}
        return json.dumps(document | {"metadata": meta}).encode()


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.delenv("FLOTILLA_NATS", raising=False)


def run(api: Apiserver, monkeypatch: pytest.MonkeyPatch, manifest: Json | str, *flags: str) -> tuple[int, str]:
    @asynccontextmanager
    async def opened(*_: object) -> AsyncGenerator[Apiserver]:
        yield api

    monkeypatch.setattr(verb, "open_api", opened)
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    result = CliRunner().invoke(verb.plan, ["-f", "-", *flags], input=text)
    return result.exit_code, result.output


def live() -> Json:
    applied = json.dumps(WEB | {"metadata": WEB["metadata"] | {"namespace": "default"}})
    meta = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": 1}
    return WEB | {"metadata": meta | {"annotations": {LAST_APPLIED: applied}}}


def test_a_new_object_is_created_in_a_dry_run(monkeypatch: pytest.MonkeyPatch):
    api = Apiserver()
    code, text = run(api, monkeypatch, WEB)
    ((method, path, body, _),) = api.sent
    assert (method, path.partition("?")[0]) == ("POST", "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets")
    assert set(path.partition("?")[2].split("&")) == {
        "dryRun=All", "fieldValidation=Strict", "fieldManager=kubectl-client-side-apply",
    }  # fmt: skip
    assert body["metadata"]["namespace"] == "default"
    assert LAST_APPLIED in body["metadata"]["annotations"]
    assert code == 1
    assert "CloneSet default/web  created" in text
    assert "create 2 pods: new pod 1, new pod 2" in text
    assert "note: nodes could not be read: nodes is forbidden" in text
    assert "note: no bus is known, so planning uses the default settings" in text


def test_a_change_is_a_merge_patch_of_what_differs(monkeypatch: pytest.MonkeyPatch):
    api = Apiserver(live())
    code, text = run(api, monkeypatch, WEB | {"spec": WEB["spec"] | {"replicas": 3}}, "-o", "json")
    ((kind, _, body, params),) = api.sent
    assert (kind, body["spec"], params["dryRun"]) == ("application/merge-patch+json", {"replicas": 3}, "All")
    (story,) = json.loads(text)
    assert (code, story["verdict"], story["changes"]) == (1, "changed", [{"path": "spec.replicas", "from": 2, "to": 3}])


def test_server_side_apply_sends_the_manifest(monkeypatch: pytest.MonkeyPatch):
    api = Apiserver(live())
    run(api, monkeypatch, WEB, "--server-side")
    ((kind, _, body, params),) = api.sent
    assert (kind, params["fieldManager"]) == ("application/apply-patch+yaml", "kubectl")
    assert LAST_APPLIED not in body["metadata"].get("annotations", {})


def test_nothing_is_sent_when_nothing_differs(monkeypatch: pytest.MonkeyPatch):
    api = Apiserver(live())
    first = live()["metadata"]["annotations"]
    api.live = live() | {"metadata": live()["metadata"] | {"annotations": first | {LAST_APPLIED: _canonical()}}}
    code, text = run(api, monkeypatch, WEB)
    assert (api.sent, code) == ([], 0)
    assert "CloneSet default/web  unchanged" in text


def _canonical() -> str:
    placed = WEB | {"metadata": {"annotations": {}, "name": "web", "namespace": "default"}}
    return json.dumps(placed, sort_keys=True, separators=(",", ":")) + "\n"


def test_a_refusal_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch):
    api = Apiserver(refusal=ApiError(422, "Invalid", "spec.replicas: must not be negative"))
    code, text = run(api, monkeypatch, WEB)
    assert (code, "refused\n  spec.replicas: must not be negative" in text) == (2, True)


def test_other_namespaces_and_strangers_are_not_sent(monkeypatch: pytest.MonkeyPatch):
    api = Apiserver()
    elsewhere = WEB | {"metadata": {"name": "web", "namespace": "shop"}}
    code, text = run(api, monkeypatch, elsewhere, "-n", "default")
    assert (code, api.sent) == (2, [])
    assert "the object's namespace is shop, but -n is default" in text
    code, text = run(api, monkeypatch, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}})
    assert (code, api.sent, "Service web  skipped" in text) == (0, [], True)


@pytest.mark.parametrize("text", ["a: [", "words"])
def test_what_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str):
    code, output = run(Apiserver(), monkeypatch, text)
    assert (code, output.startswith("Error: standard input: ")) == (2, True)


async def test_without_a_bus_the_defaults_are_planned_with():
    assert await settings_of("", "", {"clonesets"}, FakeClock()) == (
        {}, "no bus is known, so planning uses the default settings",
    )  # fmt: skip
