"""`flotilla plan -f`: its forecast of many changes, and the events when they are applied with kubectl."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from tests.support.broker import environment
from tests.support.fleet import Fleet
from tests.support.foreseen import differences, foretold, happened
from tests.support.recorder import Event
from tests.support.workspace import Workspace, cloneset, is_ready, terminating, watched
from tests.testkit.documents import Json

pytestmark = pytest.mark.timeout(300)  # the first one waits for the control plane, too

IN_PLACE: Json = {"podUpdatePolicy": "InPlaceIfPossible"}
OBJECTS = "pods,persistentvolumeclaims,controllerrevisions,clonesets,statefulsets.apps.kruise.io,imagepulljobs"
"""Everything of a namespace that an apply may lead to."""


class Change(NamedTuple):
    """Manifests that are applied one after the other, and the one that is planned."""

    before: tuple[Json, ...]
    after: Json


def image(manifest: Json, name: str) -> Json:
    """Return the manifest with another image."""
    changed = json.loads(json.dumps(manifest))
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = name
    return changed


def spec(manifest: Json, **members: Any) -> Json:
    """Return the manifest with other members of its spec."""
    return manifest | {"spec": manifest["spec"] | members}


def template(manifest: Json, **metadata: Any) -> Json:
    """Return the manifest with more metadata in its template."""
    held = manifest["spec"]["template"]
    merged = {key: held["metadata"].get(key, {}) | value for key, value in metadata.items()}
    return spec(manifest, template=held | {"metadata": held["metadata"] | merged})


def statefulset(name: str, replicas: int, rolling: Json, **members: Any) -> Json:
    gates = [{"conditionType": "InPlaceUpdateReady"}]
    body = {"containers": [{"name": "nginx", "image": "nginx:alpine"}], "readinessGates": gates}
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": body},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            **members,
        },
    }


def sidecar_set(namespace: str, proxy: str) -> Json:
    """Return a SidecarSet, named after a namespace and limited to it."""
    pinned = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "SidecarSet",
        "metadata": {"name": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "meshed"}},
            "namespaceSelector": pinned,
            "containers": [{"name": "proxy", "image": proxy}],
            "updateStrategy": {"maxUnavailable": 2},
        },
    }


def changes() -> dict[str, Change]:
    """Return CloneSets and StatefulSets, each with its change."""
    plain = cloneset(3, name="image", strategy=IN_PLACE | {"maxUnavailable": 2})
    env = cloneset(2, name="env", strategy=IN_PLACE | {"maxUnavailable": 1})
    surge = cloneset(2, name="surge", strategy={"maxSurge": 1, "maxUnavailable": 0})
    grow = spec(cloneset(2, name="grow", strategy=IN_PLACE | {"maxUnavailable": 1}), minReadySeconds=1)
    paused = cloneset(2, name="paused", strategy=IN_PLACE | {"paused": True})
    back = cloneset(2, name="back", strategy=IN_PLACE | {"maxUnavailable": 1})
    words = cloneset(2, name="words", strategy=IN_PLACE | {"maxUnavailable": 2})
    alpha = cloneset(3, name="alpha", version="v1alpha1", strategy={"type": "InPlaceIfPossible", "maxUnavailable": 1})
    same = cloneset(1, name="same", strategy=IN_PLACE)
    ordered = statefulset("ordered", 3, {"podUpdatePolicy": "InPlaceIfPossible", "partition": 1})
    parallel = statefulset("parallel", 3, {"maxUnavailable": 2}, podManagementPolicy="Parallel")
    with_env = json.loads(json.dumps(env))
    with_env["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    partial = {"type": "InPlaceIfPossible", "maxUnavailable": 1, "partition": "50%"}
    one_by_one = {"rollingUpdate": IN_PLACE | {"maxUnavailable": 1}}
    made = cloneset(2, name="made")
    return {
        "image": Change((plain,), image(plain, "nginx:mainline")),
        "env": Change((env,), with_env),
        "surge": Change((surge,), image(surge, "nginx:mainline")),
        "grow": Change((grow,), spec(image(grow, "nginx:mainline"), replicas=3, updateStrategy=one_by_one)),
        "paused": Change(
            (paused, image(paused, "nginx:mainline")), spec(image(paused, "nginx:mainline"), updateStrategy=one_by_one)
        ),
        "back": Change((back, image(back, "nginx:mainline")), back),
        "words": Change((words,), template(words, labels={"tier": "web"}, annotations={"note": "new"})),
        "alpha": Change((alpha,), spec(image(alpha, "nginx:mainline"), updateStrategy=partial)),
        "same": Change((same,), same),
        "ordered": Change((ordered,), image(ordered, "nginx:mainline")),
        "parallel": Change((parallel,), image(parallel, "nginx:mainline")),
        "made": Change((), made),
    }


@pytest.fixture
def space(request: pytest.FixtureRequest, shared: Fleet) -> Iterator[Workspace]:
    with watched(shared.cluster, request.node.nodeid, CLONE_SET, STATEFUL_SET) as made:
        yield made


def listed(manifests: Sequence[Json]) -> str:
    """Return a file of many objects."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})


