"""Argo CD's health of real rollouts: its scripts (`integrations/argocd`) over each version of the watched objects.

They run in v1alpha1 and in v1beta1, at every step, as do its actions, whose results are applied. All kinds go through a
step side by side. In a step, health goes from the allowed intermediate states to the final one, and stays there until
the next one.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import NamedTuple

import msgspec
import pytest

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import Resource
from tests.support.fleet import Fleet
from tests.support.lua import Lua, acted, disabled_actions, health, interpreters
from tests.support.recorder import Recorder
from tests.support.workspace import PATIENCE, new_namespace
from tests.testkit.documents import Json

pytestmark = pytest.mark.timeout(300)  # the first one waits for the control plane, too

HEALTHY, PROGRESSING, SUSPENDED, DEGRADED = "Healthy", "Progressing", "Suspended", "Degraded"
VERSIONS = ("v1alpha1", "v1beta1")
OLD, NEW, NEWER, NEWEST = "nginx:1", "nginx:2", "nginx:3", "nginx:4"
INTERPRETERS = interpreters()
NAMES = {
    "CloneSet": "web",
    "StatefulSet": "db",
    "DaemonSet": "agent",
    "UnitedDeployment": "zones",
    "SidecarSet": "",  # has the name of the namespace
    "BroadcastJob": "sweep",
    "AdvancedCronJob": "tick",
}


class Step(NamedTuple):
    """The expectation after a change of an object."""

    generation: int  # from here on
    meanwhile: frozenset[str]
    finally_: str
    words: str  # in the message
    events: Mapping[str, int]  # how many were there by then, by version


class Scene:
    """A namespace whose workloads are watched in both versions."""

    def __init__(self, flotilla: Fleet, name: str, recorders: Mapping[str, Recorder]) -> None:
        self.cluster, self.name, self._recorders, self._lua = flotilla.cluster, name, recorders, Lua()
        self.objects = flotilla.cluster.api_objects.within(name)
        self._steps: dict[str, Step] = {}

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl in the namespace; a refusal fails the test."""
        return self.cluster.kubectl("-n", self.name, *arguments, stdin=stdin)

    def read(self, *arguments: str) -> Json:
        """Return what `kubectl get … -o json` prints."""
        query = self.objects.query(arguments)
        assert query is not None, arguments
        return self.objects.get(query)

    def name_of(self, kind: str) -> str:
        """Return the name of the scene's object of a kind."""
        return NAMES[kind] or self.name

    def create(self, *documents: Json) -> None:
        """Create objects."""
        for document in documents:
            self.objects.create(document)

    def change(self, kind: str, patch: Json, version: str = "v1beta1") -> None:
        """Change an object by a merge patch in a version, and begin a step with it."""
        before = {known: len(recorder.events) for known, recorder in self._recorders.items()}
        word = f"{_resource(kind).plural}.{version}.{_resource(kind).group}"
        generation = self.objects.patch(word, self.name_of(kind), patch)["metadata"]["generation"]
        self._judged(kind, generation)
        self._steps[kind] = Step(generation, frozenset(), "", "", before)

    def act(self, kind: str, action: str, version: str) -> None:
        """Apply an action that Argo CD offers, as when a user chooses it."""
        document = self._object(kind, version)
        assert not disabled_actions(self._lua, document)[action], (kind, version, action)
        self.change(kind, acted(self._lua, document, action), version)

    def become(self, finally_: str, *kinds: str, meanwhile: Iterable[str] = (PROGRESSING,), words: str = "") -> None:
        """Wait until these objects are as they have to become; they may not be anything else before."""
        for kind in kinds:
            step = self._steps.get(kind) or Step(1, frozenset(), "", "", dict.fromkeys(VERSIONS, 0))
            self._steps[kind] = step._replace(meanwhile=frozenset(meanwhile), finally_=finally_, words=words)
        if not self._recorders["v1beta1"].until(lambda: all(map(self._has_become, kinds)), PATIENCE):
            late = [kind for kind in kinds if not self._has_become(kind)]
            raise AssertionError("\n".join(f"{kind}: {self._course(kind)}" for kind in late))
        for kind in kinds:
            self._is_told_to_karmada(kind)

    def fail_a_pod(self, job: str) -> None:
        """Let one of the pods of a BroadcastJob fail, once it is there."""
        pods: list[str] = []

        def are_there() -> bool:
            pods[:] = [pod["metadata"]["name"] for pod in self.read("pods", "-l", f"broadcastjob-name={job}")["items"]]
            return bool(pods)

        assert self._recorders["v1beta1"].until(are_there, PATIENCE)
        self.objects.patch("pod", pods[0], {"status": {"phase": "Failed"}}, subresource="status")

    def says(self, kind: str, name: str, expected: tuple[str, str]) -> None:
        """Wait until Argo CD reports this status and this text for an object of a kind that is not watched."""
        served = next(one.versions for one in catalogue.KINDS if one.name == kind)
        said: dict[str, tuple[str, str]] = {}

        def is_said() -> bool:
            for version in served:
                word = f"{_resource(kind).plural}.{version}.{_resource(kind).group}"
                said[version] = health(self._lua, self.read(word, name))
            return all(status == expected[0] and expected[1] in message for status, message in said.values())

        assert self._recorders["v1beta1"].until(is_said, PATIENCE), (kind, name, said)

    def verdict_of(self) -> None:
        """Look back at the last step of each object."""
        for kind in NAMES:
            self._judged(kind)

    def _object(self, kind: str, version: str) -> Json:
        namespace = self.name if _resource(kind).namespaced else ""
        return self._recorders[version].objects.get((kind, namespace, self.name_of(kind)), {})

    def _has_become(self, kind: str) -> bool:
        step, found = self._steps[kind], [self._object(kind, version) for version in VERSIONS]
        if not all(found) or len({one["metadata"]["resourceVersion"] for one in found}) > 1:
            return False
        said = [health(self._lua, one) for one in found]
        newest = found[0]["metadata"]["generation"] >= step.generation
        return newest and all(status == step.finally_ and step.words in message for status, message in said)

    def _is_told_to_karmada(self, kind: str) -> None:
        """Check that Karmada reports as healthy what needs no other cluster."""
        for version in VERSIONS:
            document = self._object(kind, version)
            script = INTERPRETERS[kind, document["apiVersion"]]["healthInterpretation"]["luaScript"]
            well = self._lua.call(script, "InterpretHealth", document)
            assert well == (health(self._lua, document)[0] != DEGRADED), (kind, version, document)

    def _course(self, kind: str, end: int = sys.maxsize) -> dict[str, list[tuple[str, str, Json]]]:
        """Return Argo CD's health in the step, before the generation that ends it.

        By version: status, message, and the status of the object.
        """
        step, courses = self._steps[kind], dict[str, list[tuple[str, str, Json]]]()
        for version, recorder in self._recorders.items():
            mine = [event.object for event in recorder.events[step.events[version] :]]
            courses[version] = [
                (*health(self._lua, one), one.get("status", {}))
                for one in mine
                if (one["kind"], one["metadata"]["name"]) == (kind, self.name_of(kind))
                and step.generation <= one["metadata"]["generation"] < end
            ]
        return courses

    def _judged(self, kind: str, end: int = sys.maxsize) -> None:
        step = self._steps.get(kind)
        if step is None or not step.finally_:
            return
        for version, course in self._course(kind, end).items():
            said = [status for status, _, _ in course]
            assert said[-1:] == [step.finally_], (kind, version, course)
            while said[-1:] == [step.finally_]:
                said.pop()
            assert set(said) <= step.meanwhile, (kind, version, course)


