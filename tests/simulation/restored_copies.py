"""Creates what a backup leaves that was restored in another namespace: copies that keep their owner references.

An owner with a namespace owns nothing outside of it: no controller may count, adopt, change or delete such a copy. Two
of the first dependents of each owner are copied: one stays, the other is terminating without end. Pods among them are
Ready and older than all others; revisions have the names of the owner's, templates of their own, and the lowest and the
highest number.
"""

import asyncio
from collections import Counter
from contextvars import Context

from flotilla_common.api.documents import mapping, mappings, member
from flotilla_common.api.meta import group_of
from flotilla_common.api.resources import CLAIM, POD, REVISION
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.history import Version

RESTORED_NAMESPACE = "restored"
COPIED = (POD, REVISION, CLAIM)
"""The resources that are copied. The other dependents are workloads themselves, with controllers in every namespace."""

RESTORER = "restorer"
GROUP = "apps.kruise.io"
SIDECARS = "kruise.io/sidecarset-"
_LONG_AGO = "2020-01-01T00:00:00Z"
_NUMBERS = (-1, 1_000_000)


class RestoredCopies:
    """Makes them as their originals come. Must be made inside the running loop."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._made: Counter[tuple[str, str]] = Counter()
        self._loop = asyncio.get_running_loop()
        server.history.listeners.append(self._see)

    def _see(self, version: Version) -> None:
        original = version.after
        if original is None or version.before is not None or version.resource not in COPIED:
            return
        owner = _owner_of(original)
        number = self._made[owner, version.resource.id]
        if owner and version.namespace != RESTORED_NAMESPACE and number < len(_NUMBERS):
            self._made[owner, version.resource.id] += 1
            # Not at once: everybody is to see the original first.
            self._loop.call_soon(self._make, version, number, context=Context())

    def _make(self, version: Version, number: int) -> None:
        assert version.after is not None
        copy = version.after | {"metadata": self._metadata(version.after["metadata"], leaving=number > 0)}
        if version.resource == POD:
            copy |= {"spec": {"nodeName": "node-1", **copy["spec"]}, "status": _ready(copy)}
        elif version.resource == REVISION:
            copy |= {"revision": _NUMBERS[number], "data": _foreign(copy["data"])}
        store = self._server.store
        store.put(store.table(version.resource), (RESTORED_NAMESPACE, version.name), copy, RESTORER)

    def _metadata(self, original: Json, *, leaving: bool) -> Json:
        # SidecarSets are of all namespaces: what they have injected is no stranger to them.
        annotations = {
            key: value for key, value in mapping(original.get("annotations")).items() if not key.startswith(SIDECARS)
        }
        made = original | {
            "annotations": annotations,
            "namespace": RESTORED_NAMESPACE,
            "uid": self._server.store.fresh_uid(),
            "creationTimestamp": _LONG_AGO,
            "finalizers": ["example.com/kept"],
        }
        return made | ({"deletionTimestamp": _LONG_AGO, "deletionGracePeriodSeconds": 0} if leaving else {})


def _owner_of(document: Json) -> str:
    """Return the uid of the workload of ours that controls the object; empty if none does."""
    references = mappings(document["metadata"].get("ownerReferences"))
    ours = (one for one in references if one.get("controller") and group_of(one["apiVersion"]) == GROUP)
    return next((str(one["uid"]) for one in ours if one["kind"] != "SidecarSet"), "")


def _ready(pod: Json) -> Json:
    gates = [gate["conditionType"] for gate in mappings(pod["spec"].get("readinessGates"))]
    met = [
        {"type": kind, "status": "True", "lastTransitionTime": _LONG_AGO}
        for kind in ("Ready", "ContainersReady", *gates)
    ]
    return {"phase": "Running", "conditions": met}


def _foreign(data: Json) -> Json:
    """Return the revision's data with images of no other revision."""
    template = member(data, "spec", "template")
    spec = member(template, "spec")
    containers = [one | {"image": "stranger"} for one in mappings(spec.get("containers"))]
    return data | {"spec": data["spec"] | {"template": template | {"spec": spec | {"containers": containers}}}}
