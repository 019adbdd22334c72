"""Whether an image is on the node already: names compare in their normal form, whatever the runtime calls them."""

from flotilla_common.api.images import ImageName
from flotilla_nodeagent.cri.types import Image


def find(images: list[Image], name: str, tag: str) -> Image | None:
    """The image by name and tag (or digest)."""
    for image in images:
        for listed in (*image.tags, *image.digests):
            if _same(listed, name, tag):
                return image
    return None


def _same(listed: str, name: str, tag: str) -> bool:
    try:
        parsed = ImageName.parse(listed.removeprefix("docker-pullable://"))
    except ValueError:
        return False  # `<none>:<none>` and the like
    return (parsed.name, parsed.tag) == (name, tag)
