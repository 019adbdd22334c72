"""The apiserver of the site: it answers what the mirror does not know, and decides who may do what."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from flotilla_common.api.resources import Resource
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

ADMIN, SHOPKEEPER, NOBODY = "admin", "shopkeeper", "nobody"
"""Users: one who may do everything, one who may do everything in the namespace `shop`, one who may do nothing."""

SPACES: Mapping[str, frozenset[str] | None] = {ADMIN: None, SHOPKEEPER: frozenset({"shop"}), NOBODY: frozenset()}
"""The namespaces in which a user may do everything; None: all, and what has none."""

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

_OBJECT = re.compile(
    r"/(?:api/v1|apis/[^/]+/[^/]+)/(?:namespaces/(?P<namespace>[^/]+)/)?(?P<plural>[a-z]+)/(?P<name>[^/?]+)$"
)


class SiteApi(FakeApi):
    """An apiserver with users."""

    def __init__(self) -> None:
        super().__init__(page_size=500)
        self.reviews = 0
        """Number of the SubjectAccessReviews."""

    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        if resource.plural == "subjectaccessreviews":
            return self._reviewed(body)
        return await super().create(resource, namespace, body, dry_run=dry_run)

    async def raw(self, method: str, path: str, *arguments: Any, **more: Any) -> bytes:
        if path == REVIEWS:
            body = next(one for one in (*arguments, *more.values()) if isinstance(one, bytes))
            return self._reviewed(body)
        if path.partition("?")[0].endswith("/events"):
            return msgspec.json.encode({"kind": "EventList", "apiVersion": "v1", "items": []})
        if method == "GET" and (found := _OBJECT.match(path)):
            document = self.objects.get((found["plural"], found["namespace"] or "", found["name"]))
            if document is not None:
                return msgspec.json.encode(document)
        return await super().raw(method, path, *arguments, **more)

    def _reviewed(self, body: bytes) -> bytes:
        self.reviews += 1
        review: Json = msgspec.json.decode(body)
        spec = review["spec"]
        spaces = SPACES.get(spec.get("user", ""), frozenset())
        namespace = spec.get("resourceAttributes", {}).get("namespace", "")
        return msgspec.json.encode(review | {"status": {"allowed": spaces is None or namespace in spaces}})
