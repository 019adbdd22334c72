"""Converts labels of objects to labels of Prometheus, by the rules of kube-state-metrics.

`app.kubernetes.io/name` becomes `label_app_kubernetes_io_name`, and `teamName` becomes `label_team_name`. If two labels
of an object get the same name, both get a number: `label_a_b_conflict1`, `label_a_b_conflict2`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

MOST_LABELS = 100
"""The limit of labels per object; the first ones by key are used."""

_UNFIT = re.compile(r"[^a-zA-Z0-9_]")
_HUMP = re.compile(r"([a-z0-9])([A-Z])")


@lru_cache(maxsize=4096)  # objects of a cluster share the keys of their labels
def name_of(key: str) -> str:
    """Return the Prometheus name of a label key."""
    return "label_" + _HUMP.sub(r"\1_\2", _UNFIT.sub("_", key)).lower()


def converted(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of each label, no name twice, sorted by label key."""
    keys = sorted(labels)[:MOST_LABELS]
    wanted = Counter(map(name_of, keys))
    taken = {name for name, count in wanted.items() if count == 1}
    numbers: Counter[str] = Counter()
    for key in keys:
        name = name_of(key)
        if wanted[name] > 1:
            name = _free(name, numbers, taken)
            taken.add(name)
        yield name, labels[key]


def _free(name: str, numbers: Counter[str], taken: set[str]) -> str:
    """Return the next numbered name that no other label has."""
    while True:
        numbers[name] += 1
        numbered = f"{name}_conflict{numbers[name]}"
        if numbered not in taken:
            return numbered
