"""The keys of a bus inside the cluster: the files of nats-server, and one Secret for each of its users.

`flotilla bus-keys` is the init container of such a bus.

Before a nats-server starts, an init container runs this. Missing keys are created and kept in Secrets, so that every
later start, and every other server of the bus, has the same ones: the authority of the servers' certificates, the
account key of the auth callout, and a seed per user. The permissions of users are written each time, from the running
code (`bus.permissions`). A server's certificate exists in the server's own folder only, and is new at every start.

The Secrets are owned by the ServiceAccount of the bus, and deleted with it. Their loss costs no more than a restart of
everything on the bus.
"""

import asyncio
import base64
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import msgspec

from flotilla_cli.certificates import Authority
from flotilla_cli.connection import Target, open_api, reported
from flotilla_cli.local import write_private
from flotilla_cli.nats_config import CONFIGURATION, SEED_FILE, authorization, new_user
from flotilla_cli.options import cluster_options
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.resources import CONFIG_MAP, SECRET, Resource
from flotilla_common.bus.credentials import seed_in
from flotilla_common.bus.tokens import ACCOUNT, KeyPair
from flotilla_common.clock import Clock, SystemClock
from flotilla_common.kube.interface import Api, ApiError
from flotilla_insight.installation.objects import ACCOUNT as SERVICE_ACCOUNT
from flotilla_insight.installation.objects import Place, get
from flotilla_insight.installation.rbac import NAMESPACE, account, binding, role, rule, service_account
from flotilla_insight.services import bus_permissions

USER = "bus"
NAME = account(USER)
"""Name of the bus's StatefulSet, Service and ServiceAccount, and prefix of its Secrets."""

ROOT = f"{NAME}-root"
"""The Secret that only the bus itself reads: authority and account key."""

AUTHORITY = f"{NAME}-ca"
"""The ConfigMap with the authority's certificate, for node agents and all others."""

ISSUER_OF = "watcher"
"""The user that answers the auth callout, and has the account key for it."""

CA, CA_KEY, ISSUER = "ca.crt", "ca.key", "issuer.seed"

_NOTHING: Mapping[str, str] = {}


def secret_of(user: str) -> str:
    """Return the name of the Secret with a user's credentials: `<user>.seed` and `ca.crt`."""
    return f"{NAME}-{user}"


