"""Requests and checks shared by the tests of the agent's pulls."""

from typing import Any

import msgspec

from flotilla_common.api.kinds.nodeimage.types import (
    NODE_IMAGE,
    ImageSpec,
    ImageTag,
    NodeImage,
    NodeImageSpec,
    SecretReference,
    TagPullPolicy,
    TagStatus,
)
from flotilla_common.api.meta import ObjectMeta
from tests.support.node_hub import NODE
from tests.support.node_scene import Scene


def want(scene: Scene, *tags: ImageTag, image: str = "nginx", secrets: tuple[str, ...] = ()) -> None:
    """Request tags of an image."""
    held = scene.hub.objects.get(("nodeimages", "", NODE))
    if held is None:
        held = NodeImage(metadata=ObjectMeta(name=NODE, uid="u1"))
    references = [SecretReference(namespace="config", name=name) for name in secrets]
    images = {**held.spec.images, image: ImageSpec(tags=list(tags), pull_secrets=references)}
    scene.hub.put(NODE_IMAGE, msgspec.structs.replace(held, spec=NodeImageSpec(images=images)))


def tag(name: str = "1.25", version: int = 0, policy: str = "Always", **limits: Any) -> ImageTag:
    """Return a tag as a job writes it."""
    return ImageTag(tag=name, version=version, image_pull_policy=policy, pull_policy=TagPullPolicy(**limits))


def entry(scene: Scene, name: str = "1.25", image: str = "nginx") -> TagStatus:
    """Return the status of a tag in the node's report."""
    return scene.hub.image().entry(image, name) or TagStatus()


def begun(scene: Scene) -> list[float]:
    """Return when the runtime began to pull."""
    return [at for at, _, _, what in scene.machine.pulls if what == "begun"]


async def ready(scene: Scene) -> None:
    """Start an agent that has no work yet."""
    scene.start()
    await scene.at(3)
