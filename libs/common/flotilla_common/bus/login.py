"""Who we are to the bus: the credentials file, told apart by what is in it.

Three kinds are in use: a NATS credentials file (a user JWT and its seed), a bare user seed (an nkey, as
`flotilla node-creds` writes it), and a token that somebody else vouches for, such as a projected ServiceAccount token.
Such a token is renewed in its file, so it is read anew for every connection. Instead of a file it may be a folder with
one `<service>.seed` for each service.
"""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

_SEED = re.compile(r"\bSU[A-Z2-7]{56}\b")
_CREDS = "BEGIN NATS USER JWT"


class Login(msgspec.Struct, frozen=True):
    """The options of the client that say who we are; at most one is set."""

    creds_file: str | None = None
    seed: str | None = None
    token: Callable[[], str] | None = None


def seed_in(text: str) -> str:
    """The user seed in the content of a credentials file. Raises ValueError when there is none."""
    found = _SEED.search(text)
    if found is None:
        raise ValueError("there is no user seed")
    return found[0]


def read_login(file: str, service: str = "") -> Login:
    """What the file holds; an empty name is nobody. In a folder it is the service's file. Raises OSError when it cannot
    be read, ValueError when it holds nothing of the kind."""
    if not file:
        return Login()
    if Path(file).is_dir():
        file = str(Path(file) / f"{service}.seed")
    text = Path(file).read_text(encoding="utf-8")
    if _CREDS in text:
        return Login(creds_file=file)
    if seed := _SEED.search(text):
        return Login(seed=seed[0])
    if not text.strip() or len(text.split()) != 1:
        raise ValueError(f"{file} holds neither NATS credentials, nor a user seed, nor a token")
    return Login(token=lambda: Path(file).read_text(encoding="utf-8").strip())
