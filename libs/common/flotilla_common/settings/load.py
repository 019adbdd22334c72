"""Loads the settings: flags over environment over file over defaults.

Every problem is reported at once, with the nearest known name.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.settings import readers
from flotilla_common.settings.schema import OPTION, Option, Settings

IGNORED_SWITCHES = frozenset(
    {
        "add-dir-header",
        "allow-privileged",
        "alsologtostderr",
        "disable-no-deepcopy",
        "enable-leader-election",
        "enable-pprof",
        "logtostderr",
        "one-output",
        "skip-headers",
        "skip-log-headers",
    }
)
"""Ignored flags that are booleans: a bare one does not take the next word as its value."""

WORKERS = (
    "advancedcronjob",
    "broadcastjob",
    "cloneset",
    "crr",
    "daemonset",
    "imagepulljob",
    "nodeimage",
    "nodepodprobe",
    "persistentpodstate",
    "podprobemarker",
    "podunavailablebudget",
    "resourcedistribution",
    "sidecarset",
    "sidecarterminator",
    "statefulset",
    "uniteddeployment",
    "workloadspread",
)
"""The prefixes of all flags that set a number of workers."""

_OTHERS = frozenset(
    {
        "controller-cache-sync-timeout",
        "expectation-timeout",
        "leader-election-id",
        "leader-election-renew-deadline",
        "leader-election-resource-lock",
        "log-backtrace-at",
        "log-dir",
        "log-file",
        "log-file-max-size",
        "pprof-addr",
        "pub-eviction-denied-code",
        "rate-limiter-bucket-size",
        "rate-limiter-qps",
        "rest-config-burst",
        "rest-config-qps",
        "stderrthreshold",
        "sync-period",
        "vmodule",
    }
)

IGNORED = IGNORED_SWITCHES | _OTHERS | {f"{kind}-workers" for kind in WORKERS}
"""Flags of install.md §4 that existing manifests pass and that have no effect on the existing services.

They are known, so that no start-up fails on them. A name that is also a setting acts as the setting.
"""

LOOPBACK = ("127.0.0.1", "::1", "localhost")

PREFIX = "FLOTILLA_"
NOT_SETTINGS = frozenset(
    {"FLOTILLA_ASSETS", "FLOTILLA_CACHE", "FLOTILLA_CONFIG", "FLOTILLA_STATE", "FLOTILLA_STATE_DIR"}
)
"""Variables with our prefix that the command line reads itself, or sets for processes of a local cluster."""

# The kubelet sets variables for the namespace's Services: FLOTILLA_WEBHOOK_PORT for `flotilla-webhook`.
_SERVICE_LINK = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$")
_SERVICE_LINK_VALUE = re.compile(r"(tcp|udp|sctp)://")


class SettingsError(Exception):
    """Everything that is wrong with the settings, one sentence each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class _Options:
    """All settings by each of their names; one per kind with a worker flag in place of the field `workers`."""

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self.workers = {f"{kind.workers.flag}_workers": kind for kind in kinds if kind.workers.flag}
        self.by_field: dict[str, Option] = {}
        self.defaults: dict[str, object] = {}
        for field in fields(Settings):
            if field.name == "workers":
                for name, kind in self.workers.items():
                    side_by_side = Option("replicas", f"{kind.name}s planned concurrently.", readers.integer(1))
                    self.by_field[name], self.defaults[name] = side_by_side, kind.workers.default
            else:
                self.by_field[field.name], self.defaults[field.name] = field.metadata[OPTION], field.default
        self.flags: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        for name, option in self.by_field.items():
            self.flags |= dict.fromkeys((*option.flags, _first_flag(name, option)), name)
            self.variables |= dict.fromkeys((*option.env, PREFIX + name.upper()), name)


def _first_flag(field: str, option: Option) -> str:
    """Return the flag that the documentation uses for a setting."""
    return option.flag or field.replace("_", "-")


_options_with = cache(_Options)


def _options() -> _Options:
    return _options_with(catalogue.KINDS)


def known_flags() -> Iterator[tuple[str, str, Option, object]]:
    """Yield (flag, field, option, default) of every setting, for help texts and completion."""
    options = _options()
    for field, option in options.by_field.items():
        yield _first_flag(field, option), field, option, options.defaults[field]


def split_flags(arguments: Sequence[str]) -> tuple[dict[str, str | None], list[str]]:
    """Split a command line into flags (`--name=value`, `--name value`, `-name`, bare booleans) and other words."""
    flags: dict[str, str | None] = {}
    words: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if not argument.startswith("-") or argument == "-":
            words.append(argument)
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        takes_value = not equals and not _is_boolean(name) and bool(rest) and not rest[0].startswith("--")
        flags[name] = rest.pop(0) if takes_value else value
    return flags, words


def of_command(arguments: Sequence[str], env: Mapping[str, str]) -> Settings:
    """Return the settings of a process that takes nothing but flags, `--config` included. Raises SettingsError."""
    flags, words = split_flags(arguments)
    if words:
        raise SettingsError([f"unexpected argument {word!r}" for word in words])
    config = flags.pop("config", None) or env.get("FLOTILLA_CONFIG")
    return load(flags, env, Path(config) if config else None)


