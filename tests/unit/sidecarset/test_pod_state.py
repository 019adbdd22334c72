"""The state of a pod for a SidecarSet: matching, and consistency of its sidecars (sidecarset.md §7.3, §7.6)."""

from typing import Any

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.images import same_digest
from flotilla_sidecar.sidecarset.containers import Consistency
from flotilla_sidecar.sidecarset.desired import desired_sidecars
from flotilla_sidecar.sidecarset.pods import PodState, pod_state
from tests.testkit.documents import decoded
from tests.unit.sidecarset.build import (
    HASH,
    INJECTED,
    STATE,
    Builder,
    as_json,
    counts,
    image,
    namespace,
    planned,
    pod,
    side,
    sidecar,
    state,
)

DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def seen(there: Pod, builder: Builder | None = None) -> PodState | None:
    return pod_state(there, desired_sidecars((builder or side("B")).build()))


def surely(there: Pod, builder: Builder | None = None) -> PodState:
    found = seen(there, builder)
    assert found is not None
    return found


# -- matching


@pytest.mark.parametrize(
    ("there", "matches"),
    [
        pytest.param(pod(), True, id="injected"),
        pytest.param(pod(flags="F"), False, id="failed"),
        pytest.param(pod(status={"phase": "Succeeded"}), False, id="ended"),
        pytest.param(pod(flags="T"), False, id="terminating"),
        pytest.param(pod(flags="P"), True, id="pending"),
        pytest.param(pod(labels={"app": "other"}), False, id="labels left the selector"),
        pytest.param(pod(annotations={INJECTED: "other"}), False, id="of another SidecarSet"),
        pytest.param(pod(annotations={INJECTED: "aside,side,b"}), True, id="of several"),
        pytest.param(pod(annotations={INJECTED: "aside"}), False, id="whose name ends likewise"),
        pytest.param(pod(annotations={INJECTED: ""}), False, id="from before it"),
        pytest.param(pod(spec={"containers": [{"name": "main"}]}), False, id="without its container"),
        pytest.param(
            pod(spec={"containers": [{"name": "main"}], "initContainers": [{"name": "proxy"}]}),
            True,
            id="whose container is an init container",
        ),
    ],
)
def test_who_is_counted(there: Pod, matches: bool) -> None:
    assert (seen(there) is not None) == matches
    assert counts(planned(side("B"), [there]))[0] == matches


def test_all_containers_have_to_be_there() -> None:
    """Pods injected before a container was removed from the SidecarSet have more, which does not matter."""
    both = Builder([sidecar("B"), sidecar("B", "log")])
    assert seen(pod(), both) is None
    assert seen(pod(base=both), side("B")) is not None


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, ["a", "b"], id="none: everywhere"),
        pytest.param({"matchLabels": {"team": "x"}}, ["a"], id="labels of the namespace"),
        pytest.param({"matchLabels": {"kubernetes.io/metadata.name": "b"}}, ["b"], id="its name"),
        pytest.param({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, ["b"], id="an expression"),
        pytest.param({}, ["a", "b"], id="empty: all there are"),
    ],
)
def test_namespaces(selector: dict[str, Any] | None, expected: list[str]) -> None:
    there = [pod("one", namespace="a"), pod("two", namespace="b")]
    builder = side("B") if selector is None else side("B").set(namespaceSelector=selector)
    result = planned(builder, there, namespaces=[namespace("a", team="x"), namespace("b")])
    assert counts(result)[0] == len(expected)


# -- updated


@pytest.mark.parametrize(
    ("text", "updated"),
    [
        (None, True),
        ("", False),
        ("no JSON", False),
        ('{"side": null}', False),
        ('{"other": "x"}', False),
        ("[]", False),
    ],
    ids=["as injected", "empty", "no JSON", "null", "of another", "a list"],
)
def test_a_pod_that_does_not_remember_is_not_updated(text: str | None, updated: bool) -> None:
    there = pod() if text is None else pod(annotations={HASH: text})
    assert surely(there).updated is updated


def test_where_no_webhook_has_written_a_hash_nobody_is_behind() -> None:
    builder = side("B").meta(annotations={HASH: "", "kruise.io/sidecarset-hash-without-image": ""})
    bare = pod(annotations={HASH: "", "kruise.io/sidecarset-hash-without-image": ""})
    found = surely(bare, builder)
    assert (found.updated, found.upgradable) == (True, True)


# -- consistent

STATUS = {"main": ("shop:1", "id-main"), "proxy": (image("B"), "id-B")}


def running(containers: dict[str, str], statuses: dict[str, tuple[str, str]], **more: Any) -> Pod:
    """Return a pod with these images, and the kubelet's report of each: image and imageID."""
    document = {
        "metadata": {"name": "p", "generation": more.get("generation", 0), "annotations": more.get("annotations", {})},
        "spec": {"containers": [{"name": name, "image": one} for name, one in containers.items()]},
        "status": {
            "observedGeneration": more.get("observed", 0),
            "containerStatuses": [
                {"name": name, "image": one, "imageID": image_id} for name, (one, image_id) in statuses.items()
            ],
        },
    }
    return decoded(document, Pod)


CONTAINERS = {"main": "shop:1", "proxy": image("B")}
BEFORE = state("proxy", "id-A")


