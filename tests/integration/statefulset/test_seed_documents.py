"""The StatefulSet manifests, commands and tables of the users' articles, verbatim, and their outcomes.

The articles: a tutorial with printed tables, the announcement of release 1.2, and a study of all features. A part of a
manifest that they show is inserted into that of the tutorial here.
"""

import json
import re

import pytest

from tests.support.stateful import first_seen, ordinals, serving
from tests.support.workspace import Workspace, available, identity, image, is_ready, restarts, revision_of, state, table
from tests.testkit.documents import Json
from tests.testkit.manifests import article

IN_PLACE, PARALLEL = article("statefulset/in-place"), article("statefulset/parallel")
RESERVED = """
  replicas: 4
  reserveOrdinals:
  - 1
"""
STREAMING = """
  replicas: 100
  scaleStrategy:
    maxUnavailable: 10% # percentage or absolute number
"""
PAUSED = """
      paused: true
"""
BY_WEIGHT = """
      unorderedUpdate:
        priorityStrategy:
          weightPriority:
          - weight: 50
            matchSelector:
              matchLabels:
                test-key: foo
          - weight: 30
            matchSelector:
              matchLabels:
                test-key: bar
"""
BY_ORDER = """
      unorderedUpdate:
        priorityStrategy:
          orderPriority:
            - orderedKey: some-label-key
"""
SAMPLE = article("statefulset/sample")
TUTORIALS = "web-67975fc8c9"
"""The revision that the tutorial's events name."""
OLDER = IN_PLACE.replace("nginx:1.7.9", "nginx")
"""Earlier manifest of the tutorial, updated in place to `IN_PLACE`."""


def with_spec(manifest: str, part: str) -> str:
    """Return the manifest with the part of a spec that the articles show."""
    shown = part.strip("\n")
    left = manifest.replace("  replicas: 5\n", "") if "replicas:" in shown else manifest
    return left.replace("\nspec:\n", f"\nspec:\n{shown}\n", 1)


def with_strategy(manifest: str, part: str) -> str:
    """Return the manifest with a part of rollingUpdate."""
    return manifest.replace("    rollingUpdate:\n", "    rollingUpdate:\n" + part.strip("\n") + "\n", 1)


def one_by_one(manifest: str) -> str:
    return re.sub("maxUnavailable: 3", "maxUnavailable: 1", manifest)


def apply(space: Workspace, manifest: str, said: str = "configured") -> None:
    """Run `kubectl apply -f FILE`, and check its output."""
    assert space.kubectl("apply", "-f", "-", stdin=manifest) == f"statefulset.apps.kruise.io/web {said}\n"
    space.apply(manifest)  # again, without a change: the generation is read


def started(space: Workspace, manifest: str, replicas: int = 5) -> int:
    """Apply the manifest, wait for its pods, and mark the moment."""
    apply(space, manifest, "created")
    space.settled("web", replicas=replicas, readyReplicas=replicas, availableReplicas=replicas)
    return space.now()


def updated(space: Workspace, replicas: int = 5) -> None:
    space.settled("web", replicas=replicas, updatedReadyReplicas=replicas, readyReplicas=replicas)


def first_updated(space: Workspace, mark: int) -> list[int]:
    """Return the ordinals in the order in which their pods got the update revision."""
    return [int(name[4:]) for name in space.first_updates(mark, space.status("web")["updateRevision"])]


