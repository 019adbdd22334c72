"""What a check finds, and what becomes of the checks of one look."""

from collections.abc import Generator, Iterable, Sequence

import msgspec

BROKEN, WARNING = "broken", "warning"
"""Something does not work now; something will not work, or works other than it was meant."""

WELL, UNWELL, WARNED = 0, 1, 3
"""Exit codes. 2 is click's, for a command line that cannot be understood."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong. `code` is stable, `about` names what is concerned; both together tell findings apart."""

    code: str
    about: str
    text: str  # what is wrong, since when, with which figures
    advice: str  # what to do about it
    severity: str = BROKEN

    @property
    def key(self) -> tuple[str, str]:
        """What it has in common with the same finding of another look."""
        return self.code, self.about


def broken(code: str, about: str, text: str, advice: str) -> Finding:
    """Something that does not work now."""
    return Finding(code=code, about=about, text=text, advice=advice)


def warning(code: str, about: str, text: str, advice: str) -> Finding:
    """Something that will not work, or works other than it was meant."""
    return Finding(code=code, about=about, text=text, advice=advice, severity=WARNING)


Looked = Generator[Finding, None, str]
"""A check: it yields what it finds, and returns what it looked at. Raises NotKnown for want of a fact."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one check: it found something or nothing in what it `seen`, or could not be made for a reason."""

    check: str
    title: str
    seen: str = ""
    not_checked: str = ""
    findings: Sequence[Finding] = ()


def confirmed(first: Sequence[Outcome], second: Sequence[Outcome]) -> list[Outcome]:
    """The second look, without the findings that the first one did not have. Where a check could not be made twice,
    what it found the first time is not lost."""
    before = {outcome.check: outcome for outcome in first}
    nothing = Outcome(check="", title="")
    return [_agreed(before.get(outcome.check, nothing), outcome) for outcome in second]


def keys(outcomes: Iterable[Outcome]) -> set[tuple[str, str]]:
    """The findings, as far as those of two looks can be compared."""
    return {finding.key for outcome in outcomes for finding in outcome.findings}


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """0 without findings, 1 if something is broken, 3 if there are warnings only."""
    found = {finding.severity for outcome in outcomes for finding in outcome.findings}
    if not found:
        return WELL
    return UNWELL if BROKEN in found else WARNED


def _agreed(first: Outcome, second: Outcome) -> Outcome:
    if second.not_checked and first.findings and not second.findings:
        return first
    known = {finding.key for finding in first.findings}
    return msgspec.structs.replace(second, findings=[one for one in second.findings if one.key in known])