def _resource(kind: str) -> Resource:
    return next(one.resource for one in catalogue.KINDS if one.name == kind)


@pytest.fixture
def scene(request: pytest.FixtureRequest, shared: Fleet) -> Iterator[Scene]:
    name = new_namespace(shared.cluster, request.node.nodeid)
    with ExitStack() as stack:
        recorders = {
            version: stack.enter_context(Recorder(shared.cluster.rest, *_in(version), namespace=name))
            for version in VERSIONS
        }
        for recorder in recorders.values():
            assert recorder.until(recorder.begun, PATIENCE), "no watch"
        yield Scene(shared, name, recorders)
    shared.cluster.kubectl("delete", "sidecarset,resourcedistribution", name, "--ignore-not-found")


def _in(version: str) -> list[Resource]:
    return [msgspec.structs.replace(_resource(kind), version=version) for kind in NAMES]


def template(app: str, image: str = OLD, **pod: object) -> Json:
    spec = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": image}], **pod}
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def manifest(kind: str, name: str, /, version: str = "v1beta1", **spec: object) -> Json:
    group = _resource(kind).group
    return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


def workload(kind: str, name: str, replicas: int | None = None, **rolling: object) -> Json:
    strategy: Json = {"updateStrategy": {"rollingUpdate": rolling}}
    counted = {} if replicas is None else {"replicas": replicas}
    return manifest(kind, name, selector={"matchLabels": {"app": name}}, template=template(name), **counted, **strategy)


