"""Each action of each kind: from an object and the fields of a form to a patch."""

import copy
from typing import Any

import pytest

from flotilla_common.api.documents import merge
from flotilla_console.actions.catalogue import ACTIONS, action_of, rights_of
from flotilla_console.actions.edits import Context, patch_of
from flotilla_console.actions.fields import InvalidField
from flotilla_console.actions.kinds import KINDS, ActionKind
from flotilla_console.actions.revisions import Past, of_replica_sets, of_revisions
from tests.unit.console.actions.objects import OLD, TEMPLATE, UID, Json, kind_of, revision, workload

ROLLING = "updateStrategy", "rollingUpdate"
BUILT_IN = "apps"
PAST = (Past("web-new", 2, TEMPLATE), Past("web-old", 1, OLD))
SIDECARS: Json = {"containers": [{"name": "proxy", "image": "proxy:1"}, {"name": "log", "image": "log:1"}]}


def at(path: tuple[str, ...], value: object) -> Json:
    """Return a document with one field."""
    for name in reversed(path):
        value = {name: value}
    assert isinstance(value, dict)
    return value


def patched(kind: ActionKind, document: Json, verb: str, **fields: str) -> Json:
    action = action_of(kind, verb)
    assert action is not None
    assert action.edit is not None
    before = copy.deepcopy(document)
    edited = action.edit(Context(kind=kind, document=document, past=PAST), fields)
    assert document == before, "the object of the mirror must not change"
    patch = patch_of(document, edited.document)
    assert not patch or merge(copy.deepcopy(before), patch)["spec"] == edited.document["spec"]
    return patch


def of(spec: Json) -> Json:
    return {"spec": spec, "metadata": {"resourceVersion": "7"}}


NEW_IMAGE = {"container": "main", "image": "web:3"}
IMAGE = [{"name": "main", "image": "web:3", "env": [{"name": "A", "value": "1"}]}]
TEMPLATE_BACK = {
    "template": {"metadata": {"annotations": None}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
}


@pytest.mark.parametrize(
    ("plural", "group", "verb", "fields", "expected"),
    [
        ("clonesets", "", "pause", {}, at((*ROLLING, "paused"), True)),
        ("clonesets", "", "partition", {"partition": "25%"}, at((*ROLLING, "partition"), "25%")),
        ("clonesets", "", "partition", {"partition": " 3 "}, at((*ROLLING, "partition"), 3)),
        ("clonesets", "", "scale", {"replicas": "0"}, {"replicas": 0}),
        (
            "clonesets",
            "",
            "image",
            {"container": "main", "image": "web:3"},
            at(("template", "spec", "containers"), IMAGE),
        ),
        ("clonesets", "", "undo", {"revision": "web-old"}, TEMPLATE_BACK),
        ("statefulsets", "", "pause", {}, at((*ROLLING, "paused"), True)),
        ("statefulsets", "", "partition", {"partition": "1"}, at((*ROLLING, "partition"), 1)),
        ("statefulsets", "", "scale", {"replicas": "5"}, {"replicas": 5}),
        ("statefulsets", "", "undo", {"revision": "web-old"}, TEMPLATE_BACK),
        ("daemonsets", "", "pause", {}, at((*ROLLING, "paused"), True)),
        ("daemonsets", "", "partition", {"partition": "100%"}, at((*ROLLING, "partition"), "100%")),
        ("daemonsets", "", "undo", {"revision": "web-old"}, TEMPLATE_BACK),
        ("deployments", BUILT_IN, "pause", {}, {"paused": True}),
        ("deployments", BUILT_IN, "scale", {"replicas": "7"}, {"replicas": 7}),
        ("deployments", BUILT_IN, "undo", {"revision": "web-old"}, TEMPLATE_BACK),
        ("statefulsets", BUILT_IN, "partition", {"partition": "1"}, at((*ROLLING, "partition"), 1)),
        ("statefulsets", BUILT_IN, "undo", {"revision": "web-old"}, TEMPLATE_BACK),
        ("daemonsets", BUILT_IN, "undo", {"revision": "web-old"}, TEMPLATE_BACK),
        ("uniteddeployments", "", "scale", {"replicas": "9"}, {"replicas": 9}),
        ("broadcastjobs", "", "pause", {}, {"paused": True}),
        ("advancedcronjobs", "", "pause", {}, {"paused": True}),
        ("sidecarsets", "", "pause", {}, at(("updateStrategy", "paused"), True)),
        ("sidecarsets", "", "partition", {"partition": "10%"}, at(("updateStrategy", "partition"), "10%")),
    ],
)
def test_a_patch_has_the_change_and_the_version(
    plural: str, group: str, verb: str, fields: dict[str, str], expected: Json
) -> None:
    kind = kind_of(plural, group or "apps.kruise.io")
    assert patched(kind, workload(kind), verb, **fields) == of(expected)


def test_an_image_of_a_sidecar_leaves_the_others() -> None:
    kind = kind_of("sidecarsets")
    document = workload(kind, SIDECARS)
    containers = [{"name": "proxy", "image": "proxy:2"}, {"name": "log", "image": "log:1"}]
    assert patched(kind, document, "image", container="proxy", image="proxy:2") == of({"containers": containers})


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.paused], ids=lambda kind: kind.resource.id)
def test_what_was_paused_is_resumed(kind: ActionKind) -> None:
    paused = workload(kind, at(kind.paused[1:], True))
    assert patched(kind, paused, "resume") == of(at(kind.paused[1:], False))
    assert patched(kind, paused, "pause") == {}


