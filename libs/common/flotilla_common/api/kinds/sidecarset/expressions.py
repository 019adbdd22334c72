"""Evaluates the expressions for a sidecar's resources (sidecarset.md §6.11): `max(cpu*30%, 50m)`.

There are two types of values, numbers and quantities. Sums of quantities are exact; products and quotients are computed
as floats and cut to thousandths, which can be visible: 29% of 100m is 28m.
"""

import math
import re
from collections.abc import Callable
from decimal import ROUND_UP, Decimal

import msgspec

from flotilla_common.api import quantity

MAX_DEPTH = 50
"""The deepest nesting of brackets, far beyond real expressions."""

MAX_LENGTH = 1000
"""The most characters of an expression, far beyond real ones."""

_LARGEST = 2**63
_DIGITS = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_TOKEN = re.compile(
    rf"\s*(?:(?P<quantity>{_DIGITS}(?:[KMGTP]i|[mkMGTP]))(?![\w.%])"
    rf"|(?P<number>{_DIGITS}(?:[eE][+-]?[0-9]+)?)(?P<percent>%?)(?![\w.%])"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign>[-+*/(),]))",
    re.ASCII,
)


class Quantity(msgspec.Struct, frozen=True):
    """An amount of a resource, and whether it is written in powers of 1024."""

    amount: Decimal
    binary: bool = False

    @classmethod
    def parse(cls, text: str | float) -> "Quantity":
        """Parse a quantity. Raises ValueError if it is invalid."""
        return cls(quantity.parse(text), str(text).strip().endswith("i"))

    @property
    def milli(self) -> int:
        """Return the amount in thousandths, rounded up."""
        return int((self.amount * 1000).to_integral_value(ROUND_UP))

    def plus(self, other: "Quantity") -> "Quantity":
        """Return the exact sum, in the notation of the first one that is not zero."""
        return Quantity(self.amount + other.amount, self.binary if self.amount else other.binary)

    def negative(self) -> "Quantity":
        """Return the negated quantity."""
        return Quantity(-self.amount, self.binary)

    def __str__(self) -> str:
        return quantity.written(self.amount, binary=self.binary)


Value = float | Quantity


def evaluate(expression: str, name: str, value: Value) -> Value:
    """Return the value of the expression with this variable.

    Raises ValueError for an expression that cannot be parsed, that uses another variable, or whose result is negative.
    """
    if len(expression) > MAX_LENGTH:
        raise ValueError(f"an expression must be no more than {MAX_LENGTH} characters")
    result = _Reading(expression, name, value).result()
    if (result.amount if isinstance(result, Quantity) else result) < 0:
        raise ValueError(f"the result of {expression!r} is negative")
    return result


def amount_of(expression: str, aggregate: Quantity) -> Quantity:
    """Return the expression's amount, given the containers' aggregate. Raises ValueError.

    The variable is `memory` in an expression that contains this word, else `cpu`.
    """
    return _as_quantity(evaluate(expression, "memory" if "memory" in expression else "cpu", aggregate))


