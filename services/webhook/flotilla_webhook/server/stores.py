"""Stores of the certificate (webhooks.md §4): the Secret that all replicas share, files, or an external Secret.

A save returns whether ours was stored: when another replica was faster, its certificate is used.
"""

import base64
import binascii
import hashlib
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from flotilla_common.api.documents import Json, member, strings, text
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.resources import SECRET
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.service import Context
from flotilla_webhook.server.certificates import Bundle

OWN_KEYS = ("ca-key.pem", "ca-cert.pem", "key.pem", "cert.pem")
"""Keys of CA key, CA certificate, key and certificate in our own stores."""

EXTERNAL_KEYS = ("ca.key", "ca.crt", "tls.key", "tls.crt")
"""The same in external Secrets. cert-manager keeps the key of its authority to itself."""


class StoreError(Exception):
    """The store lacks required data."""


class Store(Protocol):
    """A place for one bundle."""

    external: bool
    """True if the bundle is issued and renewed elsewhere: it is never written, never checked."""

    async def load(self) -> Bundle | None:
        """Return the stored bundle, or None if it is missing or incomplete."""
        ...

    async def save(self, bundle: Bundle) -> bool:
        """Store in place of the last loaded bundle; return False if another one was stored since."""
        ...


class SecretStore:
    """The Secret `name`; writes are conditional on the version that was read."""

    external = False

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        self.api = api
        self.namespace = namespace
        self.name = name
        self._read: Json | None = None

    async def load(self) -> Bundle | None:
        self._read = await _secret(self.api, self.namespace, self.name)
        return _bundle(self._read, OWN_KEYS) if self._read is not None else None

    async def save(self, bundle: Bundle) -> bool:
        data = {key: base64.b64encode(value).decode() for key, value in files_of(bundle).items()}
        try:
            if self._read is None:
                metadata = {"name": self.name, "namespace": self.namespace}
                secret: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
                await self.api.create(SECRET, self.namespace, msgspec.json.encode(secret))
            else:
                changed = self._read | {"data": member(self._read, "data") | data}
                await self.api.replace(SECRET, self.namespace, self.name, msgspec.json.encode(changed))
        except ApiError as refusal:
            if refusal.code == 409:  # AlreadyExists or Conflict: another replica was faster
                return False
            raise
        return True


class ExternalStore:
    """The Secret that cert-manager fills. Raises StoreError before that."""

    external = True

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        self.api = api
        self.namespace = namespace
        self.name = name

    async def load(self) -> Bundle:
        secret = await _secret(self.api, self.namespace, self.name)
        bundle = _bundle(secret, EXTERNAL_KEYS, spare="ca.key") if secret is not None else None
        if bundle is None:
            needed = ", ".join(EXTERNAL_KEYS[1:])
            raise StoreError(f"Secret {self.namespace}/{self.name} does not hold {needed} yet")
        return bundle

    async def save(self, bundle: Bundle) -> bool:
        raise StoreError("external certificates are never written")


class FileStore:
    """Files in the directory that is served from."""

    external = False

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def load(self) -> Bundle | None:
        files = read_files(self.directory, OWN_KEYS)
        return Bundle(*(files[key] for key in OWN_KEYS)) if files else None

    async def save(self, bundle: Bundle) -> bool:
        write_files(self.directory, files_of(bundle))
        return True


def store_of(context: Context) -> Store:
    """Return the store that the gates and settings choose."""
    settings = context.settings
    if context.gates.on("EnableExternalCerts"):
        return ExternalStore(context.api, settings.namespace, settings.webhook_secret)
    if settings.webhook_cert_writer == "fs" or (settings.webhook_host and not settings.webhook_cert_writer):
        return FileStore(Path(settings.webhook_cert_dir))
    return SecretStore(context.api, settings.namespace, settings.webhook_secret)


def files_of(bundle: Bundle) -> dict[str, bytes]:
    """Return the six files: our four, and key and certificate under their usual names.

    An empty key of the authority is left out.
    """
    values = (bundle.ca_key, bundle.ca_cert, bundle.key, bundle.cert)
    files = dict(zip(OWN_KEYS, values, strict=True)) | {"tls.key": bundle.key, "tls.crt": bundle.cert}
    return {name: content for name, content in files.items() if content}


async def _secret(api: Api, namespace: str, name: str) -> Json | None:
    stored = await found_or_none(api.get(SECRET, namespace, name))
    return None if stored is None else msgspec.json.decode(stored, type=Json)


def _bundle(secret: Json, keys: tuple[str, ...], spare: str = "") -> Bundle | None:
    """Return the bundle under these keys of the Secret, or None unless it has all but the spare one."""
    data = strings(secret.get("data"))
    try:
        values = [base64.b64decode(text(data.get(key)), validate=True) for key in keys]
    except binascii.Error:
        return None
    complete = all(value or key == spare for key, value in zip(keys, values, strict=True))
    return Bundle(*values) if complete else None


_LINK = "..data"


def read_files(directory: Path, names: Iterable[str]) -> dict[str, bytes] | None:
    """Return the named files, or None if any is missing."""
    try:
        return {name: (directory / name).read_bytes() for name in names}
    except FileNotFoundError:
        return None


def write_files(directory: Path, files: Mapping[str, bytes]) -> bool:
    """Replace the directory's content by these files atomically; return whether anything changed. Raises OSError.

    Every file is a link through `..data`, itself a link to a directory that is written completely before the link is
    swapped: a reader never gets the certificate of one generation with the key of another. The kubelet mounts Secrets
    the same way.
    """
    if read_files(directory, files) == dict(files):
        return False
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.sha256(b"\0".join(files[name] for name in sorted(files))).hexdigest()
    generation = directory / f"..{digest[:16]}"
    shutil.rmtree(generation, ignore_errors=True)  # left by a process that died while writing
    generation.mkdir(mode=0o700)
    for name, content in files.items():
        path = generation / name
        path.touch(mode=0o600)
        path.write_bytes(content)
    _swap(directory / _LINK, generation.name)
    for name in files:
        if not (directory / name).is_symlink():
            _swap(directory / name, f"{_LINK}/{name}")
    for old in directory.glob("..*"):
        if old.is_dir() and not old.is_symlink() and old != generation:
            shutil.rmtree(old)
    return True


def _swap(link: Path, target: str) -> None:
    """Point the link at the target in one step, replacing any file there."""
    fresh = link.with_name(f"{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)