def new(kind: str, image: str) -> Json:
    """Return a patch that gives the containers of a kind another image."""
    containers = [{"name": "main", "image": image}]
    if kind == "SidecarSet":
        return {"spec": {"containers": [{"name": "proxy", "image": image}]}}
    if kind == "UnitedDeployment":
        return {
            "spec": {"template": {"cloneSetTemplate": {"spec": {"template": {"spec": {"containers": containers}}}}}}
        }
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def held(kind: str, partition: int | str | Mapping[str, int]) -> Json:
    """Return a patch that sets the partition of a kind."""
    if kind == "SidecarSet":
        return {"spec": {"updateStrategy": {"partition": partition}}}
    if kind == "UnitedDeployment":
        return {"spec": {"updateStrategy": {"manualUpdate": {"partitions": partition}}}}
    return {"spec": {"updateStrategy": {"rollingUpdate": {"partition": partition}}}}


def merged(one: Json, other: Json) -> Json:
    """Put two merge patches of specs with different members together."""
    return {"spec": one["spec"] | other["spec"]}


ROLLED = ("CloneSet", "StatefulSet", "DaemonSet", "UnitedDeployment", "SidecarSet")
PAUSED = ("CloneSet", "StatefulSet", "DaemonSet", "SidecarSet")
RESTARTED = ("CloneSet", "StatefulSet", "DaemonSet", "UnitedDeployment")
NUMBERS: Mapping[str, int | str | Mapping[str, int]] = {
    "CloneSet": 2,
    "StatefulSet": 2,
    "DaemonSet": 2,
    "UnitedDeployment": {"a": 1, "b": 2},
    "SidecarSet": 2,
}
FEWER: Mapping[str, int | str | Mapping[str, int]] = {
    "CloneSet": "25%",
    "StatefulSet": 1,
    "DaemonSet": "40%",
    "UnitedDeployment": {"a": 1, "b": 0},
    "SidecarSet": "25%",
}


