"""Each action in Chromium, on a real control plane: its preview, its effect, and the Event that names the user.

`dev` has rights in the namespace of one application; the apiserver decides about each request by them.
"""

from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_console import paths
from tests.integration.browser.visitor import Visitor
from tests.integration.console.conftest import Visit
from tests.integration.console.site import DEVELOPER, READER, Site
from tests.support.cluster import eventually
from tests.support.fleet import Fleet
from tests.support.observer import uids
from tests.support.scene import NEW, OLD, Scene, cloneset, scene

pytestmark = [pytest.mark.asyncio(loop_scope="package"), pytest.mark.timeout(300)]

WEB, REPLICAS = "web", 3
PATIENCE = 30_000
"""Milliseconds until a page shows what has just happened on a busy machine."""


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def place(flotilla: Fleet, console: Site) -> AsyncIterator[Scene[Fleet]]:
    """Yield a namespace with a CloneSet, in which `dev` may do everything and `guest` may look."""
    async with scene(flotilla) as made:
        console.admit("dev", made.namespace, DEVELOPER)
        console.admit("guest", made.namespace, READER)
        await made.create(cloneset(WEB, REPLICAS))
        await made.settle(WEB, OLD, REPLICAS)
        yield made


@pytest_asyncio.fixture(loop_scope="package")
async def web(place: Scene[Fleet]) -> Scene[Fleet]:
    """Return the namespace, with the CloneSet as it was in the beginning."""
    await place.patch(
        WEB, {"replicas": REPLICAS, "updateStrategy": {"rollingUpdate": {"paused": False, "partition": None}}}
    )
    await place.roll(WEB, OLD)
    await place.settle(WEB, OLD, REPLICAS)
    return place


@pytest_asyncio.fixture(loop_scope="package")
async def dev(visit: Visit) -> AsyncIterator[Visitor]:
    async with visit("dev") as made:
        yield made
        assert await made.violations() == []


def path_of(place: Scene[Fleet], *rest: str) -> str:
    return paths.workload(CLONE_SET.group, CLONE_SET.plural, place.namespace, WEB, *rest)


async def begin(user: Visitor, place: Scene[Fleet], action: str) -> None:
    """Choose an action on the page of the workload."""
    await user.open(path_of(place))
    await user.link(action).click(timeout=PATIENCE)
    await user.shows(f"{action}: CloneSet {WEB}")


async def preview(user: Visitor, fields: Mapping[str, str]) -> None:
    """Fill in the form, and show the preview."""
    for label, value in fields.items():
        field = user.main.get_by_label(label, exact=True)
        if await field.evaluate("one => one.tagName") == "SELECT":
            await field.select_option(value)
        elif value == "chosen":
            await field.check()
        else:
            await field.fill(value)
    await user.main.get_by_role("button", name="Preview").click()


async def carry_out(user: Visitor, action: str) -> None:
    """Press the button below the preview."""
    await user.main.get_by_role("button", name=action, exact=True).click(timeout=PATIENCE)


async def assert_done(user: Visitor, place: Scene[Fleet], words: str) -> None:
    """Check the page that answers, and the Event on the workload."""
    await expect(user.main).to_contain_text(f"Done: dev {words}.", timeout=PATIENCE)
    assert f"dev {words}" in await recorded(place)


async def recorded(place: Scene[Fleet]) -> set[str]:
    """Return the messages of Events about actions."""
    found = await place.read("events", f"--field-selector=reason=ConsoleAction,involvedObject.name={WEB}")
    return {one["message"] for one in found["items"]}


def steps(user: Visitor) -> Locator:
    """Return the table with what happens to each pod."""
    return user.table("Steps in order")


async def test_scale(dev: Visitor, web: Scene[Fleet]) -> None:
    await begin(dev, web, "Scale")
    await preview(dev, {"Replicas": "4"})
    await expect(steps(dev)).to_contain_text("create", timeout=PATIENCE)
    await carry_out(dev, "Scale")
    await assert_done(dev, web, "scaled it to 4")
    await web.settle(WEB, OLD, 4)


async def test_update_image(dev: Visitor, web: Scene[Fleet]) -> None:
    before = uids(web.seen.of(WEB))
    await begin(dev, web, "Update image")
    await preview(dev, {"Container": "main", "Image": NEW})
    for pod in before:
        await expect(steps(dev)).to_contain_text(pod, timeout=PATIENCE)
    await carry_out(dev, "Update image")
    await assert_done(dev, web, f"set the image of main to {NEW}")
    await web.settle(WEB, NEW, REPLICAS)
    assert uids(web.seen.of(WEB)) == before


