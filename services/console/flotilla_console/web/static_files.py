"""The scripts and styles, from memory.

Their folder has a hash of all of them in its path: browsers keep them for a year, and a new release has new paths.
Modules import each other by relative paths, so no file is changed when it is served.
"""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "mjs": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}


@dataclass(frozen=True)
class File:
    """A file, as it is and compressed."""

    media_type: str
    content: bytes
    compressed: bytes


class StaticFiles:
    """The files of `web/static`."""

    def __init__(self, found: Mapping[str, File]) -> None:
        self._files = found
        sums = hashlib.sha256()
        for name, file in sorted(found.items()):
            sums.update(name.encode() + b"\0" + hashlib.sha256(file.content).digest())
        self.version = sums.hexdigest()[:16]

    @classmethod
    def packaged(cls) -> "StaticFiles":
        """Return the files of this package."""
        return cls(dict(_files(files(__name__.rpartition(".")[0]) / "static", "")))

    def path(self, name: str) -> str:
        """Return the path under which a file is served."""
        return f"/static/{self.version}/{name}"

    async def answer(self, request: Request) -> Response:
        """Answer a request for a file."""
        file = self._files.get(request.path_params["name"])
        if file is None or request.path_params["version"] != self.version:
            return Response("not found", 404, media_type="text/plain")
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers = {**_FOREVER, "Content-Encoding": "gzip"}
            return Response(file.compressed, media_type=file.media_type, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=_FOREVER)


def _files(folder: Traversable, prefix: str) -> "list[tuple[str, File]]":
    found: list[tuple[str, File]] = []
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _files(entry, f"{name}/")
        elif (media_type := _TYPES.get(entry.name.rpartition(".")[2])) is not None:
            content = entry.read_bytes()
            found.append((name, File(media_type, content, gzip.compress(content, mtime=0))))
    return found
