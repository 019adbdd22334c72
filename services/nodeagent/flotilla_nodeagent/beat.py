"""The agent says that it lives, in which release, and what it waits for: the runtime, the bus, its copies.

Nobody answers and nothing is kept. `flotilla doctor` and `flotilla tail --heartbeats` hear it.
"""

import msgspec

from flotilla_common.bus import subjects
from flotilla_common.bus.heartbeat import HEARTBEAT_SECONDS, NODE_AGENT, VERSION, Heartbeat
from flotilla_nodeagent.host import Host


async def beat(host: Host) -> None:
    """Publish a heartbeat every five seconds until cancelled."""
    subject = subjects.heartbeat(NODE_AGENT, host.node)
    while True:
        said = Heartbeat(
            service=NODE_AGENT,
            replica=host.node,
            version=VERSION,
            at=host.clock.now(),
            waiting=host.status.waiting,
        )
        host.bus.publish_soon(subject, msgspec.json.encode(said))
        await host.clock.sleep(HEARTBEAT_SECONDS)
