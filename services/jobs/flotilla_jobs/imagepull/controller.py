"""The ImagePullJob controller: what it watches and writes, and how it builds snapshots."""

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from flotilla_common.api.core import Pod, Secret
from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.meta import controller_of, group_of
from flotilla_common.api.resources import POD, SECRET
from flotilla_common.control import spec
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import IN_NAMESPACE, AccessRule, Near, Pods, Trigger, Watch, namespace_of
from flotilla_common.settings import Settings
from flotilla_jobs.enabled import jobs_off
from flotilla_jobs.imagepull.plan import plan
from flotilla_jobs.imagepull.secret_copies import REFERENCES, SOURCE, references_of
from flotilla_jobs.imagepull.selection import is_active, matching_pods, node_order, selected
from flotilla_jobs.imagepull.snapshot import Options, PullJobSnapshot
from flotilla_jobs.imagepull.source_secrets import SourceSecrets
from flotilla_jobs.imagepull.triggers import INDEXES, Triggers, by_pod

LINKS = "links"
"""Index of secrets: by the source that they are copies of, and by the jobs that use them."""


def links(secret: Secret) -> Iterable[tuple[str, str]]:
    """Return (annotation, value) for the source of a copy, and for each job that uses it."""
    source = secret.metadata.annotations.get(SOURCE)
    jobs = [(REFERENCES, key) for key in references_of(secret)]
    return [(SOURCE, source), *jobs] if source else jobs


def may_be_selected(job: Json, pod: Json) -> bool:
    """Report whether the job chooses nodes by pods of this pod's namespace."""
    same = member(job, "metadata").get("namespace") == member(pod, "metadata").get("namespace")
    return same and bool(member(job, "spec").get("podSelector"))


def is_owner(job: Json, other: Json) -> bool:
    """Report whether the object owns the job."""
    uid = member(other, "metadata").get("uid")
    return any(owner.get("uid") == uid for owner in mappings(member(job, "metadata").get("ownerReferences")))


JOBS = Watch(
    IMAGE_PULL_JOB,
    ImagePullJob,
    owner=IMAGE_LIST_PULL_JOB,
    indexes=INDEXES,
    writes=("delete", "patch"),
    subresources=("status",),
)
LISTS = Watch(IMAGE_LIST_PULL_JOB, ImageListPullJob, concerns=is_owner)
# The job may choose any NodeImage, or have chosen it before its selector or labels changed.
IMAGES = Watch(NODE_IMAGE, NodeImage, writes=("patch",), concerns=lambda job, image: True)
PODS = Watch(
    POD,
    Pod,
    indexes={IN_NAMESPACE: namespace_of},
    pods=Pods(near=(Near(JOBS, by_pod),)),
    concerns=may_be_selected,
)
COPIES = Watch(
    SECRET, Secret, indexes={LINKS: links}, writes=("create", "delete", "patch"), private="daemon_config_namespace"
)
CLONE_SETS = Watch(CLONE_SET, CloneSet, gate="PreDownloadImageForInPlaceUpdate", optional=True, concerns=is_owner)
"""Workloads that create jobs: nodes pull their images in the order in which they update their pods."""


class Gatherer:
    """Builds the snapshot of one job."""

    def __init__(self, context: ControllerContext, options: Options) -> None:
        self._jobs = context.table(JOBS)
        self._lists = context.table(LISTS)
        self._images = context.table(IMAGES)
        self._pods = context.table(PODS)
        self._copies = context.table(COPIES)
        self._clonesets = context.table(CLONE_SETS)
        self._has_clonesets = partial(context.watched, CLONE_SETS)
        self._options = options
        self.triggers = Triggers(self._jobs)
        self._sources = SourceSecrets(
            get=context.get,
            clock=context.clock,
            requeue=context.requeue,
            wanted=lambda: self.triggers.sources(context.owns),
            changed=lambda key: [context.requeue(*job) for job in self.triggers.of_source(key)],
        )
        context.add_task(self._sources.run)

    def gather(self, key: Key, memory: Memory) -> PullJobSnapshot | None:
        """Return the job and its surroundings, or None if it does not exist."""
        job = self._jobs.get(*key)
        if job is None:
            return None
        snapshot = PullJobSnapshot(
            job=job,
            copies=self._copies_of(job),
            taken=self._copies.names(self._options.secrets_namespace),
            of_running_list=self._of_running_list(job),
            options=self._options,
        )
        return self._with_nodes(snapshot) if is_active(job) else snapshot

    def _with_nodes(self, snapshot: PullJobSnapshot) -> PullJobSnapshot:
        job = snapshot.job
        try:
            everyone = self._pods.by_index(IN_NAMESPACE, job.metadata.namespace)
            pods = matching_pods(job, everyone)
            nodes = selected(job, self._images, pods)
        except ValueError as fault:
            return msgspec.structs.replace(snapshot, problem=str(fault))
        own = job.metadata.namespace == self._options.secrets_namespace
        return msgspec.structs.replace(
            snapshot,
            nodes=nodes,
            order=node_order(job, pods, self._clonesets if self._has_clonesets() else None),
            sources={} if own else self._sources.of(job),
        )

    def _copies_of(self, job: ImagePullJob) -> Sequence[Secret]:
        """Return the copies of the job's sources and those that refer to it, without those being deleted."""
        namespace = job.metadata.namespace
        wanted = [(SOURCE, f"{namespace}/{name}") for name in job.spec.pull_secrets]
        wanted.append((REFERENCES, f"{namespace}/{job.metadata.name}"))
        copies = {secret.metadata.name: secret for link in wanted for secret in self._copies.by_index(LINKS, link)}
        return [copies[name] for name in sorted(copies) if copies[name].metadata.deletion_timestamp is None]

    def _of_running_list(self, job: ImagePullJob) -> bool:
        parent = list_of(job)
        if parent is None:
            return False
        owner_list = self._lists.get(*parent)
        return (
            owner_list is not None
            and owner_list.status.completion_time is None
            and owner_list.metadata.deletion_timestamp is None
            and any(owner.uid == owner_list.metadata.uid for owner in job.metadata.owner_references)
        )


def list_of(job: ImagePullJob) -> Key | None:
    """Return the key of the ImageListPullJob that controls the job, or None."""
    owner = controller_of(job.metadata)
    ours = (IMAGE_LIST_PULL_JOB.group, IMAGE_LIST_PULL_JOB.kind)
    if owner is None or (group_of(owner.api_version), owner.kind) != ours:
        return None
    return job.metadata.namespace, owner.name


def options(settings: Settings, server_version: str) -> Options:
    """Return the settings that planning depends on."""
    return Options(
        default_ttl=settings.default_ttlseconds_for_always_nodeimage,
        secrets_namespace=settings.daemon_config_namespace,
    )


CONTROLLER = ControllerSpec(
    name="imagepulljob-controller",
    primary=JOBS,
    watches=(LISTS, IMAGES, PODS, COPIES, CLONE_SETS),
    access=(AccessRule(SECRET, ("get",)),),  # pull secrets, by the names in jobs; never a list
    off=jobs_off,
    options=spec.Options(Options, options),
    build=Gatherer,
    triggers=lambda gatherer: [
        Trigger(LISTS, gatherer.triggers.of_ended_list),
        Trigger(IMAGES, gatherer.triggers.of_node_image),
        Trigger(PODS, gatherer.triggers.of_pod),
        Trigger(COPIES, gatherer.triggers.of_copy),
    ],
    plan=plan,
)
