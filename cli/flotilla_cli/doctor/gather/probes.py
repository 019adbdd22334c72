"""Tests whether the apiserver reaches the webhook, and what that does, by dry runs of creates.

Only the apiserver can tell, because only it must get there. The entries allow it 30 s; the probes wait for less.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from flotilla_cli.doctor.facts import NotKnown, Probe
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError

NAMESPACE = "default"
"""A namespace that always exists."""

INVALID, VALID, OLD = "invalid", "valid", "v1alpha1"
"""An object to reject, one to default, and one to convert."""

WAIT_SECONDS = 6.0
AGAIN_SECONDS = 1.0
"""Seconds before a failed probe is repeated: a webhook that is being replaced answers again within moments."""


async def probes(api: Api, clock: Clock) -> Sequence[Probe]:
    """Return the apiserver's response to each. Raises NotKnown if the user may not create them."""
    labels = {"app": "flotilla-doctor"}
    wanted = {
        INVALID: _clone_set("v1beta1", labels, {"app": "somebody-else"}),
        VALID: _clone_set("v1beta1", labels, labels),
        OLD: _clone_set("v1alpha1", labels, labels),
    }
    return await asyncio.gather(*(_probe(api, clock, name, document) for name, document in wanted.items()))


async def _probe(api: Api, clock: Clock, name: str, document: Json) -> Probe:
    told = await _try(api, name, document)
    if told.code in (0, 500, 503):
        await clock.sleep(AGAIN_SECONDS)
        return await _try(api, name, document)
    return told


async def _try(api: Api, name: str, document: Json) -> Probe:
    version = document["apiVersion"].partition("/")[2]
    resource: Resource = msgspec.structs.replace(CLONE_SET, version=version)
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            reply = await api.create(resource, NAMESPACE, msgspec.json.encode(document), dry_run=True)
    except TimeoutError:
        return Probe(name, 0, f"no answer within {WAIT_SECONDS:g} s")
    except ApiError as error:
        if error.code == 403 and "admission webhook" not in error.message:
            raise NotKnown(f"not allowed: {error.message}") from error
        return Probe(name, error.code, error.message)
    return Probe(name, 201, body=msgspec.json.decode(reply, type=Json))


def _clone_set(version: str, selector: Json, labels: Json) -> Json:
    template: Json = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    return {
        "apiVersion": f"{CLONE_SET.group}/{version}",
        "kind": CLONE_SET.kind,
        "metadata": {"name": "flotilla-doctor-looks", "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": selector}, "template": template},
    }
