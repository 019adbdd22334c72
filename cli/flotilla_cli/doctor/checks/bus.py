"""The bus: there, closed to strangers, new enough, with JetStream and room to store."""

import re
from collections.abc import Iterator

from flotilla_cli.doctor.facts import Account, Banner, Facts
from flotilla_cli.doctor.finding import WARNING, Finding

OLDEST = (2, 12)
"""Of nats-server; docs/operations.md names it."""

FULL = 0.85
"""The share of the storage that may be used before something is said."""

_START = "start it: an empty disk is fine, everything on it is made anew (`flotilla up`, its pods, its log)"
_USERS = "give the servers users (docs/bus.md#who-may-say-and-hear-what)"


def seen(facts: Facts) -> str:
    """What was looked at."""
    return f"bus at {', '.join(f'{one.url} (nats-server {one.version})' for one in facts.banners.get())}"


def check(facts: Facts) -> Iterator[Finding]:
    """Each server, and what they keep together."""
    banners = facts.banners.get()
    for banner in banners:
        yield from _server(banner, alone=len(banners) == 1)
    there = [banner for banner in banners if not banner.trouble]
    if not there:
        return
    if facts.heard.found is None:
        said = f"it is there, and cannot be used from here: {facts.heard.why}"
        advice = "credentials of the user `flotilla` are needed: FLOTILLA_NATS_CREDS, FLOTILLA_NATS_CA (docs/bus.md)"
        yield Finding(code="BusRefuses", about="bus", text=said, advice=advice)
        return
    yield from _storage(facts.account.get())


def _storage(account: Account) -> Iterator[Finding]:
    used, limit = account.storage, account.storage_limit
    if limit > 0 and used > FULL * limit:
        said = f"{used / limit:.0%} of what JetStream may store is used ({used >> 20} of {limit >> 20} MiB)"
        advice = "raise max_file_store or the account's limit: when it is full, nothing more is published"
        yield Finding(code="BusFull", about="bus", text=said, advice=advice, severity=WARNING)


def _server(banner: Banner, *, alone: bool) -> Iterator[Finding]:
    about = f"bus at {banner.url}"
    if banner.trouble:
        consequence = "" if alone else "; the other servers are there"
        said = f"no server answers: {banner.trouble}{consequence}"
        yield Finding(code="BusUnreachable", about=about, text=said, advice=_START)
        return
    if not banner.users_needed:
        said = "it lets anybody in, and whoever is on it can have pods made and deleted"
        yield Finding(code="BusOpen", about=about, text=said, advice=_USERS)
    if not banner.jetstream:
        said = "it runs without JetStream: nothing can be stored on it"
        yield Finding(code="BusWithoutJetStream", about=about, text=said, advice="start nats-server with jetstream {}")
    found = re.match(r"(\d+)\.(\d+)", banner.version)
    if found and (int(found[1]), int(found[2])) < OLDEST:
        said = f"it is nats-server {banner.version}, and 2.12 or newer is needed"
        yield Finding(code="BusTooOld", about=about, text=said, advice="upgrade nats-server")
