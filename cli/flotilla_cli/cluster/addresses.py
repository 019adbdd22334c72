"""The names and addresses under which others may reach this machine, for the certificates of its servers.

Linux tells all of its addresses in `/proc/net`; elsewhere those count that its own name leads to.
"""

import re
import socket
from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path

from flotilla_cli.cluster.ports import HOST

ROUTES4 = Path("/proc/net/fib_trie")
ADDRESSES6 = Path("/proc/net/if_inet6")
_LOCAL4 = re.compile(r"\|-- ([\d.]+)\n\s+/32 host LOCAL")


def own_names(host: str) -> list[str]:
    """Those of a server that listens on this host, itself included; without one, of a server on all addresses."""
    named = [host] if host else [*_addresses(), socket.gethostname(), socket.getfqdn()]
    return list(dict.fromkeys(["localhost", HOST, *filter(None, named)]))


def _addresses() -> Iterator[str]:
    if not ROUTES4.exists():
        found = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
        yield from (str(address[0]).partition("%")[0] for *_, address in found)
        return
    yield from sorted(set(_LOCAL4.findall(ROUTES4.read_text(encoding="ascii"))))
    if ADDRESSES6.exists():  # not where IPv6 is switched off
        lines = ADDRESSES6.read_text(encoding="ascii").splitlines()
        yield from (str(IPv6Address(int(line.split()[0], 16))) for line in lines)