def load(flags: Mapping[str, str | None], env: Mapping[str, str], file: Path | None = None) -> Settings:
    """Return the settings of this process. A flag with the value None was not given, an empty one is a bare flag.

    Raises SettingsError with all problems: unknown names, unreadable values, contradicting settings.
    """
    problems: list[str] = []
    texts = _from_file(file, problems) | _from_environment(env, problems) | _from_flags(flags, problems)
    values: dict[str, Any] = {}
    for field, (source, value) in texts.items():
        try:
            values[field] = _options().by_field[field].read(value)
        except ValueError as error:
            problems.append(f"{source}: {error}, not {value!r}")
    given = {kind.workers.flag: values.pop(field) for field, kind in _options().workers.items() if field in values}
    settings = Settings(**values, workers=given)
    problems.extend(_contradictions(settings))
    if problems:
        raise SettingsError(problems)
    return settings


Texts = dict[str, tuple[str, str]]  # field -> (where it was found, its text)
_Scalar = str | int | float | bool | None
_Value = _Scalar | list[_Scalar] | dict[str, _Scalar]


def _from_flags(flags: Mapping[str, str | None], problems: list[str]) -> Texts:
    found: Texts = {}
    for given, value in flags.items():
        name = given.lstrip("-").replace("_", "-")
        field = _options().flags.get(name)
        if field is not None and value is not None:
            found[field] = (f"--{name}", value)
        elif field is None and name not in IGNORED:
            problems.append(_unknown("flag", f"--{name}", [f"--{flag}" for flag in _options().flags]))
    return found


def _from_environment(env: Mapping[str, str], problems: list[str]) -> Texts:
    variables = _options().variables
    found: Texts = {}
    for name, field in variables.items():  # our own name comes last and takes precedence over the reference's
        if name in env and not _is_service_link(name, env[name]):
            found[field] = (name, env[name])
    for name in sorted(env):
        ours = name.startswith(PREFIX) and name not in variables and name not in NOT_SETTINGS
        if ours and not _is_service_link(name, env[name]):
            problems.append(_unknown("variable", name, list(variables)))
    return found


def _from_file(file: Path | None, problems: list[str]) -> Texts:
    if file is None:
        return {}
    try:
        document: dict[str, _Value] | None = msgspec.yaml.decode(file.read_bytes(), type=dict[str, _Value] | None)
    except (OSError, msgspec.MsgspecError) as error:
        problems.append(f"settings file {file}: {error}")
        return {}
    found: Texts = {}
    for key, value in (document or {}).items():
        name = key.replace("_", "-")
        field = _options().flags.get(name)
        if field is not None:
            found[field] = (f"{name} in {file}", _as_text(value))
        elif name not in IGNORED:
            problems.append(_unknown(f"setting in {file}", name, list(_options().flags)))
    return found


def _as_text(value: _Value) -> str:
    """Return a YAML value as the text of a flag: lists with commas, mappings as Name=value."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case list():
            return ",".join(map(_as_text, value))
        case dict():
            return ",".join(f"{name}={_as_text(item)}" for name, item in value.items())
        case _:
            return str(value)


def _contradictions(settings: Settings) -> Iterator[str]:
    try:
        settings.gates()
    except ValueError as error:
        yield f"feature-gates: {error}"
    if settings.lease_retry_period * 3 > settings.lease_duration:
        yield "lease-retry-period must be at most a third of lease-duration, or one lost renewal loses the lease"
    if not 0 < settings.rate_limiter_base_delay <= settings.rate_limiter_max_delay:
        yield "rate-limiter-base-delay must be more than 0 and at most rate-limiter-max-delay"
    if settings.watch_namespace:
        yield "namespace: serving one namespace only is not possible; leave it empty"
    if settings.webhook_url and not settings.webhook_url.startswith("https://"):
        yield "webhook-url must begin with https://: the apiserver calls webhooks over TLS only"
    yield from _contradictions_of_console(settings)


def _contradictions_of_console(settings: Settings) -> Iterator[str]:
    ways = settings.console_sign_in.split(",")
    if bool(settings.console_tls_cert) != bool(settings.console_tls_key):
        yield "console-tls-cert and console-tls-key go together"
    if settings.console_client_ca and not settings.console_tls_cert:
        yield "console-client-ca needs console-tls-cert: clients have certificates over TLS only"
    if bool(settings.console_client_ca) != bool(settings.console_client_names):
        yield "console-client-ca and console-client-names go together"
    if "proxy" in ways and not (settings.console_proxy_secret_file or settings.console_client_ca):
        yield "console-sign-in proxy needs console-proxy-secret-file or console-client-ca"
    if "oidc" in ways and not (
        settings.console_oidc_client_id and settings.console_url and settings.console_oidc_issuer
    ):
        yield "console-sign-in oidc needs console-oidc-issuer, console-oidc-client-id and console-url"
    if settings.console_oidc_issuer and not settings.console_oidc_issuer.startswith("https://"):
        yield "console-oidc-issuer must begin with https://"
    if "fixed" in ways and not settings.console_fixed_user:
        yield "console-sign-in fixed needs console-fixed-user"
    if "key" in ways and not settings.console_key_file:
        yield "console-sign-in key needs console-key-file"
    if "key" in ways and settings.console_listen not in LOOPBACK:
        yield "console-sign-in key needs console-listen=127.0.0.1, as the console then works with its own rights"


def _unknown(what: str, name: str, known: list[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    return f"unknown {what} {name}{hint}"


def _is_boolean(flag: str) -> bool:
    name = flag.replace("_", "-")
    field = _options().flags.get(name)
    return name in IGNORED_SWITCHES if field is None else _options().by_field[field].read is readers.boolean


def _is_service_link(name: str, value: str) -> bool:
    return bool(_SERVICE_LINK.search(name) or _SERVICE_LINK_VALUE.match(value))
