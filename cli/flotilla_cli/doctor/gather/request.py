"""Reads a fact within a deadline, or the reason why it is missing."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec

from flotilla_cli.doctor.facts import Fact, NotKnown
from flotilla_common.api.documents import Json
from flotilla_common.api.resources import Resource
from flotilla_common.bus.interface import BusError
from flotilla_common.kube.interface import Api, ApiError, Unreachable, pages

T = TypeVar("T")

SECONDS = 8.0
"""Default deadline of a fact, in seconds."""


async def fact(asking: Coroutine[Any, Any, T], seconds: float = SECONDS) -> Fact[T]:
    """Await the fact. Failures of cluster or bus become the reason why it is missing."""
    try:
        async with asyncio.timeout(seconds):
            return Fact(await asking)
    except TimeoutError:
        return Fact(why=f"no answer within {seconds:g} s")
    except ApiError as error:
        return Fact(why=f"{'not allowed: ' if error.code == 403 else ''}{error.message}")
    except Unreachable as error:
        return Fact(why=f"the apiserver does not answer: {error}")
    except BusError as error:
        return Fact(why=f"the bus does not answer: {error}")
    except NotKnown as error:
        return Fact(why=str(error))
    except OSError as error:
        return Fact(why=str(error))


async def listed(api: Api, resource: Resource, namespace: str = "", selector: str = "") -> list[Json]:
    """Return all objects of a resource. Raises ApiError, Unreachable."""
    listed = pages(api, resource, namespace, label_selector=selector)
    return [msgspec.json.decode(raw, type=Json) async for page in listed for raw in page.items]
