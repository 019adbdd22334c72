"""Kinds of workloads that administrators list in the ConfigMap `kruise-configuration` of the system's namespace.

The lists of PersistentPodState and WorkloadSpread have keys of their own and the same form: a JSON object whose
`workloads` are kinds (persistentpodstate.md §7, workloadspread.md §3).
"""

from collections.abc import Mapping

from flotilla_common.api.documents import Json, mapping, mappings
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import CONFIGURATION


def listed(configuration: Mapping[str, str], key: str) -> list[Json]:
    """Return the entries under this key of the ConfigMap's data; none without it. Raises ValueError if unreadable."""
    written = configuration.get(key)
    if not written:
        return []
    try:
        document = lower(read_json(written, Json))
    except ValueError as error:
        raise ValueError(f"{key} of ConfigMap {CONFIGURATION} cannot be read: {error}") from error
    return [lower(entry) for entry in mappings(document.get("workloads"))]


def lower(document: Json) -> Json:
    """Return the object with keys in lower case: administrators write names of fields in any case."""
    return {key.lower(): value for key, value in mapping(document).items()}
