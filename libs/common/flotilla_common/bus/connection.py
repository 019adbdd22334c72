"""The connection to NATS: one client, which is replaced when it closes or hangs.

nats-py reconnects by itself, but it closes for good on some protocol errors, its reader can die silently, and it waits
without a timeout for the end of a connection whose TLS handshake failed. So frequent pings detect a dead peer, and a
client that is closed, or without a server for long, is replaced. Holders of subscriptions are called back in both
cases: `attach` callbacks run on every new client, `resumed` callbacks after every reconnect of the same client.

A server without authentication is refused unless that is allowed, because any client of the bus can have pods made.
Nothing is sent to such a server before the connection is closed.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Protocol, cast

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from flotilla_common.bus.credentials import Trust, authority_of, read_credentials
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.subjects import service_inbox
from flotilla_common.clock import Clock

CONNECT_SECONDS = 2
"""Timeout of one attempt to connect; the bus is near."""

RECONNECT_SECONDS = 0.25
"""Delay between attempts: short, to find a restarted server quickly; four attempts per second are cheap."""

GIVE_UP_SECONDS = 15.0
"""Time without a server after which a client is replaced, because a hanging client looks like one that retries.

A busy machine may need several attempts, of two seconds each and three more where an auth callout decides.
"""

LOOK_SECONDS = 1.0
"""Interval between two checks of the client."""

CANCEL_SECONDS = 0.25
"""Time for a connecting client to react to its cancellation, before it is cancelled again."""

CLOSE_SECONDS = 1.0
"""Timeout for closing a client; nats-py has none."""

PING_SECONDS = 4
"""Ping interval: with two pings unanswered a paused or vanished server is noticed within 12 s."""

PENDING_BYTES = 32 << 20
"""Most bytes that wait for the socket: four objects of the largest payload."""

_OPEN = (
    "Any client of the bus can have pods created and deleted: give the servers users, or allow it with --allow-open-bus"
)

OnClient = Callable[[Client], Awaitable[None]]
OnMsg = Callable[[Msg], Awaitable[None]]


class _Subscribes(Protocol):
    """The signature of nats-py's subscribe, fully typed."""

    async def subscribe(
        self, subject: str, queue: str, cb: OnMsg, *, pending_msgs_limit: int, pending_bytes_limit: int
    ) -> Subscription: ...


async def subscribe(
    client: Client, subject: str, on_msg: OnMsg, queue: str = "", *, most: int = 0, most_bytes: int = 0
) -> Subscription:
    """Subscribe without nats-py's own limits, beyond which it drops messages and only reports an error.

    Streams are bounded by flow control. For other subjects `most` and `most_bytes` bound what waits.
    """
    typed = cast("_Subscribes", client)
    return await typed.subscribe(subject, queue, on_msg, pending_msgs_limit=most, pending_bytes_limit=most_bytes)


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel the task until it ends: nats-py may swallow a cancellation while it connects or closes, and wait on."""
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=CANCEL_SECONDS)


class OpenBusError(Exception):
    """The server accepts clients without credentials, and that is not allowed."""


def header_lines(raw: bytes) -> dict[str, str]:
    """Return the headers of a block of `Name: value` lines."""
    pairs = (line.partition(":") for line in raw.decode("utf-8", "replace").split("\r\n"))
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


class _ReservedClient(Client):
    """A client that inspects a server's INFO before it sends credentials, at every connect and reconnect."""

    # nats-py's parser checks every letter of every name for spaces: 9.6 µs per message instead of 2.7.
    _parse_header_lines = staticmethod(header_lines)

    def __init__(self, check: Callable[[Mapping[str, object]], None]) -> None:
        """Call `check` with the server's INFO; it raises nats.errors.Error if we should not log in."""
        super().__init__()
        self._check_info = check

    def _connect_command(self) -> bytes:
        self._check_info(self._server_info)
        return super()._connect_command()


