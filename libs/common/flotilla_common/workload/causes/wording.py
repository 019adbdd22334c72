"""The apiserver's and kubelet's texts without their noise: what wraps an error is taken off, no fact is."""

import re

LONGEST = 300
"""Characters of somebody else's text that are told: the beginning of it names the cause."""

_NOISE = re.compile(
    r"rpc error: code = \w+ desc = |Error: |ErrImagePull: "
    r"|(?:Back-off pulling|[Ff]ailed to pull(?: and unpack)?) image \"[^\"]*\":? ?"
    r"|failed to (?:resolve (?:reference \"[^\"]*\"|image)|copy|do request): "
    r"|failed to create (?:containerd task|shim task|container): "
    r"|OCI runtime (?:create|start) failed: |runc (?:create|run) failed: "
    r"|(?:unable to start container process|error during container init|starting container process caused): "
    r"|,? no new claims to deallocate,?"
    r"| \(pod: \"[^\"]*\", container: [^)]*\)"
    r"|container_linux\.go:\d+: |process_linux\.go:\d+: "
)


def bare(text: str) -> str:
    """In one line, without what only says through whose hands an error went, and not too long."""
    line = " ".join(_NOISE.sub("", text).split()).rstrip(": ").removesuffix(": unknown")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def last_line(text: str) -> str:
    """The last line that says anything; empty if none does."""
    lines = [line.strip() for line in text.splitlines()]
    return bare(next((line for line in reversed(lines) if line), ""))


def seconds_word(seconds: float) -> str:
    """ "30 s"."""
    return f"{seconds:g} s"


def restarts_word(count: int) -> str:
    """ "1 restart", "2 restarts"."""
    return "1 restart" if count == 1 else f"{count} restarts"
