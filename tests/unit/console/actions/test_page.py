"""The page of an action: form, preview of each pod, and the button that carries it out."""

import copy
from collections.abc import Iterable
from typing import TypeVar

import pytest

from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.resources import POD, REVISION
from flotilla_common.clock import ManualClock
from flotilla_console.access.identity import Identity
from flotilla_console.actions.kinds import ActionKind
from flotilla_console.actions.preview import MOST_PODS, NOT_OURS, TOO_MANY, Previews
from flotilla_console.blocks.types import AnyBlock, Form, Notice, Paragraph, Table, Text
from flotilla_console.page import Page, PageRequest
from flotilla_console.pages.action import ActionPage, buttons
from tests.testkit.apiserver import FakeApi
from tests.unit.cloneset.build import NOW, CloneSetBuilder
from tests.unit.cloneset.world import World
from tests.unit.console.actions.objects import OLD, FakeSight, Json, kind_of, params, pod, revision, workload

CLONE_SET = kind_of("clonesets")
ALICE = Identity(user="alice")
T = TypeVar("T", bound=AnyBlock)


def settled() -> FakeApi:
    """Return an apiserver with a CloneSet of five pods that has settled."""
    world = World(CloneSetBuilder().replicas(5))
    world.settle()
    (document,) = world.objects["CloneSet"].values()
    named = {**CLONE_SET.resource.type_meta, **copy.deepcopy(document)}
    api = FakeApi()
    api.put(CLONE_SET.resource, named)
    for resource in (POD, REVISION):
        for one in world.objects[resource.kind].values():
            api.put(resource, copy.deepcopy(one))
    return api


async def shown(
    api: FakeApi, verb: str, sight: FakeSight, kind: ActionKind = CLONE_SET, name: str = "web", **query: str
) -> Page | None:
    page = ActionPage(lambda _: api.api, Previews(dict, ManualClock(NOW)))
    namespace = "default" if name == "sample" else "shop"
    asked = PageRequest(
        path="",
        params={**params(kind, verb), "name": name, "namespace": namespace},
        query=query,
        sight=sight,
        identity=ALICE,
        now=0.0,
    )
    read = await page.prepare(asked)
    return page.build(
        PageRequest(path="", params=asked.params, query=query, sight=sight, identity=ALICE, now=0.0, read=read)
    )


def only(blocks: Iterable[AnyBlock], kind: type[T]) -> list[T]:
    return [block for block in blocks if isinstance(block, kind)]


def words(page: Page) -> str:
    found = (block for block in page.blocks if isinstance(block, Paragraph | Notice))
    return " ".join(span.text for block in found for span in block.spans if isinstance(span, Text))


def sample(api: FakeApi) -> Json:
    return next(one for (plural, _, _), one in api.objects.items() if plural == "clonesets")


async def test_an_image_update_is_foreseen_pod_by_pod() -> None:
    api = settled()
    container = sample(api)["spec"]["template"]["spec"]["containers"][0]["name"]
    before = copy.deepcopy(api.objects)
    page = await shown(api, "image", FakeSight(), name="sample", container=container, image="web:9")
    assert page is not None
    steps = next(table for table in only(page.blocks, Table) if table.id == "steps")
    assert steps.total >= 5
    post = next(form for form in only(page.blocks, Form) if form.method == "post")
    assert {field.name for field in post.fields} == {"container", "image", "uid", "generation"}
    assert api.objects == before, "a preview writes nothing"
    assert api.writes == []


async def test_the_deletion_of_chosen_pods_is_foreseen() -> None:
    api = settled()
    names = sorted(name for plural, _, name in api.objects if plural == "pods")
    pods = [pod(name) for name in names]
    page = await shown(api, "delete-pods", FakeSight(pods), name="sample", **{f"pod.{names[0]}": "true"})
    assert page is not None
    steps = next(table for table in only(page.blocks, Table) if table.id == "steps")
    objects = [getattr(row.cells[3][0], "text", "").partition(" (")[0] for row in steps.rows]
    assert objects[0] == names[0]
    assert not set(names[1:]) & set(objects)
    post = next(form for form in only(page.blocks, Form) if form.method == "post")
    assert (f"pod.{names[0]}", f"uid-{names[0]}") in {(field.name, field.value) for field in post.fields}


def with_one(kind: ActionKind, spec: Json | None = None) -> FakeApi:
    return FakeApi({kind.resource: [workload(kind, spec)], REVISION: [revision("web-1", 1, OLD)]})


