"""What the NodeImage gatherer hands on of a new node, and which secrets it calls lost (imagepull.md §4)."""

from typing import Any, cast

from flotilla_common.api.core import Node
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.api.secrets import Secret
from flotilla_common.control.controller import Memory
from flotilla_common.mirror.table import Table
from flotilla_jobs.asking import Asking
from flotilla_jobs.nodeimage.gather import Gatherer
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot, Options
from tests.unit.imagepull.build import node, node_image, secret, tag
from tests.unit.jobs.test_gathering import Apiserver

OPTIONS = Options()


def gathered(*objects: Any) -> NodeImageSnapshot | None:
    tables: dict[type[Any], Table[Any]] = {kind: Table[Any]() for kind in (Node, NodeImage, Secret)}
    for one in objects:
        tables[type(one)].apply(one)
    gatherer = Gatherer(
        nodes=tables[Node],
        images=tables[NodeImage],
        jobs=Table[ImagePullJob](),
        secrets=tables[Secret],
        secrets_namespace="daemons",
        report=lambda _: None,
        asking=cast("Asking", Apiserver()),
        again=lambda *_: None,
        options=OPTIONS,
    )
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
