"""The node channel: messages to and from node agents (docs/adr/0007).

An agent has no Kubernetes credentials and may not use JetStream. It reads copies of the objects that concern its node
from `node.v1.<node>.>` and sends requests on `report.v1.<node>.>`; the service for a kind of report checks and answers
it.
"""
