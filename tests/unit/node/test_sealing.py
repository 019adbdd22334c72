"""Secrets reach the requesting process and no other."""

import base64

import pytest

from flotilla_common.node.reports import PullSecret
from flotilla_common.node.sealing import Opener, seal

SECRETS = [
    PullSecret(namespace="a", name="b", type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": "e30="})
]


def test_what_was_sealed_for_us_opens() -> None:
    opener = Opener()
    assert opener.open(seal(opener.public_key, SECRETS)) == SECRETS


def test_what_was_sealed_for_another_process_does_not() -> None:
    with pytest.raises(ValueError, match="cannot be opened"):
        Opener().open(seal(Opener().public_key, SECRETS))


def test_nothing_can_be_read_on_the_way() -> None:
    sealed = base64.b64decode(seal(Opener().public_key, SECRETS))
    assert b"dockerconfigjson" not in sealed


@pytest.mark.parametrize("key", ["", "AAAA", "not base64!"])
def test_bad_keys_are_refused(key: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - binascii and we say it in different words
        seal(key, SECRETS)