class _Reading:
    """The evaluation of one expression, in a single pass from left to right."""

    def __init__(self, expression: str, name: str, value: Value) -> None:
        self._expression = expression
        self._variable = name, value
        self._position = 0
        self._depth = 0
        self._token: re.Match[str] | None = None
        self._advance()

    def result(self) -> Value:
        result = self._sum()
        if self._token is not None:
            raise self._unexpected()
        return result

    def _sum(self) -> Value:
        result = self._product()
        while (sign := self._sign()) in ("+", "-"):
            self._advance()
            right = self._product()
            result = _add(result, right if sign == "+" else _negate(right))
        return result

    def _product(self) -> Value:
        result = self._operand()
        while (sign := self._sign()) in ("*", "/"):
            self._advance()
            result = (_multiply if sign == "*" else _divide)(result, self._operand())
        return result

    def _operand(self) -> Value:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError(f"{self._expression!r} is nested too deeply")
        token = self._token
        if token is None:
            raise self._unexpected()
        self._advance()
        result = self._value_of(token)
        self._depth -= 1
        return result

    def _value_of(self, token: re.Match[str]) -> Value:
        if token["quantity"]:
            return Quantity.parse(token["quantity"])
        if token["number"]:
            number = _finite(float(token["number"]))
            return number / 100 if token["percent"] else number
        if token["word"]:
            return self._named(token["word"].lower())
        if token["sign"] == "-":
            return _negate(self._operand())
        if token["sign"] == "(":
            result = self._sum()
            self._expect(")")
            return result
        raise self._unexpected(token)

    def _named(self, word: str) -> Value:
        if self._sign() != "(":
            name, value = self._variable
            if word != name:
                raise ValueError(f"{self._expression!r} has an undefined variable {word}")
            return value
        if word not in _FUNCTIONS:
            raise ValueError(f"{self._expression!r} has an unknown function {word}")
        self._expect("(")
        left = self._sum()
        self._expect(",")
        right = self._sum()
        self._expect(")")
        return _extreme(left, right, _FUNCTIONS[word])

    def _sign(self) -> str:
        return (self._token["sign"] or "") if self._token else ""

    def _expect(self, sign: str) -> None:
        if self._sign() != sign:
            raise self._unexpected()
        self._advance()

    def _advance(self) -> None:
        rest = self._expression[self._position :]
        token = _TOKEN.match(self._expression, self._position)
        if token is None and rest.strip():
            raise ValueError(f"{self._expression!r} cannot be read from {rest.strip()!r} on")
        self._token = token
        self._position = token.end() if token else len(self._expression)

    def _unexpected(self, token: re.Match[str] | None = None) -> ValueError:
        found = token or self._token
        problem = f"has an unexpected {found[0].strip()!r}" if found else "ends unexpectedly"
        return ValueError(f"{self._expression!r} {problem}")


def _add(left: Value, right: Value) -> Value:
    if not isinstance(left, Quantity) and not isinstance(right, Quantity):
        return left + right
    return _as_quantity(left).plus(_as_quantity(right))


def _negate(value: Value) -> Value:
    return value.negative() if isinstance(value, Quantity) else -value


def _multiply(left: Value, right: Value) -> Value:
    if not isinstance(left, Quantity):
        return _multiply(right, left) if isinstance(right, Quantity) else left * right
    factor = _number(right, "two quantities cannot be multiplied")
    return _thousandths(float(left.milli) * factor, binary=left.binary)


def _divide(left: Value, right: Value) -> Value:
    divisor = _number(right, "nothing can be divided by a quantity")
    if divisor == 0:
        raise ValueError("nothing can be divided by zero")
    if not isinstance(left, Quantity):
        return left / divisor
    return _thousandths(float(left.milli) / divisor, binary=left.binary)


def _number(value: Value, refusal: str) -> float:
    if not isinstance(value, Quantity):
        return value
    raise ValueError(refusal)


def _extreme(left: Value, right: Value, first: Callable[[Decimal, Decimal], bool]) -> Value:
    if not isinstance(left, Quantity) and not isinstance(right, Quantity):
        return left if first(Decimal(left), Decimal(right)) else right
    one, other = _as_quantity(left), _as_quantity(right)
    return one if first(one.amount, other.amount) else other


_FUNCTIONS: dict[str, Callable[[Decimal, Decimal], bool]] = {"max": Decimal.__ge__, "min": Decimal.__le__}


def _as_quantity(value: Value) -> Quantity:
    return value if isinstance(value, Quantity) else _thousandths(value * 1000)


def _thousandths(milli: float, *, binary: bool = False) -> Quantity:
    return Quantity(Decimal(_whole(milli)) / 1000, binary)


def _whole(number: float) -> int:
    """Cut towards zero, within 64 bits."""
    if abs(_finite(number)) >= _LARGEST:
        raise ValueError(f"{number:g} is too large")
    return int(number)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number