def test_the_tutorial_from_parallel_to_in_place(space: Workspace):
    """Tables; three pods at once; partition 4 first and then the others; the readiness gate makes new pods once."""
    mark = started(space, PARALLEL)
    header, row = table(space.kubectl("get", "asts"))
    assert header == ["NAME", "DESIRED", "CURRENT", "UPDATED", "READY", "AGE"]
    assert row[:-1] == ["web", "5", "5", "5", "5"]
    header, row = table(space.kubectl("get", "asts", "-o", "wide"))
    assert (header[-2:], row[-2:]) == (["CONTAINERS", "IMAGES"], ["nginx", "nginx"])
    header, *rows = table(space.kubectl("get", "po", "-l", "app=nginx"))
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[:-1] for row in rows] == [[f"web-{number}", "1/1", "Running", "0"] for number in range(5)]
    assert space.kubectl("get", "sts") == "", "that is the built-in kind"
    assert "statefulsets.apps.kruise.io" in space.kubectl("get", "crd")
    assert "- asts\n" in space.kubectl("get", "crd", "statefulsets.apps.kruise.io", "-oyaml")

    latest = PARALLEL.replace("image: nginx\n", "image: nginx:latest #修改为nginx:latest\n")
    apply(space, latest)
    updated(space)
    assert {image(pod) for pod in space.pods.values()} == {"nginx:latest"}
    assert sorted(first_seen(space.history(mark), "DELETED")[:3]) == [2, 3, 4]
    assert max(5 - serving(pods) for pods in space.moments(mark)) == 3

    mark = space.now()
    apply(space, PARALLEL.replace("# partition: 4", "partition: 4"))
    space.settled("web", updatedReadyReplicas=1, readyReplicas=5)
    assert first_seen(space.history(mark), "DELETED") == [4], "although maxUnavailable is 3"
    mark = space.now()
    apply(space, PARALLEL.replace("# partition: 4", "partition: 0"))
    updated(space)
    deleted = first_seen(space.history(mark), "DELETED")
    assert (sorted(deleted[:3]), deleted[3:]) == ([1, 2, 3], [0])
    assert all(serving(pods) >= 2 for pods in space.moments(mark))

    mark = space.now()
    apply(space, IN_PLACE)
    updated(space)
    assert sorted(first_seen(space.history(mark), "DELETED")) == [0, 1, 2, 3, 4]
    assert space.status("web")["updateRevision"] == TUTORIALS


def test_without_max_unavailable_it_is_one_by_one(space: Workspace):
    """Also with Parallel."""
    manifest = PARALLEL.replace("maxUnavailable: 3\n      # partition: 4", "partition: 0")
    mark = started(space, manifest)
    apply(space, manifest.replace("image: nginx\n", "image: nginx:latest\n"))
    updated(space)
    assert first_seen(space.history(mark), "DELETED") == [4, 3, 2, 1, 0]
    assert all(serving(pods) >= 4 for pods in space.moments(mark))


def test_what_needs_parallel_and_the_readiness_gate(space: Workspace):
    for manifest, field in (
        (PARALLEL, "rollingUpdate.maxUnavailable"),
        (with_spec(PARALLEL, STREAMING), "scaleStrategy.maxUnavailable"),
        (with_strategy(IN_PLACE, BY_WEIGHT), "unorderedUpdate"),
    ):
        message = space.refuses(manifest.replace("Parallel", "OrderedReady"), "apply")
        assert field in message
        assert "can only work with Parallel" in message
    lines = IN_PLACE.splitlines(keepends=True)
    without = "".join(line for line in lines if "readinessGates" not in line and "conditionType" not in line)
    message = space.refuses(without, "apply")
    assert "must contains InPlaceUpdateReady when podUpdatePolicy is InPlaceIfPossible" in message


def test_in_place(space: Workspace):
    """Pods stay, and `kubectl describe` prints what was done."""
    mark = started(space, OLDER)
    before = {identity(pod) for pod in space.pods.values()}
    assert gates_met(space) == ["2/2"] * 5
    apply(space, IN_PLACE)
    updated(space)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert {(image(pod), restarts(pod)) for pod in space.pods.values()} == {("nginx:1.7.9", 1)}
    header, *rows = table(space.kubectl("get", "po", "-l", "app=nginx", "-owide"))
    assert header[-1] == "READINESS GATES"
    assert all(re.fullmatch(r"1 \(\d+s ago\)", row[3]) for row in rows)
    assert gates_met(space) == ["2/2"] * 5
    assert any(not is_ready(pod) for pods in space.moments(mark) for pod in pods.values())
    assert all(serving(pods) >= 2 for pods in space.moments(mark))
    space.event("SuccessfulUpdatePodInPlace", f"successfully update pod web-0 in-place(revision {TUTORIALS})")
    printed = space.kubectl("describe", "asts", "web").partition("\nEvents:\n")[2]
    header, _dashes, *rows = table(printed)
    assert header == ["Type", "Reason", "Age", "From", "Message"]
    assert {(row[0], row[3]) for row in rows} == {("Normal", "statefulset-controller")}
    created = [("SuccessfulCreate", f"create Pod web-{number} in StatefulSet web successful") for number in range(5)]
    updates = [
        ("SuccessfulUpdatePodInPlace", f"successfully update pod web-{number} in-place(revision {TUTORIALS})")
        for number in (4, 3, 2, 1, 0)
    ]
    assert [(row[1], row[4]) for row in rows] == created + updates


