"""The one-time key of a console on this machine, and the URL with it.

The console removes the file when the key is used (`flotilla_console.access.local_key`), so that it is valid once.
"""

import secrets
from pathlib import Path
from urllib.parse import urlencode

from flotilla_cli.local import HOST, write_private

PATH = "/signin/key"


def offer(file: Path) -> str:
    """Return the key in the file, a new one if the last was used."""
    try:
        return file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        key = secrets.token_urlsafe(32)
        write_private(file, key)
        return key


def url_of(port: int, key: str) -> str:
    """Return the URL that begins a session."""
    return f"http://{HOST}:{port}{PATH}?{urlencode({'key': key})}"


def flags(port: int, file: Path) -> list[str]:
    """Return the flags of a console with this port and key."""
    return [
        f"--console-listen={HOST}",
        f"--console-port={port}",
        "--console-sign-in=key",
        f"--console-key-file={file}",
    ]
