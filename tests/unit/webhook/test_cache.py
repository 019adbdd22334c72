"""What the webhook's cache takes from a list that is streamed."""

import msgspec

from flotilla_common.api.resources import CONFIG_MAP
from flotilla_common.kube.reflector import HeadMeta, decode_head
from flotilla_webhook.cache import Cache


def version(name: str, number: int) -> tuple[HeadMeta, msgspec.Raw]:
    raw = msgspec.json.encode({"metadata": {"name": name, "namespace": "n", "resourceVersion": str(number)}})
    return decode_head(raw).metadata, msgspec.Raw(raw)


async def test_changes_within_a_list_belong_to_it() -> None:
    cache = Cache(CONFIG_MAP, lambda item: decode_head(item).metadata, lambda head: head.resource_version)
    await cache.listing("streamed")
    for name, number in (("a", 1), ("b", 2), ("a", 4)):
        await cache.listed(*version(name, number))
    await cache.unlisted(*version("b", 5))
    assert not cache.known
    await cache.complete("5")
    assert [(head.name, head.resource_version) for head in cache.values()] == [("a", "4")]
