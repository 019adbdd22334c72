"""Findings of checks, and the outcomes of the checks of one look."""

from collections.abc import Generator, Iterable, Sequence

import msgspec

BROKEN, WARNING = "broken", "warning"
"""Something does not work now; something will not work, or works other than intended."""

WELL, UNWELL, WARNED = 0, 1, 3
"""Exit codes. 2 is click's, for a wrong command line."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A problem. `code` is stable, `about` names the subject; together they identify the finding."""

    code: str
    about: str
    text: str  # what is wrong, since when, with which figures
    advice: str  # what to do about it
    severity: str = BROKEN

    @property
    def key(self) -> tuple[str, str]:
        """Return the identity of the finding across looks."""
        return self.code, self.about


def broken(code: str, about: str, text: str, advice: str) -> Finding:
    """Return a finding that something does not work now."""
    return Finding(code=code, about=about, text=text, advice=advice)


def warning(code: str, about: str, text: str, advice: str) -> Finding:
    """Return a finding that something will not work, or works other than intended."""
    return Finding(code=code, about=about, text=text, advice=advice, severity=WARNING)


Looked = Generator[Finding, None, str]
"""A check: it yields findings, and returns a summary of what it checked. Raises NotKnown if a fact is missing."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a check: its findings and what it has `seen`, or why it could not be made."""

    check: str
    title: str
    seen: str = ""
    not_checked: str = ""
    findings: Sequence[Finding] = ()


def confirmed(first: Sequence[Outcome], second: Sequence[Outcome]) -> list[Outcome]:
    """Return the second look without findings that the first one did not have.

    If a check could not be made the second time, its first findings count.
    """
    before = {outcome.check: outcome for outcome in first}
    nothing = Outcome(check="", title="")
    return [_agreed(before.get(outcome.check, nothing), outcome) for outcome in second]


def keys(outcomes: Iterable[Outcome]) -> set[tuple[str, str]]:
    """Return the identities of all findings, to compare two looks."""
    return {finding.key for outcome in outcomes for finding in outcome.findings}


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """Return 0 without findings, 1 if something is broken, 3 for warnings only."""
    found = {finding.severity for outcome in outcomes for finding in outcome.findings}
    if not found:
        return WELL
    return UNWELL if BROKEN in found else WARNED


def _agreed(first: Outcome, second: Outcome) -> Outcome:
    if second.not_checked and first.findings and not second.findings:
        return first
    known = {finding.key for finding in first.findings}
    return msgspec.structs.replace(second, findings=[one for one in second.findings if one.key in known])
