"""Writes what agents report about the containers of a pod into an annotation of the pod (common.md §9.8).

A node may only report on pods that run on it. The annotation is written through the pod's status subresource, as all
that the kubelet's side writes to a pod.
"""

from collections.abc import Callable

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import RUNTIME_CONTAINERS_META
from flotilla_common.api.meta import Model
from flotilla_common.api.resources import POD
from flotilla_common.control.executor import Executor
from flotilla_common.control.fence import Fence
from flotilla_common.control.objectref import ObjectRef
from flotilla_common.control.plan import Intent, Outcome, OutcomeKind, PatchType
from flotilla_common.control.writes import patch_of
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.mirror.table import Table
from flotilla_common.node.lookups import Lookups, TooOften
from flotilla_common.node.reports import Answer, PodReport
from flotilla_common.node.serving import Sender

SIZE_LIMIT = 64 << 10
"""Maximum size of the annotation in bytes, enough for 250 containers; an agent never writes more."""

_HOPELESS = frozenset({OutcomeKind.NOT_FOUND, OutcomeKind.GONE, OutcomeKind.INVALID, OutcomeKind.DENIED})


class _Named(Model):
    name: str


class _Meta(Model):
    containers: list[_Named] = []


class ContainerReports(msgspec.Struct, frozen=True, kw_only=True):
    """Checks and writes reports about pods."""

    pods: Table[Pod]
    lookups: Lookups
    executor: Executor
    fence: Callable[[str, str], Fence]  # may this replica write for namespace and name?

    async def receive(self, sender: Sender, report: PodReport) -> Answer | None:
        """Return the answer to a report, or None if another replica answers it."""
        fence = self.fence(sender.namespace, sender.name)
        if not fence.may_send():
            return None
        try:
            pod = await self._pod(sender, report.uid)
        except (ApiError, Unreachable, TooOften) as error:
            return Answer(why=f"cannot read from the apiserver: {error}", again=True)
        if why := problem(pod, sender, report):
            return Answer(why=why)
        assert pod is not None
        if pod.metadata.annotations.get(RUNTIME_CONTAINERS_META) == report.runtime_containers_meta:
            return Answer(accepted=True, resource_version=pod.metadata.resource_version)
        return _answer(await self._write(pod, report, fence))

    async def _pod(self, sender: Sender, uid: str) -> Pod | None:
        """Return the pod of this uid, reading it from the apiserver if the agent saw it before our watch did."""
        key = (sender.namespace, sender.name)

        def held() -> Pod | None:
            pod = self.pods.get(*key)
            return pod if pod is not None and pod.metadata.uid == uid else None

        return await self.lookups.find(sender.node, POD, key, uid, held)

    async def _write(self, pod: Pod, report: PodReport, fence: Fence) -> Outcome:
        meta = pod.metadata
        patch = patch_of(
            POD,
            meta,
            Intent.UPDATE,
            "container metadata from the node's agent",
            body={"metadata": {"annotations": {RUNTIME_CONTAINERS_META: report.runtime_containers_meta}}},
            patch_type=PatchType.STRATEGIC,
            subresource="status",
        )
        return await self.executor.single(ObjectRef.of(POD, meta), patch, fence, meta.uid[:8])


def problem(pod: Pod | None, sender: Sender, report: PodReport) -> str:
    """Return why the report is refused, or "" if it is accepted."""
    if pod is None:
        return f"there is no such pod with uid {report.uid}"
    if pod.spec.node_name != sender.node:
        return f"the pod runs on node {pod.spec.node_name}"
    if len(report.runtime_containers_meta) > SIZE_LIMIT:
        return "the annotation is too large"
    try:
        meta = read_json(report.runtime_containers_meta, _Meta)
    except ValueError as error:
        return f"the annotation cannot be read: {error}"
    strangers = {one.name for one in meta.containers} - {one.name for one in pod.spec.containers}
    return f"the pod has no container {min(strangers)}" if strangers else ""


def _answer(outcome: Outcome) -> Answer:
    if outcome.ok:
        return Answer(accepted=True, resource_version=outcome.version)
    return Answer(why=f"{outcome.kind}: {outcome.message}", again=outcome.kind not in _HOPELESS)
