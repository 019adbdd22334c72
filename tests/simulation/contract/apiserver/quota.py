"""Rejections by quotas, with their texts: they reach users in events."""

from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import ApiError
from tests.simulation.contract.apiserver.harness import Harness, Play, eventually, pod, refused

QUOTA = Resource("", "v1", "resourcequotas", "ResourceQuota")


def _sized(name: str, cpu: str) -> Json:
    document = pod(name)
    for container in document["spec"]["containers"]:
        container["resources"] = {"requests": {"cpu": cpu}}
    return document


class QuotaContract:
    def test_what_a_quota_refuses(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, _sized("a", "100m"))
            hard = {"pods": "2", "requests.cpu": "1"}
            await harness.create(QUOTA, {"metadata": {"name": "few"}, "spec": {"hard": hard}})
            await eventually(lambda: _counted(harness))
            error = await refused(harness.create(POD, pod("silent")))
            assert (error.code, error.reason) == (403, "Forbidden")
            assert (
                error.message
                == 'pods "silent" is forbidden: failed quota: few: must specify requests.cpu for: aux,main'
            )
            error = await refused(harness.create(POD, _sized("big", "900m")))
            told = "requested: requests.cpu=1800m, used: requests.cpu=200m, limited: requests.cpu=1"
            assert error.message == f'pods "big" is forbidden: exceeded quota: few, {told}'
            await harness.create(POD, _sized("b", "100m"))
            error = await refused(harness.create(POD, _sized("c", "100m")))
            told = "requested: pods=1, used: pods=2, limited: pods=2"
            assert (error.code, error.message) == (403, f'pods "c" is forbidden: exceeded quota: few, {told}')
            await harness.delete(POD, "b")
            await eventually(lambda: _accepted(harness, "c"))

        play(exchange)


async def _counted(harness: Harness) -> bool:
    """Wait until a quota's use is counted; until then it rejects everything."""
    return "used" in (await harness.get(QUOTA, "few")).get("status", {})


async def _accepted(harness: Harness, name: str) -> bool:
    """Room comes back some time after an object went."""
    try:
        await harness.create(POD, _sized(name, "100m"))
    except ApiError:
        return False
    return True
