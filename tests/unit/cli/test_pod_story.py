"""`flotilla explain pod`: reasons for a pod's sidecars, and containers that wait for others."""

import json
from typing import Any

import pytest

from flotilla_cli.commands.explain import launch_story
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_common.control.plan import Reason, State
from flotilla_insight.pods.sidecars import PodSurroundings, sidecar_lines
from flotilla_insight.published import Why
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, decoded
from tests.testkit.pods import container

BEFORE, MADE, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"


def sidecar_set(
    name: str = "log", *, created: str = BEFORE, annotations: Json | None = None, meta: Json | None = None, **spec: Any
) -> SidecarSet:
    hashes = {"kruise.io/sidecarset-hash": "h", "kruise.io/sidecarset-hash-without-image": "w"}
    metadata = {"name": name, "creationTimestamp": created, "annotations": hashes | (annotations or {})}
    metadata |= meta or {}
    given = {"selector": {"matchLabels": {"app": "x"}}, "containers": [{"name": "log", "image": "log:2"}]}
    document = {"metadata": metadata, "spec": given | spec}
    return decoded(document, SidecarSet)


def pod(*injected: str, labels: Json | None = None, hash_: str = "h", plain: str = "w", **status: Any) -> Pod:
    annotations = {}
    if injected:
        annotations = {
            "kruise.io/sidecarset-injected-list": ",".join(injected),
            "kruise.io/sidecarset-hash": json.dumps({name: {"hash": hash_} for name in injected}),
            "kruise.io/sidecarset-hash-without-image": json.dumps({name: {"hash": plain} for name in injected}),
        }
    known = {"created": MADE, "labels": {"app": "x"} if labels is None else labels, "annotations": annotations}
    return decoded(pods_of.pod("web-1", "shop", containers=[container("log", "log:2")], status=status, **known), Pod)


def told(about: Pod, *sets: SidecarSet, labels: Json | None = None, whys: dict[str, Why] | None = None) -> str:
    (line,) = sidecar_lines(about, PodSurroundings(labels or {}, sets, whys or {}), everything=True)[:1]
    return line.partition(": ")[2]


PINNED = {"matchLabels": {"kubernetes.io/metadata.name": "else"}}
WAITING = {"containerStatuses": [{"name": "log", "state": {"waiting": {"reason": "ErrImagePull"}}}]}
OLD = {"containerStatuses": [{"name": "log", "image": "log:1"}]}
BUSY = Why(reasons=(Reason(State.WAITING, "Busy", "kubelets have yet to restart", ("shop/web-1",)),))
TURN = Why(reasons=(Reason(State.WAITING, "WaitingForMaxUnavailable", "maxUnavailable 1 is used by web-2"),))


@pytest.mark.parametrize(
    ("about", "sets", "whys", "expected"),
    [
        pytest.param(pod("log"), [sidecar_set()], {}, "injected and up to date", id="up to date"),
        pytest.param(
            pod("log", **WAITING),
            [sidecar_set()],
            {},
            "injected and up to date; not ready: log (ErrImagePull)",
            id="bad",
        ),
        pytest.param(
            pod("log", **OLD),
            [sidecar_set()],
            {},
            "injected and up to date; not ready: log (runs log:1, should run log:2)",
            id="under way",
        ),
        pytest.param(
            pod("log"), [], {}, "injected; it does not exist any more, so its sidecars stay as they are", id="gone"
        ),
        pytest.param(
            pod("log", hash_="old", plain="other"),
            [sidecar_set()],
            {},
            "injected, not updated: more than sidecar images has changed since the pod was created; "
            "a new pod gets the change",
            id="not upgradable",
        ),
        pytest.param(
            pod("log", hash_="old"),
            [sidecar_set(updateStrategy={"type": "NotUpdate"})],
            {},
            "injected, not updated: updateStrategy.type is NotUpdate, only new pods get other sidecars",
            id="NotUpdate",
        ),
        pytest.param(
            pod("log", hash_="old"),
            [sidecar_set(updateStrategy={"paused": True})],
            {},
            "injected, not updated: updates are paused (updateStrategy.paused)",
            id="paused",
        ),
        pytest.param(
            pod("log", hash_="old"),
            [sidecar_set()],
            {"log": BUSY},
            "injected, not updated: waiting: kubelets have yet to restart",
            id="the service names the pod",
        ),
        pytest.param(
            pod("log", hash_="old"),
            [sidecar_set()],
            {"log": TURN},
            "injected, not updated: it waits for its turn: maxUnavailable 1 is used by web-2",
            id="its turn",
        ),
        pytest.param(
            pod(labels={}),
            [sidecar_set()],
            {},
            "not injected: it selects pods with app=x; the labels of this one: none",
            id="other labels",
        ),
        pytest.param(
            pod(),
            [sidecar_set(namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "else"}})],
            {},
            "not injected: it selects only namespace else",
            id="another namespace",
        ),
        pytest.param(
            pod(),
            [sidecar_set(namespaceSelector={"matchLabels": {"team": "red"}})],
            {},
            "not injected: it selects namespaces with team=red; the labels of this one: none",
            id="labels of the namespace",
        ),
        pytest.param(
            pod(),
            [sidecar_set(injectionStrategy={"paused": True})],
            {},
            "not injected: its injection is paused (injectionStrategy.paused)",
            id="injection paused",
        ),
        pytest.param(
            pod(),
            [sidecar_set(created=LATER)],
            {},
            "not injected: the pod was created before it; sidecars are injected only at creation",
            id="older than it",
        ),
        pytest.param(
            pod(),
            [sidecar_set()],
            {},
            "not injected: it matches now, but did not when the pod was created: labels, namespace or the SidecarSet "
            "have changed since; sidecars are injected only at creation",
            id="matches now",
        ),
    ],
)
def test_story(about: Pod, sets: list[SidecarSet], whys: dict[str, Why], expected: str) -> None:
    assert told(about, *sets, whys=whys) == expected


