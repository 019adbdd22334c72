"""The identity of a user of the console."""

from collections.abc import Mapping
from dataclasses import dataclass, field

AUTHENTICATED = "system:authenticated"
"""The group of all users who have signed in, which the apiserver adds to those that it has authenticated itself."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A user, as the apiserver knows them."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    token: str = field(default="", repr=False)
    """The user's own bearer token, if they pasted one. It is never logged, and sent only to the apiserver."""
    read_only: bool = False
    """True for the fixed identity, which never writes, even with the right to."""
    own: bool = False
    """True for the user of the program itself (`flotilla console`): requests have its credentials as they are."""


def authenticated(
    user: str,
    groups: tuple[str, ...] = (),
    extra: Mapping[str, tuple[str, ...]] | None = None,
    *,
    read_only: bool = False,
) -> Identity:
    """Return the identity of a user whom the console has authenticated, with the group that all of them have."""
    all_groups = tuple(dict.fromkeys((*groups, AUTHENTICATED)))
    return Identity(user=user, groups=all_groups, extra=extra or {}, read_only=read_only)
