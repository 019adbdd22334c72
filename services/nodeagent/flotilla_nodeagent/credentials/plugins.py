"""All credential plugins of the node, from the kubelet's configuration (cri.md §11).

The configuration is read once, at the start, as in the kubelet. A plugin gets few variables of the agent's own
environment: PATH, HOME, proxies, certificate authorities. The configuration may add others.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import structlog

from flotilla_common.clock import Clock
from flotilla_nodeagent.credentials import trust
from flotilla_nodeagent.credentials.keyring import Keyring
from flotilla_nodeagent.credentials.plugin import Plugin
from flotilla_nodeagent.credentials.providers import BadConfig, Provider, parse
from flotilla_nodeagent.cri.types import Login

CONFIG_LIMIT = 1 << 20
"""Size limit of the configuration in bytes, that of a ConfigMap."""

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
PASSED_ON = frozenset(
    {"PATH", "HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", *_PROXIES, *(name.lower() for name in _PROXIES)}
)
"""Variables of the agent that a plugin gets."""

Say = Callable[[str], None]


class Plugins:
    """The logins of the plugins. They form one keyring; earlier plugins come first within a key."""

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        self._plugins = plugins

    async def logins(self, repository: str) -> list[Login]:
        """Return the logins that match the full repository, in the order in which to try them."""
        told = await asyncio.gather(*(plugin.entries(repository) for plugin in self._plugins))
        return Keyring(entry for entries in told for entry in entries).logins(repository)


def load(file: Path, folder: Path, clock: Clock, env: Mapping[str, str], say: Say) -> Plugins:
    """Return the plugins in the folder that the file lists, none without the file; report and log a bad file."""
    log = structlog.get_logger(part="credential plugins", file=str(file))
    try:
        providers = parse(trust.read(file, CONFIG_LIMIT))
    except (FileNotFoundError, NotADirectoryError):
        return Plugins()
    except (OSError, trust.Untrusted, BadConfig) as error:
        log.warning("credential plugins not used", why=str(error))
        say(f"plugins not used: {error}")
        return Plugins()
    usable = [provider for provider in providers if _usable(provider, folder, log)]
    say(f"plugins {', '.join(provider.name for provider in usable) or 'none'}")
    passed = {name: value for name, value in env.items() if name in PASSED_ON}
    return Plugins([Plugin(provider, folder, clock, passed) for provider in usable])


def _usable(provider: Provider, folder: Path, log: structlog.stdlib.BoundLogger) -> bool:
    """Report whether the plugin can be used. A missing program is only logged: it may be installed later."""
    if provider.needs_pod:
        log.warning("plugin not used: it needs a pod's service account", plugin=provider.name)
        return False
    try:
        trust.program(folder / provider.name)
    except (OSError, trust.Untrusted) as error:
        log.warning("plugin cannot be run now", plugin=provider.name, why=str(error))
    return True
