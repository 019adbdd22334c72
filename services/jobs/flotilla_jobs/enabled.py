"""Decides which parts of the service run, by settings and gates (install.md §3, §6). All of them need node agents."""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.control.spec import served
from flotilla_common.gates import Gates
from flotilla_common.settings import Settings

NO_AGENT = "off: gate KruiseDaemon"

recreates_off, probes_off = served(RECREATE_REQUEST), served(POD_PROBE_MARKER)


def images_off(settings: Settings, gates: Gates) -> str:
    """Return why there are no NodeImages, or "" if a served kind needs images on nodes."""
    if not gates.on("KruiseDaemon"):
        return NO_AGENT
    kinds = (NODE_IMAGE, IMAGE_PULL_JOB, IMAGE_LIST_PULL_JOB)
    pulled_ahead = gates.on("PreDownloadImageForInPlaceUpdate") and settings.serves(CLONE_SET.kind)
    if pulled_ahead or any(settings.serves(kind.kind) for kind in kinds):
        return ""
    return f"off: {', '.join(kind.kind for kind in kinds)} not in CUSTOM_RESOURCE_ENABLE"


def jobs_off(settings: Settings, gates: Gates) -> str:
    """Return why jobs pull no images, or "" if they do."""
    return images_off(settings, gates) or ("" if gates.on("ImagePullJobGate") else "off: gate ImagePullJobGate")


def reports_off(settings: Settings, gates: Gates) -> str:
    """Return why reports of agents are not served, or "" if they are."""
    if not gates.on("KruiseDaemon"):
        return NO_AGENT
    if gates.on("DaemonWatchingPod") or not all(
        off(settings, gates) for off in (recreates_off, images_off, probes_off)
    ):
        return ""
    return "off: gate DaemonWatchingPod, and no kind that needs agents is in CUSTOM_RESOURCE_ENABLE"