def gates_met(space: Workspace) -> list[str]:
    """Return the last column of `kubectl get po -owide`."""
    return [row[-1] for row in table(space.kubectl("get", "po", "-l", "app=nginx", "-owide"))[1:]]


def test_paused_goes_on_looking_after_replicas(space: Workspace):
    started(space, OLDER)
    before = {identity(pod) for pod in space.pods.values()}
    paused = with_strategy(IN_PLACE, PAUSED)
    apply(space, paused)
    space.settled("web", updatedReplicas=0, replicas=5)
    apply(space, paused.replace("replicas: 5", "replicas: 6"))
    space.settled("web", replicas=6, readyReplicas=6, updatedReplicas=1)
    assert before < {identity(pod) for pod in space.pods.values()}
    assert [image(space.pod(name)) for name in sorted(space.pods)] == ["nginx"] * 5 + ["nginx:1.7.9"]


@pytest.mark.parametrize(
    ("replicas", "left"),
    [pytest.param(4, [0, 2, 4, 5], id="moved"), pytest.param(3, [0, 2, 4], id="removed")],
)
def test_reserved_ordinals(space: Workspace, replicas: int, left: list[int]):
    manifest = with_spec(PARALLEL, RESERVED)
    mark = started(space, manifest, replicas=4)
    assert ordinals(space.pods) == [0, 2, 3, 4]
    changed = manifest.replace("  - 1\n", "  - 1\n  - 3\n").replace("replicas: 4", f"replicas: {replicas}")
    apply(space, changed)
    space.settled("web", replicas=replicas, readyReplicas=replicas)
    assert ordinals(space.pods) == left
    assert first_seen(space.history(mark), "DELETED") == [3]


def test_a_tenth_at_a_time(space: Workspace):
    """Take twenty pods in place of the document's hundred."""
    started(space, with_spec(PARALLEL, STREAMING.replace("100", "20")), replicas=20)
    waiting = [len(pods) - serving(pods) for pods in space.moments()]
    assert max(waiting) <= 2
    assert ordinals(space.pods) == list(range(20))


def test_weights_and_then_labels_decide(space: Workspace):
    """A label's value is read like a pod's name: sts-10 gives 10."""
    older, newer = (one_by_one(with_strategy(manifest, BY_WEIGHT)) for manifest in (OLDER, IN_PLACE))
    started(space, older)
    for name, value in (("web-1", "bar"), ("web-0", "foo"), ("web-3", "foo")):
        space.label(name, f"test-key={value}")
    mark = space.now()
    apply(space, newer)
    updated(space)
    assert first_updated(space, mark) == [3, 0, 1, 4, 2]

    for name, value in (("web-0", "sts-10"), ("web-1", "sts-9"), ("web-2", "8"), ("web-3", "sts-11"), ("web-4", "7")):
        space.label(name, f"some-label-key={value}")
    mark = space.now()
    apply(space, one_by_one(with_strategy(OLDER, BY_ORDER)))
    updated(space)
    assert first_updated(space, mark) == [3, 0, 1, 2, 4]


def test_hooks_take_pods_out_of_service(space: Workspace):
    """The announcement: markPodNotReady, while a pod waits for its update; Ready again when it is Updated."""
    hook = '{"inPlaceUpdate":{"labelsHandler":{"in-service":"true"},"markPodNotReady":true}}'
    part = f"  replicas: 1\n  lifecycle: {hook}\n"
    older, newer = (
        with_spec(manifest, part).replace("        app: nginx\n", '        app: nginx\n        in-service: "true"\n', 1)
        for manifest in (OLDER, IN_PLACE)
    )
    started(space, older, replicas=1)
    apply(space, newer)
    space.until(lambda: state(space.pod("web-0")) == "PreparingUpdate" and not is_ready(space.pod("web-0")))
    assert image(space.pod("web-0")) == "nginx"
    space.label("web-0", "in-service-")
    space.until(lambda: state(space.pod("web-0")) == "Updated" and is_ready(space.pod("web-0")))
    assert image(space.pod("web-0")) == "nginx:1.7.9"
    space.label("web-0", "in-service=true")
    space.until(lambda: available(space.pod("web-0")))


