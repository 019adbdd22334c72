"""The configuration of Flotilla's NATS servers: limits, and the users of an embedded bus with their permissions.

There is one key per service and one per node. Keys are nkeys: the server has the public halves, and each user has its
seed in a file that only its owner can read. A node's seed is not kept here; if it is lost, new credentials replace the
old ones. With its seed a node gets the authority of the bus, the only one that it trusts.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from flotilla_cli.certificates import Authority
from flotilla_cli.local import write_private
from flotilla_common.bus.permissions import OPERATOR, Permissions, node_permissions
from flotilla_common.bus.tokens import USER, KeyPair
from flotilla_common.clock import Clock
from flotilla_insight.services import bus_permissions

ENVIRONMENT = {"GOGC": "90", "GOMEMLIMIT": "200MiB"}
"""Settings of nats-server's garbage collector (docs/adr/0024).

While a thousand pods come and go 18 to 51 MiB are in use. The limit is far above that, because a collector that runs
into its limit never rests.
"""

MAX_PAYLOAD = 8 * 1024 * 1024
MAX_SUBSCRIPTIONS = 1024
"""Subscriptions of one connection at most.

Services have some ten, node agents four. More only fill the server's memory.
"""

LIMITS = f"""\
max_payload: {MAX_PAYLOAD}
max_subscriptions: {MAX_SUBSCRIPTIONS}
# The mirrors of a large cluster are filled in one burst: a slow consumer is better served late than cut off.
max_pending: 268435456
write_deadline: "30s"
"""
"""The limits of every server, as its configuration contains them."""


CONFIGURATION = "users.conf"
SEED_FILE = """\
# {what} on Flotilla's bus. Whoever has this file is it: keep it secret.
-----BEGIN USER NKEY SEED-----
{seed}
------END USER NKEY SEED------
"""
"""A user's credentials."""


class BusUsers:
    """The users of the bus with this state folder."""

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / "users"
        self._certificates = state_dir / "tls"

    @property
    def credentials(self) -> Path:
        """The folder with one credentials file per service, and one for people."""
        return self._folder / "services"

    @property
    def configuration(self) -> Path:
        """The file that the server's configuration includes."""
        return self._folder / CONFIGURATION

    def prepare(self) -> None:
        """Make missing users, and write the server's side."""
        self.credentials.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        for service in bus_permissions():
            if not self._seed(service).exists():
                seed, public = new_user()
                write_private(self._seed(service), SEED_FILE.format(what=f"The user {service}", seed=seed))
                write_private(self._public("services", service), public)
        self._write()

    def authority(self, clock: Clock) -> Authority:
        """Return the authority of the bus's TLS certificate, made if it does not exist."""
        found = Authority(self._certificates / "ca.crt", self._certificates / "ca.key", "flotilla-bus")
        found.make(clock)
        return found

    def add_node(self, node: str, clock: Clock) -> str:
        """Return new credentials for a node, with the authority of the bus, as the content of a file.

        Earlier credentials of the node are no longer valid. Raises ValueError for an invalid node name.
        """
        node_permissions(node)
        seed, public = new_user()
        write_private(self._public("nodes", node), public)
        self._write()
        authority = self.authority(clock).certificate.read_text(encoding="ascii")
        return SEED_FILE.format(what=f"The agent of node {node}", seed=seed) + authority

    def remove_node(self, node: str) -> bool:
        """Revoke a node's credentials. Report whether it had any."""
        file = self._public("nodes", node)
        known = file.exists()
        file.unlink(missing_ok=True)
        self._write()
        return known

    def nodes(self) -> list[str]:
        """Return the nodes that have credentials."""
        return sorted(file.name.removesuffix(".pub") for file in (self._folder / "nodes").glob("*.pub"))

    def _seed(self, service: str) -> Path:
        return credentials_of(self.credentials, service)

    def _public(self, kind: str, name: str) -> Path:
        return self._folder / ("public" if kind == "services" else "nodes") / f"{name}.pub"

    def _write(self) -> None:
        write_private(self.configuration, authorization(self._all()))

    def _all(self) -> Iterator[tuple[str, Permissions]]:
        for service, permissions in bus_permissions().items():
            file = self._public("services", service)
            if file.exists():
                yield file.read_text(encoding="ascii"), permissions
        for node in self.nodes():
            yield self._public("nodes", node).read_text(encoding="ascii"), node_permissions(node)


def credentials_of(folder: Path, service: str = OPERATOR) -> Path:
    """Return a service's file in the folder of credentials; without a service, that of people."""
    return folder / f"{service}.seed"


def new_user() -> tuple[str, str]:
    """Return seed and public key of a new user."""
    pair = KeyPair.generate(USER)
    return pair.seed, pair.public


def authorization(users: Iterable[tuple[str, Permissions]], issuer: str = "") -> str:
    """Return the server's `authorization` block.

    With an `issuer` (an account's public key), the watcher authenticates all other users (auth callout).
    """
    known = list(users)
    lines = [f"    {{ nkey: {public}, permissions: {_block(permissions)} }}" for public, permissions in known]
    names = ", ".join(public for public, _ in known)
    callout = f"  auth_callout {{ issuer: {issuer}, auth_users: [ {names} ] }}\n" if issuer else ""
    return "authorization {\n  users: [\n" + "\n".join(lines) + f"\n  ]\n{callout}}}\n"


def _block(permissions: Permissions) -> str:
    answers = ", allow_responses: true" if permissions.answers else ""
    return (
        f"{{ publish: {{ allow: {_list(permissions.publish)} }}, "
        f"subscribe: {{ allow: {_list(permissions.subscribe)} }}{answers} }}"
    )


def _list(subjects: tuple[str, ...]) -> str:
    return msgspec.json.encode(subjects).decode()
