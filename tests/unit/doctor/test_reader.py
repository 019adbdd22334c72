"""The doctor as the read-only user of the bus, whose requests to JetStream have a prefix of their own."""

from typing import cast

from flotilla_common.bus import readonly
from flotilla_common.bus.nats import NatsBus
from flotilla_insight.doctor.gather.bus import account, streams


class Asked:
    """A bus on which JetStream answers this user with nothing."""

    api = readonly.PREFIX

    def __init__(self) -> None:
        self.verbs: list[str] = []

    async def request(self, subject: str, data: bytes, seconds: float) -> bytes:
        self.verbs.append(readonly.checked(subject, data).verb)
        return b"{}"


async def test_requests_of_the_reader_have_its_prefix() -> None:
    asked = Asked()
    bus = cast("NatsBus", asked)
    await account(bus)
    assert await streams(bus, ["act"]) == {"act": None}
    assert asked.verbs == ["INFO", "STREAM.INFO.act"]
