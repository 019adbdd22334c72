"""The node channel: what node agents are told, and what they report (docs/adr/0007).

An agent has no Kubernetes credentials and may not use JetStream. It reads copies of the objects that concern its node
from `node.v1.<node>.>` and speaks in requests on `report.v1.<node>.>`; whoever serves a report checks it and answers.
"""
