"""Two replicas of the webhook share the places of a WorkloadSpread, under churn and kills (workloadspread.md §7).

At no moment has a subset more pods than allowed, and at rest no place is lost.
"""

import asyncio
import json
import random
from collections.abc import Callable

import pytest

from tests.integration.policies.conftest import Site
from tests.support.budgets import evict
from tests.support.spread import aged, at_rest, awaited, books, most_at_once, places, plain, spread, subset_of, totals
from tests.support.workspace import Workspace, cloneset, is_ready
from tests.testkit.documents import Json

PODS, LIMIT = 24, 8
GROUP = "train.example.com"
WHITE_LIST: Json = {
    "workloads": [
        {
            "group": GROUP,
            "version": "v1",
            "kind": "TrainJob",
            "replicasPath": "spec.worker.replicas",
            "subResources": [{"group": GROUP, "version": "v1", "kind": "TrainGroup"}],
        }
    ]
}

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def until(space: Workspace, check: Callable[[], bool], seconds: float = 90) -> None:
    """Wait until the check holds; a failure shows the pods' places and the status."""
    try:
        await asyncio.to_thread(space.until, check, seconds)
    except AssertionError as late:
        late.add_note(f"{places(space.pods.values())} {totals(space)}\n{books(space)}")
        raise


def churn(space: Workspace, dice: random.Random) -> None:
    """Delete some pods and evict one, all at once.

    Failures do not matter: a pod may be gone already, or kept by a webhook that dies.
    """
    ready = sorted(name for name, pod in space.pods.items() if is_ready(pod))
    *deleted, evicted = dice.sample(ready, 5)
    space.cluster.kubectl("-n", space.name, "delete", "pod", *deleted, "--wait=false", check=False)
    evict(space, evicted)


async def test_churn_and_kills(site: Site, space: Workspace) -> None:
    dice = random.Random(1)
    space.apply(spread(LIMIT, LIMIT, None, zones=False))
    space.apply(cloneset(PODS))
    whole = {"a": (LIMIT, 0), "b": (LIMIT, 0), "c": (PODS - 2 * LIMIT, -1)}
    await until(space, lambda: at_rest(space, **whole))
    for disturb in (None, "webhook-0", None, "topology", "webhook-1", None):
        await asyncio.to_thread(churn, space, dice)
        if disturb is not None:
            site.flotilla.kill(disturb)
            await asyncio.to_thread(churn, space, dice)
            await site.restart(disturb)
        await until(space, lambda: sum(map(is_ready, space.pods.values())) == PODS == len(space.pods))
    # Places of pods that were admitted by what was killed then come back after half a minute; the next pods fill them.
    await until(space, lambda: aged(space))
    await until(space, lambda: not awaited(space) and all(sum(totals(space)[name]) == LIMIT for name in "ab"))
    space.scale(PODS + LIMIT)
    await until(space, lambda: at_rest(space, **(whole | {"c": (PODS - LIMIT, -1)})))
    most = most_at_once(space)
    assert (most["a"], most["b"]) == (LIMIT, LIMIT)
    await site.flotilla.healthy()


async def test_the_bus_dies_while_many_pods_come(site: Site, space: Workspace) -> None:
    """Replicas cannot ask each other for places any more: subsets are filled in order all the same."""
    space.apply(spread(2 * LIMIT, 2 * LIMIT, None, zones=False, target=("apps/v1", "Deployment", "sample")))
    space.apply(plain("apps/v1", "Deployment", 0))
    await asyncio.to_thread(space.kubectl, "scale", "deployment", "sample", f"--replicas={3 * PODS}")
    await site.flotilla.kill_bus()
    try:
        await until(space, lambda: sum(map(is_ready, space.pods.values())) == 3 * PODS)
        assert places(space.pods.values()) == {"a": 2 * LIMIT, "b": 2 * LIMIT, "c": 3 * PODS - 4 * LIMIT}
    finally:
        await site.flotilla.start_bus()
    await until(space, lambda: at_rest(space, a=(2 * LIMIT, 0), b=(2 * LIMIT, 0), c=(3 * PODS - 4 * LIMIT, -1)))
    most = most_at_once(space)
    assert (most["a"], most["b"]) == (2 * LIMIT, 2 * LIMIT)
    await site.flotilla.healthy()


def definition(kind: str) -> Json:
    """Return a CRD whose objects may have any field, and can be scaled."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: Json = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.worker.replicas", "statusReplicasPath": ".status.replicas"},
        },
    }
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def owned(kind: str, name: str, api_version: str, owner: Json, **members: object) -> Json:
    """Return an object with a controller."""
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "ownerReferences": [reference]},
        **members,
    }


def settings(list_of_kinds: Json) -> Json:
    """Return the settings of administrators."""
    data = {"WorkloadSpread_Watch_Custom_Workload_WhiteList": json.dumps(list_of_kinds)}
    metadata = {"name": "kruise-configuration", "namespace": "kruise-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def test_a_kind_that_administrators_name(site: Site, space: Workspace) -> None:
    cluster = site.flotilla.cluster
    for document in (definition("TrainJob"), definition("TrainGroup"), settings(WHITE_LIST)):
        cluster.apply(document)
    cluster.kubectl("wait", "--for=condition=Established", "crd", f"trainjobs.{GROUP}", f"traingroups.{GROUP}")
    target = (f"{GROUP}/v1", "TrainJob", "net")
    space.apply(spread("50%", None, target=target, zones=False))
    spec = {"worker": {"replicas": 4}}
    job = space.apply({"apiVersion": target[0], "kind": "TrainJob", "metadata": {"name": "net"}, "spec": spec})
    group = space.apply(owned("TrainGroup", "net-0", target[0], job, spec={}))
    await until(space, lambda: totals(space) == {"a": (0, 2), "b": (0, -1)})
    pod = {"containers": [{"name": "main", "image": "nginx"}]}
    for number in range(2):
        space.apply(owned("Pod", f"own-{number}", "v1", job, spec=pod))
        space.apply(owned("Pod", f"below-{number}", "v1", group, spec=pod))
    await until(space, lambda: at_rest(space, a=(2, 0), b=(2, -1)))
    space.patch({"spec": {"worker": {"replicas": 8}}}, "net", f"trainjobs.{GROUP}")
    await until(space, lambda: totals(space) == {"a": (2, 2), "b": (2, -1)})
    cluster.apply(settings({"workloads": []}))
    await until(space, lambda: not spreads_kind(space, job))


def spreads_kind(space: Workspace, job: Json) -> bool:
    """Report whether a new pod of the workload goes to a subset."""
    pod = owned("Pod", "probe", "v1", job, spec={"containers": [{"name": "main", "image": "nginx"}]})
    space.apply(pod)
    made = space.read("pod", "probe")
    space.kubectl("delete", "pod", "probe", "--force", "--grace-period=0")
    return subset_of(made) != ""
