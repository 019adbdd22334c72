"""The requests of services are those that they declare: none is undeclared, and no declaration is unused.

Roles are generated from the declarations. So a right that is missing here would be missing on a cluster, and an unused
one would be one too many. All scenarios are played once, and a run with what they lack: a dead bus, so that services
read from the apiserver, resizes, pre-pulled images, limits of history and age, and a graceful end.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from functools import cache

import msgspec
import pytest

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import LEASE, NODE, POD, TOKEN_REVIEW, Resource
from flotilla_common.control.watches import AccessRule
from flotilla_common.settings import Settings
from flotilla_insight.installation.rbac import account
from tests.simulation.history import Call, History
from tests.simulation.perturbation.play import undisturbed
from tests.simulation.scenarios import every_scenario
from tests.simulation.scenarios.manifests import cloneset, container, daemonset, statefulset
from tests.simulation.scenarios.sidecarset import sidecar
from tests.simulation.world import SETTINGS, World, services, simulate

pytestmark = pytest.mark.timeout(1800)  # the first of them plays everything

VERBS = {"replace": "update"}
"""Verbs of the client that have another name in roles."""

READS = frozenset({"get", "list", "watch"})
"""Verbs of a watch: it needs all three, although an undisturbed run may not get a single object."""

ASKED_FOR_BY_ADMISSION = frozenset({"finalizers"})
"""Rights that are never used in a request: the apiserver asks for them where owners are blocked."""

NOT_SIMULATED = frozenset({TOKEN_REVIEW})
"""Held on the real thing: tests/integration/test_node_logins.py."""

LOOKED_UP = ("get",)
"""The verb for workloads that are not mirrored, by the policy service: tests/integration/podunavailablebudget."""

MERGE = "application/merge-patch+json"

Right = tuple[str, Resource, str, str]
"""Verb, resource, subresource, and the namespace if it is for one only."""


LONG = 700.0
"""Fake seconds until all idle work is given up, and then deleted by age."""

SERVICES = ("watcher", "cloneset", "sidecar", "statefulset", "daemonset", "jobs", "topology", "policy")
REPLICAS: dict[str, int] = dict.fromkeys(SERVICES, 1)
GATES = (
    "InPlaceWorkloadVerticalScaling",
    "PreDownloadImageForDaemonSetUpdate",
    "PodUnavailableBudgetUpdateGate",
    "PreDownloadImageForInPlaceUpdate",
    "SidecarTerminator",
    "StatefulSetAutoResizePVCGate",
)
SHARED = dataclasses.replace(SETTINGS, shards=2, feature_gates=",".join(f"{gate}=true" for gate in GATES))
"""Replicas that share work say that they are there, and take it back when they end."""

WORKLOADS = (
    (CLONE_SET, cloneset(2, name="two", top={"revisionHistoryLimit": 0})),
    (DAEMON_SET, daemonset(name="probe", policy="InPlaceIfPossible")),
    (STATEFUL_SET, statefulset(4, policy="InPlaceIfPossible")),
)


async def life(world: World) -> None:
    """Play what no scenario has. There is no node agent, so jobs and requests end by their deadlines."""
    await make(world, SIDECAR_SET, "side", side("one"))
    for kind, document in WORKLOADS:
        await world.api.create(kind, "shop", msgspec.json.encode(document))
        app = document["metadata"]["name"]
        selector = {"matchLabels": {"app": app}}
        protected = {"selector": selector, "maxUnavailable": "75%", "protectTotalReplicas": 4}
        await make(world, POD_UNAVAILABLE_BUDGET, app, protected)
    await world.settle()
    await change(world, {})
    await world.api.patch(SIDECAR_SET, "", "side", msgspec.json.encode({"spec": side("two")}), MERGE)
    await world.settle()
    for cpu in ("100m", "200m"):
        await change(world, {"resources": {"requests": {"cpu": cpu}}})
    pod = next(iter(world.server.store.table(POD).objects.values())).document["metadata"]["name"]
    restart = {"podName": pod, "containers": [{"name": "main"}], "ttlSecondsAfterFinished": 1}
    await make(world, RECREATE_REQUEST, "restart", restart)
    policy = {"type": "Always", "activeDeadlineSeconds": 601, "ttlSecondsAfterFinished": 1}
    await distribute(world)
    await make(world, IMAGE_LIST_PULL_JOB, "pull", {"images": ["shop:one"], "completionPolicy": policy})
    await world.clock.sleep(LONG)
    await world.api.delete(NODE, "", next(iter(world.server.store.table(NODE).objects))[1])
    await world.clock.sleep(SETTINGS.bus_fallback_after)  # pods that wait for a node keep the world from settling
    world.bus.kill()
    await world.clock.sleep(2 * SETTINGS.bus_fallback_after)
    for process in world.processes.values():
        await process.stop()


def side(image: str) -> Json:
    """Return the spec of a SidecarSet for the pods of the CloneSet."""
    return {
        "selector": {"matchLabels": {"app": "two"}},
        "containers": [sidecar(image)],
        "updateStrategy": {"type": "RollingUpdate", "maxUnavailable": 1},
    }


async def change(world: World, members: Json) -> None:
    """Another image for all containers, with these members: kubelets give them another size without a restart."""
    patch = {"spec": {"template": {"spec": {"containers": [container("two") | members]}}}}
    for kind, document in WORKLOADS:
        await world.api.patch(kind, "shop", document["metadata"]["name"], msgspec.json.encode(patch), MERGE)
    await world.settle()


async def distribute(world: World) -> None:
    """Create, change and delete a Secret in the shop."""
    source = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "type": "Opaque", "data": {"k": ""}}
    targets: Json = {"includedNamespaces": {"list": [{"name": "shop"}]}}
    await make(world, RESOURCE_DISTRIBUTION, "login", {"resource": source, "targets": targets})
    for patch in ({"resource": {"data": {"k": "eA=="}}}, {"targets": {"includedNamespaces": None}}):
        await world.settle()
        await world.api.patch(RESOURCE_DISTRIBUTION, "", "login", msgspec.json.encode({"spec": patch}), MERGE)
    await world.settle()


async def make(world: World, kind: Resource, name: str, spec: Json) -> None:
    """Create an object in the shop."""
    metadata = {"name": name, "namespace": "shop"} if kind.namespaced else {"name": name}
    document = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
    await world.api.create(kind, "shop", msgspec.json.encode(document))


@cache
def histories() -> tuple[History, ...]:
    """Return the histories of all runs."""

    async def lived(world: World) -> History:
        await life(world)
        return world.history

    played = [undisturbed(name)[1] for name in every_scenario()]
    return (*played, simulate(lived, replicas=REPLICAS, settings=SHARED))


def calls() -> Iterator[Call]:
    """Return all requests to the apiserver."""
    return (call for history in histories() for call in history.calls)


def used(service: str) -> set[Right]:
    """Return the requests of the service."""
    mine = (call for call in calls() if call.writer.rpartition("-")[0] == service)
    return {(VERBS.get(call.verb, call.verb), call.resource, call.subresource, call.namespace) for call in mine}


def declared(service: str) -> Iterator[tuple[Right, AccessRule]]:
    """Return the rights that the service declares."""
    settings = Settings()
    for access in services()[service]().access:
        namespace = getattr(settings, access.namespace) if access.namespace else ""
        for verb in access.verbs:
            yield (verb, access.resource, access.subresource, namespace), access


def covers(right: Right, done: Right) -> bool:
    """Report whether the right allows the request."""
    return right[:3] == done[:3] and right[3] in ("", done[3])


def texts(rights: Iterable[Right]) -> list[str]:
    return sorted(
        f"{verb} {resource.id} {subresource} {place}".strip() for verb, resource, subresource, place in rights
    )


@pytest.mark.parametrize("service", services())
def test_nothing_is_done_that_is_not_declared(service: str) -> None:
    rights = [right for right, _ in declared(service)]
    assert texts(done for done in used(service) if not any(covers(right, done) for right in rights)) == []


@pytest.mark.parametrize("service", services())
def test_no_service_writes_a_lease_of_another(service: str) -> None:
    """A policy would refuse it (libs/insight/flotilla_insight/installation/manifests.py)."""
    written = [version for history in histories() for version in history.of(LEASE)]
    names = {one.name for one in written if one.writer.rpartition("-")[0] == service}
    assert names
    assert not [name for name in names if not name.startswith(f"{account(service)}-")]


@pytest.mark.parametrize("service", services())
def test_nothing_is_declared_that_is_never_done(service: str) -> None:
    done = used(service)
    idle = [
        right
        for right, access in declared(service)
        if access.subresource not in ASKED_FOR_BY_ADMISSION
        and access.resource not in NOT_SIMULATED
        and not (service == "policy" and access.verbs == LOOKED_UP)
        and not any(covers(right, one) for one in done)
        and not (right[0] in READS and any(one[0] in READS and one[1] == right[1] for one in done))
    ]
    assert texts(idle) == []