LEAVING = {"deletionTimestamp": LATER, "finalizers": ["example.com/keep"]}


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        pytest.param(
            pod("log", hash_="old"),
            "injected; it is being deleted (held by finalizer example.com/keep), so its sidecars stay as they are",
            id="injected",
        ),
        pytest.param(
            pod(labels={"app": "y"}),
            "not injected: it selects pods with app=x; the labels of this one: app=y; "
            "it is being deleted (held by finalizer example.com/keep)",
            id="not injected",
        ),
    ],
)
def test_a_sidecar_set_on_its_way_out(about: Pod, expected: str) -> None:
    assert told(about, sidecar_set(meta=LEAVING)) == expected


def selecting(*values: str, name: str = "one", **spec: Any) -> SidecarSet:
    """Return a SidecarSet for pods with these labels, `app=x`."""
    labels = dict(value.split("=") for value in values)
    return sidecar_set(name, **{"selector": {"matchLabels": labels}} | spec)


UNLESS_OLD = {"matchExpressions": [{"key": "old", "operator": "DoesNotExist"}, {"key": "app", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        pytest.param(selecting("app=x", injectionStrategy={"paused": True}), True, id="it matches but for a reason"),
        pytest.param(selecting("app=x", "tier=web"), True, id="one label differs"),
        pytest.param(selecting("app=x", "tier=db"), True, id="one label is missing"),
        pytest.param(selecting("app=x", "tier=db", "zone=a"), False, id="two labels are missing"),
        pytest.param(selecting("app=y"), False, id="its only label differs"),
        pytest.param(selecting("app=y", "tier=db"), False, id="nothing in common"),
        pytest.param(sidecar_set(selector=UNLESS_OLD), True, id="what must not be there is not"),
        pytest.param(
            selecting("app=y", selector={"matchExpressions": [
                {"key": "old", "operator": "DoesNotExist"}, {"key": "app", "operator": "In", "values": ["y"]}
            ]}), False, id="in common only what is not there"
        ),
        pytest.param(selecting("app=x", namespaceSelector=PINNED), False, id="another namespace by name"),
        pytest.param(
            selecting("app=x", namespaceSelector={"matchLabels": {"team": "red"}}), False, id="another namespace"
        ),
        pytest.param(
            selecting("app=x", namespaceSelector={"matchLabels": {"team": "blue"}}), True, id="this namespace"
        ),
        pytest.param(sidecar_set(selector={"matchLabels": {"a b": "c"}}), True, id="nobody knows"),
    ],
)  # fmt: skip
def test_only_those_are_named_that_somebody_may_wonder_about(one: SidecarSet, shown: bool) -> None:
    about, surroundings = pod(labels={"app": "x", "tier": "front"}), PodSurroundings({"team": "blue"}, [one], {})
    lines = sidecar_lines(about, surroundings)
    assert [line.startswith("SidecarSet ") for line in lines] == [shown]
    assert shown or lines == ["1 other SidecarSet selects other pods (-v names it)"]
    assert sidecar_lines(about, surroundings, everything=True)[0].startswith(
        f"SidecarSet {one.metadata.name}: not injected"
    )


def test_the_others_are_counted() -> None:
    others = [selecting(f"app=other-{number}", name=f"other-{number}") for number in range(20)]
    about, surroundings = pod("log"), PodSurroundings({}, [sidecar_set(), *others], {})
    assert sidecar_lines(about, surroundings) == [
        "SidecarSet log: injected and up to date",
        "20 other SidecarSets select other pods (-v names them)",
    ]
    assert len(sidecar_lines(about, surroundings, everything=True)) == 21


def test_exempt_namespaces() -> None:
    line = told(pod(), sidecar_set(), labels={"control-plane": "openkruise"})
    assert line == "not injected: pods of namespace shop never are"


def test_a_canary_takes_the_place_of_its_base() -> None:
    marks = {"apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "log"}
    canary = sidecar_set("canary", annotations=marks)
    lines = sidecar_lines(pod("canary"), PodSurroundings({}, [canary, sidecar_set()], {}))
    assert lines[0] == "SidecarSet canary: injected and up to date"
    assert lines[1] == "SidecarSet log: not injected: SidecarSet canary is its canary, and replaced it"


def starting(ready: list[str], *, completed: bool = False) -> Pod:
    def container(name: str, priority: int) -> Json:
        reference = {"name": "web-1-barrier", "key": f"p_{priority}"}
        return {
            "name": name,
            "env": [{"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": reference}}],
        }

    annotations = {"apps.kruise.io/container-launch-priority-completed": "true"} if completed else {}
    document = {
        "metadata": {"name": "web-1", "annotations": annotations},
        "spec": {"containers": [container("a", 0), container("b", 5), container("c", 5)]},
        "status": {"containerStatuses": [{"name": name, "ready": True} for name in ready]},
    }
    return decoded(document, Pod)


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        (
            starting([]),
            ["containers start in the order of their priorities: waiting for b and c (p_5) to be ready; a comes after"],
        ),
        (starting(["b", "c"]), ["containers start in the order of their priorities: waiting for a (p_0) to be ready"]),
        (starting([], completed=True), []),
        (starting(["a", "b", "c"]), []),
        (pod(), []),
    ],
    ids=["at the beginning", "the last one", "over", "all ready", "without priorities"],
)
def test_launch(about: Pod, expected: list[str]) -> None:
    assert launch_story(about) == expected
