"""Pods carry their probes to virtual nodes (podprobemarker.md §7, webhooks.md §7.4)."""

import json
from typing import Any

import pytest

from flotilla_common.api.admission.review import Request
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import ApiError
from flotilla_webhook.pods.probes import ServerlessProbes, annotate_probes
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

ON = "EnablePodProbeMarkerOnServerless=true"
PROBES, MARKERS = "kruise.io/podprobe", "kruise.io/podprobemarker-list"
EXEC: Json = {"exec": {"command": ["true"]}}
NOTHING: tuple[list[str], str | None] = ([], None)
LEFT: tuple[list[str], str | None] = ([], "x")
POLICY: list[Json] = [{"state": "Succeeded", "labels": {"a": "b"}}]


def probe(name: str = "idle", kind: str = "game.io/idle", container: str = "game") -> Json:
    given: Json = {"name": name, "containerName": container, "probe": EXEC, "markerPolicy": POLICY}
    return given | ({"podConditionType": kind} if kind else {})


def marker(*probes: Json, name: str = "m", labels: Json | None = None, **meta: Any) -> Json:
    selector: Json = {"matchLabels": {"app": "game"} if labels is None else labels}
    spec: Json = {"selector": selector, "probes": list(probes) or [probe()]}
    return {"metadata": {"name": name, "namespace": "n", **meta}, "spec": spec}


def pod(annotations: Json | None = None, **labels: str) -> Json:
    metadata: Json = {"name": "p", "labels": labels or {"app": "game"}}
    if annotations is not None:
        metadata["annotations"] = annotations
    init = [{"name": "side", "restartPolicy": "Always"}, {"name": "init"}]
    return {"metadata": metadata, "spec": {"containers": [{"name": "game"}], "initContainers": init}}


def handed(one: Json, *markers: Json) -> tuple[list[str], str | None]:
    """Return the names of the probes, and the list of PodProbeMarkers."""
    annotate_probes(one, markers)
    annotations = one["metadata"].get("annotations", {})
    return [found["name"] for found in json.loads(annotations.get(PROBES, "[]"))], annotations.get(MARKERS)


def test_29_what_the_pod_gets():
    one = pod()
    assert handed(one, marker()) == (["idle"], "m")
    (found,) = json.loads(one["metadata"]["annotations"][PROBES])
    assert found == {"name": "idle", "containerName": "game", "probe": EXEC, "podConditionType": "game.io/idle"}


@pytest.mark.parametrize(
    ("one", "markers", "expected"),
    [
        pytest.param(pod(app="other"), [marker()], NOTHING, id="another pod"),
        pytest.param(pod(), [marker(labels={})], NOTHING, id="an empty selector"),
        pytest.param(pod(), [marker(probe(kind=""))], NOTHING, id="no condition"),
        pytest.param(pod(), [marker(probe(container="other"))], NOTHING, id="no such container"),
        pytest.param(pod(), [marker(probe(container="init"))], NOTHING, id="an init container"),
        pytest.param(pod(), [marker(probe(container="side"))], (["idle"], "m"), id="a sidecar"),
        pytest.param(pod(), [marker(probe(), probe("b"))], (["idle"], "m"), id="one condition type"),
        pytest.param(pod(), [marker(name="z"), marker(probe("b", "c"), name="a")], (["idle", "b"], "a,z"), id="two"),
        pytest.param(pod(), [marker(name="z"), marker(name="a")], (["idle"], "z"), id="only the first is used"),
        pytest.param(pod({MARKERS: "a, c"}), [marker(), marker(name="a")], (["idle"], "a"), id="it names them"),
        pytest.param(pod({MARKERS: "a"}, app="x"), [marker(name="a")], (["idle"], "a"), id="named, not selected"),
        pytest.param(pod({MARKERS: "x"}), [marker()], LEFT, id="it names others"),
        pytest.param(pod(), [marker(deletionTimestamp="2026-01-01T00:00:00Z")], NOTHING, id="on its way out"),
        pytest.param(pod(), [marker() | {"spec": {"selector": 5}}], NOTHING, id="unreadable"),
    ],
)
def test_which_probes(one: Json, markers: list[Json], expected: tuple[list[str], str | None]):
    assert handed(one, *markers) == expected


async def changed(gates: str, api: FakeApi) -> Json:
    one = pod()
    request = Request(uid="u", operation="CREATE", namespace="n", object=one)
    await ServerlessProbes(api.api, Gates.parse(gates)).step().change(one, request)
    return one


async def test_idle_without_the_gate():
    api = FakeApi()
    api.put(POD_PROBE_MARKER, marker())
    assert await changed("", api) == pod()
    idle = ServerlessProbes(api.api, Gates.parse(""))
    assert (list(idle.caches), await idle.step().rules(), idle.step().known()) == ([], [], True)
    assert await idle.rules_of(marker(), "n") == []


async def test_a_pod_is_asked_about_while_a_marker_selects_it():
    api = FakeApi()
    api.put(POD_PROBE_MARKER, marker())
    assert MARKERS in (await changed(ON, api))["metadata"]["annotations"]
    probes = ServerlessProbes(api.api, Gates.parse(ON))
    (rule,) = await probes.rules_of(marker(), "n")
    assert (rule.namespace, MARKERS in rule.expression, '"game"' in rule.expression) == ("n", True, True)
    assert await probes.rules_of(marker(labels={}), "n") == []
    assert (await probes.step().rules(), probes.step().known()) == ([], False)


async def test_a_list_that_fails_keeps_no_pod_from_being_created():
    api = FakeApi()
    api.fail_lists = ApiError(500, "InternalError", "no")
    assert await changed(ON, api) == pod()
