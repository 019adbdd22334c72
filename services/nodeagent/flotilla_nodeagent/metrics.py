"""Metrics of the agent's work and of the answers to its reports."""

from prometheus_client import Counter, Gauge

PULLS = Counter("flotilla_nodeagent_pulls_total", "Pull tasks that ended, by their phase.", ["phase"])
PLUGIN_CALLS = Counter(
    "flotilla_nodeagent_plugin_calls_total", "Calls of credential plugins by outcome.", ["plugin", "outcome"]
)
STOPS = Counter("flotilla_nodeagent_stops_total", "Containers that were stopped for a restart.")
REPORTS = Counter("flotilla_nodeagent_reports_total", "Reports by kind and outcome.", ["kind", "outcome"])
PROBES = Gauge("flotilla_nodeagent_probes", "Probes that the agent has to run.")
ROUNDS = Counter(
    "flotilla_nodeagent_probe_rounds_total", "Rounds of probes by handler and outcome.", ["handler", "outcome"]
)
