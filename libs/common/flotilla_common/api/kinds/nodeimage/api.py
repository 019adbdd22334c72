"""The API of NodeImages: schema, defaults, validation, conversion, admission (imagepull.md §2.1, §3).

v1beta1 is the hub, and conversion works on raw documents. v1alpha1 only lacks the mode of a pull secret.
"""

import copy
from collections.abc import Sequence
from datetime import datetime

from flotilla_common.api.admission.handlers import Tools, decoded, defaulted, document_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error
from flotilla_common.api.crds.schema import (
    AGE,
    Column,
    Schema,
    Version,
    array,
    dictionary,
    integer,
    string,
    struct,
    time,
)
from flotilla_common.api.documents import Json, ensured, mapping, mappings, member, text
from flotilla_common.api.kinds.imagepulljob.api import default_limits, sandbox_config_schema
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.versions import Conversion, only_beta

MOST_IMAGES = 256

_COLUMNS = (
    Column("DESIRED", "integer", ".status.desired"),
    Column("PULLING", "integer", ".status.pulling"),
    Column("SUCCEED", "integer", ".status.succeeded"),
    Column("FAILED", "integer", ".status.failed"),
    AGE,
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    mode = string("Empty for a user's secret, batch for a copy that Flotilla made.")
    return Version(name, _spec_schema({} if name == "v1alpha1" else {"mode": mode}), _status_schema(), _COLUMNS)


def _spec_schema(secret_fields: dict[str, Schema]) -> Schema:
    secret = struct(
        "One secret with registry credentials.",
        namespace=string("The secret's namespace."),
        name=string("The secret's name."),
        **secret_fields,
    )
    image = struct(
        "The desired tags of one image.",
        ("tags",),
        pullSecrets=array("Registry credentials for all tags of the image.", secret),
        tags=array("The tags to pull, in ascending order.", _tag_schema()),
        sandboxConfig=sandbox_config_schema(),
    )
    return struct("The desired state.", images=dictionary("Images by familiar name; at most 256.", image))


def _tag_schema() -> Schema:
    owner = struct(
        "One job that needs the tag.",
        apiVersion=string("The job's API version."),
        kind=string("The job's kind."),
        namespace=string("The job's namespace."),
        name=string("The job's name."),
        uid=string("The job's uid, which identifies it."),
        resourceVersion=string("Not used."),
        fieldPath=string("Not used."),
    )
    policy = struct(
        "The limits of the pull.",
        timeoutSeconds=integer("Seconds that one attempt may take. Default: 600."),
        backoffLimit=integer("Attempts after the first one. Default: 3."),
        ttlSecondsAfterFinished=integer("Seconds after its end that the tag leaves this list; required."),
        activeDeadlineSeconds=integer("Seconds that all attempts together may take.", bits=64),
    )
    return struct(
        "One pull.",
        ("tag",),
        tag=string("A tag, or a digest (sha256:…)."),
        createdAt=time("The creation time of this round."),
        version=integer("The number of the round; a higher one pulls again.", bits=64),
        imagePullPolicy=string("IfNotPresent skips an image that is there; anything else pulls."),
        ownerReferences=array("The jobs that need the tag; it is removed with the last of them.", owner),
        pullPolicy=policy,
    )


def _status_schema() -> Schema:
    tag = struct(
        "The progress of one pull.",
        ("tag", "phase"),
        tag=string("The tag or digest."),
        phase=string("Waiting, Pulling, Succeeded or Failed."),
        progress=integer("0 to 100."),
        startTime=time("The start of the pull."),
        completionTime=time("The time of its final success or failure."),
        version=integer("The round that this entry refers to.", bits=64),
        imageID=string("The image's ID in the container runtime."),
        message=string("The reason of the failure."),
    )
    image = struct("The pulls of one image.", tags=array("By tag, in ascending order.", tag))
    first_sync = struct(
        "Obsolete; not written.",
        syncAt=time("The time."),
        status=string("Succeeded or Failed."),
        message=string("The reason of the failure."),
    )
    return struct(
        "The report of the node.",
        ("desired",),
        desired=integer("Tags that the node should pull."),
        succeeded=integer("Tags that are there."),
        failed=integer("Tags that could not be pulled."),
        pulling=integer("Tags that are being pulled."),
        waiting=integer("Tags that wait for their turn."),
        imageStatuses=dictionary("Pulls by familiar image name.", image),
        firstSyncStatus=first_sync,
    )


def default_node_image(document: Json, now: datetime) -> Json:
    """Return a new document with limits and creation times of its tags, and sorted tags."""
    defaulted = copy.deepcopy(document)
    images = mapping(mapping(defaulted.get("spec")).get("images"))
    for image in map(mapping, images.values()):
        for tag in mappings(image.get("tags")):
            if tag.get("createdAt") is None:
                tag["createdAt"] = rfc3339(now)
            default_limits(ensured(tag, "pullPolicy"))
        _sort_tags(image)
    statuses = mapping(mapping(defaulted.get("status")).get("imageStatuses"))
    for status in map(mapping, statuses.values()):
        _sort_tags(status)
    return defaulted


def _sort_tags(holder: Json) -> None:
    if isinstance(holder.get("tags"), list):
        holder["tags"] = sorted(holder["tags"], key=lambda tag: text(mapping(tag).get("tag")))


def node_image_problem(document: Json) -> str:
    """Return the first fault of the raw document; empty without one."""
    images = member(document, "spec", "images")
    if len(images) > MOST_IMAGES:
        return f"spec.images cannot have more than {MOST_IMAGES} images"
    for name, image in images.items():
        if not name:
            return "image name cannot be empty"
        if problem := _tags_problem(mappings(mapping(image).get("tags"))):
            return f"invalid image {name}: {problem}"
    return ""


def _tags_problem(tags: Sequence[Json]) -> str:
    seen: set[str] = set()
    for tag in tags:
        name = text(tag.get("tag"))
        policy = tag.get("pullPolicy")
        if not name:
            return "tag cannot be empty"
        if name in seen:
            return f"duplicated tag {name}"
        seen.add(name)
        problems = {
            "createdAt must be set": tag.get("createdAt") is None,
            "version must be non-negative": (tag.get("version") or 0) < 0,
            "pullPolicy must be set": policy is None,
            "pullPolicy.ttlSecondsAfterFinished must be set": mapping(policy).get("ttlSecondsAfterFinished") is None,
        }
        for problem, holds in problems.items():
            if holds:
                return f"tag {name}: {problem}"
    return ""


_VERSIONS = Conversion(
    "NodeImage",
    to_beta=lambda _: None,
    to_alpha=lambda _: None,
    only_beta=only_beta("spec.images.*.pullSecrets[namespace,name].mode"),
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub


def _read(document: Json) -> NodeImage:
    return decoded(to_hub(document), NodeImage)


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with default limits, creation times and sorted tags."""
    return defaulted(request, _read, lambda it: default_node_image(it.document, tools.now()))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with the first fault (400)."""
    problem = node_image_problem(document_of(request, _read))
    return error(400, problem) if problem else ALLOWED


RULES = Rules(schema=version, convert=convert, admission=Admission(mutate=mutate, validate=validate))
