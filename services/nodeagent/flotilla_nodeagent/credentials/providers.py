"""Parses the kubelet's file with credential plugins: CredentialProviderConfig (cri.md §11).

As in the kubelet, the file counts as a whole: with one bad provider none is used. Unknown members are skipped, since
newer kubelets have more of them.
"""

from collections.abc import Iterator, Sequence
from pathlib import PurePath

import msgspec

from flotilla_common.api.meta import Model
from flotilla_common.settings import readers

KIND = "CredentialProviderConfig"
GROUP, PROTOCOL = "kubelet.config.k8s.io", "credentialprovider.kubelet.k8s.io"
VERSIONS = ("v1", "v1beta1", "v1alpha1")
"""Versions of the API; they do not differ in the fields used here."""


class BadConfig(Exception):
    """The file cannot be used; the text has all reasons."""


class Variable(Model):
    """One more environment variable of a plugin."""

    name: str
    value: str = ""


class TokenAttributes(Model):
    """Data of the pod for which an image is pulled, needed by a plugin. The agent pulls for no pod."""

    require_service_account: bool = False


class Provider(Model):
    """One plugin."""

    name: str
    match_images: list[str]
    default_cache_duration: str
    api_version: str
    args: list[str] | None = None
    env: list[Variable] | None = None
    token_attributes: TokenAttributes | None = None

    @property
    def cache_seconds(self) -> float:
        """Seconds for which to cache an answer without a duration. Raises ValueError when it cannot be parsed."""
        return readers.duration(self.default_cache_duration)

    @property
    def needs_pod(self) -> bool:
        """Report whether it works only on behalf of a pod."""
        return self.token_attributes is not None and self.token_attributes.require_service_account


class _Config(Model):
    api_version: str
    kind: str
    providers: list[Provider]


def parse(text: bytes) -> list[Provider]:
    """Return the providers of the file, which is YAML or JSON, in their order.

    Raises BadConfig when it cannot be parsed, or a provider in it is wrong.
    """
    try:
        config = msgspec.yaml.decode(text, type=_Config)
    except msgspec.ValidationError as error:
        raise BadConfig(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The parser's message quotes the file, which contains variables of plugins.
        raise BadConfig("it is neither YAML nor JSON") from None
    if problems := [*_heading(config), *_problems(config.providers)]:
        raise BadConfig("; ".join(problems))
    return config.providers


def _heading(config: _Config) -> Iterator[str]:
    if config.kind != KIND or config.api_version not in [f"{GROUP}/{version}" for version in VERSIONS]:
        yield f"it is a {config.kind} of {config.api_version}, not a {KIND} of {GROUP}/v1"
    if not config.providers:
        yield "it has no providers"


def _problems(providers: Sequence[Provider]) -> Iterator[str]:
    for index, provider in enumerate(providers):
        for problem in _provider_problems(provider):
            yield f"provider {provider.name or index}: {problem}"
        if provider.name in [other.name for other in providers[:index]]:
            yield f"provider {provider.name}: there are two of that name"


def _provider_problems(provider: Provider) -> Iterator[str]:
    name = provider.name
    if not name or name in (".", "..") or PurePath(name).name != name or "\\" in name or name.split() != [name]:
        yield "the name must be that of a file, without spaces"
    if not provider.match_images:
        yield "it has no matchImages"
    if provider.api_version not in [f"{PROTOCOL}/{version}" for version in VERSIONS]:
        yield f"apiVersion {provider.api_version} is not {PROTOCOL}/v1"
    try:
        _ = provider.cache_seconds
    except ValueError as error:
        yield f"defaultCacheDuration {error}"
