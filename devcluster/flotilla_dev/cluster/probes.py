"""Probes the servers of the local cluster."""

import asyncio

import aiohttp

PROBE = aiohttp.ClientTimeout(total=2)


async def serves(url: str) -> bool:
    """Return whether the server answers 200 here."""
    try:
        async with aiohttp.ClientSession(timeout=PROBE) as session, session.get(url) as reply:
            return reply.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


async def listens(host: str, port: int) -> bool:
    """Return whether a server listens at this address."""
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), timeout=1)
    except OSError:
        return False
    writer.close()
    return True


async def not_ready(host: str, port: int) -> str:
    """Return what our process at this address waits for, as its /readyz says; empty when it is ready."""
    url = f"http://{host}:{port}/readyz"
    try:
        async with aiohttp.ClientSession(timeout=PROBE) as session, session.get(url) as reply:
            lines = (await reply.text()).splitlines()
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"no answer ({type(error).__name__})"
    if reply.status == 200:
        return ""
    return "; ".join(line.removeprefix("[-]") for line in lines if line.startswith("[-]")) or "not ready"