def apply(space: Workspace, *manifests: Json) -> None:
    """Apply all of them at once."""
    space.kubectl("apply", "-f", "-", stdin=listed(manifests))


def planned(space: Workspace, flotilla: Fleet, *manifests: Json, bus: bool = False) -> tuple[int, dict[str, Json]]:
    """Return the exit code, and the stories by name; with the settings of the services if the `bus` is known."""
    flags = ["-n", space.name, f"--kubeconfig={space.cluster.kubeconfig}", "-o", "json"]
    flags += [f"--nats={flotilla.nats.url}"] if bus else []
    line = [sys.executable, "-m", "flotilla_cli", "plan", "-f", "-", *flags]
    env = environment(flotilla.nats)
    reply = subprocess.run(
        line, input=listed(manifests), capture_output=True, text=True, timeout=60, check=False, env=env
    )
    assert reply.stdout, reply.stderr
    assert "hunter2" not in reply.stdout
    return reply.returncode, {story["name"]: story for story in json.loads(reply.stdout)}


def versions(space: Workspace) -> set[tuple[str, str, str]]:
    """Return all objects of the namespace and its SidecarSet, as they are."""
    found = [*space.read(OBJECTS)["items"], *space.read("sidecarsets")["items"]]
    ours = [one for one in found if one["metadata"].get("namespace", one["metadata"]["name"]) == space.name]
    return {(one["kind"], one["metadata"]["name"], one["metadata"]["resourceVersion"]) for one in ours}


def pods_of(space: Workspace, name: str) -> dict[str, Json]:
    return {key: pod for key, pod in space.pods.items() if pod["metadata"]["labels"].get("app") == name}


def living(pods: dict[str, Json], name: str) -> list[Json]:
    return [pod for pod in pods.values() if pod["metadata"]["labels"].get("app") == name and not terminating(pod)]


def events_of(space: Workspace, name: str, since: int) -> list[Event]:
    return [event for event in space.history(since) if event.object["metadata"]["labels"].get("app") == name]


def at_end(space: Workspace, kind: str, name: str, story: Json) -> bool:
    """Report whether the status has the forecast numbers."""
    status, numbers = space.object(kind, name).get("status", {}), story["numbers"]
    fields = {
        "replicas": "total",
        "readyReplicas": "ready",
        "updatedReplicas": "updated",
        "availableReplicas": "available",
    }
    counts = all(status.get(field, 0) == numbers[number] for field, number in fields.items() if number in numbers)
    return counts and status.get("updateRevision") == story["revision"]["name"]


def test_what_is_foretold_happens(space: Workspace, shared: Fleet):
    """Many changes side by side: the plan writes nothing, and then each change happens as forecast."""
    made = changes()
    apply(space, sidecar_set(space.name, "proxy:1"), *(one.before[0] for one in made.values() if one.before))
    meshed, shrink = cloneset(3, name="meshed"), cloneset(3, name="shrink")
    apply(space, meshed, shrink)
    settled(space)
    apply(space, *(one.before[1] for one in made.values() if len(one.before) > 1))
    settled(space)
    first = sorted(pods_of(space, "shrink"))[1]
    after = {name: one.after for name, one in made.items()}
    after["shrink"] = spec(shrink, replicas=1, scaleStrategy={"podsToDelete": [first]})
    after[space.name] = sidecar_set(space.name, "proxy:2")
    before, mark, stored = dict(space.pods), space.now(), versions(space)

    code, stories = planned(space, shared, *after.values(), bus=True)
    assert code == 1
    assert versions(space) == stored
    apply(space, *after.values())
    ended(space, stories)
    for name, story in stories.items():
        app = "meshed" if name == space.name else name
        mine = {key: pod for key, pod in before.items() if pod["metadata"]["labels"].get("app") == app}
        real = happened(events_of(space, app, mark), mine)
        assert differences(foretold(story), real) == [], (name, story, real)
        lowest = min(sum(map(is_ready, living(pods, app))) for pods in space.moments(mark))
        assert lowest >= story["serving"]["lowest"], name
        assert story["revision"]["new"] == (name not in ("same", "paused", "back", "shrink")), name
    assert [name for name, story in stories.items() if story["verdict"] == "unchanged"] == ["same"]
    assert not any(story.get("notes") for story in stories.values())