async def test_pause_and_resume(dev: Visitor, web: Scene[Fleet]) -> None:
    await begin(dev, web, "Pause")
    await carry_out(dev, "Pause")
    await assert_done(dev, web, "paused the rollout")
    await web.roll(WEB, NEW)
    await dev.open(path_of(web))
    await expect(dev.main).to_contain_text("paused", timeout=PATIENCE)
    assert web.seen.ready(WEB, NEW) == 0
    await begin(dev, web, "Resume")
    await carry_out(dev, "Resume")
    await assert_done(dev, web, "resumed the rollout")
    await web.settle(WEB, NEW, REPLICAS)


async def test_partition(dev: Visitor, web: Scene[Fleet]) -> None:
    await begin(dev, web, "Set partition")
    await preview(dev, {"Partition": "2"})
    await carry_out(dev, "Set partition")
    await assert_done(dev, web, "set the partition to 2")
    await web.roll(WEB, NEW)
    await web.part_way(WEB, NEW, 1)
    await dev.open(path_of(web))
    await expect(dev.main).to_contain_text("partition 2", timeout=PATIENCE)
    assert web.seen.ready(WEB, NEW) == 1


async def test_undo(dev: Visitor, web: Scene[Fleet]) -> None:
    await web.roll(WEB, NEW)
    await web.settle(WEB, NEW, REPLICAS)
    await begin(dev, web, "Undo to a revision")
    await dev.main.get_by_role("button", name="Preview").click()
    await carry_out(dev, "Undo to a revision")
    await expect(dev.main).to_contain_text("Done: dev returned to revision web-", timeout=PATIENCE)
    await web.settle(WEB, OLD, REPLICAS)


async def test_delete_pods(dev: Visitor, web: Scene[Fleet]) -> None:
    before = uids(web.seen.of(WEB))
    victim = min(before)
    await begin(dev, web, "Delete pods")
    await preview(dev, {victim: "chosen"})
    await expect(steps(dev)).to_contain_text(victim, timeout=PATIENCE)
    await carry_out(dev, "Delete pods")
    await expect(dev.main).to_contain_text(f"{victim}: done", timeout=PATIENCE)
    assert f"dev asked the controller to delete pod {victim}" in await recorded(web)
    await eventually(lambda: victim not in web.seen.pods)
    await web.settle(WEB, OLD, REPLICAS)
    assert len(before.keys() & uids(web.seen.of(WEB)).keys()) == REPLICAS - 1


async def test_restart_in_place(dev: Visitor, web: Scene[Fleet]) -> None:
    """The console's part is the request to the node's agent."""
    pod = min(uids(web.seen.of(WEB)))
    await begin(dev, web, "Restart in place")
    await preview(dev, {pod: "chosen"})
    await carry_out(dev, "Restart in place")
    await expect(dev.main).to_contain_text(f"{pod}: done", timeout=PATIENCE)
    assert f"dev restarted pod {pod}" in await recorded(web)
    requests = (await web.read("containerrecreaterequests"))["items"]
    assert [(one["spec"]["podName"], one["spec"]["containers"][0]["name"]) for one in requests] == [(pod, "main")]


async def test_a_form_that_somebody_was_faster_than(dev: Visitor, web: Scene[Fleet]) -> None:
    """The change was previewed for another spec, so it is not carried out."""
    await begin(dev, web, "Scale")
    await preview(dev, {"Replicas": "1"})
    await expect(dev.main.get_by_role("button", name="Scale", exact=True)).to_be_visible(timeout=PATIENCE)
    await web.patch(WEB, {"replicas": 4})
    await carry_out(dev, "Scale")
    await expect(dev.main).to_contain_text("changed", timeout=PATIENCE)
    assert (await web.read("clone", WEB))["spec"]["replicas"] == 4


async def test_who_may_only_look_is_offered_nothing(visit: Visit, web: Scene[Fleet]) -> None:
    async with visit("guest") as guest:
        await guest.open(path_of(web))
        await expect(guest.heading).to_contain_text(WEB)
        await expect(guest.link("Scale")).to_have_count(0)
        await guest.open(path_of(web, "action", "pause"))
        await expect(guest.main).to_contain_text('User "guest" cannot patch', timeout=PATIENCE)


async def test_a_right_that_was_taken_away_meanwhile(dev: Visitor, web: Scene[Fleet], console: Site) -> None:
    """The apiserver has the last word, not what the console knew when it drew the button."""
    await begin(dev, web, "Pause")
    await expect(dev.main.get_by_role("button", name="Pause", exact=True)).to_be_visible(timeout=PATIENCE)
    await web.kubectl("delete", "role,rolebinding", "dev")
    try:
        await carry_out(dev, "Pause")
        await expect(dev.page.locator("body")).to_contain_text("may not", timeout=PATIENCE)
        assert not (await web.read("clone", WEB))["spec"]["updateStrategy"]["rollingUpdate"].get("paused")
    finally:
        console.admit("dev", web.namespace, DEVELOPER)
