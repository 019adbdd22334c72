"""Whether a process of ours is ready, as its /readyz says."""

import aiohttp

PROBE = aiohttp.ClientTimeout(total=2)


async def not_ready(host: str, port: int) -> str:
    """Empty when the process at this address is ready, else what it waits for."""
    try:
        async with (
            aiohttp.ClientSession(timeout=PROBE) as session,
            session.get(f"http://{host}:{port}/readyz") as reply,
        ):
            lines = (await reply.text()).splitlines()
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"no answer ({type(error).__name__})"
    if reply.status == 200:
        return ""
    return "; ".join(line.removeprefix("[-]") for line in lines if line.startswith("[-]")) or "not ready"