async def test_other_kinds_say_why_pods_are_not_foreseen() -> None:
    kind = kind_of("deployments", "apps")
    page = await shown(with_one(kind), "scale", FakeSight(), kind, replicas="3")
    assert page is not None
    assert NOT_OURS in words(page)
    assert only(page.blocks, Table)[0].rows[0].key == "spec.replicas"


async def test_a_huge_workload_is_not_simulated() -> None:
    page = await shown(with_one(CLONE_SET), "scale", FakeSight(), replicas=str(MOST_PODS + 1))
    assert page is not None
    assert TOO_MANY in words(page)


async def test_without_fields_there_is_a_form_only() -> None:
    page = await shown(with_one(CLONE_SET), "scale", FakeSight())
    assert page is not None
    (form,) = only(page.blocks, Form)
    assert (form.method, form.fields[0].value) == ("get", "2")


async def test_without_the_right_there_is_no_button() -> None:
    page = await shown(with_one(CLONE_SET), "scale", FakeSight(denied=frozenset({"patch"})), replicas="3")
    assert page is not None
    assert [form.method for form in only(page.blocks, Form)] == ["get"]
    assert "You may not patch clonesets in namespace shop" in words(page)


@pytest.mark.parametrize("value", ["-1", "<script>alert(1)</script>", "9" * 5000])
async def test_a_field_that_cannot_be_used_is_explained(value: str) -> None:
    page = await shown(with_one(CLONE_SET), "scale", FakeSight(), replicas=value)
    assert page is not None
    assert "must be a whole number" in words(page)
    assert [form.method for form in only(page.blocks, Form)] == ["get"]


@pytest.mark.parametrize(
    ("error", "text"),
    [(ApiError(403, "Forbidden", "User cannot get"), "You may not do this"), (Unreachable("x"), "was not reached")],
)
async def test_an_object_that_cannot_be_read_is_explained(error: Exception, text: str) -> None:
    api = with_one(CLONE_SET)
    api.fail_gets = error
    page = await shown(api, "pause", FakeSight())
    assert page is not None
    assert text in words(page)
    assert only(page.blocks, Form) == []


@pytest.mark.parametrize(
    ("verb", "plural", "sight"),
    [
        ("explode", "clonesets", FakeSight()),
        ("scale", "daemonsets", FakeSight()),
        ("pause", "clonesets", FakeSight(exists=False)),
    ],
)
async def test_what_does_not_exist_or_may_not_be_seen_has_no_page(verb: str, plural: str, sight: FakeSight) -> None:
    kind = kind_of(plural)
    assert await shown(with_one(kind), verb, sight, kind) is None


async def test_many_pods_are_searched_and_the_chosen_ones_stay() -> None:
    pods = [pod(f"web-{number}") for number in range(150)]
    page = await shown(with_one(CLONE_SET), "restart", FakeSight(pods), find="web-14", **{"pod.web-3": "true"})
    assert page is not None
    search, choice, post = only(page.blocks, Form)
    assert [field.name for field in search.fields] == ["find", "pod.web-3"]
    assert [field.name for field in choice.fields][:3] == ["pod.web-3", "pod.web-14", "pod.web-140"]
    assert post.method == "post"


def test_buttons_are_those_that_help_and_are_allowed() -> None:
    running, paused = workload(CLONE_SET), workload(CLONE_SET, {"updateStrategy": {"rollingUpdate": {"paused": True}}})
    where = ("apps.kruise.io", "clonesets", "shop", "web")
    assert [link.text for link in buttons(FakeSight(), *where, running)][:2] == ["Pause", "Set partition"]
    assert [link.text for link in buttons(FakeSight(), *where, paused)][:2] == ["Resume", "Set partition"]
    assert [link.text for link in buttons(FakeSight(denied=frozenset({"patch"})), *where, running)] == [
        "Restart in place"
    ]
    assert buttons(FakeSight(), "batch", "jobs", "shop", "web", {}) == ()


def test_names_in_links_are_quoted() -> None:
    (link, *_) = buttons(FakeSight(), "apps.kruise.io", "clonesets", "shop", 'a/../"><x', workload(CLONE_SET))
    assert link.href == "/workloads/apps.kruise.io/clonesets/shop/a%2F..%2F%22%3E%3Cx/action/pause"
