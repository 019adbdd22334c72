"""The settings of access, as they follow from those of the service."""

from flotilla_common.settings import Settings, SettingsError
from flotilla_console.access.settings import WAYS, AccessSettings, FixedSettings, OidcSettings, ProxySettings, problems


def access_settings(given: Settings) -> AccessSettings:
    """Return the settings of access. Raises SettingsError with everything that is wrong with them."""
    url = given.console_url.rstrip("/")
    named = _list(given.console_sign_in)
    settings = AccessSettings(
        ways=tuple(way for name in named for way in WAYS if way == name),
        origin=url,
        key_file=given.console_cookie_key_file,
        session_seconds=given.console_session_duration,
        proxy=ProxySettings(
            user_header=given.console_proxy_user_header,
            group_header=given.console_proxy_group_header,
            group_separator=given.console_proxy_group_separator,
            extra_header_prefix=given.console_proxy_extra_prefix,
            secret_header=given.console_proxy_secret_header,
            secret_file=given.console_proxy_secret_file,
            allowed_names=_list(given.console_client_names),
        ),
        oidc=OidcSettings(
            issuer=given.console_oidc_issuer,
            client_id=given.console_oidc_client_id,
            client_secret_file=given.console_oidc_client_secret_file,
            ca_file=given.console_oidc_ca,
            redirect_url=f"{url}/signin/oidc/callback" if url else "",
            scopes=tuple(given.console_oidc_scopes.split()),
            username_claim=given.console_oidc_user_claim,
            username_prefix=given.console_oidc_user_prefix,
            groups_claim=given.console_oidc_groups_claim,
            groups_prefix=given.console_oidc_groups_prefix,
        ),
        fixed=FixedSettings(user=given.console_fixed_user, groups=_list(given.console_fixed_groups)),
    )
    if wrong := problems(settings):
        raise SettingsError([f"the console: {problem}" for problem in wrong])
    return settings


def _list(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))