class Connection:
    """A connection that starts when first asked for, and retries until closed."""

    def __init__(
        self,
        servers: list[str],
        *,
        name: str,
        creds: str,
        clock: Clock,
        authority: str = "",
        allow_open: bool = False,
        inbox_prefix: str = "",
    ) -> None:
        """Configure the connection; nothing is sent yet.

        `creds` and `authority` are files, or empty: our credentials (see `login`) and the certificate authorities that
        we trust (see `login.Trust`). `allow_open` permits servers without authentication. Without an `inbox_prefix`,
        replies go to the inbox of the service that `name` begins with; a `/` and a replica may follow it.
        """
        self._servers = servers
        self._name = name
        self._creds = creds
        self._authority = authority
        self._over_tls = False
        self._allow_open = allow_open
        self._warned = False
        self._was_in = False
        self._refusal: asyncio.Future[None] | None = None
        self._inbox_prefix = inbox_prefix or service_inbox(name.partition("/")[0])
        self._clock = clock
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._attached: list[OnClient] = []
        self._resumed: list[Callable[[], None]] = []
        self._broken: list[Callable[[], None]] = []
        self._ready = asyncio.Event()
        self._trouble = ""
        self._closing = False
        self._log = structlog.get_logger(bus=",".join(servers))

    @property
    def name(self) -> str:
        """Our name on the bus: service and replica."""
        return self._name

    @property
    def connected(self) -> bool:
        """Report whether a server answers. Asking starts the connection."""
        self.start()
        return self._client is not None and self._client.is_connected

    @property
    def trouble(self) -> str:
        """The last error, in the server's words; empty after a successful reconnect."""
        return self._trouble

    def start(self) -> None:
        """Begin to connect, unless that was done before."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._keep())

    def now(self) -> Client:
        """Return the connected client. Raises BusError when there is none."""
        self.start()
        if self._client is None or not self._client.is_connected:
            raise BusError("not connected to the bus")
        return self._client

    async def ready(self, timeout: float) -> Client:
        """Wait for the connected client and return it. Raises BusError on timeout."""
        self.start()
        try:
            async with asyncio.timeout(timeout):
                await self._ready.wait()
        except TimeoutError as error:
            raise BusError(f"no connection to the bus within {timeout:g} s") from error
        return self.now()

    async def refused(self) -> None:
        """Wait forever, or raise OpenBusError when the first server accepts clients without credentials.

        Then an operator has to decide. A server that turns out to be open later counts as an unreachable bus.
        """
        self._refusal = self._refusal or asyncio.get_running_loop().create_future()
        self.start()
        await self._refusal

    async def attach(self, on_client: OnClient) -> None:
        """Call `on_client` with the current client, if there is one, and with every client that replaces it."""
        self._attached.append(on_client)
        if self.connected and self._client is not None:
            await on_client(self._client)

    def detach(self, on_client: OnClient) -> None:
        """Undo `attach`."""
        with contextlib.suppress(ValueError):
            self._attached.remove(on_client)

    def on_resumed(self, callback: Callable[[], None]) -> None:
        """Call back after every connect and reconnect."""
        self._resumed.append(callback)

    def off_resumed(self, callback: Callable[[], None]) -> None:
        """Undo `on_resumed`."""
        with contextlib.suppress(ValueError):
            self._resumed.remove(callback)

    def on_broken(self, callback: Callable[[], None]) -> None:
        """Call back whenever the connection to a server breaks, before there is another connection."""
        self._broken.append(callback)

    async def close(self) -> None:
        """Close the connection for good."""
        self._closing = True
        if self._task is not None:
            await _end(self._task)
        if self._client is not None:
            await self._farewell(self._client)
            self._client = None

    async def _farewell(self, client: Client) -> None:
        closing = asyncio.create_task(client.close())
        try:
            await asyncio.wait((closing,), timeout=CLOSE_SECONDS)
            if not closing.done():
                self._log.warning("bus connection dropped, closing it timed out", seconds=CLOSE_SECONDS)
            elif not closing.cancelled() and (error := closing.exception()) is not None:
                self._log.warning("closing the bus connection failed", error=str(error) or type(error).__name__)
        finally:
            await _end(closing)

    async def _keep(self) -> None:
        while not self._closing:  # see _end
            closed = asyncio.Event()
            try:
                client = await self._connect(closed)
            except (OSError, ValueError, nats.errors.Error) as error:
                self._log.warning("cannot connect to the bus", error=str(error))
                await self._clock.sleep(RECONNECT_SECONDS)
                continue
            except Exception:  # noqa: BLE001 - this loop must survive, or the process stays without a bus
                self._log.exception("cannot connect to the bus")
                await self._clock.sleep(RECONNECT_SECONDS)
                continue
            if self._closing:
                return
            self._was_in = True
            if client.is_connected:  # nats-py takes the end of a connection for the answer to its first ping
                self._log.info("connected to the bus", server=str(client.connected_server_version))
                self._resume()
            for on_client in list(self._attached):
                try:
                    await on_client(client)
                except (BusError, OSError, nats.errors.Error) as error:
                    self._log.warning("cannot subscribe", error=str(error))
                except Exception:  # noqa: BLE001 - the other subscribers still have to run
                    self._log.exception("cannot subscribe")
            await self._until_gone(client, closed)
            self._ready.clear()
            self._log.warning("replacing the bus client", error=str(client.last_error or ""))
            await self._farewell(client)

    def _resume(self) -> None:
        """Release the tasks that wait for the connection, and run the `resumed` callbacks."""
        self._ready.set()
        for callback in list(self._resumed):
            callback()

    async def _until_gone(self, client: Client, closed: asyncio.Event) -> None:
        """Wait until the client has closed itself, or was without a server for so long that it may hang."""
        seen = self._clock.monotonic()
        while not closed.is_set():
            now = self._clock.monotonic()
            seen = now if client.is_connected else seen
            if now - seen > GIVE_UP_SECONDS:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await closed.wait()

    async def _connect(self, closed: asyncio.Event) -> Client:
        login = read_credentials(self._creds, self._name.partition("/")[0])
        authority = self._authority or authority_of(self._creds, self._servers)
        self._over_tls = bool(authority) or any(server.startswith("tls://") for server in self._servers)
        client = _ReservedClient(self._check_info)
        self._client = client

        async def on_closed() -> None:
            closed.set()

        async def on_error(error: Exception) -> None:
            text = str(error) or type(error).__name__
            if text != self._trouble:  # the same error comes four times a second while a server is away
                self._log.warning("bus", error=text)
            self._trouble = text

        async def on_disconnected() -> None:
            self._ready.clear()
            self._log.warning("disconnected from the bus")
            for callback in self._broken:
                callback()

        async def on_reconnected() -> None:
            self._trouble = ""
            self._log.info("reconnected to the bus")
            self._resume()

        connecting = client.connect(
            self._servers,
            name=self._name,
            error_cb=on_error,
            closed_cb=on_closed,
            disconnected_cb=on_disconnected,
            reconnected_cb=on_reconnected,
            connect_timeout=CONNECT_SECONDS,
            reconnect_time_wait=RECONNECT_SECONDS,  # pyright: ignore[reportArgumentType] - used as a float
            max_reconnect_attempts=-1,
            ping_interval=PING_SECONDS,
            max_outstanding_pings=2,
            pending_size=PENDING_BYTES,
            inbox_prefix=self._inbox_prefix,
            user_credentials=login.creds_file,
            nkeys_seed_str=login.seed,
            token=login.token,
            tls=Trust(authority) if authority else None,
        )
        await self._in_time(client, connecting)
        return client

    async def _in_time(self, client: Client, connecting: Coroutine[None, None, None]) -> None:
        """Wait for a client to connect. Raises nats.errors.Error after GIVE_UP_SECONDS, because it may hang."""
        task = asyncio.get_running_loop().create_task(connecting)
        try:
            await asyncio.wait((task,), timeout=GIVE_UP_SECONDS)
            if task.done():
                await task
                return
        finally:
            task.cancel()
        await asyncio.wait((task,), timeout=CANCEL_SECONDS)
        await self._farewell(client)
        raise nats.errors.Error(f"no connection within {GIVE_UP_SECONDS:g} s: {self._trouble}")

    def _check_info(self, info: Mapping[str, object]) -> None:
        """Check a server's INFO before login. Raises nats.errors.Error for a server that must not get our credentials.

        nats-py leaves it to INFO whether TLS follows. A man in the middle can remove that flag and read the login.
        """
        if self._over_tls and not info.get("tls_required"):
            raise nats.errors.Error("the server does not use TLS, which tls:// or --nats-ca requires: not logging in")
        if info.get("auth_required"):
            return
        where = ", ".join(self._servers)
        if not self._allow_open:
            text = f"the bus at {where} accepts clients without credentials: not using it. {_OPEN}"
            if not self._was_in and self._refusal is not None and not self._refusal.done():
                self._refusal.set_exception(OpenBusError(text))
            raise nats.errors.Error(text)
        if not self._warned:
            self._warned = True
            self._log.warning("the bus accepts clients without credentials, as --allow-open-bus allows")
