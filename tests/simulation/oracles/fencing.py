"""Fencing: a replica that writes for a shard holds its lease at that moment, by the apiserver's own record."""

from collections.abc import Iterator

from flotilla_common.api.resources import EVENT
from flotilla_common.control.shards import shard_of
from tests.simulation.oracles.view import Commit, View

ON_THE_WAY = 0.01
"""Fake seconds that a renewal and a write may have been in flight."""


def holds_the_lease(view: View, commit: Commit) -> Iterator[str]:
    """Check that a writer holds its shard's lease, and that the lease has not expired (architecture.md §5).

    Events are exempt: they report what a replica did while it held the lease. So is the webhook, of which every replica
    answers: its write holds for one version of one object.
    """
    version = commit.version
    service = version.writer.rpartition("-")[0]
    if not commit.ours or service == "webhook" or version.resource == EVENT:
        return
    shards = sum(name.removeprefix(f"flotilla-{service}-").isdigit() for name in view.leases)
    name = commit.workload.name if commit.workload is not None else version.name
    index = shard_of(version.namespace, name, shards) if shards else 0
    spec, written = view.leases.get(f"flotilla-{service}-{index}", ({}, 0.0))
    holder = str(spec.get("holderIdentity") or "")
    if holder != version.writer and not holder.startswith(f"{version.writer}-"):
        yield f"writes {version.resource.plural} {version.name}, while {holder or 'nobody'} holds shard {index}"
    elif view.at > written + float(spec["leaseDurationSeconds"]) + ON_THE_WAY:
        yield f"writes {version.resource.plural} {version.name} on a lease that ran out"
