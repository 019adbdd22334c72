"""The rules of NodePodProbes: a schema, and no admission (podprobemarker.md §3)."""

from flotilla_common.api.kinds.nodepodprobe import crd
from flotilla_common.api.kinds.rules import Rules

RULES = Rules(schema=crd.version)
