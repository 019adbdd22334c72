"""Turns a recorded object into a template: its text with gaps where copies differ from each other."""

import re
from collections.abc import Mapping


class Template:
    """The text of one recorded object, which is rendered with other names as often as it is needed."""

    def __init__(self, recorded: bytes, gaps: Mapping[str, str]) -> None:
        """Open a gap wherever a recorded text occurs; `gaps` has the name of the gap for each text.

        Of texts that contain each other, the longer one counts. Raises ValueError if a text does not occur.
        """
        texts = sorted(gaps, key=len, reverse=True)
        pattern = "|".join(re.escape(text) for text in texts)
        parts = re.split(f"({pattern})", recorded.decode())
        missing = gaps.keys() - set(parts[1::2])
        if missing:
            raise ValueError(f"the recorded object does not contain {', '.join(sorted(missing))}")
        self._texts = [part.encode() for part in parts[0::2]]
        self._gaps = [gaps[part] for part in parts[1::2]]

    def render(self, values: Mapping[str, str]) -> bytes:
        """Return the object with these values in its gaps."""
        filled = [self._texts[0]]
        for gap, text in zip(self._gaps, self._texts[1:], strict=True):
            filled += (values[gap].encode(), text)
        return b"".join(filled)
