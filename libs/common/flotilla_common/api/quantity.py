"""Parses Kubernetes quantities: canonical text and exact comparison (common.md §7.2).

A quantity is a decimal number with a suffix that is a power of ten (`m`, `k`, `e3` …) or of 1024 (`Ki`, `Mi` …).
Numbers are kept to a billionth, rounded away from zero; all arithmetic is exact.
"""

import re
from decimal import ROUND_UP, Context, Decimal, localcontext
from functools import lru_cache

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|(?P<exponent>[eE][+-]?[0-9]+))?"
)
_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_NAMES = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO = Decimal("1e-9")
_MAX_EXPONENT = 100  # far beyond anything that can be counted; keeps hostile input cheap
_EXACT = Context(prec=1000)

LONGEST = 200
"""The most characters of a quantity. Longer texts are not parsed: no amount has 1,000 digits."""


def parse(text: str | float) -> Decimal:
    """Return the exact number. Raises ValueError for an invalid quantity."""
    return _read(str(text))[0]


@lru_cache(maxsize=4096)
def canonical(text: str | float) -> str:
    """Return the quantity as Kubernetes writes it: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`."""
    number, style = _read(str(text))
    return _written(number, style)


def written(number: Decimal, *, binary: bool) -> str:
    """Format a number of at most nine decimals; `binary` in powers of 1024 if that is exact."""
    return _written(number, "binary" if binary else "decimal")


def equal(left: str | float, right: str | float) -> bool:
    """Report whether both mean the same number. Raises ValueError."""
    return parse(left) == parse(right)


def _read(text: str) -> tuple[Decimal, str]:
    """Return the number and its style: decimal, binary, exponent."""
    match = _QUANTITY.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    suffix, exponent = match["suffix"] or "", match["exponent"]
    with localcontext(_EXACT):
        number = Decimal(match["number"])
        if suffix.endswith("i"):
            return _rounded(number * 1024 ** _BINARY_SUFFIXES.index(suffix)), "binary"
        power = int(exponent[1:]) if exponent else _DECIMAL_SUFFIXES[suffix]
        number = number.scaleb(max(-_MAX_EXPONENT, min(power, _MAX_EXPONENT)))
        return _rounded(number), "exponent" if exponent else "decimal"


def _written(number: Decimal, style: str) -> str:
    if not number:
        return "0"
    if style == "binary" and abs(number) >= 1024 and number == number.to_integral_value():
        return _binary_text(int(number))
    return _decimal_text(number, exponential=style == "exponent")


def _rounded(number: Decimal) -> Decimal:
    return number.quantize(_NANO, rounding=ROUND_UP)


def _binary_text(number: int) -> str:
    power = 0
    while number % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        number //= 1024
        power += 1
    return f"{number}{_BINARY_SUFFIXES[power]}"


def _decimal_text(number: Decimal, *, exponential: bool) -> str:
    """Format the number with the largest power of 1000 that leaves an integer."""
    nanos = int(number.scaleb(9, context=_EXACT))
    exponent = -9
    while nanos % 1000 == 0 and (exponential or exponent < 18):
        nanos //= 1000
        exponent += 3
    if exponential:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_NAMES[exponent]}"
