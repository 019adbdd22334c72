"""The webhook: the apiserver reaches it, and it does what it is there for. Told by dry runs."""

import re
from collections.abc import Iterator

from flotilla_cli.doctor.facts import Facts, Probe
from flotilla_cli.doctor.finding import Finding
from flotilla_cli.doctor.gather.probes import INVALID, OLD, VALID
from flotilla_common.api.documents import member

_UNREACHED = re.compile(r"failed calling webhook|conversion webhook for .* failed|failed to call webhook")
_DENIED = re.compile(r'admission webhook "([^"]+)" denied the request')
_OURS = "vcloneset.kb.io"
_ADVICE = (
    "does it run (`flotilla status`, its pods, its log)? is the address right (`kubectl get "
    "mutatingwebhookconfiguration kruise-mutating-webhook-configuration -o yaml`)? may the apiserver connect there?"
)
_CALLERS = "--webhook-client-ca"
_TRUST = "the caBundle is not that of the webhook: restart the webhook, which writes it anew; or see who else writes it"


def seen(facts: Facts) -> str:
    """What was looked at."""
    answered = f"{len(facts.probes.get())} dry runs that the webhook answered"
    checks = {one.beat.checks_callers for one in facts.heard.found or () if one.beat.service == "webhook"}
    if False in checks:
        return (
            f"{answered}; it cannot tell the apiserver from others, and answers whoever reaches its port ({_CALLERS})"
        )
    return f"{answered}, and it answers nobody but the apiserver" if checks == {True} else answered


def check(facts: Facts) -> Iterator[Finding]:
    """Every dry run came out as it has to. What keeps the apiserver from the webhook is said once."""
    if "clonesets.apps.kruise.io" in (facts.definitions.found or {"clonesets.apps.kruise.io": {}}):
        probes = {probe.name: probe for probe in facts.probes.get()}
        unreached = next((probe for probe in probes.values() if _unreached(probe)), None)
        yield from [_unreachable(unreached)] if unreached else _behaviour(probes)


def _unreached(probe: Probe) -> bool:
    return not probe.code or bool(_UNREACHED.search(probe.message))


def _unreachable(probe: Probe) -> Finding:
    untrusted = "x509:" in probe.message or "tls:" in probe.message
    return Finding(
        code="WebhookUntrusted" if untrusted else "WebhookUnreachable",
        about="webhook",
        text=f"the apiserver {'does not believe' if untrusted else 'does not reach'} the webhook: {probe.message}",
        advice=_TRUST if untrusted else _ADVICE,
    )


def _behaviour(probes: dict[str, Probe]) -> Iterator[Finding]:
    invalid, valid, old = probes[INVALID], probes[VALID], probes[OLD]
    if invalid.code == 201:
        yield _finding(
            "WebhookDoesNotValidate", "a CloneSet whose selector does not match its template was not refused"
        )
    elif (denied := _DENIED.search(invalid.message)) is None or denied[1] != _OURS:
        yield _finding("WebhookDoesNotValidate", f"the refusal of an invalid CloneSet is not ours: {invalid.message}")
    if valid.code != 201:
        yield _finding("WebhookRefuses", f"a valid CloneSet was refused: {valid.message}")
    elif "revisionHistoryLimit" not in member(valid.body, "spec"):
        yield _finding("WebhookDoesNotDefault", "what is missing in a CloneSet was not filled in")
    if valid.code == 201 and old.code != 201:
        yield _finding("WebhookDoesNotConvert", f"a CloneSet of v1alpha1 was refused: {old.message}")


def _finding(code: str, said: str) -> Finding:
    return Finding(code=code, about="webhook", text=said, advice=_ADVICE)
