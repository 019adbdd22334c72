"""Parses and normalizes image references (imagepull.md §5.3).

A reference is normalized as Docker does it and then shortened to the familiar name: `docker.io/library/nginx` is
`nginx`. A digest takes precedence over a tag; without either the tag is `latest`.
"""

import re

import msgspec

DEFAULT_REGISTRY, _LEGACY_REGISTRY, _OFFICIAL = "docker.io", "index.docker.io", "library/"
_NAME_LIMIT = 255
_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}

_HOST = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_REGISTRY = re.compile(rf"(?:{_HOST}(?:\.{_HOST})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?")
_PATH = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_HEX = re.compile(r"[a-f0-9]+")


class ImageName(msgspec.Struct, frozen=True):
    """An image: `name` is the familiar name, `tag` a tag or a digest such as `sha256:…`."""

    name: str
    tag: str
    registry: str
    path: str

    @classmethod
    def parse(cls, reference: str) -> "ImageName":
        """Parse the reference. Raises ValueError with the reason if it is invalid."""
        rest, at, digest = reference.partition("@")
        if at:
            _check_digest(digest)
        registry, path = _split_registry(rest)
        path, colon, tag = path.partition(":")
        if colon and not _TAG.fullmatch(tag):
            raise ValueError("invalid reference format: bad tag")
        _check_name(registry, path)
        if registry == DEFAULT_REGISTRY and "/" not in path:
            path = _OFFICIAL + path
        return cls(_familiar(registry, path), digest or tag or "latest", registry, path)

    @property
    def digest(self) -> bool:
        """Report whether the image is named by a digest."""
        return ":" in self.tag

    @property
    def repository(self) -> str:
        """Return the full name, which credentials are matched with."""
        return f"{self.registry}/{self.path}"

    def __str__(self) -> str:
        return reference_of(self.name, self.tag)


def reference_of(name: str, tag: str) -> str:
    """Return `name:tag`, or `name@digest`, the reference that runtimes pull."""
    return f"{name}@{tag}" if ":" in tag else f"{name}:{tag}"


def is_reported_as(image: str, reported: str) -> bool:
    """Report whether a kubelet's image name means the pod's image; runtimes put the registry before the name."""
    return f"/{reported}".endswith(f"/{with_tag(image)}")


def same_digest(image: str, image_id: str) -> bool:
    """Report whether the image (`repo@sha256:…`) is the one with this id, which may begin with a scheme."""
    try:
        wanted, running = ImageName.parse(image), ImageName.parse(image_id.rpartition("://")[2])
    except ValueError:
        return False
    return (wanted.name, wanted.tag) == (running.name, running.tag)


def with_tag(image: str) -> str:
    """Return the image of a pod's spec with its tag, or with the implied `latest`."""
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


def _split_registry(text: str) -> tuple[str, str]:
    """Split registry and path: the first component is a registry if it looks like a host."""
    first, slash, rest = text.partition("/")
    if not slash or not (set(".:") & set(first) or first == "localhost"):
        return DEFAULT_REGISTRY, text
    return (DEFAULT_REGISTRY if first == _LEGACY_REGISTRY else first), rest


def _familiar(registry: str, path: str) -> str:
    if registry != DEFAULT_REGISTRY:
        return f"{registry}/{path}"
    short = path.removeprefix(_OFFICIAL)
    return path if "/" in short else short


def _check_name(registry: str, path: str) -> None:
    if len(registry) + 1 + len(path) > _NAME_LIMIT:
        raise ValueError(f"repository name must not be more than {_NAME_LIMIT} characters")
    if not _REGISTRY.fullmatch(registry):
        raise ValueError("invalid reference format: bad registry")
    if path != path.lower():
        raise ValueError("invalid reference format: repository name must be lowercase")
    if not _PATH.fullmatch(path):
        raise ValueError("invalid reference format")
    if len(path) == _DIGEST_LENGTHS["sha256"] and _HEX.fullmatch(path) and registry == DEFAULT_REGISTRY:
        raise ValueError("invalid repository name: cannot be 64 hexadecimal digits")


def _check_digest(digest: str) -> None:
    algorithm, _, value = digest.partition(":")
    if algorithm not in _DIGEST_LENGTHS:
        raise ValueError("unsupported digest algorithm")
    if len(value) != _DIGEST_LENGTHS[algorithm] or not _HEX.fullmatch(value):
        raise ValueError("invalid checksum digest")