def begin(scene: Scene) -> None:
    """Create all objects, and wait until they have settled."""
    pinned = {"matchLabels": {"kubernetes.io/metadata.name": scene.name}}
    labels: Json = {"app": "zones"}
    child: Json = {
        "metadata": {"labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": template("zones")},
    }
    scene.create(
        manifest(
            "SidecarSet",
            scene.name,
            selector={"matchLabels": {"app": "plain"}},
            namespaceSelector=pinned,
            containers=[{"name": "proxy", "image": OLD}],
            updateStrategy={"maxUnavailable": "50%"},
        ),
        workload("StatefulSet", "plain", 4),
        workload("CloneSet", "web", 4, maxUnavailable="50%"),
        workload("StatefulSet", "db", 3),
        workload("DaemonSet", "agent", maxUnavailable=2),
        manifest(
            "UnitedDeployment",
            "zones",
            replicas=4,
            selector={"matchLabels": {"app": "zones"}},
            template={"cloneSetTemplate": child},
            topology={"subsets": [{"name": "a"}, {"name": "b"}]},
        ),
        manifest(
            "BroadcastJob",
            "sweep",
            paused=True,
            template={
                "metadata": {"annotations": {"fake.flotilla.dev/complete": "true"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": OLD}]},
            },
        ),
        manifest(
            "AdvancedCronJob",
            "tick",
            schedule="0 0 1 1 *",
            template={"broadcastJobTemplate": {"spec": {"template": template("tick", restartPolicy="Never")}}},
        ),
    )
    scene.become(HEALTHY, "CloneSet", "StatefulSet", "DaemonSet", "UnitedDeployment", "AdvancedCronJob")
    scene.become(HEALTHY, "SidecarSet", meanwhile=(PROGRESSING, HEALTHY), words="All 4 pods")
    scene.become(SUSPENDED, "BroadcastJob", meanwhile=(PROGRESSING, SUSPENDED))


def test_rollouts_step_by_step(scene: Scene):
    begin(scene)
    for kind, partition in NUMBERS.items():
        scene.change(kind, merged(new(kind, NEW), held(kind, partition)))
    scene.act("BroadcastJob", "resume", "v1alpha1")
    scene.act("AdvancedCronJob", "pause", "v1alpha1")
    scene.become(SUSPENDED, *ROLLED)
    scene.become(HEALTHY, "BroadcastJob", meanwhile=(SUSPENDED, PROGRESSING))
    scene.become(SUSPENDED, "AdvancedCronJob")

    for kind, partition in FEWER.items():
        scene.change(kind, held(kind, partition))
    scene.act("AdvancedCronJob", "resume", "v1beta1")
    scene.become(SUSPENDED, *ROLLED)
    scene.become(HEALTHY, "AdvancedCronJob")

    for kind in PAUSED:
        scene.act(kind, "pause", "v1alpha1")
    scene.become(SUSPENDED, *PAUSED)
    for kind in ROLLED:
        scene.act(kind, "promote", "v1beta1")
    scene.become(SUSPENDED, *PAUSED)
    for kind in PAUSED:
        scene.act(kind, "resume", "v1alpha1")
    scene.become(HEALTHY, *ROLLED)

    for kind in RESTARTED:
        scene.act(kind, "restart", "v1alpha1")
    scene.change("SidecarSet", new("SidecarSet", NEWER))
    scene.become(HEALTHY, *ROLLED)

    for kind in ("CloneSet", "StatefulSet", "UnitedDeployment"):
        scene.change(kind, {"spec": {"replicas": 0}})
    scene.become(HEALTHY, "CloneSet", "StatefulSet", "UnitedDeployment")
    scene.verdict_of()


def test_what_breaks(scene: Scene):
    """The status's message about a stuck rollout is shown until the rollout continues."""
    nowhere = {"spec": {"template": {"spec": {"nodeSelector": {"nobody": "has-it"}}}}}
    scene.create(
        workload("CloneSet", "web", 2),
        workload("StatefulSet", "db", 2),
        manifest("BroadcastJob", "sweep", template=template("sweep", restartPolicy="Never")),
    )
    scene.become(HEALTHY, "CloneSet", "StatefulSet")
    scene.change("CloneSet", nowhere | {"spec": nowhere["spec"] | {"progressDeadlineSeconds": 1}})
    scene.change("StatefulSet", {"spec": {"template": {"spec": {"serviceAccountName": "later"}}}})
    scene.fail_a_pod("sweep")
    scene.become(DEGRADED, "CloneSet", words="timed out")
    scene.become(DEGRADED, "StatefulSet", words="failed to create Pod")
    scene.become(DEGRADED, "BroadcastJob", words="failed pod is found")
    scene.change("CloneSet", {"spec": {"template": {"spec": {"nodeSelector": None}}}})
    scene.kubectl("create", "serviceaccount", "later")
    scene.become(HEALTHY, "CloneSet", meanwhile=(PROGRESSING, DEGRADED))
    scene.become(HEALTHY, "StatefulSet", meanwhile=(PROGRESSING, DEGRADED))
    scene.verdict_of()


def test_kinds_without_rollouts(scene: Scene):
    """Only kinds that work on fake nodes."""
    name = scene.name
    target = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "db"}
    data: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"a": "b"}}
    scene.create(
        manifest(
            "WorkloadSpread", "spread", targetRef=target, subsets=[{"name": "a", "maxReplicas": 1}, {"name": "b"}]
        ),
        manifest("PersistentPodState", "places", targetRef=target, preferredPersistentTopology=[topology()]),
        manifest("PodUnavailableBudget", "budget", selector={"matchLabels": {"app": "db"}}, maxUnavailable=1),
        manifest(
            "PodProbeMarker",
            "marker",
            version="v1alpha1",
            selector={"matchLabels": {"app": "nobody"}},
            probes=[
                {
                    "name": "idle",
                    "containerName": "main",
                    "probe": {"exec": {"command": ["true"]}},
                    "podConditionType": "game.io/idle",
                }
            ],
        ),
        manifest(
            "EphemeralJob", "debug", version="v1alpha1", selector={"matchLabels": {"app": "nobody"}}, **debugger()
        ),
        manifest("ImagePullJob", "pull", image=NEW, selector={"names": ["no-such-node"]}, completionPolicy={}),
        manifest(
            "ResourceDistribution", name, resource=data, targets={"includedNamespaces": {"list": [{"name": name}]}}
        ),
        workload("StatefulSet", "db", 2),
    )
    for kind, called, status, words in (
        ("StatefulSet", "db", HEALTHY, "All 2 pods"),
        ("WorkloadSpread", "spread", HEALTHY, "2 pods in 2 subsets"),
        ("PersistentPodState", "places", HEALTHY, "2 pods"),
        ("PodUnavailableBudget", "budget", HEALTHY, "2 pods are available, 1 of them"),
        ("PodProbeMarker", "marker", HEALTHY, "0 pods"),
        ("EphemeralJob", "debug", PROGRESSING, "matches no pods"),
        ("ResourceDistribution", name, HEALTHY, "1 of 1"),
        ("ImagePullJob", "pull", HEALTHY, "0 of 0"),
    ):
        scene.says(kind, called, (status, words))
    scene.kubectl("delete", "resourcedistribution", name)
    scene.kubectl("wait", "configmap/shared", "--for=delete", "--timeout=30s")
    scene.create(data)
    scene.create(
        manifest(
            "ResourceDistribution", name, resource=data, targets={"includedNamespaces": {"list": [{"name": name}]}}
        )
    )
    scene.says("ResourceDistribution", name, (DEGRADED, "0 of 1"))


def topology() -> Json:
    return {"weight": 1, "preference": {"keys": ["kubernetes.io/hostname"]}}


def debugger() -> Json:
    container = {"name": "debug", "image": OLD, "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}
    return {"replicas": 1, "parallelism": 1, "template": {"ephemeralContainers": [container]}}