@pytest.mark.parametrize("spec", [{}, {"updateStrategy": None}, {"updateStrategy": {"rollingUpdate": "x"}}])
def test_members_that_are_missing_or_wrong_are_made(spec: Json) -> None:
    kind = kind_of("clonesets")
    changed = merge(copy.deepcopy(workload(kind, spec)), patched(kind, workload(kind, spec), "pause"))
    assert changed["spec"] == at(kind.paused[1:], True)


def test_the_template_of_a_replica_set_loses_its_hash() -> None:
    kind = kind_of("deployments", BUILT_IN)
    action = ACTIONS["undo"]
    assert action.edit is not None
    template = {"metadata": {"labels": {"app": "web", "pod-template-hash": "abc"}}, "spec": {}}
    context = Context(kind=kind, document=workload(kind), past=(Past("web-1", 1, template),))
    edited = action.edit(context, {"revision": "web-1"})
    assert edited.document["spec"]["template"] == {"metadata": {"labels": {"app": "web"}}, "spec": {}}
    assert edited.words == "returned to revision web-1"


NO_NUMBERS = ("", "-1", "1e3", "2147483648", "9" * 5000, "1_0", "x")


@pytest.mark.parametrize(
    ("plural", "verb", "fields"),
    [
        ("clonesets", "scale", {}),
        *(
            ("clonesets", "scale", {"replicas": value})
            for value in ("", "-1", "1e3", "2147483648", "9" * 5000, "1_0", "x")
        ),
        *(
            ("clonesets", "partition", {"partition": value})
            for value in ("", "-1", "101%", "2.5%", "%", "5 %", "1%%", "9" * 5000 + "%", "<script>")
        ),
        ("statefulsets", "partition", {"partition": "10%"}),
        ("clonesets", "undo", {}),
        ("clonesets", "undo", {"revision": "../web-old"}),
        ("clonesets", "image", {"container": "main", "image": ""}),
        ("clonesets", "image", {"container": "main", "image": "Web: latest"}),
        ("clonesets", "image", {"container": "main", "image": "a" * 5000}),
        ("clonesets", "image", {"container": "other", "image": "web:3"}),
        ("clonesets", "image", {"container": "", "image": "web:3"}),
    ],
)
def test_fields_that_cannot_be_used_are_refused(plural: str, verb: str, fields: dict[str, str]) -> None:
    kind = kind_of(plural)
    with pytest.raises(InvalidField):
        patched(kind, workload(kind), verb, **fields)


@pytest.mark.parametrize(
    "template", [None, 5, "x", [], {"spec": None}, {"spec": {"containers": [None, 3, {"image": 1}]}}]
)
def test_any_template_is_read(template: Any) -> None:
    kind = kind_of("clonesets")
    with pytest.raises(InvalidField):
        patched(kind, workload(kind, {"template": template}), "image", container="main", image="web:3")
    for action in ACTIONS.values():
        action.form(Context(kind=kind, document=workload(kind, {"template": template, "replicas": template})))


def test_only_own_revisions_count_newest_first() -> None:
    found = [
        revision("web-1", 1, OLD),
        revision("web-3", 3, TEMPLATE),
        revision("other", 9, OLD, owner="another"),
        {"metadata": None},
        {"metadata": {"name": "odd", "ownerReferences": [{"uid": UID, "controller": True}]}, "data": 3},
    ]
    assert [one.name for one in of_revisions(UID, found)] == ["web-3", "web-1"]
    assert of_revisions("", [{"metadata": {"name": "x", "ownerReferences": [{"uid": "", "controller": True}]}}]) == []


def test_replica_sets_are_ordered_by_their_number() -> None:
    def replica_set(name: str, number: str) -> Json:
        owners = [{"uid": UID, "controller": True}]
        annotations = {"deployment.kubernetes.io/revision": number}
        metadata = {"name": name, "annotations": annotations, "ownerReferences": owners}
        return {"metadata": metadata, "spec": {"template": OLD}}

    found = [replica_set("a", "2"), replica_set("b", "10"), replica_set("c", "?")]
    assert [(one.name, one.number) for one in of_replica_sets(UID, found)] == [("b", 10), ("a", 2), ("c", 0)]


OFFERED = {
    "apps_kruise_io.clonesets": "pause resume partition scale image undo restart delete-pods",
    "apps_kruise_io.statefulsets": "pause resume partition scale image undo restart delete-pods",
    "apps_kruise_io.daemonsets": "pause resume partition image undo restart delete-pods",
    "apps.deployments": "pause resume scale image undo restart delete-pods",
    "apps.statefulsets": "partition scale image undo restart delete-pods",
    "apps.daemonsets": "image undo restart delete-pods",
    "apps_kruise_io.sidecarsets": "pause resume partition image",
    "apps_kruise_io.uniteddeployments": "scale",
    "apps_kruise_io.broadcastjobs": "pause resume restart delete-pods",
    "apps_kruise_io.advancedcronjobs": "pause resume",
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.resource.id)
def test_a_kind_has_the_actions_of_its_fields(kind: ActionKind) -> None:
    offered = [action.verb for action in ACTIONS.values() if action.offered(kind)]
    assert " ".join(offered) == OFFERED[kind.resource.id]


@pytest.mark.parametrize(
    ("plural", "group", "rights"),
    [
        ("clonesets", "apps.kruise.io", "create containerrecreaterequests, patch clonesets, patch pods"),
        ("deployments", "apps", "create containerrecreaterequests, delete pods, patch deployments"),
        ("uniteddeployments", "apps.kruise.io", "patch uniteddeployments"),
    ],
)
def test_a_kind_needs_the_rights_of_its_actions(plural: str, group: str, rights: str) -> None:
    needed = sorted(f"{one.verb} {one.resource.plural}" for one in rights_of(kind_of(plural, group)))
    assert ", ".join(needed) == rights