class BusKeys:
    """The keys of the bus in one namespace."""

    def __init__(self, api: Api, namespace: str, clock: Clock) -> None:
        self._api = api
        self._namespace = namespace
        self._clock = clock
        self._owner: Json = {}

    async def prepare(self, folder: Path, hosts: Sequence[str]) -> None:
        """Write a server's files into the folder: users, authority, and a certificate for these hosts.

        Missing keys are created. Raises ApiError, Unreachable; ValueError if a Secret does not hold a key.
        """
        account = msgspec.json.decode(await self._api.get(SERVICE_ACCOUNT, self._namespace, NAME), type=Json)
        self._owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": NAME, "uid": account["metadata"]["uid"]}
        root = await self._kept(ROOT, self._new_root(folder))
        issuer = KeyPair(root[ISSUER])
        users: list[tuple[str, str]] = []
        for user in bus_permissions():
            held = await self._user(user, root)
            users.append((user, KeyPair(seed_in(held[f"{user}.seed"])).public))
        await self._publish_authority(root[CA])
        authority = _authority(folder)
        write_private(authority.certificate, root[CA])
        write_private(authority.key, root[CA_KEY])
        authority.issue_server(folder / "server.pem", hosts, self._clock)
        authority.key.unlink()
        permissions = bus_permissions()
        known = [(public, permissions[user]) for user, public in users]
        write_private(folder / CONFIGURATION, authorization(known, issuer.public))

    async def _user(self, user: str, root: Mapping[str, str]) -> Mapping[str, str]:
        seed, _ = new_user()
        shared = {CA: root[CA]} | ({ISSUER: root[ISSUER]} if user == ISSUER_OF else {})
        return await self._kept(
            secret_of(user), {f"{user}.seed": SEED_FILE.format(what=f"The user {user}", seed=seed)}, shared
        )

    async def _kept(self, name: str, fresh: Mapping[str, str], shared: Mapping[str, str] = _NOTHING) -> dict[str, str]:
        """Return the content of the Secret, with missing `fresh` values added and `shared` ones replaced.

        If several servers start at once, the first one's keys count.
        """
        while True:
            stored = await get(self._api, Place(SECRET, self._namespace, name))
            held = {key: base64.b64decode(value).decode() for key, value in strings(_data(stored)).items()}
            wanted = {**fresh, **held, **shared}
            if stored is not None and wanted == held:
                return held
            try:
                await self._write(SECRET, name, stored, {"stringData": wanted})
            except ApiError as refusal:
                if refusal.code != 409:
                    raise
                continue  # another server was faster
            return wanted

    async def _publish_authority(self, certificate: str) -> None:
        while True:
            stored = await get(self._api, Place(CONFIG_MAP, self._namespace, AUTHORITY))
            if strings(_data(stored)).get(CA) == certificate:
                return
            try:
                await self._write(CONFIG_MAP, AUTHORITY, stored, {"data": {CA: certificate}})
            except ApiError as refusal:
                if refusal.code != 409:
                    raise

    async def _write(self, resource: Resource, name: str, stored: Json | None, content: Json) -> None:
        """Create it, or replace what was read. Raises ApiError with code 409 on a conflict."""
        if stored is not None:
            body = msgspec.json.encode(stored | content)
            await self._api.replace(resource, self._namespace, name, body)
            return
        metadata = {"name": name, "namespace": self._namespace, "ownerReferences": [self._owner], "labels": _LABELS}
        document: Json = {"apiVersion": "v1", "kind": resource.kind, "metadata": metadata}
        await self._api.create(resource, self._namespace, msgspec.json.encode(document | content))

    def _new_root(self, folder: Path) -> dict[str, str]:
        authority = _authority(folder)
        authority.make(self._clock)
        return {
            CA: authority.certificate.read_text(encoding="ascii"),
            CA_KEY: authority.key.read_text(encoding="ascii"),
            ISSUER: KeyPair.generate(ACCOUNT).seed,
        }


_LABELS = {"app.kubernetes.io/part-of": "flotilla", "app.kubernetes.io/component": "bus"}


def names() -> Sequence[str]:
    """Return the names of all Secrets of the bus."""
    return (ROOT, *map(secret_of, bus_permissions()))


def rights() -> list[Json]:
    """Return the bus's ServiceAccount, role and binding: it may keep its own keys, and nothing else.

    A right to create cannot be restricted by name; the others are.
    """
    rules = [
        rule("", ["secrets"], ["create"]),
        rule("", ["secrets"], ["get", "update"], names()),
        rule("", ["configmaps"], ["create"]),
        rule("", ["configmaps"], ["get", "update"], [AUTHORITY]),
        rule("", ["serviceaccounts"], ["get"], [NAME]),
    ]
    own = service_account(USER) | {"automountServiceAccountToken": False}
    return [own, role(NAME, rules, NAMESPACE), binding(NAME, NAME, [USER], NAMESPACE)]


def _authority(folder: Path) -> Authority:
    return Authority(folder / CA, folder / CA_KEY, NAME)


def _data(stored: Json | None) -> Json:
    return member(stored or {}, "data")


@click.command("bus-keys")
@cluster_options
@click.option(
    "-n", "--namespace", default=NAMESPACE, envvar="POD_NAMESPACE", show_default=True, help="Flotilla's namespace."
)
@click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder that nats-server reads."
)
@click.option("--host", "hosts", multiple=True, required=True, help="A name or address of the server; repeatable.")
def bus_keys(kubeconfig: str, context: str, namespace: str, into: Path, hosts: tuple[str, ...]) -> None:
    """Create missing keys of a bus inside a cluster, and write the files of its nats-server."""
    with reported():
        asyncio.run(_prepare(Target(kubeconfig, context), namespace, into, hosts))


async def _prepare(target: Target, namespace: str, into: Path, hosts: tuple[str, ...]) -> None:
    async with open_api(target) as api:
        await BusKeys(api, namespace, SystemClock()).prepare(into, hosts)