def test_migration(space: Workspace):
    """The apiVersion changes and nothing else.

    The pods of the built-in set can stay: the other set adopts them and their revision.
    """
    before = moved_over(space, SAMPLE)
    status = space.settled("sample", replicas=2, updatedReadyReplicas=2, readyReplicas=2)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert {revision_of(pod) for pod in space.pods.values()} == {status["updateRevision"]}


def test_migration_of_an_image_with_a_tag(space: Workspace):
    """Here the default pull policy differs. So the pods are recreated, unless the manifest sets the policy."""
    before = moved_over(space, SAMPLE.replace("image: nginx\n", "image: nginx:1.7.9\n"))
    space.settled("sample", replicas=2, updatedReadyReplicas=2, readyReplicas=2)
    assert not {identity(pod) for pod in space.pods.values()} & before
    assert {pod["spec"]["containers"][0]["imagePullPolicy"] for pod in space.pods.values()} == {"Always"}


def moved_over(space: Workspace, manifest: str) -> set[tuple[str, str, str, str]]:
    """Create pods of a built-in set, and replace the set by ours."""
    assert space.kubectl("apply", "-f", "-", stdin=manifest) == "statefulset.apps/sample created\n"
    space.until(lambda: len(space.pods) == 2 and all(map(is_ready, space.pods.values())))
    before, built_in = {identity(pod) for pod in space.pods.values()}, space.read("sts", "sample")
    space.kubectl("delete", "sts", "sample", "--cascade=orphan")
    space.apply(manifest.replace("apiVersion: apps/v1", "apiVersion: apps.kruise.io/v1beta1"))
    space.until(lambda: bool(space.status("sample")))
    assert same_defaults(built_in["spec"], space.clone("sample")["spec"])
    return before


def same_defaults(theirs: Json, ours: Json) -> bool:
    """Report whether ours has all defaults of the apiserver, except in the pod template."""
    rolling = ours["updateStrategy"]["rollingUpdate"]
    strategy = {"type": ours["updateStrategy"]["type"], "rollingUpdate": {"partition": rolling["partition"]}}
    mine = ours | {"updateStrategy": strategy}
    return {field: mine.get(field) for field in theirs if field != "template"} == {
        field: value for field, value in theirs.items() if field != "template"
    }


def test_pods_go_back_to_their_nodes(space: Workspace):
    """The announcement's annotations, on a StatefulSet of v1alpha1: a PersistentPodState is made for it."""
    manifest = SAMPLE.replace("apps/v1", "apps.kruise.io/v1alpha1").replace(
        "  name: sample\nspec",
        """  name: sample
  annotations:
    # 自动生成PersistentPodState对象
    kruise.io/auto-generate-persistent-pod-state: "true"
    # preferred node affinity,如下:Pod重建后将尽量部署到同Node
    kruise.io/preferred-persistent-topology: kubernetes.io/hostname
    # required node affinity,如下:Pod重建后将强制部署到同Zone
    kruise.io/required-persistent-topology: topology.kubernetes.io/zone
spec""",
    )
    space.apply(manifest)
    space.settled("sample", readyReplicas=2)
    space.until(lambda: set(recorded(space)) == {"sample-0", "sample-1"})
    before = space.pod("sample-1")
    assert recorded(space)["sample-1"]["nodeName"] == before["spec"]["nodeName"]
    space.kubectl("delete", "pod", "sample-1")
    space.until(lambda: space.pod("sample-1").get("metadata", before["metadata"])["uid"] != before["metadata"]["uid"])
    space.until(lambda: is_ready(space.pod("sample-1")))
    assert space.pod("sample-1")["spec"]["nodeName"] == before["spec"]["nodeName"]


def recorded(space: Workspace) -> Json:
    """Return the pods' records in the PersistentPodState."""
    found = json.loads(space.kubectl("get", "persistentpodstates", "-o", "json"))["items"]
    return found[0].get("status", {}).get("podStates", {}) if found else {}
