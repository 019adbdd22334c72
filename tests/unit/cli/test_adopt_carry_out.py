"""Doing the steps of a take-over where the cluster does not play along."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from flotilla_cli.adopt.apply import FORGETTING_SECONDS, OVERDUE_SECONDS, PATIENCE_SECONDS, carry_out
from flotilla_cli.adopt.steps import MigrationStep, PodsGone, PolicyEnforced, patch
from flotilla_cli.install.apply import InstallError
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.kube.interface import ApiError
from flotilla_insight.openkruise import DAEMON, STANDSTILL
from tests.support.fake_clock import START, FakeClock
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

GRACE = 10.0
WAIT = MigrationStep("wait", until=(PodsGone(DAEMON),))


class Remembering(FakeApi):
    """An apiserver that applies a policy for some more seconds; or, if `late`, only after them."""

    def __init__(self, clock: FakeClock, seconds: float, policy: str, *, late: bool = False) -> None:
        super().__init__()
        self.clock, self.seconds, self.policy, self.late = clock, seconds, policy, late
        self.tried: list[Mapping[str, str] | None] = []
        self.put(DAEMON.resource, {"metadata": {"name": DAEMON.name, "namespace": DAEMON.namespace}})

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        content_type: str,
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        self.tried.append(params)
        if (self.clock.monotonic() < self.seconds) != self.late:
            raise ApiError(422, "Invalid", f"ValidatingAdmissionPolicy '{self.policy}' denied request")
        return await super().patch(resource, namespace, name, body, content_type)


def pod_to_end(api: FakeApi, *, ready: str) -> None:
    """Store a pod of the daemon that should have ended after its grace period, and its node."""
    owner = {"kind": "DaemonSet", "name": DAEMON.name, "controller": True}
    meta: Json = {"name": "kruise-daemon-x", "namespace": DAEMON.namespace, "ownerReferences": [owner]}
    meta["deletionTimestamp"] = rfc3339(START + timedelta(seconds=GRACE))
    api.put(POD, {"metadata": meta, "spec": {"nodeName": "node-1"}})
    api.put(NODE, {"metadata": {"name": "node-1"}, "status": {"conditions": [{"type": "Ready", "status": ready}]}})


async def test_a_policy_that_was_removed_lingers():
    clock = FakeClock()
    api = Remembering(clock, 1.5, STANDSTILL)
    said: list[str] = []
    await carry_out(api.api, clock, [MigrationStep("start it", (patch(DAEMON, {"spec": {}}),))], said.append)
    assert said == ["start it"]
    assert clock.monotonic() == pytest.approx(1.6)


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [pytest.param("of-others", 0.0, id="another policy"), pytest.param(STANDSTILL, FORGETTING_SECONDS, id="stays")],
)
async def test_a_refusal_that_lasts_is_told(policy: str, seconds: float):
    clock = FakeClock()
    api = Remembering(clock, 1000, policy)
    with pytest.raises(InstallError, match=f"DaemonSet kruise-daemon in kruise-system: .*{policy}"):
        await carry_out(api.api, clock, [MigrationStep("start it", (patch(DAEMON, {"spec": {}}),))], print)
    assert clock.monotonic() == pytest.approx(seconds, abs=0.3)


async def test_a_policy_is_waited_for_until_the_apiserver_goes_by_it():
    clock = FakeClock()
    api = Remembering(clock, 1.5, STANDSTILL, late=True)
    await carry_out(api.api, clock, [refused()], print)
    assert clock.monotonic() == pytest.approx(1.6)
    assert api.tried == [{"dryRun": "All"}] * 9


async def test_another_refusal_does_not_pass_for_the_policy():
    clock = FakeClock()
    api = Remembering(clock, 1000, "of-others")
    with pytest.raises(InstallError, match="of-others"):
        await carry_out(api.api, clock, [refused()], print)


def refused() -> MigrationStep:
    return MigrationStep("refuse it", until=(PolicyEnforced(patch(DAEMON, {"spec": {}}), STANDSTILL),))


async def test_a_dead_node_does_not_hold_up_the_others():
    clock, api = FakeClock(), FakeApi()
    pod_to_end(api, ready="Unknown")
    await carry_out(api.api, clock, [WAIT], print)
    assert clock.monotonic() == pytest.approx(GRACE + OVERDUE_SECONDS, abs=0.3)


async def test_a_pod_on_a_node_that_works_is_waited_for():
    clock, api = FakeClock(), FakeApi()
    pod_to_end(api, ready="True")
    with pytest.raises(InstallError, match="kruise-daemon-x"):
        await carry_out(api.api, clock, [WAIT], print)
    assert clock.monotonic() == pytest.approx(PATIENCE_SECONDS, abs=0.3)
