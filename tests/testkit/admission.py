"""Admission of one kind over a fake apiserver."""

from typing import Any, cast

import jsonpatch  # pyright: ignore[reportMissingTypeStubs]
from prometheus_client import CollectorRegistry

from flotilla_common.api.admission.handlers import Verdict
from flotilla_common.api.admission.review import Answer, Named, Request
from flotilla_common.api.resources import CONFIG_MAP, Resource
from flotilla_common.gates import Gates
from flotilla_common.kube.reflector import HeadMeta, Sink
from flotilla_webhook.kinds import LiveTools, kind_handlers
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.protection import LiveCounts, Protection
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json
from tests.testkit.workloads import raw


def tools(cluster: FakeApi, gates: str = "") -> LiveTools:
    """Return what the admission of kinds reads of the cluster."""
    parsed = Gates.parse(gates)
    protection = Protection(parsed, LiveCounts(cluster.api), Metrics(CollectorRegistry()), lambda _: None)
    return LiveTools(cluster.api, FakeClock(), parsed, protection, "kruise-system")


def create(document: Json | None, namespace: str = "n", **more: Any) -> Request:
    """Return the request to admit a new object."""
    return Request(uid="u", operation="CREATE", namespace=namespace, object=document, **more)


def update(document: Json | None, old: Json | None, namespace: str = "n", **more: Any) -> Request:
    """Return the request to admit an update."""
    return Request(uid="u", operation="UPDATE", namespace=namespace, object=document, old_object=old, **more)


def written(document: Json | None, old: Json | None = None, namespace: str = "n", **more: Any) -> Request:
    """Return the request to admit a new object, or an update of an old one."""
    return update(document, old, namespace, **more) if old else create(document, namespace, **more)


def new_pod(document: Json | None, namespace: str = "n", **more: Any) -> Request:
    """Return the request to admit a new pod."""
    return create(document, namespace, resource=Named(version="v1", resource="pods"), **more)


def configure(cluster: FakeApi, **lists: str) -> None:
    """Store the administrators' configuration: white lists by their keys."""
    metadata = {"name": "kruise-configuration", "namespace": "kruise-system"}
    cluster.put(CONFIG_MAP, {"metadata": metadata, "data": lists})


async def listed(cache: Sink, cluster: FakeApi, resource: Resource) -> None:
    """List all stored objects of the resource into the cache, as its watch does."""
    await cache.listing("pages")
    for (plural, _, name), document in cluster.objects.items():
        if plural == resource.plural:
            await cache.listed(HeadMeta(name=name), raw(document))
    await cache.complete(str(cluster.version))


def applied(document: Json, answer: Answer) -> Json:
    """Return the document with the patch of the answer; the document itself stays as it is."""
    return cast("Any", jsonpatch).apply_patch(document, [operation.document() for operation in answer.patch])


class KindAdmission:
    """The webhook's handlers of a kind, over a fake apiserver that gives `verdict` on every pod template.

    `kind` is the end of their paths: `daemonset`, `v1alpha1-ephemeraljob`. `templates` are those that were checked.
    """

    def __init__(self, kind: str, *, gates: str = "", verdict: Verdict | Exception | None = None) -> None:
        self.kind = kind
        self.cluster = FakeApi()
        self.verdict = verdict or Verdict()
        self.templates: list[Json] = []
        self.tools = tools(self.cluster, gates)
        self.tools.template_verdict = self.check_template

    @property
    def asked(self) -> int:
        """The number of templates that were checked."""
        return len(self.templates)

    async def check_template(self, namespace: str, template: Json, claims: list[Json]) -> Verdict:
        """Give the verdict on a template."""
        self.templates.append(template)
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict

    async def handle(self, verb: str, request: Request) -> Answer:
        """Answer the request by the handler of `mutate` or `validate`."""
        return await kind_handlers(self.tools)[f"/{verb}-apps-kruise-io-{self.kind}"](request)

    async def mutate(self, request: Request) -> Answer:
        """Answer the request for mutation."""
        return await self.handle("mutate", request)

    async def validate(self, request: Request) -> Answer:
        """Answer the request for validation."""
        return await self.handle("validate", request)
