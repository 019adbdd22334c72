"""The chart on three real nodes, as a user meets it: install, the documents' examples, scale, upgrade, uninstall."""

import json
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from tests.integration.cloneset.test_seed_documents import (
    sample,
    test_create,
    test_image_changes_and_addresses_stay,
    test_pods_to_delete_with_fewer_replicas,
    test_printed_columns,
    test_revision_names_and_status_of_a_partial_update,
)
from tests.support.chromium import running_chromium
from tests.support.cluster import eventually
from tests.support.helm import CHART, NAMESPACE, Release, release
from tests.support.nodes import RealCluster
from tests.support.pull_jobs import ended
from tests.support.workspace import Workspace, identity, image, restarts, watched
from tests.testkit.manifests import manifest

__all__ = [
    "sample",
    "test_create",
    "test_image_changes_and_addresses_stay",
    "test_pods_to_delete_with_fewer_replicas",
    "test_printed_columns",
    "test_revision_names_and_status_of_a_partial_update",
]

PULL = manifest("chart-pull")
PROXY = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLONE_SETS = manifest("chart-clone-sets")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(cluster: RealCluster) -> AsyncIterator[Release]:
    """Install the chart unchanged, but let young nodes pull at once: these exist for less than half a minute."""
    async with release(cluster, **{"services__jobs__settings__nodeimage-creation-delay": 0}) as installed:
        yield installed


