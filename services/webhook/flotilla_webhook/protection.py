"""Deletion protection: a label on an object that refuses its deletion (deletionprotection.md).

The label is read from the stored object in the request, never from a cache: its owner may have removed it a moment ago.
The objects below a namespace or a CRD are listed live, and only when a labelled one is deleted.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import structlog

from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error, identity
from flotilla_common.api.documents import Json, mappings, member, strings, text
from flotilla_common.api.webhooks import DELETE_PROTECTION
from flotilla_common.gates import Gates
from flotilla_common.legacy_counter import LegacyCounter
from flotilla_webhook.live_counts import CountError, LiveCounts
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.wire import Handler

CASCADING_CRDS = "DeletionProtectionForCRDCascadingGate"
"""The gate that protects CRDs while they have objects."""

_PREFIX = "forbidden by ResourcesProtectionDeletion for "
_ALWAYS = f"{_PREFIX}{DELETE_PROTECTION}=Always"
_CASCADING = f"{_PREFIX}{DELETE_PROTECTION}=Cascading and "
_CRD_VERSIONS = ("v1", "v1beta1")

Check = Callable[[Json], Awaitable[str]]
"""Returns why an object labelled Cascading must stay, or "" if nothing alive is below it."""

_log = structlog.get_logger()


class Protection(msgspec.Struct, frozen=True):
    """The rules, the counts that they need, and the records of refusals."""

    gates: Gates
    counts: LiveCounts
    metrics: Metrics
    record: Callable[[bytes], None]

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of the native kinds, by path."""
        paths: dict[str, Handler] = {
            "/validate-apps-deployment": self.workload,
            "/validate-apps-replicaset": self.workload,
            "/validate-apps-statefulset": self.workload,
            "/validate-namespace": self.namespace,
            "/validate-customresourcedefinition": self.definition,
        }
        if self.gates.on("ResourcesDeletionProtection"):
            paths |= {"/validate-service": self.unrecorded, "/validate-ingress": self.unrecorded}
        return paths

    async def workload(self, request: Request) -> Answer:
        """Check a workload: Cascading refuses while replicas are wanted, regardless of the number of pods."""
        return await self._decide(request, _replicas_wanted, self.metrics.workloads)

    async def namespace(self, request: Request) -> Answer:
        """Check a namespace: Cascading refuses while active pods or bound claims are in it."""
        return await self._decide(request, self._occupied, self.metrics.namespaces)

    async def definition(self, request: Request) -> Answer:
        """Check a CRD: Cascading refuses while custom resources of it exist."""
        if request.kind.version not in _CRD_VERSIONS:
            return ALLOWED
        return await self._decide(request, self._in_use, self.metrics.definitions)

    async def unrecorded(self, request: Request) -> Answer:
        """Check a Service or Ingress: only Always, no metric, no record."""
        return await self._decide(request, None, None)

    async def _decide(self, request: Request, cascading: Check | None, counter: LegacyCounter | None) -> Answer:
        old = request.old_object
        if request.operation != "DELETE" or request.sub_resource or old is None:
            return ALLOWED
        if not isinstance(old.get("metadata"), dict):
            return error(400, "the old object has no metadata")
        if not self.gates.on("ResourcesDeletionProtection") or member(old, "metadata").get("deletionTimestamp"):
            return ALLOWED
        label = strings(member(old, "metadata").get("labels")).get(DELETE_PROTECTION)
        why = _ALWAYS if label == "Always" else ""
        if label == "Cascading" and cascading is not None:
            why = await cascading(old)
        if not why:
            return ALLOWED
        if counter is not None:
            self._count(request, old, counter)
        return error(403, why)

    def _count(self, request: Request, old: Json, counter: LegacyCounter) -> None:
        namespace, name = identity(old, request)
        kind, user = request.kind.kind, request.user_info.username
        series = f"{kind}_{namespace}_{name}" if counter is self.metrics.workloads else name
        counter.count(series, user)
        line = {"Event": "DeletionProtection", "Kind": kind, "Namespace": namespace, "Name": name, "UserAgent": user}
        self.record(msgspec.json.encode(line))

    async def _occupied(self, namespace: Json) -> str:
        name = text(member(namespace, "metadata").get("name"))
        try:
            pods = await self.counts.active_pods(name)
        except CountError as failure:
            return f"{_PREFIX}list pods error: {failure}"
        if pods:
            return f"{_CASCADING}active pods {pods}>0"
        try:
            claims = await self.counts.bound_claims(name)
        except CountError as failure:
            return f"{_PREFIX}list pvc error: {failure}"
        return f'{_CASCADING}"Bound" status pvc {claims}>0' if claims else ""

    async def _in_use(self, definition: Json) -> str:
        if not self.gates.on(CASCADING_CRDS):
            return f"feature-gate {CASCADING_CRDS} is not enabled"
        meta = member(definition, "metadata")
        try:  # never trust the request: any client of the webhook may have made it up
            stored = await self.counts.definition(text(meta.get("name")), text(meta.get("uid")))
        except CountError as failure:
            return f"failed to get the CRD: {failure}"
        spec = member(stored, "spec")
        versions = [text(item.get("name")) for item in mappings(spec.get("versions")) if item.get("storage") is True]
        group, version = text(spec.get("group")), versions[0] if versions else text(spec.get("version"))
        names = member(spec, "names")
        try:
            living = await self.counts.custom_resources(group, version, text(names.get("plural")))
        except CountError as failure:
            return f"failed to list CRs of {group}/{version}, Kind={text(names.get('listKind'))}: {failure}"
        return f"{_CASCADING}active CRs {living}>0" if living else ""


async def _replicas_wanted(workload: Json) -> str:
    replicas = member(workload, "spec").get("replicas")
    wanted = replicas if isinstance(replicas, int) else 0
    return f"{_CASCADING}replicas {wanted}>0" if wanted > 0 else ""


def recorder(directory: str) -> Callable[[bytes], None]:
    """Return a function that appends the record of a refused deletion to protection.log in the directory (§4).

    Without a directory, it logs the record. Raises OSError when the directory cannot be created.
    """
    if not directory:
        return lambda line: _log.info("deletion refused", record=line.decode())
    path = Path(directory) / "protection.log"
    path.parent.mkdir(parents=True, exist_ok=True)

    def append(line: bytes) -> None:
        with path.open("ab") as file:
            file.write(line + b"\n")

    return append
