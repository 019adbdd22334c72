"""The jobs service on one page: what it watches, how it plans, what it writes."""

from flotilla_common.service import Context, Service


async def run(context: Context) -> None:
    """Serve until cancelled."""
    context.started()
    while True:
        await context.clock.sleep(3600)


def service() -> Service:
    """The service, for `flotilla run` and for its own process."""
    return Service("jobs", run)
