"""The text of a story."""

import pytest

from flotilla_cli.preview.render import render
from flotilla_common.control.plan import Reason, State
from flotilla_insight.preview.report import FieldChange, Report, Revision, Serving, Totals, Wave, totals_of
from flotilla_insight.preview.steps import Step, ValueChange

IMAGE = (ValueChange("main image", "nginx:1.29", "nginx:1.30"),)


def updated(name: str, node: str = "node-1") -> Step:
    return Step(do="updateInPlace", kind="Pod", name=name, node=node, changes=IMAGE)


def test_a_whole_story():
    recreated = Step(do="recreate", kind="Pod", name="web-3", why="because")
    copied = Step(do="patch", kind="ConfigMap", namespace="a", name="c", cause="it differs", elsewhere=True)
    story = Report(
        kind="CloneSet",
        namespace="shop",
        name="web",
        verdict="changed",
        changes=(
            FieldChange("spec.replicas", 2, 3),
            FieldChange("spec.template.spec.containers[main].env", hidden=True),
        ),
        revision=Revision("web-abc", new=True),
        waves=(
            Wave(steps=(Step(do="create", kind="Pod", alias="new pod 1"), updated("web-1"), updated("web-2", ""))),
            Wave(ready=("new pod 1",), gone=("web-9",), seconds=10, steps=(recreated,)),
            Wave(steps=(copied,)),
        ),
        totals=Totals(updated_in_place=2, recreated=1, created=1, writes=9),
        serving=Serving(now=2, lowest=1, end=3, max_unavailable=1),
        reasons=(Reason(State.DONE, "Complete", "3 of 3 pods updated, all available"),),
        notes=("a word",),
    )
    assert render(story, everything=False).plain == (
        "CloneSet shop/web  changed\n"
        "  spec.replicas: 2 → 3\n"
        "  spec.template.spec.containers[main].env: changes\n"
        "  revision web-abc (new)\n"
        "  1. at once\n"
        "       create new pod 1\n"
        "       update in place 2 pods: web-1 (node-1), web-2: main image nginx:1.29 → nginx:1.30\n"
        "  2. when new pod 1 serves and web-9 is gone, 10s later\n"
        "       recreate pod web-3: because\n"
        "  3. at once\n"
        "       write ConfigMap a/c: it differs\n"
        "   → 3 of 3 pods updated, all available  [Complete]\n"
        "  pods: 2 updated in place, 1 recreated, 1 created; 9 writes; "
        "serving: 2 now, 1 at the lowest (maxUnavailable 1), 3 in the end\n"
        "  note: a word\n"
    )


@pytest.mark.parametrize(
    ("story", "text"),
    [
        (Report(kind="CloneSet", namespace="shop", name="web", verdict="unchanged"), "nothing changes"),
        (
            Report(kind="CloneSet", name="web", verdict="unchanged", waves=(Wave(steps=(updated("web-1"),)),)),
            "the apply changes nothing; already in progress:",
        ),
        (Report(kind="CloneSet", name="web", verdict="refused", words="spec.replicas: no"), "spec.replicas: no"),
        (Report(kind="Service", name="web", verdict="skipped", words="none of ours"), "none of ours"),
    ],
)
def test_the_first_word_of_others(story: Report, text: str):
    assert render(story, everything=False).plain.splitlines()[1] == f"  {text}"


def test_a_refused_write_is_told():
    story = Report(
        kind="CloneSet",
        name="web",
        verdict="changed",
        waves=(Wave(steps=(Step(do="create", kind="Pod", name="web-1", refused="pods 'web-1' already exists"),)),),
    )
    assert "create pod web-1: REFUSED: pods 'web-1' already exists" in render(story, everything=False).plain


def test_a_pod_that_is_replaced_counts_once():
    steps = [
        Step(do=what, kind="Pod", name=str(number))
        for number, what in enumerate(("recreate", "create", "create", "delete"))
    ]
    assert totals_of([*steps, updated("a"), updated("a")], 7) == Totals(
        updated_in_place=1, recreated=1, created=1, deleted=1, writes=7
    )


def test_what_kubernetes_does_with_pods_is_counted_apart():
    steps = [Step(do="recreate", kind="Pod", name="a"), Step(do="create", kind="Pod", name="b")]
    totals = totals_of(steps, 3, made=4, gone=3)
    assert totals == Totals(recreated=1, created_by_kubernetes=3, deleted_by_kubernetes=2, writes=3)
    story = Report(
        kind="UnitedDeployment", name="web", verdict="changed", waves=(Wave(steps=tuple(steps)),), totals=totals
    )
    text = render(story, everything=False).plain
    assert "pods: 1 recreated, 3 created by Kubernetes, 2 deleted by Kubernetes; 3 writes" in text