def settled(space: Workspace) -> None:
    """Wait until everything is as its spec wants it."""
    stored = {(one["kind"], one["metadata"]["name"]): one["metadata"] for one in space.read(OBJECTS)["items"]}

    def done(found: Json) -> bool:
        status, wanted = found.get("status", {}), found["spec"]["replicas"]
        newest = stored[found["kind"], found["metadata"]["name"]]["generation"]  # the watch may be late
        seen = status.get("observedGeneration") == found["metadata"]["generation"] >= newest
        paused = "paused" in json.dumps(found["spec"]["updateStrategy"]) and found["metadata"]["name"] == "paused"
        updated = paused or status.get("updatedReplicas") == wanted
        return seen and updated and status.get("availableReplicas") == status.get("readyReplicas") == wanted

    space.until(lambda: all(done(found) for found in workloads(space)))


def workloads(space: Workspace) -> list[Json]:
    return [found for (kind, where, _), found in space._all() if kind != "Pod" and where == space.name]


def ended(space: Workspace, stories: dict[str, Json]) -> None:
    """Report whether everything has reached the forecast end."""
    sets = {(story["kind"], name): story for name, story in stories.items() if name != space.name}

    def proxies() -> bool:
        images = [pod["spec"]["containers"] for pod in pods_of(space, "meshed").values()]
        return all(any(one["image"] == "proxy:2" for one in containers) for containers in images)

    space.until(lambda: all(at_end(space, *key, story) for key, story in sets.items()) and proxies())
    space.catch_up()


def test_nodes_are_asked_as_foretold(space: Workspace, shared: Fleet):
    """A job pulls on two of three nodes at a time, whose agents do not answer."""
    nodes = [f"{space.name[-20:]}-{number}" for number in range(3)]
    labels = {"apps.kruise.io/fake-nodeimage": "true", "pool": space.name[-20:]}
    images: list[Json] = [
        {"apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": node, "labels": labels}}
        for node in nodes
    ]
    job: Json = {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImagePullJob",
        "metadata": {"name": "pull"},
        "spec": {
            "image": "nginx:plan",
            "parallelism": 2,
            "selector": {"matchLabels": {"pool": space.name[-20:]}},
            "completionPolicy": {"type": "Always"},
        },
    }
    apply(space, *images)
    _, stories = planned(space, shared, job)
    asked = [step["name"] for wave in stories["pull"]["waves"] for step in wave["steps"] if step["kind"] == "NodeImage"]
    assert asked == nodes[:2]
    assert "WaitingForNodes" in {reason["code"] for reason in stories["pull"]["reasons"]}
    apply(space, job)
    space.until(lambda: space.read("imagepulljob", "pull").get("status", {}).get("active") == 2)
    found = {
        one["metadata"]["name"]: one.get("spec", {}).get("images", {}) for one in space.read("nodeimages")["items"]
    }
    assert [node for node in nodes if found[node]] == asked
    space.kubectl("delete", "imagepulljob", "pull")
    space.kubectl("delete", "nodeimages", *nodes)


def test_refusals_are_those_of_kubectl(space: Workspace, shared: Fleet):
    """The words of schema, webhook and strict decoding; foreign objects are skipped."""
    wrong = [
        spec(cloneset(1, name="negative"), replicas=-1),
        spec(cloneset(1, name="selector"), selector={"matchLabels": {"app": "other"}}),
        spec(cloneset(1, name="field"), colour="blue"),
    ]
    stranger: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}}
    code, stories = planned(space, shared, *wrong, stranger)
    assert code == 2
    for manifest in wrong:
        story = stories[manifest["metadata"]["name"]]
        said = space.refuses(manifest, "apply")
        assert story["verdict"] == "refused"
        assert story["words"].rpartition(" is invalid: ")[2] in said, (story, said)
    assert stories["words"]["verdict"] == "skipped"
