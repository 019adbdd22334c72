"""Shortens texts of the apiserver and kubelet: drops wrappers of an error, but no facts."""

import re

LONGEST = 300
"""Characters of a foreign text that are shown: its beginning names the cause."""

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
    """Return the text in one line, without the wrappers of an error, and cut to LONGEST."""
    line = " ".join(_NOISE.sub("", text).split()).rstrip(": ").removesuffix(": unknown")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def last_line(text: str) -> str:
    """Return the last line with content; empty if there is none."""
    lines = [line.strip() for line in text.splitlines()]
    return bare(next((line for line in reversed(lines) if line), ""))


def seconds_word(seconds: float) -> str:
    """Return "30 s"."""
    return f"{seconds:g} s"


def restarts_word(count: int) -> str:
    """Return "1 restart", "2 restarts"."""
    return "1 restart" if count == 1 else f"{count} restarts"
