"""Small worlds for the console: a model with a few objects, and identities with certain rights."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import POD, REVISION, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_console.access.identity import Identity
from flotilla_console.blocks.types import Table
from flotilla_console.model.model import Model
from flotilla_console.model.sight import Sight
from flotilla_console.model.workload import Workload
from flotilla_console.page import Page, PageRequest
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import START, FakeClock
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import typed
from tests.testkit.pods import container, pod

NOW = START.timestamp()
CREATED = "2025-12-31T23:00:00Z"


class Everything:
    """All rights."""

    def may(self, verb: str, group: str, plural: str, namespace: str, subresource: str = "") -> bool:
        return True


class Only:
    """The right to list certain resources, by plural, in certain namespaces."""

    def __init__(self, **namespaces: Collection[str]) -> None:
        self._namespaces = namespaces

    def may(self, verb: str, group: str, plural: str, namespace: str, subresource: str = "") -> bool:
        return verb == "list" and not subresource and namespace in self._namespaces.get(plural, ())


class World:
    """A model that tests fill."""

    def __init__(self) -> None:
        self.bus = FakeBus()
        self.clock = FakeClock()
        self.model = Model(api=FakeApi().api, bus=self.bus, clock=self.clock)
        self._version = 0

    def add(self, resource: Resource, document: Json) -> None:
        """Add an object, or its next version."""
        self._version += 1
        document["metadata"]["resourceVersion"] = str(self._version)
        document["metadata"].setdefault("uid", f"uid-{document['metadata']['name']}")
        self.model.mirror.written(resource, msgspec.json.encode(document))

    def put(
        self,
        resource: Resource,
        name: str,
        namespace: str = "shop",
        /,
        *,
        spec: Any = None,
        status: Any = None,
        **meta: Any,
    ) -> None:
        """Add an object of this resource."""
        meta = {"generation": 1, "created": CREATED} | meta
        self.add(resource, typed(resource, name, namespace, spec=spec or {}, status=status or {}, **meta))

    def clone_set(self, name: str = "web", namespace: str = "shop", /, **given: Any) -> None:
        """Add a CloneSet; `given`: members of its status, and its `image`, `labels` and `spec`."""
        spec = {
            "replicas": 3,
            "selector": {"matchLabels": {"app": name}},
            "template": template(given.pop("image", "nginx:1"), app=name),
        } | given.pop("spec", {})
        meta = {member: given.pop(member) for member in ("labels", "generation", "uid") if member in given}
        status = {
            "observedGeneration": 1,
            "replicas": 3,
            "readyReplicas": 3,
            "updatedReplicas": 3,
            "updateRevision": f"{name}-2",
            "currentRevision": f"{name}-2",
        } | given
        self.put(CLONE_SET, name, namespace, spec=spec, status=status, **meta)

    def pod(
        self, name: str, namespace: str = "shop", /, *, owner: Json | None = None, ready: bool = True, **given: Any
    ) -> None:
        """Add a pod on revision `web-2` with one container."""
        image = given.pop("image", "nginx:1")
        state = {"running": {"startedAt": CREATED}} if ready else {"waiting": {"reason": "ImagePullBackOff"}}
        default: dict[str, Any] = {
            "phase": "Running",
            "node": "node-1",
            "containers": [container(image=image)],
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": CREATED}],
            "statuses": [{"name": "main", "image": image, "ready": ready, "state": state}],
            "labels": {"app": "web", "controller-revision-hash": "web-2"},
            "created": CREATED,
            "ownerReferences": [owner or owned_by(CLONE_SET, "web")],
        }
        self.add(POD, pod(name, namespace, **default | given))

    def revision(self, name: str, number: int, image: str, owner: Json | None = None) -> None:
        """Add a ControllerRevision of the CloneSet `web`."""
        meta = {"name": name, "namespace": "shop", "ownerReferences": [owner or owned_by(CLONE_SET, "web")]}
        self.add(REVISION, {"metadata": meta, "revision": number, "data": {"spec": {"template": template(image)}}})

    def explain(self, resource: Resource, name: str, *reasons: Mapping[str, Any], **record: Any) -> None:
        """Publish reasons for an object of namespace `shop`."""
        body = {"uid": f"uid-{name}", "generation": 1, "at": rfc3339(START), "service": "cloneset", "reasons": reasons}
        subject = subjects.why(resource, "shop", name)
        self.model.reasons.take(Message(subject=subject, data=msgspec.json.encode(body | record)))

    def sight(self, allowed: Any = None) -> Sight:
        """Return what may be seen."""
        return Sight(self.model, allowed or Everything())

    def workload(self, resource: Resource, name: str, namespace: str = "shop") -> Workload:
        """Return a workload that exists."""
        found = self.sight().workload(resource.group, resource.plural, namespace, name)
        assert found is not None
        return found

    def request(self, allowed: Any = None, read: object = None, query: Any = None, **params: str) -> PageRequest:
        """Return a request for a page."""
        return PageRequest(
            path="/",
            params=params,
            query=query or {},
            sight=self.sight(allowed),
            identity=Identity(user="jane"),
            now=NOW,
            read=read,
        )


def owned_by(resource: Resource, name: str) -> Json:
    """Return a reference to the controller of an object."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name,
        "uid": f"uid-{name}",
        "controller": True,
    }


def template(image: str, **labels: str) -> Json:
    """Return a pod template."""
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}


def table(page: Page | None, identity: str) -> Table:
    """Return the table of a page, wherever it is on it."""
    assert page is not None
    return next(block for block in _blocks(page.blocks) if isinstance(block, Table) and block.id == identity)


def _blocks(blocks: Any) -> Any:
    for block in blocks:
        yield block
        yield from _blocks(getattr(block, "blocks", ()))


def texts(page: Any) -> str:
    """Return a page, a block or a cell as JSON, to look for words in it."""
    return msgspec.json.encode(page).decode()


def column(found: Table, name: str) -> list[str]:
    """Return the text of a column's cells."""
    index = [one.id for one in found.columns].index(name)
    return ["".join(getattr(span, "text", "") for span in row.cells[index]) for row in found.rows]
