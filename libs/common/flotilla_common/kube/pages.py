"""LISTs, page by page."""

from collections.abc import AsyncIterator

from flotilla_common.api.resources import Resource
from flotilla_common.kube.interface import Api, Page

PAGE_SIZE = 500
"""Objects per page: about 2 MB of pods, so neither side holds a large cluster in one buffer."""


async def pages(
    api: Api,
    resource: Resource,
    namespace: str = "",
    *,
    label_selector: str = "",
    field_selector: str = "",
    limit: int = PAGE_SIZE,
    metadata_only: bool = False,
) -> AsyncIterator[Page]:
    """Yield all pages of one consistent LIST. Raises ApiError and Unreachable."""
    token = ""
    while True:
        page = await api.list(
            resource,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            token=token,
            metadata_only=metadata_only,
        )
        yield page
        token = page.next_token
        if not token:
            return
