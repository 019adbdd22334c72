"""The credentials that match an image (cri.md §11)."""

import base64
import json
from typing import Any

import pytest

from flotilla_common.node.reports import PullSecret
from flotilla_nodeagent.credentials.documents import CONFIG, CONFIG_JSON, BadSecret, of_secret
from flotilla_nodeagent.credentials.keyring import Keyring
from flotilla_nodeagent.cri.types import Login


def secret(kind: str, document: Any) -> PullSecret:
    key = ".dockerconfigjson" if kind == CONFIG_JSON else ".dockercfg"
    return PullSecret(
        namespace="n", name="s", type=kind, data={key: base64.b64encode(json.dumps(document).encode()).decode()}
    )


def keyring_of(*secrets: PullSecret) -> Keyring:
    return Keyring(entry for one in secrets for entry in of_secret(one))


def ring(*keys: str) -> Keyring:
    """Return a keyring in which each key's password is the key."""
    return keyring_of(secret(CONFIG_JSON, {"auths": {key: {"username": "u", "password": key} for key in keys}}))


def passwords(keyring: Keyring, repository: str) -> list[str]:
    return [login.password for login in keyring.logins(repository)]


FITS = {
    "docker.io/library/nginx": ["https://index.docker.io/v1/", "index.docker.io", "docker.io", "docker.io/lib", "*.io"],
    "docker.io/acme/app": ["docker.io/acme"],
    "reg.example/a": ["reg.example/v1/a", "http://reg.example/v2/", "*.example"],
    "reg.example:5000/abc/x": ["reg.example:5000/a", "reg.*:5000"],
    "a.b.example/x": ["*.*.example"],
}
MISSES = {
    "docker.io/library/nginx": ["https://index.docker.io/v1", "registry-1.docker.io", "*.docker.io", "docker.io/nginx"],
    "docker.io/acme/app": ["index.docker.io/acme"],
    "reg.example/a": ["reg.example/a/", "reg.example/v2", "reg.example:443", "REG.example", "reg.example/*"],
    "reg.example:5000/abc/x": ["reg.example", "reg.example:*"],
    "a.b.example/x": ["*.example", "b.example"],
}


@pytest.mark.parametrize(("image", "key"), [(image, key) for image, keys in FITS.items() for key in keys])
def test_fits(image: str, key: str) -> None:
    assert passwords(ring(key), image) == [key]


@pytest.mark.parametrize(("image", "key"), [(image, key) for image, keys in MISSES.items() for key in keys])
def test_does_not_fit(image: str, key: str) -> None:
    assert passwords(ring(key), image) == []


def test_longer_keys_come_first_and_the_hub_only_without_another() -> None:
    keyring = ring("docker.io", "docker.io/library", "index.docker.io", "reg.example")
    assert passwords(keyring, "docker.io/library/nginx") == ["docker.io/library", "docker.io"]


def test_several_secrets_form_one_ring() -> None:
    entry = {"auths": {"reg.example": {"username": "u", "password": "one"}}}
    old = {"reg.example": {"username": "u", "password": "two"}}
    keyring = keyring_of(secret(CONFIG_JSON, entry), secret(CONFIG, old), secret(CONFIG_JSON, entry))
    assert passwords(keyring, "reg.example/a") == ["one", "two"]


@pytest.mark.parametrize(
    ("auth", "login"),
    [("dTpw", Login("u", "p")), ("dTpwOng=", Login("u", "p:x")), ("dTpwOng", Login("u", "p:x"))],
    ids=["plain", "padded, colon", "unpadded"],
)
def test_auth_wins(auth: str, login: Login) -> None:
    entry = {"auths": {"reg.example": {"username": "x", "password": "y", "auth": auth}}}
    assert keyring_of(secret(CONFIG_JSON, entry)).logins("reg.example/a") == [login]


def test_other_types_are_left_out() -> None:
    assert of_secret(PullSecret(type="Opaque", data={".dockerconfigjson": "!"})) == []


@pytest.mark.parametrize(
    "document", ["not json", {"auths": []}, {"auths": {"a": {"auth": "!"}}}], ids=["text", "list", "auth"]
)
def test_what_cannot_be_read_is_an_error(document: Any) -> None:
    with pytest.raises(BadSecret, match="n/s"):
        of_secret(secret(CONFIG_JSON, document))
