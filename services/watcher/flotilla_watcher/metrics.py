"""The watcher's metrics: what is published, how far behind it is, how often it had to start over."""

from prometheus_client import Counter, Gauge

EVENTS = Counter("flotilla_watcher_events_total", "Messages published by resource and operation.", ["resource", "op"])
BYTES = Counter("flotilla_watcher_bytes_total", "Bytes published by resource.", ["resource"])
OVERSIZE = Counter("flotilla_watcher_oversize_total", "Objects too large for the bus by resource.", ["resource"])
LISTS = Counter(
    "flotilla_watcher_relists_total", "LISTs begun by resource and way; the first counts.", ["resource", "way"]
)
TOMBSTONES = Counter(
    "flotilla_watcher_missed_deletes_total", "Deletes found by comparing a LIST, not by the watch.", ["resource"]
)
LAG = Gauge(
    "flotilla_watcher_lag_seconds", "Seconds since all changes were confirmed on the bus, by resource.", ["resource"]
)
EVENT_SECONDS = Gauge(
    "flotilla_watcher_publish_seconds", "Time that the last checked publication took to be stored.", ["resource"]
)
GAPS = Gauge(
    "flotilla_watcher_stream_gaps",
    "Replaced messages between the first and the last of a stream on disk.",
    ["stream"],
)
RENEWED = Counter("flotilla_watcher_renewed_total", "Oldest messages that were stored again, by stream.", ["stream"])
REMOVED = Counter("flotilla_watcher_removed_total", "Oldest messages of objects that are gone, by stream.", ["stream"])
NODES_SERVED = Gauge("flotilla_watcher_nodes_served", "Nodes whose agents get copies, by resource.", ["resource"])
NODE_COPIES = Counter("flotilla_watcher_node_copies_total", "Copies published for nodes, by resource.", ["resource"])
