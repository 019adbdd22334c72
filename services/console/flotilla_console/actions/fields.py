"""Reads the fields of forms. Users and programs send anything."""

import re
from collections.abc import Mapping

from flotilla_common.api.images import ImageName
from flotilla_common.api.numbers import integer

MOST = (1 << 31) - 1
LONGEST_IMAGE = 1024

_PERCENT = re.compile(r"[0-9]{1,3}%")

Fields = Mapping[str, str]


class InvalidField(Exception):
    """A field has no usable value; the text is for the user."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def count(fields: Fields, name: str) -> int:
    """Return a number of pods. Raises InvalidField."""
    value = integer(fields.get(name, "").strip())
    if value is None or not 0 <= value <= MOST:
        raise InvalidField(name, f"{name} must be a whole number between 0 and {MOST}")
    return value


def count_or_percent(fields: Fields, name: str) -> int | str:
    """Return a number of pods, or a percentage up to 100%. Raises InvalidField."""
    written = fields.get(name, "").strip()
    if _PERCENT.fullmatch(written):
        if int(written[:-1]) > 100:
            raise InvalidField(name, f"{name} must be at most 100%")
        return f"{int(written[:-1])}%"
    if "%" in written:
        raise InvalidField(name, f"{name} must be a whole number, or a whole percentage such as 25%")
    return count(fields, name)


def image(fields: Fields, name: str) -> str:
    """Return the reference of an image. Raises InvalidField."""
    written = fields.get(name, "").strip()
    if len(written) > LONGEST_IMAGE:
        raise InvalidField(name, f"{name} must have at most {LONGEST_IMAGE} characters")
    try:
        ImageName.parse(written)
    except ValueError as error:
        raise InvalidField(name, f"{name} is not the name of an image: {error}") from error
    return written
