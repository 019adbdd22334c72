"""How ImagePullJobs are served: what wakes the controller, and where it gets secrets."""

from collections.abc import Coroutine
from typing import Any

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.kind import KIND
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.resources import SECRET
from flotilla_common.api.secrets import Secret
from flotilla_common.assembly import Assembly
from flotilla_common.control.controller import Controller, Key
from flotilla_jobs.imagepull.gather import Gatherer, PullTables
from flotilla_jobs.imagepull.plan import plan
from flotilla_jobs.imagepull.snapshot import Options, PullJobSnapshot
from flotilla_jobs.imagepull.sources import Sources
from flotilla_jobs.imagepull.triggers import Triggers

CONTROLLER = "imagepulljob-controller"
"""Its name in events and metrics (install.md §10)."""


def serve(assembly: Assembly, tables: PullTables) -> Coroutine[Any, Any, None]:
    """Add the controller to the service; returns what has to run beside it until cancelled."""
    context, mirror, settings = assembly.context, assembly.mirror, assembly.context.settings
    triggers = Triggers(tables.jobs)

    async def reread(key: Key) -> None:
        await mirror.read(IMAGE_PULL_JOB, *key)
        await mirror.read_owned(NODE_IMAGE)
        await mirror.read_owned(SECRET, settings.daemon_config_namespace)

    sources = Sources(
        api=context.api,
        clock=context.clock,
        wanted=lambda: triggers.sources(assembly.shards.owns),
        changed=lambda key: controller.enqueue_all(triggers.of_source(key)),
    )
    options = Options(
        default_ttl=settings.default_ttlseconds_for_always_nodeimage,
        secrets_namespace=settings.daemon_config_namespace,
    )
    gatherer = Gatherer(tables, sources.of, options)
    controller: Controller[PullJobSnapshot] = assembly.controller(
        IMAGE_PULL_JOB,
        name=CONTROLLER,
        gather=gatherer.gather,
        plan=plan,
        reread=reread,
        keys=gatherer.keys,
        workers=settings.workers_of(KIND),
    )

    def on_job(old: ImagePullJob | None, new: ImagePullJob | None) -> None:
        controller.enqueue_object(new or old)

    def on_list(old: ImageListPullJob | None, new: ImageListPullJob | None) -> None:
        """The jobs of a list that has ended may be deleted now."""
        if new is None or old is None or _over(new) != _over(old):
            controller.enqueue_all(triggers.of_list(new or old))

    def on_image(old: NodeImage | None, new: NodeImage | None) -> None:
        controller.enqueue_all(triggers.of_node_image(old, new))

    def on_pod(old: Pod | None, new: Pod | None) -> None:
        controller.enqueue_all(triggers.of_pod(old, new))

    def on_copy(old: Secret | None, new: Secret | None) -> None:
        controller.enqueue_all(triggers.of_copy(old, new))

    tables.jobs.listen(on_job)
    tables.lists.listen(on_list)
    tables.images.listen(on_image)
    tables.pods.listen(on_pod)
    tables.secrets.listen(on_copy)
    return sources.run()


def _over(job: ImageListPullJob) -> bool:
    return job.status.completion_time is not None
