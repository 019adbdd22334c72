"""The stored books of a WorkloadSpread's places (workloadspread.md §7), one per version of the workload's pods."""

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.workloadspread.book import stored
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD, SubsetStatus, WorkloadSpread
from flotilla_webhook.ledger import Ledger, Page

Books = dict[str, list[SubsetStatus]]
"""Books by version."""

BookLedger = Ledger[WorkloadSpread, Books]


def _draft(spread: WorkloadSpread) -> Books:
    return {version: list(book) for version, book in spread.status.versioned_subset_statuses.items()}


def _changes(spread: WorkloadSpread, books: Books) -> Json:
    before = spread.status.versioned_subset_statuses
    changed = {version: book for version, book in books.items() if book != before.get(version)}
    written = {version: [stored(entry) for entry in book] for version, book in changed.items()}
    return {"versionedSubsetStatuses": written} if written else {}


PAGE: Page[WorkloadSpread, Books] = Page(WORKLOAD_SPREAD, WorkloadSpread, _draft, _changes)
