"""What a snapshot takes from the mirror and from the pass before."""

from flotilla_cloneset.cloneset.snapshot import Options
from flotilla_cloneset.gather import ORPHANS, OWNER, CloneSetTables, Gatherer, orphan_namespace, owner_uids
from flotilla_common.api.cloneset import CloneSet
from flotilla_common.api.core import ControllerRevision, Node, PersistentVolumeClaim, Pod
from flotilla_common.api.resources import CLAIM, POD, REVISION
from flotilla_common.control.controller import Memory
from flotilla_common.gates import Gates
from flotilla_common.mirror.table import Table
from tests.unit.cloneset.build import cloneset


def test_only_pods_of_unknown_outcome_lend_their_ids() -> None:
    clonesets = Table[CloneSet]()
    clonesets.apply(cloneset().build())
    tables = CloneSetTables(
        clonesets=clonesets,
        pods=Table[Pod]({OWNER: owner_uids}),
        claims=Table[PersistentVolumeClaim]({OWNER: owner_uids}),
        revisions=Table[ControllerRevision]({OWNER: owner_uids, ORPHANS: orphan_namespace}),
        nodes=Table[Node](),
    )
    gatherer = Gatherer(tables, Gates.parse(""), Options())
    unconfirmed = ((REVISION, "sample-d4d4fb5bd"), (CLAIM, "sample-sample-x2k9d"), (POD, "sample-x2k9d"))
    snapshot = gatherer.gather(("default", "sample"), Memory(unconfirmed=unconfirmed))
    assert snapshot is not None
    assert snapshot.pending_ids == ("x2k9d",)
