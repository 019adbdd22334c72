"""Pods of all shapes through the pod webhook: each gets an answer, and parts without a rule are unchanged.

`PODS` of them by default; FLOTILLA_RANDOM_PODS sets the number.
"""

import base64
import copy
import os
import random

import msgspec
import pytest

from flotilla_common.api.admission.review import Answer, Operation
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.selectors import Selector
from flotilla_common.gates import Gates
from flotilla_common.settings import Settings
from flotilla_webhook.chain import Chain, chain_of
from flotilla_webhook.server.http_server import _admit
from tests.support.dice import Dice
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.support.random_pods import random_pod
from tests.testkit.admission import applied, listed, new_pod
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json
from tests.unit.webhook.fakes import records

PODS = int(os.environ.get("FLOTILLA_RANDOM_PODS", "3000"))
BEFORE, AFTER = "BeforeAppContainer", "AfterAppContainer"
REFUSALS = ("annotation oom-score cannot be merged", "no containers match the regex")
"""Allowed refusals: annotations and containers that do not match the SidecarSets below."""


def container(name: str, policy: str = BEFORE, **more: object) -> Json:
    return {"name": name, "image": "side:1", "podInjectPolicy": policy, **more}


HOT = {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}
SETS: dict[str, tuple[Json, Json]] = {
    "hot": ({"matchLabels": {"app": "x"}}, {"containers": [container("mesh-proxy", upgradeStrategy=HOT)]}),
    "metadata": (
        {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
        {"patchPodMetadata": [{"annotations": {"oom-score": '{"b":1}'}, "patchPolicy": "MergePatchJson"}]},
    ),
    "sharing": (
        {"matchExpressions": [{"key": "team", "operator": "In", "values": ["x", "y"]}]},
        {
            "containers": [
                container(
                    "agent",
                    AFTER,
                    shareVolumePolicy={"type": "enabled"},
                    transferEnv=[{"sourceContainerName": "main", "envNames": ["E0", "POD"]}],
                    env=[{"name": "KRUISE_CONTAINER_PRIORITY", "value": "5"}],
                )
            ],
            "initContainers": [container("setup", AFTER), container("native", restartPolicy="Always")],
            "volumes": [{"name": "v0", "emptyDir": {}}],
            "imagePullSecrets": [{"name": "b"}, {"name": "c"}],
        },
    ),
    "sized": (
        {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x", "y"]}]},
        {
            "containers": [
                container(
                    "sized",
                    resourcesPolicy={
                        "targetContainersMode": "sum",
                        "targetContainersNameRegex": "^(main|app|x1)$",
                        "resourcesExpr": {"limits": {"cpu": "max(cpu*50%, 50m)"}},
                    },
                )
            ]
        },
    ),
}

ADDED = {"hot": {"mesh-proxy-1", "mesh-proxy-2"}, "sharing": {"agent"}, "sized": {"sized"}}
"""The containers of these sets in pods."""


async def chain() -> Chain:
    cluster = FakeApi()
    made = chain_of(cluster.api, FakeBus(), FakeClock(), Dice(), Settings(), Gates.parse(""), records(cluster))
    (cache,) = (one for one in made.caches if one.resource == SIDECAR_SET)
    for name, (selector, spec) in SETS.items():
        cluster.put(SIDECAR_SET, {"metadata": {"name": name}, "spec": {"selector": selector, **spec}})
    await listed(cache, cluster, SIDECAR_SET)
    return made


async def admit(made: Chain, pod: Json) -> tuple[Json, str]:
    """Return the pod as it is stored, or why it is refused."""
    request = {
        "uid": "u",
        "operation": "CREATE",
        "namespace": "n",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "object": pod,
    }
    body = msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    response = msgspec.json.decode(await _admit("/mutate-pod", made.pods.mutate, body))["response"]
    if not response["allowed"]:
        return pod, response["status"]["message"]
    patch = msgspec.json.decode(base64.b64decode(response.get("patch", "W10=")))
    operations = [Operation(one["op"], one["path"], one.get("value")) for one in patch]
    return applied(pod, Answer(patch=operations)), ""


def matching(pod: Json) -> set[str]:
    labels = pod["metadata"].get("labels", {})
    return {
        name
        for name, (selector, _) in SETS.items()
        if Selector.compile(msgspec.convert(selector, LabelSelector)).matches(labels)
    }


def without_barrier(container: Json) -> list[Json]:
    """Return the container's env without the variable of the barrier."""
    return [one for one in container.get("env", []) if one["name"] != "KRUISE_CONTAINER_BARRIER"]


def check(pod: Json, found: Json) -> None:
    names = [one["name"] for one in found["spec"]["containers"]]
    assert len(names) == len(set(names))
    sets = matching(pod)
    added = set[str]().union(*(ADDED.get(name, ()) for name in sets))
    assert set(names) == added | {one["name"] for one in pod["spec"]["containers"]}
    by_name = {one["name"]: one for one in (*found["spec"]["containers"], *found["spec"].get("initContainers", []))}
    for one in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])):
        stored = by_name[one["name"]]
        assert without_barrier(stored) == one.get("env", [])
        assert stored | {"env": 0} == one | {"env": 0}
    barriers = {len(one.get("env", [])) > len(without_barrier(one)) for one in found["spec"]["containers"]}
    assert len(barriers) == 1, "all containers wait for a key, or none"
    if not sets and barriers == {False}:
        assert found == pod, "no rule is about it"


async def test_pods_of_all_shapes() -> None:
    made, dice, refused = await chain(), random.Random(7), 0
    for _ in range(PODS):
        pod = random_pod(dice)
        found, why = await admit(made, copy.deepcopy(pod))
        if why:
            refused += 1
            assert why.startswith(REFUSALS), why
            continue
        check(pod, found)
        assert await admit(made, found) == (found, ""), "a second time changes nothing"
    assert 0 < refused < PODS / 2


SHAPES = [
    pytest.param({}, 400, id="nothing"),
    pytest.param({"metadata": None, "spec": None}, 400, id="no spec"),
    pytest.param({"spec": {}}, 200, id="no containers"),
    pytest.param({"metadata": {"labels": None, "annotations": None}, "spec": {"containers": None}}, 200, id="nulls"),
    pytest.param(
        {"metadata": {"labels": {"app": 1, "team": "x"}}, "spec": {"containers": [1, {}]}}, 200, id="wrong types"
    ),
    pytest.param(
        {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"env": 1, "volumeMounts": {}}]}},
        200,
        id="lists",
    ),
    pytest.param({"metadata": [], "spec": {"volumes": 1, "initContainers": "x"}}, 200, id="no lists"),
]


@pytest.mark.parametrize(("pod", "code"), SHAPES)
async def test_what_no_apiserver_would_send(pod: Json, code: int) -> None:
    answer = await (await chain()).pods.mutate(new_pod(pod))
    assert answer.code in {code, 500}
    assert "panic" not in answer.message