@pytest.mark.parametrize(
    ("there", "consistent"),
    [
        pytest.param(running(CONTAINERS, STATUS), True, id="never changed"),
        pytest.param(running(CONTAINERS, {"main": STATUS["main"]}), False, id="not all have a status"),
        pytest.param(running(CONTAINERS, STATUS, annotations=BEFORE), True, id="runs another one"),
        pytest.param(
            running(CONTAINERS, STATUS | {"proxy": (image("A"), "id-A")}, annotations=BEFORE), False, id="runs the last"
        ),
        pytest.param(
            running(CONTAINERS, STATUS | {"proxy": ("docker.io/library/proxy:B", "id-A")}, annotations=BEFORE),
            True,
            id="both tags mean one image",
        ),
        pytest.param(
            running(CONTAINERS, STATUS | {"proxy": ("proxy:x", "id-x")}, annotations=BEFORE),
            True,
            id="the runtime calls it by another tag",
        ),
        pytest.param(running(CONTAINERS, STATUS, annotations=state("main", "id-main")), True, id="not its container"),
        pytest.param(running(CONTAINERS, STATUS, annotations={STATE: "no JSON"}), True, id="unreadable"),
        pytest.param(running(CONTAINERS, STATUS, annotations={STATE: '{"side": 7}'}), True, id="of another type"),
        pytest.param(running(CONTAINERS, STATUS, annotations={STATE: '{"side": {}}'}), True, id="nothing changed"),
        pytest.param(
            running(CONTAINERS, STATUS, annotations=state("proxy", "id-A", "other")), True, id="changed by another set"
        ),
        pytest.param(
            running(CONTAINERS, STATUS, annotations=BEFORE, generation=3, observed=2),
            False,
            id="a report on an older pod",
        ),
        pytest.param(running(CONTAINERS, STATUS, annotations=BEFORE, generation=3, observed=3), True, id="on this one"),
        pytest.param(
            running(CONTAINERS, STATUS, generation=3, observed=2), True, id="an older report, of what never changed"
        ),
    ],
)
def test_by_tag(there: Pod, consistent: bool) -> None:
    assert Consistency(there, "side").holds({"proxy"}) is consistent


@pytest.mark.parametrize(
    ("image_id", "consistent"),
    [
        (f"docker.io/library/proxy@{DIGEST}", True),
        (f"docker-pullable://proxy@{DIGEST}", True),
        (f"proxy@{OTHER}", False),
        (f"reg.io/proxy@{DIGEST}", False),
        (DIGEST, False),
        ("", False),
    ],
)
def test_by_digest(image_id: str, consistent: bool) -> None:
    """The pod's records have no influence."""
    containers = {"main": "shop:1", "proxy": f"proxy@{DIGEST}"}
    there = running(containers, STATUS | {"proxy": ("x", image_id)}, annotations={STATE: "no JSON"})
    assert Consistency(there, "side").holds({"proxy"}) is consistent


def test_digests_before_the_first_tag_count() -> None:
    containers = {"a": f"a@{DIGEST}", "b": "b:1", "c": f"c@{DIGEST}"}
    wrong, right = ("x", f"a@{OTHER}"), ("x", f"a@{DIGEST}")
    other = {"b": ("b:1", "id"), "c": ("x", f"c@{OTHER}")}
    names = frozenset(containers)
    assert not Consistency(running(containers, {"a": wrong, **other}), "side").holds(names)
    assert Consistency(running(containers, {"a": right, **other}), "side").holds(names)


def test_what_cannot_be_read_is_no_digest() -> None:
    assert not same_digest("proxy@sha256:short", f"proxy@{DIGEST}")
    assert not same_digest(f"proxy@{DIGEST}", "not an id")


# -- ready, busy


@pytest.mark.parametrize(
    ("there", "ready"),
    [
        pytest.param(pod(), True, id="ready"),
        pytest.param(pod(flags="!"), False, id="not ready"),
        pytest.param(pod(status={"phase": "Unknown"}), False, id="not running"),
    ],
)
def test_ready(there: Pod, ready: bool) -> None:
    assert surely(there).ready is ready


def test_busy_is_who_serves_an_older_image_than_asked_for() -> None:
    statuses = [
        {"name": "main", "image": "shop:1", "imageID": "m", "ready": True},
        {"name": "proxy", "image": image("A"), "imageID": "id-A", "ready": True},
    ]
    late = pod(annotations=state("proxy", "id-A"), status={"containerStatuses": statuses})
    assert surely(late, side("C")).busy
    assert not surely(late).busy, "it has the newest image, whether it runs it or not"
    assert not surely(pod(flags="~"), side("C")).busy, "it is stopped already"
    assert not surely(late, side("B", sidecar("B", "main"))).busy, "more than images differs"


def test_a_look_is_taken_once() -> None:
    there, builder = pod(), side("B")
    desired = desired_sidecars(builder.build())
    first = pod_state(there, desired)
    assert pod_state(there, desired_sidecars(builder.stored(matchedPods=7).build())) is first, (
        "the status does not matter"
    )
    assert pod_state(there, desired_sidecars(side("C").build())) != first


def test_the_selector_of_updates() -> None:
    chosen = side("B").strategy(selector={"matchLabels": {"canary": "yes"}})
    assert not surely(pod(), chosen).chosen
    assert surely(pod(labels={"canary": "yes"}), chosen).chosen
    broken = side("B").strategy(selector={"matchExpressions": [{"key": "a", "operator": "Is"}]})
    assert not surely(pod(), broken).chosen


def test_what_other_members_of_a_record_say_does_not_matter() -> None:
    hashes = side("B").build().metadata.annotations
    there = pod(annotations={HASH: as_json({"side": {"hash": hashes[HASH], "sidecarList": None, "later": 1}})})
    found = surely(there)
    assert (found.updated, found.revision) == (True, "")
