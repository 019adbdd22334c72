"""Images that cannot be pulled, or are not there."""

from flotilla_common.api.core import WaitingState
from flotilla_common.workload.causes.cause import Around, Cause
from flotilla_common.workload.causes.events import about
from flotilla_common.workload.causes.wording import bare

_PULL = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed")
REASONS = (*_PULL, "InvalidImageName", "ErrImageNeverPull", "ImageInspectError")
"""Waiting reasons of containers that mean an image."""


def image_cause(name: str, image: str, waiting: WaitingState, around: Around) -> Cause:
    """Why container `name` has no image. The two reasons between which a kubelet changes have one code."""
    code = "ErrImagePull" if waiting.reason == "ImagePullBackOff" else waiting.reason
    told = bare(waiting.message) or _told_before(name, around) or "no reason is given"
    if code == "ErrImageNeverPull":
        told = "it is not on the node, and imagePullPolicy is Never"
    elif code == "InvalidImageName":
        told = told.removeprefix(f'Failed to apply default image tag "{image}": ')
    return Cause(code=code, message=f"image {image} of container {name} cannot be pulled ({code}): {told}")


def _told_before(name: str, around: Around) -> str:
    """Kubelets before 1.31 say no more than "Back-off" while they wait; the error is in an event."""
    for event in about(around.events, "Failed", container=name):
        if event.message.startswith("Failed to pull image") and (told := bare(event.message)):
            return told
    return ""


def pulling_cause(name: str, image: str, around: Around) -> Cause | None:
    """The image is on its way: the kubelet has begun to pull it, and has not said that it is done."""
    for event in about(around.events, "Pulling", "Pulled", "Failed", container=name):
        if event.reason == "Pulling":
            text = f"image {image} of container {name} is being pulled"
            return Cause(code="PullingImage", message=text, stuck=False, since=event.at)
        break
    return None
