"""The final state of a WorkloadSpread, counted from the objects that exist (workloadspread.md §8)."""

from collections import Counter
from collections.abc import Collection, Iterator

import msgspec

from flotilla_common.api.documents import mappings, member
from flotilla_common.control.plan import Json
from flotilla_common.model.built_in import is_active
from tests.simulation.oracles.spreads import (
    COSTED,
    NO_LIMIT,
    books_of,
    cost_of,
    limit_of,
    matched_of,
    resource_of,
    version_of,
)


class FinalState(msgspec.Struct, frozen=True, kw_only=True):
    """The final objects of one WorkloadSpread."""

    spread: Json
    replicas: int  # of the workload; 0 without one
    pods: Collection[Json]  # that the workload controls


def final_problems(final: FinalState) -> Iterator[str]:
    """Yield what is wrong with the final state. Pods for which no subset had room stay as they were created."""
    spread = final.spread
    if priced := [pod["metadata"]["name"] for pod in final.pods if _is_left_out(pod, spread) and cost_of(pod)]:
        yield f"pods that no subset had room for have a cost: {priced}"
    counted = [pod for pod in final.pods if not _is_left_out(pod, spread)]
    final = msgspec.structs.replace(final, pods=counted)
    status = member(spread, "status")
    if status.get("observedGeneration") != spread["metadata"]["generation"]:
        yield f"generation {spread['metadata']['generation']} is not handled, but {status.get('observedGeneration')}"
    yield from _wrong_book("subsetStatuses", mappings(status.get("subsetStatuses")), final, final.pods)
    versions = {version_of(pod) for pod in final.pods}
    books = member(spread, "status", "versionedSubsetStatuses")
    if books.keys() != versions:
        yield f"there are books of {sorted(books)}, not of {sorted(versions)}"
    for version in versions & books_of(spread).keys():
        pods = [pod for pod in final.pods if version_of(pod) == version]
        yield from _wrong_book(version, mappings(books[version]), final, pods)
    yield from _wrong_costs(final)


def _wrong_book(title: str, book: list[Json], final: FinalState, pods: Collection[Json]) -> Iterator[str]:
    spread = final.spread
    names = [one["name"] for one in mappings(spread["spec"]["subsets"])]
    if [one["name"] for one in book] != names:
        yield f"{title} are of {[one['name'] for one in book]}, not of {names}"
        return
    for entry in book:
        count, limit = _count(pods, entry["name"], spread), limit_of(spread, entry["name"], final.replicas) or 0
        missing = NO_LIMIT if limit == NO_LIMIT else max(limit - count, 0)
        told = entry["replicas"], entry["missingReplicas"]
        if told != (count, missing):
            yield f"{title} say {told} of subset {entry['name']}, not {(count, missing)}"
        for waiting in ("creatingPods", "deletingPods"):
            if entry.get(waiting):
                yield f"{title} still wait for {sorted(entry[waiting])} in the {waiting} of {entry['name']}"
        yield from _wrong_conditions(title, entry, names[-1], spread)


def _wrong_conditions(title: str, entry: Json, last: str, spread: Json) -> Iterator[str]:
    strategy = member(spread, "spec", "scheduleStrategy")
    adapts = strategy.get("type") == "Adaptive" and member(strategy, "adaptive").get("rescheduleCriticalSeconds", 0) > 0
    told = [one["status"] for one in mappings(entry.get("conditions"))]
    wanted = [["True"]] if entry["name"] == last else [["True"], ["False"]]
    if told not in (wanted if adapts else [[]]):
        yield f"{title} have the conditions {told} of {entry['name']}"


def _wrong_costs(final: FinalState) -> Iterator[str]:
    spread, active = final.spread, [pod for pod in final.pods if is_active(pod)]
    names = [one["name"] for one in mappings(spread["spec"]["subsets"])]
    if resource_of(spread) not in COSTED:
        priced = [pod["metadata"]["name"] for pod in active if cost_of(pod)]
        yield from [f"pods have a cost: {priced}"] if priced else []
        return
    for index, name in enumerate(names):
        costs = Counter(cost_of(pod) for pod in active if _subset(pod, spread) == name)
        limit = limit_of(spread, name, final.replicas) or 0
        surplus = max(costs.total() - limit, 0) if limit != NO_LIMIT else 0
        wanted = Counter({str(100 * (len(names) - index)): costs.total() - surplus, str(-100 * (index + 1)): surplus})
        if costs != +wanted:
            yield f"pods of subset {name} cost {dict(costs)}, not {dict(+wanted)}"
    strangers = {cost_of(pod) for pod in active if _subset(pod, spread) not in names}
    if strangers - {str(-100 * (len(names) + 1))}:
        yield f"pods of no subset cost {sorted(strangers)}"


def _is_left_out(pod: Json, spread: Json) -> bool:
    """Report whether the pod is in no subset though it was created later and each subset has a limit."""
    limited = all(isinstance(one.get("maxReplicas"), int) for one in mappings(spread["spec"]["subsets"]))
    pod_meta, meta = pod["metadata"], spread["metadata"]
    return matched_of(pod) is None and limited and pod_meta["creationTimestamp"] > meta["creationTimestamp"]


def _count(pods: Collection[Json], subset: str, spread: Json) -> int:
    return sum(is_active(pod) and _subset(pod, spread) == subset for pod in pods)


def _subset(pod: Json, spread: Json) -> str:
    matched = matched_of(pod)
    return matched[1] if matched is not None and matched[0] == spread["metadata"]["name"] else ""
