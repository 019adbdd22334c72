"""The programs of the first containers of compose.yaml: keys, and fake nodes.

    python -m flotilla_dev.compose keys FOLDER https://HOST:PORT DATA
    python -m flotilla_dev.compose nodes KUBECONFIG COUNT

`keys` makes what `flotilla up` makes in its state folder, by the same code: tokens, authorities, certificates,
kubeconfigs, users of the bus, configurations. Each container gets its own folder (a volume there), and nothing that
belongs to another. Existing files are kept, so that `docker compose up` can be repeated.

Unlike in the cluster of `flotilla up`, where all are the admin, the services act as their own ServiceAccounts, with the
rights that they have in a cluster: the apiserver accepts a token for each of these names.

`nodes` first waits for the apiserver, whose own image contains no health check. When it has ended, pods can be created.
"""

import asyncio
import os
import sys
from pathlib import Path

from flotilla_cli.certificates import Authority
from flotilla_cli.local import write_private
from flotilla_cli.nats_config import BusUsers, credentials_of
from flotilla_common.bus.permissions import READER
from flotilla_common.clock import Clock, SystemClock
from flotilla_dev.cluster import access, components, kwok
from flotilla_dev.cluster.access import admin, not_ready
from flotilla_dev.cluster.components import Places
from flotilla_dev.cluster.nats import configuration
from flotilla_dev.image.base import USER
from flotilla_insight.installation import rbac
from flotilla_insight.services import installed

APISERVER, BUS, PEOPLE = "kube-apiserver", "nats", "people"
"""Folders; the first two are also host names. `people` is for everything that the admin does."""

COMPONENTS = ("kube-controller-manager", "kube-scheduler", "kwok")
PORT, BUS_PORT, MONITOR_PORT = 6443, 4222, 8222
ANY = "0.0.0.0"
LOCAL = ("localhost", "127.0.0.1")
"""Names of the servers for people on the machine of the containers."""

BOOT = "compose"
"""Name of every start of kwok, for keys and nodes."""

DATA = ("etcd", "nats")

POLL = 0.5


def make_keys(root: Path, outside: str, data: Path, clock: Clock) -> None:
    """Make missing files.

    `outside` is where people on this machine reach the apiserver, `data` the folder with the folders of etcd and
    nats-server.
    """
    tokens = _apiserver(root, clock)
    inside = f"https://{APISERVER}:{PORT}"
    for component in COMPONENTS:
        _kubeconfig(root, Places(root / component).kubeconfig(component), inside, tokens[component])
    for service in installed():
        _kubeconfig(root, root / service / "kubeconfig", inside, tokens[service])
    _kubeconfig(root, root / PEOPLE / "inside.kubeconfig", inside, tokens["admin"])
    _kubeconfig(root, root / PEOPLE / "kubeconfig", outside, tokens["admin"])
    components.scheduler(Places(root / "kube-scheduler"))
    kwok.command(Places(root / "kwok"), kwok.Kubelet(), BOOT)
    controllers = Places(root / "kube-controller-manager")
    _copy(Places(root / APISERVER).signing_key, controllers.signing_key)
    _copy(_authority(root).certificate, controllers.state_dir / "ca.crt")
    _bus(root, data / "nats", clock)


def hand_over(root: Path, data: Path, user: int) -> None:
    """Give the files to the user as whom the containers run; the folders stay ours."""
    for folder in (APISERVER, BUS, PEOPLE, *COMPONENTS, *installed()):
        for file in (root / folder).rglob("*"):
            os.chown(file, user, user)
    for name in DATA:
        if (data / name).stat().st_uid != user:
            (data / name).chmod(0o700)
            os.chown(data / name, user, user)


def _apiserver(root: Path, clock: Clock) -> dict[str, str]:
    places = Places(root / APISERVER)
    accounts = f"system:serviceaccount:{rbac.NAMESPACE}:"
    services = {name: (accounts + rbac.account(name), "") for name in installed()}
    tokens = access.write_tokens(places.tokens, {**access.USERS, **services})
    access.write_signing_key(places.signing_key)
    authority = _authority(root)
    authority.make(clock)
    authority.issue_server(places.server, [APISERVER, *LOCAL], clock)
    return tokens


def _authority(root: Path) -> Authority:
    """Return the authority of the apiserver's certificate. No other container has its key."""
    return Authority(root / "ca.crt", root / "ca.key", "flotilla")


def _kubeconfig(root: Path, path: Path, server: str, token: str) -> None:
    access.write_kubeconfig(path, server, _authority(root).certificate, {"token": token}, enclosed=True)


def _bus(root: Path, store: Path, clock: Clock) -> None:
    """Write the users of the bus, the server's configuration, and each service's own seed."""
    users = BusUsers(root)
    users.prepare()
    authority = users.authority(clock)
    pair = root / BUS / "server.pem"
    authority.issue_server(pair, [BUS, *LOCAL], clock)
    _copy(users.configuration, root / BUS / users.configuration.name)
    text = configuration(users.configuration.name, ANY, BUS_PORT, MONITOR_PORT, store, pair)
    write_private(root / BUS / "nats.conf", text)
    readers = {**{service: service for service in installed()}, PEOPLE: credentials_of(users.credentials).stem}
    for folder, user in readers.items():
        _copy(credentials_of(users.credentials, user), root / folder / "bus.seed")
        _copy(authority.certificate, root / folder / "bus-ca.crt")
    _copy(credentials_of(users.credentials, READER), root / PEOPLE / "reader.seed")


def _copy(source: Path, target: Path) -> None:
    write_private(target, source.read_bytes())


async def make_nodes(kubeconfig: Path, count: int, clock: Clock) -> None:
    """Create the nodes once the apiserver serves. Raises ClusterError if kwok does not manage them."""
    said = ""
    while problem := await not_ready(kubeconfig, clock):
        if problem != said:
            print(problem, flush=True)
        said = problem
        await clock.sleep(POLL)
    async with admin(kubeconfig, clock) as api:
        await kwok.add_nodes(api, count, clock)
        await kwok.retake_nodes(api, count, clock, BOOT)


def main(program: str, *arguments: str) -> None:
    """Run one of the programs."""
    clock = SystemClock()
    match program, *arguments:
        case "keys", root, outside, data:
            make_keys(Path(root), outside, Path(data), clock)
            hand_over(Path(root), Path(data), USER)
        case "nodes", kubeconfig, count:
            asyncio.run(make_nodes(Path(kubeconfig), int(count), clock))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