@pytest.fixture
def space(flotilla: Release, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Yield a fresh namespace, named after the test."""
    with watched(flotilla.cluster, request.node.nodeid, CLONE_SET) as made:
        yield made


def test_images_are_pulled_ahead(space: Workspace) -> None:
    space.until(lambda: len(space.read("nodeimages")["items"]) == 3)
    space.create(PULL)
    assert ended(space)["succeeded"] == 3


def test_why_is_told_as_the_notes_say(flotilla: Release, space: Workspace) -> None:
    """Users who may read the Secret of the read-only user may watch the bus, and so run `explain`."""
    held = json.loads(flotilla.kubectl("get", "secret", "flotilla-bus-reader", "-o", "json"))["data"]
    assert set(held) == {"reader.seed", "ca.crt"}


def test_an_upgrade_keeps_rollouts_running(flotilla: Release, space: Workspace) -> None:
    """From one profile to the other and back, each in the middle of a rollout."""
    space.apply(CLONE_SETS)
    space.settled(availableReplicas=6)
    before = {name: identity(pod) for name, pod in space.pods.items()}
    for number, (profile, wanted) in enumerate({"compact": "nginx:latest", "split": "nginx:stable"}.items(), 1):
        space.set_image(wanted)
        flotilla.helm.install("upgrade", profile=profile)
        space.settled(updatedAvailableReplicas=6)
        assert {(image(pod), restarts(pod)) for pod in space.pods.values()} == {(wanted, number)}
        assert {name: identity(pod) for name, pod in space.pods.items()} == before
    space.scale(9)
    space.settled(updatedAvailableReplicas=9)


async def test_the_console_is_switched_on_by_an_upgrade(flotilla: Release, space: Workspace) -> None:
    """Opened in Chromium through a forwarded port, with the tokens of a developer and of an administrator."""
    flotilla.helm.install("upgrade", console__enabled=True)
    space.apply(CLONE_SETS)
    space.settled(availableReplicas=6)
    (name,) = (one["metadata"]["name"] for one in space.read("clone")["items"])
    pod = min(space.pods)
    node = space.pod(pod)["spec"]["nodeName"]
    for account in ("developer", "administrator"):
        space.kubectl("create", "serviceaccount", account)
    subject = f"--serviceaccount={space.name}:developer"
    for role in ("view", "kruise-cloneset-editor-role"):
        space.kubectl("create", "rolebinding", role, f"--clusterrole={role}", subject)
    everything = ("--clusterrole=cluster-admin", f"--serviceaccount={space.name}:administrator")
    space.kubectl("create", "clusterrolebinding", space.name, *everything)
    with flotilla.forwarded("svc/flotilla-console", 80) as port:
        async with running_chromium() as browser:
            page = await signed_in(browser, port, space, "developer")
            await expect(page.locator("caption .count").first).to_have_text("1")
            await page.get_by_role("link", name=name, exact=True).first.click()
            await page.get_by_role("link", name="Scale").click()
            await page.get_by_label("Replicas").fill("7")
            await page.get_by_role("button", name="Preview").click()
            await page.get_by_role("button", name="Scale", exact=True).click()
            await expect(page.get_by_role("main")).to_contain_text("developer scaled it to 7")
            await page.get_by_label("Breadcrumb").get_by_role("link", name=f"CloneSet {name}").click()
            await page.get_by_role("link", name=pod, exact=True).first.click()
            await page.get_by_role("link", name="log", exact=True).first.click()
            await expect(page.get_by_role("region", name="The last")).to_have_text(log_of(space, pod))
            space.create(PULL)
            assert ended(space)["succeeded"] == 3
            page = await signed_in(browser, port, space, "administrator")
            await page.get_by_role("link", name="Nodes", exact=True).click()
            await expect(page.get_by_role("main")).to_contain_text("3 of 3 alive")
            await page.get_by_role("link", name=node, exact=True).click()
            await expect(page.locator("#pulls").get_by_role("row").filter(has_text="Succeeded").first).to_be_visible()
    space.kubectl("delete", "clusterrolebinding", space.name)
    space.until(lambda: space.status(name).get("availableReplicas") == 7)


async def signed_in(browser: Browser, port: int, space: Workspace, account: str) -> Page:
    """Return a page of a new profile in which an account has signed in with its token."""
    page = await (await browser.new_context()).new_page()
    await page.goto(f"http://localhost:{port}/")
    await page.get_by_role("link", name="Sign in").click()
    await page.get_by_label("Bearer token").fill(space.kubectl("create", "token", account).strip())
    await page.get_by_role("button", name="Sign in with the token").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Fleet")
    return page


def log_of(space: Workspace, pod: str) -> str:
    """Return what the console shows of a pod's log."""
    return space.kubectl("logs", pod) or "The log is empty."


async def test_the_node_agent_restarts_a_container(flotilla: Release, space: Workspace) -> None:
    space.apply(CLONE_SETS.replace("replicas: 6", "replicas: 1"))
    space.settled(availableReplicas=1)
    (pod,) = space.pods
    wish = {"podName": pod, "containers": [{"name": "nginx"}]}
    document = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ContainerRecreateRequest", "spec": wish}
    space.create(document | {"metadata": {"name": "again"}})
    space.until(lambda: space.read("crr", "again").get("status", {}).get("phase") == "Completed")
    space.until(lambda: restarts(space.pod(pod)) == 1)


def test_uninstalling_never_deletes_workloads(flotilla: Release, cluster: RealCluster, space: Workspace) -> None:
    space.create(PULL)
    space.apply(CLONE_SETS)
    space.settled(availableReplicas=6)
    refused = flotilla.helm.run("uninstall", "flotilla", "--timeout", "60s", check=False)
    assert "clonesets.apps.kruise.io" in refused
    assert "workloads exist" in refused
    assert all(flotilla.ready(service, 2) for service in ("cloneset", "webhook"))
    assert len(space.pods) == 6
    cluster.kubectl("delete", "clone", "--all", "-A")
    flotilla.helm.run("uninstall", "flotilla", "--wait", "--timeout", "120s")
    names = {definition["metadata"]["name"] for definition in cluster.read("crds")["items"]}
    assert "clonesets.apps.kruise.io" in names
    assert space.read("imagepulljobs.v1alpha1.apps.kruise.io")["items"]
    assert not json.loads(
        cluster.kubectl("get", "deploy", "-n", NAMESPACE, "-o", "json", "--ignore-not-found") or "{}"
    ).get("items")


async def test_it_is_installed_again_with_three_servers_of_the_bus(flotilla: Release, space: Workspace) -> None:
    """It uses the CRDs and objects of an earlier release in another namespace. One server may die."""
    flotilla.helm.run("uninstall", "flotilla", "--no-hooks", "--wait", "--ignore-not-found")
    await eventually(lambda: not space.cluster.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found"))
    place = ("-n", NAMESPACE, "--create-namespace", "--take-ownership", "--set", "nats.replicas=3")
    flotilla.helm.run("install", "flotilla", str(CHART), *place, "--wait", "--timeout", "180s")
    space.apply(CLONE_SETS)
    space.settled(availableReplicas=6)
    assert set(copies(flotilla).values()) == {3}
    space.set_image("nginx:latest")
    flotilla.kubectl("delete", "pod", "flotilla-bus-1", "--force", "--grace-period=0")
    space.settled(updatedAvailableReplicas=6)
    await flotilla.healthy()


def copies(flotilla: Release) -> dict[str, int]:
    """Return how many servers have a copy of each stream."""
    page = flotilla.kubectl("get", "--raw", f"{PROXY}/flotilla-bus-0:8222/proxy/jsz?streams=true&config=true")
    accounts = json.loads(page)["account_details"]
    return {stream["name"]: stream["config"]["num_replicas"] for stream in accounts[0]["stream_detail"]}
