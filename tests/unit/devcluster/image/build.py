"""Programs for images, with the parts that are inspected."""

import struct

LOAD, DYNAMIC, INTERPRETER = 1, 2, 3


def program(*kinds: int) -> bytes:
    """Return a 64-bit ELF file with program headers of these types; statically linked unless others are named."""
    headers = [struct.pack("<I52x", kind) for kind in kinds or (LOAD,)]
    return struct.pack("<6s26xQ14xHH6x", b"\x7fELF\x02\x01", 64, 56, len(headers)) + b"".join(headers)
