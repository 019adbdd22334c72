"""One fault of one run, as a value: its kind and its point.

Points are numbered from the moment at which a scenario's `when` begins: the nth write of one process, the nth watch
event that reaches it, the nth message that the bus stores, the nth call of an agent to its runtime, its nth report, the
nth step of the scenario. The numbering is that of the undisturbed run; up to its point a disturbed run is the same run.
"""

from enum import StrEnum

import msgspec


class Place(StrEnum):
    """The places that have numbered points."""

    WRITE = "write"  # of one process; of a lease not those that find all as the one before did
    EVENT = "event"  # of one process's watches
    MESSAGE = "message"  # an object that the bus stores
    CALL = "call"  # of one agent to its node's runtime
    REPORT = "report"  # of one agent over the bus
    STEP = "step"  # of the scenario


class Point(msgspec.Struct, frozen=True):
    """A moment of a run at which a fault can be injected."""

    place: Place
    writer: str  # the process; empty for the bus and the scenario
    number: int
    resource: (
        str  # what is written, delivered or stored, by its plural name; the method of a call, the kind of a report
    )


class Fault(msgspec.Struct, frozen=True):
    """One fault: `kind` names an entry of the catalogue (`catalogue.FAULT_KINDS`)."""

    kind: str
    writer: str = ""  # whose point it is
    number: int = 0
    resource: str = ""  # the resource whose watch is held back

    def __str__(self) -> str:
        where = f"{self.writer}/{self.resource}" if self.resource else self.writer
        return f"{self.kind}@{where}:{self.number}"

    @classmethod
    def parse(cls, text: str) -> "Fault":
        """Parse a fault as it is printed. Raises ValueError."""
        kind, _, place = text.partition("@")
        where, _, number = place.rpartition(":")
        writer, _, resource = where.partition("/")
        return cls(kind, writer, int(number), resource)
