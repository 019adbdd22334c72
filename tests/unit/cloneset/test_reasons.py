"""The texts that users read (`flotilla explain`, why.v1): each reason, word by word, with the pods that it names.

Scripts depend on the codes, people on the numbers; a reason that counts wrongly misleads both.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Plan, Reason
from tests.testkit.tables import cases
from tests.unit.cloneset.build import NOW, CloneSetBuilder, claim, cloneset, planned, pod, pods, revisions, template


def with_selector(selector: Any) -> CloneSetBuilder:
    builder = cloneset()
    builder.spec["selector"] = selector
    return builder


def deleting() -> CloneSetBuilder:
    builder = cloneset()
    builder.metadata["deletionTimestamp"] = NOW
    return builder


def held(hook: str, *made: Pod) -> list[Pod]:
    """Return the same pods, each with the label by which the hook holds them."""
    documents = [msgspec.to_builtins(one) for one in made]
    for document in documents:
        document["metadata"]["labels"]["hold"] = hook
    return [msgspec.convert(document, Pod) for document in documents]


def reason(plan: Plan, code: str) -> Reason:
    """Return the plan's only reason with that code."""
    (found,) = [one for one in plan.reasons if one.code == code]
    return found


def names(*ids: str) -> tuple[str, ...]:
    return tuple(f"sample-{one}" for one in ids)


