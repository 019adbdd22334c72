"""Checks the certificates: trusted, and not about to expire."""

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime, timedelta

from cryptography import x509

from flotilla_insight.doctor.expected import is_ours
from flotilla_insight.doctor.facts import Facts
from flotilla_insight.doctor.finding import Finding, Looked, broken, warning
from flotilla_insight.durations import span
from flotilla_insight.installation.endpoint import clients

SOON = timedelta(days=14)
"""Time left below which a renewal is overdue: ours has 180 days left then, cert-manager's a third."""

OUTSIDE_SHARE = 0.25
"""Remaining share for external certificates, which may be valid for days only."""

_WEBHOOK = (
    "the running webhook renews its certificate by itself: see why it does not (its log). With EnableExternalCerts "
    "cert-manager or another tool does"
)
_BUS = "restart the bus: its own certificate is made at each start; for servers of your own renew it there"


def check(facts: Facts) -> Looked:
    """Check the webhook's certificate as served and as reported, its authorities, and the bus's certificate."""
    served = facts.webhook_certificate.found
    if served is not None and served.problem and served.end > facts.now:
        said = f"the caBundle of its entries does not trust it: {served.problem}"
        yield broken("CertificateUntrusted", "certificate of the webhook", said, _WEBHOOK)
    external = any("EnableExternalCerts=true" in (one.beat.gates or "") for one in facts.heartbeats.found or ())
    for about, end in _webhook_ends(facts):
        begin = served.begin if served else None
        yield from _ending(about, end, facts.now, _WEBHOOK, begin if external else None)
    for one in facts.banners.found or ():
        if one.certificate is not None:
            yield from _ending(f"certificate of the bus at {one.url}", one.certificate.end, facts.now, _BUS)
    ends = [end for _, end in _webhook_ends(facts)]
    bus = [one.certificate.end for one in facts.banners.found or () if one.certificate]
    which = [f"webhook until {min(ends):%Y-%m-%d}"] if ends else []
    which += [f"bus until {min(bus):%Y-%m-%d}"] if bus else []
    return f"certificates: {', '.join(which) or 'none that can be seen from here'}"


def _webhook_ends(facts: Facts) -> Iterator[tuple[str, datetime]]:
    """Yield the ends of the webhook's certificate and of its authorities."""
    ends = [one.beat.certificate_end for one in facts.heartbeats.found or () if one.beat.certificate_end]
    ends += [facts.webhook_certificate.found.end] if facts.webhook_certificate.found else []
    if ends:
        yield "certificate of the webhook", min(ends)
    bundles = {
        client.get("caBundle", "") for one in facts.hooks.get() if is_ours(one) for client in clients(one).values()
    }
    last = [end for bundle in bundles for end in _authorities(bundle)]
    if last:
        yield "authority of the webhook", max(last)


def _authorities(bundle: str) -> list[datetime]:
    try:
        return [one.not_valid_after_utc for one in x509.load_pem_x509_certificates(base64.b64decode(bundle))]
    except (ValueError, binascii.Error):
        return []  # another check reports that it is not trusted


def _ending(about: str, end: datetime, now: datetime, advice: str, begin: datetime | None = None) -> Iterator[Finding]:
    left = end - now
    if left <= timedelta(0):
        said = f"it expired {span(-left.total_seconds())} ago, on {end:%Y-%m-%d %H:%M} UTC"
        yield broken("CertificateExpired", about, said, advice)
    elif left < (SOON if begin is None else min(SOON, (end - begin) * OUTSIDE_SHARE)):
        said = f"it expires in {span(left.total_seconds())}, on {end:%Y-%m-%d %H:%M} UTC"
        yield warning("CertificateEnds", about, said, advice)
