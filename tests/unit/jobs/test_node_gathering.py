"""The NodeImage gatherer's view of a new node, and the secrets that it reports as lost (imagepull.md §4)."""

from typing import Any

from flotilla_common.api.core import Node, Secret
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.control.keystate import Memory
from flotilla_jobs.nodeimage.controller import COPIES, IMAGES, NODES, Gatherer
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot, Options
from tests.support.controller_context import FakeContext
from tests.unit.imagepull.build import node, node_image, secret, tag

OPTIONS = Options(secrets_namespace="daemons")
WATCHES: dict[type[Any], Any] = {Node: NODES, NodeImage: IMAGES, Secret: COPIES}


def gathered(*objects: Any) -> NodeImageSnapshot | None:
    context = FakeContext()
    gatherer = Gatherer(context, OPTIONS)
    for one in objects:
        context.put(WATCHES[type(one)], one)
    return gatherer.gather(("", "n1"), Memory())


def test_a_node_that_has_no_image_yet():
    found = gathered(node("n1"))
    assert found == NodeImageSnapshot(name="n1", node=node("n1"), options=OPTIONS)
    assert found.options is OPTIONS
    assert gathered(node("n2")) is None


def test_lost_are_secrets_of_our_namespace_that_are_no_copies():
    references = [
        {"namespace": "elsewhere", "name": "not ours"},
        {"namespace": "daemons", "name": "copy", "mode": "batch"},
        {"namespace": "daemons", "name": "held"},
        {"namespace": "daemons", "name": "lost"},
    ]
    found = gathered(node_image("n1", [tag()], secrets=references), secret("held", "daemons"))
    assert found is not None
    assert found.lost_secrets == {("daemons", "lost")}