REFUSED: list[tuple[str, CloneSetBuilder, str, str]] = [
    ("negative", cloneset().replicas(-1), "InvalidReplicas", "spec.replicas is -1"),
    ("no selector", with_selector({}), "InvalidSelector", "spec.selector is empty"),
    (
        "bad selector",
        with_selector({"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}),
        "InvalidSelector",
        "spec.selector: ",
    ),
]


@pytest.mark.parametrize(("builder", "code", "text"), cases(REFUSED))
def test_what_cannot_be_planned_is_said_by_an_event(builder: CloneSetBuilder, code: str, text: str) -> None:
    plan = planned(builder, "3n")
    (said,), (event,) = plan.reasons, plan.events
    assert (said.code, event.reason, event.warning) == (code, code, True)
    assert said.message.startswith(f"nothing is done: {text}")
    assert event.message == said.message
    assert (plan.stages, plan.status) == ((), None)


ROWS: list[tuple[str, Callable[[], Plan], str, str, tuple[str, ...]]] = [
    (
        "deleted",
        lambda: planned(deleting(), "2n"),
        "Terminating",
        "progressing: the CloneSet is being deleted: its pods are left to garbage collection",
        (),
    ),
    (
        "unreadable number",
        lambda: planned(cloneset().max_unavailable("a lot"), "3n"),
        "InvalidNumber",
        "stuck: maxUnavailable: invalid value 'a lot': not a percentage, 0 is used",
        (),
    ),
    (
        "unreadable surge",
        lambda: planned(cloneset().max_surge("a lot"), "3n"),
        "InvalidNumber",
        "stuck: maxSurge: invalid value 'a lot': not a percentage, 0 is used",
        (),
    ),
    (
        "unreadable limit",
        lambda: planned(cloneset().scale(maxUnavailable="a lot"), "3n"),
        "InvalidNumber",
        "stuck: scaleStrategy.maxUnavailable: invalid value 'a lot': not a percentage, 0 is used",
        (),
    ),
    (
        "unreadable partition",
        lambda: planned(cloneset().partition("half"), "3n"),
        "InvalidNumber",
        "stuck: partition: invalid value 'half': a string must end with %, 0 is used",
        (),
    ),
    (
        "one outdated",
        lambda: planned(cloneset().on_delete(), "1o 2n"),
        "OnDelete",
        "held: 1 pod of older revisions must be deleted manually: type is OnDelete",
        (),
    ),
    (
        "paused",
        lambda: planned(cloneset().paused().partition(1), "2o 1n"),
        "PausedByUser",
        "held: paused by the user: 1 of 2 pods updated",
        (),
    ),
    (
        "prepared in vain",
        lambda: planned(cloneset().partition(2).in_place(), "1o 1o:PreparingUpdate 1n"),
        "PreparedInVain",
        "held: sample-o2 prepared for an update that partition now excludes",
        names("o2"),
    ),
    ("complete", lambda: planned(cloneset(), "3n"), "Complete", "done: 3 of 3 pods updated, all available", ()),
    (
        "not available yet",
        lambda: planned(cloneset(), "2n 1n!"),
        "WaitingForAvailability",
        "waiting: 3 of 3 pods updated, 2 of them available",
        (),
    ),
    (
        "partition",
        lambda: planned(cloneset().replicas(5).partition(2), "2o 3n"),
        "PartitionReached",
        "held: 3 of 5 pods updated, partition 2 keeps the other 2 on older revisions",
        (),
    ),
    (
        "updating",
        lambda: planned(cloneset().max_unavailable(2).in_place(), "3o"),
        "Updating",
        "progressing: updating 2 pods to sample-new",
        (),
    ),
    (
        "started by this pass",
        lambda: planned(cloneset().max_unavailable(2).in_place(), "3o"),
        "WaitingForMaxUnavailable",
        "waiting: maxUnavailable 2 is used by sample-o1, sample-o2",
        names("o1", "o2"),
    ),
    (
        "started and down before",
        lambda: planned(cloneset().replicas(4).max_unavailable(2).in_place(), "3o 1n!"),
        "WaitingForMaxUnavailable",
        "waiting: maxUnavailable 2 is used by sample-o1, sample-n1",
        names("o1", "n1"),
    ),
    (
        "many down",
        lambda: planned(cloneset().replicas(9).max_unavailable(7).in_place(), "2o 7n!"),
        "WaitingForMaxUnavailable",
        "waiting: maxUnavailable 7 is used by sample-n1, sample-n2, sample-n3, sample-n4, sample-n5 and 2 more",
        names("n1", "n2", "n3", "n4", "n5"),
    ),
    (
        "no room at all",
        lambda: planned(cloneset().max_unavailable(0).max_surge(0).in_place(), "3o"),
        "WaitingForMaxUnavailable",
        "stuck: maxUnavailable 0 leaves no room",
        (),
    ),
    (
        "with surge",
        lambda: planned(cloneset().replicas(4).max_unavailable(0).max_surge(1).in_place(), "4o 1n!"),
        "WaitingForMaxUnavailable",
        "waiting: maxUnavailable 0 (plus 1 above replicas) is used by sample-n1",
        names("n1"),
    ),
    (
        "pods missing",
        lambda: planned(
            cloneset().replicas(4).max_unavailable(2).in_place(), "3o", failures={"scale": "exceeded quota"}
        ),
        "WaitingForMaxUnavailable",
        "waiting: maxUnavailable 2 (minus 1 missing) is used by sample-o1",
        names("o1"),
    ),
    (
        "in place only",
        lambda: planned(
            cloneset().in_place(only=True).template(template(hostNetwork=True)),
            "3o",
            revisions=revisions(new=template(hostNetwork=True)),
        ),
        "InPlaceImpossible",
        (
            "stuck: find Pod sample-o1 update strategy is InPlaceOnly but can not update in-place: "
            "template.spec.hostNetwork cannot be changed in place"
        ),
        names("o1"),
    ),
    (
        "hook holds the update",
        lambda: planned(
            cloneset().replicas(2).in_place().hook("inPlaceUpdate"), held("inPlaceUpdate", *pods("2o:PreparingUpdate"))
        ),
        "WaitingForHook",
        (
            "stuck: sample-o1, sample-o2: PreparingUpdate: nobody has answered the inPlaceUpdate hook: whoever is "
            "to answer it has to take off "
            "label hold=inPlaceUpdate"
        ),
        names("o1", "o2"),
    ),
    (
        "kept",
        lambda: planned(cloneset().replicas(3).hook("preDelete"), "2n 1n^"),
        "DeletionCancelled",
        "progressing: keeping sample-n3: the deletion is no longer wanted",
        names("n3"),
    ),
    (
        "scale-out limited",
        lambda: planned(cloneset().replicas(6).scale(maxUnavailable=2), "2n 1n!"),
        "ScaleUpLimited",
        "waiting: 3 pods missing, of which 1 may be created now: scaleStrategy.maxUnavailable is 2, unavailable: 1 pod",
        (),
    ),
    (
        "creating some",
        lambda: planned(cloneset().replicas(6).scale(maxUnavailable=2), "2n 1n!"),
        "ScalingUp",
        "progressing: creating 1 of 3 missing pods",
        (),
    ),
    (
        "hook holds the deletion",
        lambda: planned(cloneset().replicas(1).hook("preDelete"), held("preDelete", *pods("1n 1n^"))),
        "WaitingForHook",
        (
            "stuck: sample-n2: PreparingDelete: nobody has answered the preDelete hook: whoever is to answer it "
            "has to take off label "
            "hold=preDelete"
        ),
        names("n2"),
    ),
    (
        "deletions first",
        lambda: planned(cloneset().replicas(1).hook("preDelete"), held("preDelete", *pods("2n 1n^"))),
        "WaitingForDeletion",
        "waiting: 1 pod must be deleted first, then 2 more",
        (),
    ),
    (
        "no budget for deletions",
        lambda: planned(cloneset().replicas(4).max_unavailable(1), "2n 1n! 1n*"),
        "WaitingForDeleteBudget",
        (
            "waiting: sample-n4 (specified for deletion) would be unavailable; maxUnavailable 1 allows to delete 0 "
            "ready pods now, 1 of 4 are unavailable"
        ),
        names("n4"),
    ),
    (
        "scaled in",
        lambda: planned(cloneset().replicas(1), "3n"),
        "Deleting",
        "progressing: deleting sample-n1, sample-n2: scale down",
        names("n1", "n2"),
    ),
    (
        "specified",
        lambda: planned(cloneset().replicas(3), "3n 1n!*"),
        "Deleting",
        "progressing: deleting sample-n4: specified for deletion",
        names("n4"),
    ),
    (
        "let go",
        lambda: planned(cloneset().replicas(2).hook("preDelete"), "2n 1n^"),
        "Deleting",
        "progressing: deleting sample-n3: released by the preDelete hook",
        names("n3"),
    ),
    (
        "name still taken",
        lambda: planned(
            cloneset().replicas(2).claims("data").scale(enablePVCReuse=True),
            [pod("n1"), pod("n2", deleting=True)],
            claims=[claim("n1"), claim("n2")],
        ),
        "WaitingForTermination",
        "waiting: sample-n2 must be gone before a new pod can take over its name and claims",
        names("n2"),
    ),
    (
        "claim still there",
        lambda: planned(
            cloneset().replicas(2).claims("data", "log").scale(enablePVCReuse=True),
            [pod("n1")],
            claims=[claim("n1"), claim("x"), claim("x", "log", deleting=True)],
        ),
        "WaitingForClaim",
        "stuck: the old claims of instance x are still being deleted",
        (),
    ),
    (
        "no node yet",
        lambda: planned(cloneset(), [*pods("2n"), pod("x", state="PreparingNormal", ready=False, node="")]),
        "WaitingForScheduling",
        "waiting: sample-x: scheduler default-scheduler has not looked at it yet",
        names("x"),
    ),
    (
        "not started by its hook",
        lambda: planned(cloneset().hook("preNormal"), [*pods("2n"), pod("x", state="PreparingNormal", ready=False)]),
        "WaitingForHook",
        (
            "stuck: sample-x: PreparingNormal: nobody has answered the preNormal hook: whoever is to answer it "
            "has to put on label "
            "hold=preNormal"
        ),
        names("x"),
    ),
    (
        "hook not back",
        lambda: planned(cloneset().in_place().hook("inPlaceUpdate"), [*pods("2n"), pod("x", state="Updated")]),
        "WaitingForHook",
        (
            "stuck: sample-x: Updated: nobody has answered the inPlaceUpdate hook: whoever is to answer it has to "
            "put on label "
            "hold=inPlaceUpdate"
        ),
        names("x"),
    ),
    (
        "mismatch",
        lambda: planned(
            with_selector({"matchLabels": {"app": "sample", "tier": "db"}}).replicas(1), "", revisions=revisions()
        ),
        "InvalidTemplate",
        "stuck: pods of sample-7b75895f6 would not match spec.selector: none is created",
        (),
    ),
]


@pytest.mark.parametrize(("situation", "code", "text", "objects"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_reason(situation: Callable[[], Plan], code: str, text: str, objects: tuple[str, ...]) -> None:
    found = reason(situation(), code)
    assert (f"{found.state}: {found.message}", found.objects) == (text, objects)


def test_a_grace_period_is_waited_for() -> None:
    state = (
        '{"revision":"sample-new","updateTimestamp":"2026-03-01T11:59:55Z",'
        '"lastContainerStatuses":{"nginx":{"imageID":"id"}},"updateImages":true}'
    )
    annotations = {
        "apps.kruise.io/inplace-update-state": state,
        "apps.kruise.io/inplace-update-grace": '{"revision":"sample-new","containerImages":{"nginx":"nginx:2"},'
        '"graceSeconds":10}',
    }
    plan = planned(
        cloneset().replicas(3).in_place(grace=10),
        [*pods("2n"), pod("x", state="Updating", ready=False, annotations=annotations)],
    )
    said = reason(plan, "WaitingForGracePeriod")
    assert (said.sentence, said.objects) == ("waiting: the grace period of sample-x has not ended", names("x"))
    assert plan.wake_at is not None
    assert timedelta(0) < plan.wake_at - NOW <= timedelta(seconds=10)


def test_a_template_that_the_selector_does_not_match_is_an_event_and_does_not_hold_the_update_up() -> None:
    builder = with_selector({"matchLabels": {"app": "sample", "tier": "db"}}).replicas(3).max_unavailable(2)
    ours = [pod(f"o{number}", "o", labels={"tier": "db"}) for number in range(2)]
    plan = planned(builder.in_place(), ours)
    (event,) = plan.events
    assert (event.reason, event.warning) == ("InvalidTemplate", True)
    assert event.message == reason(plan, "InvalidTemplate").message
    assert reason(plan, "Updating").message.startswith("updating 1 pod to ")


def test_what_does_not_wait_says_nothing() -> None:
    blocked = planned(cloneset().max_unavailable(0), "2n 1n*")
    assert [one.code for one in blocked.reasons] == ["WaitingForDeleteBudget", "Complete"]
    assert [one.code for one in planned(cloneset(), "3n").reasons] == ["Complete"]
    assert [one.code for one in planned(cloneset().on_delete(), "3n").reasons] == []
    assert [one.code for one in planned(cloneset().in_place().max_unavailable(3), "3o").reasons] == ["Updating"]
