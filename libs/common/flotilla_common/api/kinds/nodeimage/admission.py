"""Admission of NodeImages (imagepull.md §3)."""

from flotilla_common.api.admission.plain import defaulted, judged
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.kinds.nodeimage.defaults import default_node_image
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.api.kinds.nodeimage.validation import node_image_problem


async def mutate(request: Request, tools: Tools) -> Answer:
    """Limits, times and order of tags."""
    return defaulted(request, NodeImage, lambda it: default_node_image(it, tools.now()))


async def validate(request: Request, tools: Tools) -> Answer:
    """The first fault (400)."""
    return judged(request, NodeImage, lambda _: node_image_problem(request.object or {}))
