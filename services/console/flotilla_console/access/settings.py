"""The settings of signing in, and of the rights of those who did."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Way: TypeAlias = Literal["proxy", "oidc", "token", "fixed", "key"]

WAYS: tuple[Way, ...] = ("proxy", "oidc", "token", "fixed", "key")


@dataclass(frozen=True, kw_only=True)
class ProxySettings:
    """An authenticating proxy in front of the console. It is trusted by a secret or by its client certificate."""

    user_header: str = "X-Remote-User"
    group_header: str = "X-Remote-Group"
    """Each header of this name is a group."""
    group_separator: str = ""
    """Separates groups in one header (`,` for oauth2-proxy). Empty: one group per header, as groups may have commas."""
    extra_header_prefix: str = "X-Remote-Extra-"
    secret_header: str = "X-Flotilla-Proxy-Secret"  # noqa: S105 - the name of a header
    secret_file: str = ""
    """A file with the secret that the proxy sends; several lines are several secrets, for rotation."""
    allowed_names: tuple[str, ...] = ()
    """Common names of the client certificates of the proxy, verified by the TLS listener. Empty: none."""


@dataclass(frozen=True, kw_only=True)
class OidcSettings:
    """An OpenID Connect provider, with the names of the apiserver's own flags."""

    issuer: str = ""
    client_id: str = ""
    client_secret_file: str = ""
    """Empty: a public client, which has no secret; PKCE protects the code."""
    ca_file: str = ""
    redirect_url: str = ""
    """The console's own `/signin/oidc/callback`, as browsers reach it."""
    scopes: tuple[str, ...] = ("openid", "email", "groups")
    username_claim: str = "sub"
    username_prefix: str = ""
    """Empty: `<issuer>#` unless the claim is `email`, as the apiserver has it; `-`: none."""
    groups_claim: str = "groups"
    groups_prefix: str = ""


@dataclass(frozen=True, kw_only=True)
class FixedSettings:
    """The identity of all users, which may read and never write."""

    user: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AccessSettings:
    """All settings of access."""

    ways: tuple[Way, ...] = ("token",)
    """The ways to sign in, in the order in which a request is tried."""
    origin: str = ""
    """The console's origin as browsers see it (`https://flotilla.example.com`). Empty: that of the Host header."""
    key_file: str = ""
    """Fernet keys, one a line: the first encrypts, all decrypt. Empty: a key of this process, lost with it."""
    session_seconds: float = 8 * 3600.0
    proxy: ProxySettings = field(default_factory=ProxySettings)
    oidc: OidcSettings = field(default_factory=OidcSettings)
    fixed: FixedSettings = field(default_factory=FixedSettings)
    rights_seconds: float = 10.0
    """The time for which an answer of the apiserver about rights is used."""
    rights_grace_seconds: float = 60.0
    """The time for which a right, once granted, holds while the apiserver does not answer."""
    reviews_at_once: int = 16
    """Most reviews under way."""
    attempts_per_minute: int = 10
    """Attempts to sign in from one address."""


def problems(settings: AccessSettings) -> tuple[str, ...]:
    """Return everything that is wrong with the settings, one sentence each."""
    found: list[str] = []
    proxy, oidc = settings.proxy, settings.oidc
    if not settings.ways:
        found.append("no way to sign in is configured")
    if unknown := [way for way in settings.ways if way not in WAYS]:
        found.append(f"ways to sign in are {', '.join(WAYS)}, not {', '.join(unknown)}")
    if "proxy" in settings.ways and not (proxy.secret_file or proxy.allowed_names):
        found.append("headers of a proxy are trusted only with a secret file or names of client certificates")
    if "oidc" in settings.ways:
        needed = {"issuer": oidc.issuer, "client id": oidc.client_id, "redirect URL": oidc.redirect_url}
        found.extend(f"OIDC has no {name}" for name, value in needed.items() if not value)
        if oidc.issuer and not oidc.issuer.startswith("https://"):
            found.append("the OIDC issuer must begin with https://")
        if "openid" not in oidc.scopes:
            found.append("the OIDC scopes must include openid")
    if "fixed" in settings.ways and not settings.fixed.user:
        found.append("the fixed identity has no user")
    return tuple(found)
