"""Every page on a real control plane and bus, and what a user with one namespace sees of them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_console import paths
from tests.integration.console.conftest import Visit
from tests.integration.console.site import READER, Site
from tests.support.fleet import Fleet
from tests.support.observer import uids
from tests.support.scene import NEW, OLD, Scene, cloneset, scene
from tests.testkit.tables import cases

pytestmark = [pytest.mark.asyncio(loop_scope="package"), pytest.mark.timeout(300)]

WEB, HIDDEN, REPLICAS = "web", "secluded", 3
PATIENCE = 30_000


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def place(flotilla: Fleet, console: Site) -> AsyncIterator[Scene[Fleet]]:
    """Yield a namespace that `guest` may look at, with a rollout behind it; they may not see the other one."""
    console.admit_everywhere("root")
    async with scene(flotilla) as made, scene(flotilla) as other:
        console.admit("guest", made.namespace, READER)
        await made.create(cloneset(WEB, REPLICAS))
        await other.create(cloneset(HIDDEN, 2))
        await made.settle(WEB, OLD, REPLICAS)
        await made.roll(WEB, NEW)
        await made.settle(WEB, NEW, REPLICAS)
        await other.settle(HIDDEN, OLD, 2)
        yield made


FOLDER = Path(__file__).parent
ACTING, ROLLOUTS = FOLDER / "acting.yaml", FOLDER / "rollouts-crd.yaml"
ACTS = {
    "HorizontalPodAutoscaler": "it scales between 1 and 9",
    "PodDisruptionBudget": "more may be evicted",
    "PodUnavailableBudget": "more may become unavailable",
    "WorkloadSpread": "it spreads the pods over its subsets",
    "Rollout": "it rolls updates out in 2 steps",
}
"""Effects of the objects of `acting.yaml` on the workload, by their kinds."""

NOT_MADE = {
    "the apiserver reaches the webhook, and gets correct responses",
    "every service has the rights that it uses, and no more",
}
"""Checks that need rights which the console has not: to create a CloneSet as a dry run, and to read roles."""

PAGES = {
    "fleet": ("/", HIDDEN),
    "workload": ("{workload}", NEW),
    "timeline": ("{workload}/timeline", "{pod}"),
    "pod": ("/pods/{namespace}/{pod}", "nginx:2"),
    "nodes": ("/nodes", "{node}"),
    "node": ("/nodes/{node}", "{pod}"),
    "bus": ("/bus", "cloneset"),
    "doctor": ("/doctor", "bus"),
    "topology": ("/topology", "Topology"),
}


@pytest.mark.parametrize(("path", "says"), cases(PAGES))
async def test_a_page(visit: Visit, place: Scene[Fleet], path: str, says: str) -> None:
    pod = place.seen.pods[min(uids(place.seen.of(WEB)))]
    words = {
        "workload": paths.workload(CLONE_SET.group, CLONE_SET.plural, place.namespace, WEB),
        "namespace": place.namespace,
        "pod": pod.metadata.name,
        "node": pod.spec.node_name,
    }
    async with visit("root") as user:
        await user.open(path.format(**words))
        await expect(user.page.locator("body")).to_contain_text(says.format(**words), timeout=PATIENCE)
        await expect(user.banners).to_be_empty()
        assert await user.violations() == []


async def test_a_user_with_one_namespace_sees_nothing_else(visit: Visit, place: Scene[Fleet]) -> None:
    async with visit("guest") as user:
        await user.open()
        await expect(user.link(WEB)).to_be_visible(timeout=PATIENCE)
        await expect(user.count("Workloads")).to_have_text("1")
        await user.open(f"/?q={HIDDEN}")
        await expect(user.count("Workloads")).to_have_text("0")
        for path, _ in PAGES.values():
            if "{" not in path:
                answer = await user.context.request.get(user.site.url + path)
                assert HIDDEN not in await answer.text()


SEARCHES = {
    "a name": "q=we",
    "a label": "q=tier%3Dfront",
    "an image": "q=nginx:2",
    "a namespace": "namespace={namespace}",
}


@pytest.mark.parametrize("query", SEARCHES.values(), ids=SEARCHES)
async def test_the_fleet_is_searched(visit: Visit, place: Scene[Fleet], query: str) -> None:
    await place.kubectl("label", "clone", WEB, "tier=front", "--overwrite")
    async with visit("root") as user:
        await user.open(f"/?{query.format(namespace=place.namespace)}")
        await expect(user.link(WEB)).to_be_visible(timeout=PATIENCE)
        await expect(user.link(HIDDEN)).to_have_count(0)


async def test_all_that_acts_on_a_workload_is_named(visit: Visit, place: Scene[Fleet]) -> None:
    """Also Rollouts of OpenKruise, whose CRD may come after the console has started."""
    await place.kubectl("apply", "-f", str(ROLLOUTS))
    await place.kubectl("wait", "--for=condition=Established", "crd/rollouts.rollouts.kruise.io")
    await place.kubectl("apply", "-f", str(ACTING))
    async with visit("root") as user:
        await user.open(paths.workload(CLONE_SET.group, CLONE_SET.plural, place.namespace, WEB))
        acting = user.table("What acts on the workload")
        for kind, how in ACTS.items():
            await expect(acting.locator("tr").filter(has_text=kind)).to_contain_text(how, timeout=PATIENCE)
        assert await user.violations() == []
    await place.kubectl("delete", "-f", str(ACTING), "-f", str(ROLLOUTS))


async def test_a_restart_of_the_service_is_marked_in_the_timeline(visit: Visit, place: Scene[Fleet]) -> None:
    await place.patch(WEB, {"updateStrategy": {"rollingUpdate": {"partition": REPLICAS}}})
    await place.roll(WEB, OLD)
    await place.seen.until(lambda: place.seen.ready(WEB, NEW) == REPLICAS, 60, "the rollout to be held")
    await place.flotilla.restart("cloneset")
    async with visit("root") as user:
        await user.open(paths.workload(CLONE_SET.group, CLONE_SET.plural, place.namespace, WEB, "timeline"))
        await expect(user.main).to_contain_text("cloneset restarted or handed over", timeout=PATIENCE)
    await place.patch(WEB, {"updateStrategy": {"rollingUpdate": {"partition": None}}})
    await place.roll(WEB, NEW)


async def test_the_checks_of_the_doctor_are_made_with_the_rights_of_the_console(
    visit: Visit, place: Scene[Fleet]
) -> None:
    async with visit("root") as user:
        await user.open("/doctor")
        await expect(user.main).to_contain_text("The checks were made", timeout=PATIENCE)
        checks = user.page.locator("#all-checks tr")
        left = {
            await check.locator("td").first.inner_text() for check in await checks.filter(has_text="not checked").all()
        }
        assert left == NOT_MADE


async def test_a_right_given_while_a_page_is_open_shows_more(visit: Visit, place: Scene[Fleet], console: Site) -> None:
    async with visit("late") as user:
        await user.open()
        await expect(user.heading).not_to_be_empty()
        await expect(user.link(WEB)).to_have_count(0)
        console.admit("late", place.namespace, READER)
        await expect(user.link(WEB)).to_be_visible(timeout=PATIENCE)
        await place.kubectl("delete", "rolebinding", "late")
        await expect(user.link(WEB)).to_have_count(0, timeout=PATIENCE)


async def test_a_change_at_the_apiserver_appears_in_an_open_page(visit: Visit, place: Scene[Fleet]) -> None:
    async with visit("root") as user:
        await user.open(paths.workload(CLONE_SET.group, CLONE_SET.plural, place.namespace, WEB))
        await user.page.evaluate("window.mark = 'first'")
        await place.patch(WEB, {"replicas": REPLICAS + 1})
        await place.settle(WEB, NEW, REPLICAS + 1)
        for pod in uids(place.seen.of(WEB)):
            await expect(user.main).to_contain_text(pod, timeout=PATIENCE)
        assert await user.page.evaluate("window.mark") == "first"
