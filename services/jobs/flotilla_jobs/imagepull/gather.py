"""From mirror tables to snapshots: a job, its nodes, its secrets, and the list that it may belong to."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.api.meta import Object, controller_of, group_of
from flotilla_common.api.secrets import Secret
from flotilla_common.control.controller import Key, Memory
from flotilla_common.mirror.table import Table
from flotilla_jobs.imagepull.order import node_order
from flotilla_jobs.imagepull.secrets import REFERENCES, SOURCE, references_of
from flotilla_jobs.imagepull.selection import matching_pods, selected
from flotilla_jobs.imagepull.snapshot import Options, PullJobSnapshot

NAMESPACE = "namespace"
"""Index: objects by their namespace."""

LINKS = "links"
"""Index: secrets by the source that they are copies of, and by the jobs that use them."""


def namespace_of(obj: Object) -> Iterable[str]:
    """The namespace, as an index wants it."""
    return (obj.metadata.namespace,)


def links(secret: Secret) -> Iterable[tuple[str, str]]:
    """(annotation, value) for what a copy is of, and for each job that uses it."""
    source = secret.metadata.annotations.get(SOURCE)
    jobs = [(REFERENCES, key) for key in references_of(secret)]
    return [(SOURCE, source), *jobs] if source else jobs


def is_active(job: ImagePullJob) -> bool:
    """The job is neither over nor on its way out."""
    return job.status.completion_time is None and job.metadata.deletion_timestamp is None


class PullTables(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to plan with."""

    jobs: Table[ImagePullJob]  # with the indexes of `triggers`
    lists: Table[ImageListPullJob]
    images: Table[NodeImage]
    pods: Table[Pod]  # with the index NAMESPACE
    secrets: Table[Secret]  # of the namespace of copies, with the index LINKS
    clonesets: Table[CloneSet] | None  # where workloads make jobs


class Gatherer:
    """Builds the snapshot of one job. `sources` reads its pull secrets."""

    def __init__(
        self,
        tables: PullTables,
        sources: Callable[[ImagePullJob], Mapping[str, Secret | None]],
        options: Options,
    ) -> None:
        self._tables = tables
        self._sources = sources
        self._options = options

    def keys(self) -> list[Key]:
        """All jobs."""
        return [(job.metadata.namespace, job.metadata.name) for job in self._tables.jobs]

    def gather(self, key: Key, memory: Memory) -> PullJobSnapshot | None:
        """The job and its surroundings; None when it does not exist."""
        job = self._tables.jobs.get(*key)
        if job is None:
            return None
        copies = self._copies(job)
        snapshot = PullJobSnapshot(
            job=job,
            copies=copies,
            taken=_Names(self._tables.secrets, self._options.secrets_namespace),
            of_running_list=self._of_running_list(job),
            options=self._options,
        )
        return self._with_nodes(snapshot) if is_active(job) else snapshot

    def _with_nodes(self, snapshot: PullJobSnapshot) -> PullJobSnapshot:
        job, tables = snapshot.job, self._tables
        try:
            everyone = tables.pods.by_index(NAMESPACE, job.metadata.namespace)
            pods = matching_pods(job, everyone)
            nodes = selected(job, tables.images, pods)
        except ValueError as fault:
            return msgspec.structs.replace(snapshot, problem=str(fault))
        own = job.metadata.namespace == self._options.secrets_namespace
        return msgspec.structs.replace(
            snapshot,
            nodes=nodes,
            order=node_order(job, pods, tables.clonesets),
            sources={} if own else self._sources(job),
        )

    def _copies(self, job: ImagePullJob) -> Sequence[Secret]:
        """Copies of the job's sources, and those that refer to it; not those on their way out."""
        namespace = job.metadata.namespace
        wanted = [(SOURCE, f"{namespace}/{name}") for name in job.spec.pull_secrets]
        wanted.append((REFERENCES, f"{namespace}/{job.metadata.name}"))
        found = {
            secret.metadata.name: secret for link in wanted for secret in self._tables.secrets.by_index(LINKS, link)
        }
        return [found[name] for name in sorted(found) if found[name].metadata.deletion_timestamp is None]

    def _of_running_list(self, job: ImagePullJob) -> bool:
        parent = list_of(job)
        if parent is None:
            return False
        found = self._tables.lists.get(*parent)
        return (
            found is not None
            and found.status.completion_time is None
            and found.metadata.deletion_timestamp is None
            and any(owner.uid == found.metadata.uid for owner in job.metadata.owner_references)
        )


def list_of(job: ImagePullJob) -> Key | None:
    """The ImageListPullJob that controls the job."""
    owner = controller_of(job.metadata)
    ours = (IMAGE_LIST_PULL_JOB.group, IMAGE_LIST_PULL_JOB.kind)
    if owner is None or (group_of(owner.api_version), owner.kind) != ours:
        return None
    return job.metadata.namespace, owner.name


class _Names:
    """Names of the secrets of one namespace."""

    def __init__(self, secrets: Table[Secret], namespace: str) -> None:
        self._secrets = secrets
        self._namespace = namespace

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._secrets.get(self._namespace, name) is not None
