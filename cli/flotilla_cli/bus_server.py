"""Settings of every nats-server of Flotilla: that of a local cluster and that of the chart."""

ENVIRONMENT = {"GOGC": "100", "GOMEMLIMIT": "200MiB"}
"""Settings of nats-server's garbage collector (docs/adr/0024).

While a thousand pods come and go 18 to 51 MiB are in use. The limit is far above that, because a collector that runs
into its limit never rests.
"""

MAX_PAYLOAD = 8 * 1024 * 1024
MAX_SUBSCRIPTIONS = 1024
"""Subscriptions of one connection at most.

Services have some ten, node agents four. More only fill the server's memory.
"""

LIMITS = f"""\
max_payload: {MAX_PAYLOAD}
max_subscriptions: {MAX_SUBSCRIPTIONS}
# The mirrors of a large cluster are filled in one burst: a slow consumer is better served late than cut off.
max_pending: 268435456
write_deadline: "30s"
"""
"""The limits of every server, as its configuration contains them."""
