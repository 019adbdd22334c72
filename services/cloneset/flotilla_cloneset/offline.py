"""CloneSets planned away from the service, from recorded messages (`flotilla replay`)."""

import msgspec

from flotilla_cloneset.cloneset.plan import plan
from flotilla_cloneset.cloneset.snapshot import Options
from flotilla_cloneset.gather import OWNER, PULL_AHEAD, CloneSetTables, Gatherer, owner_uids
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CLAIM, POD, REVISION
from flotilla_common.control.offline import Bench, Offline, Planning, Tables, bench
from flotilla_common.gates import Gates

DEPENDENTS = (POD, CLAIM, REVISION)


def _bench(tables: Tables, planning: Planning) -> Bench:
    pods = tables.add(POD, Pod, {OWNER: owner_uids})
    options = msgspec.convert(planning.options, Options)
    gates = Gates.parse(planning.gates)
    own = CloneSetTables.of(tables, pods, pull_ahead=gates.on(PULL_AHEAD))
    return bench(Gatherer(own, gates, options).gather, plan)


CLONE_SETS = Offline(resource=CLONE_SET, dependents=DEPENDENTS, bench=_bench)
