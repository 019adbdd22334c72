"""Writes the bill of materials (CycloneDX 1.5) of the image, from uv's export and Debian's packages.

It has no serial number and no time: the same image has the same bill.
"""

from collections.abc import Collection, Sequence
from urllib.parse import quote

import msgspec

from flotilla_common.control.plan import Json
from flotilla_dev.image.base import RELEASE, Package

PATH = "usr/share/sbom/flotilla.cdx.json"
"""Path of the bill in the image."""


def bill(exported: str, packages: Sequence[Package], without: Collection[str] = ()) -> bytes:
    """Return the bill, from `uv export --format cyclonedx1.5` and the base layer's packages.

    The packages of the workspace named in `without` are left out.
    """
    document: Json = msgspec.json.decode(exported)
    _leave_out(document, without)
    document.pop("serialNumber", None)
    metadata: Json = document["metadata"]
    metadata.pop("timestamp", None)
    root: Json = metadata["component"]
    root["type"] = "container"
    document["components"] += [component(package) for package in packages]
    for entry in document["dependencies"]:
        if entry["ref"] == root["bom-ref"]:
            entry["dependsOn"] += [purl(package) for package in packages]
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def _leave_out(document: Json, names: Collection[str]) -> None:
    gone = {one["bom-ref"] for one in document["components"] if one["name"] in names}
    document["components"] = [one for one in document["components"] if one["bom-ref"] not in gone]
    document["dependencies"] = [one for one in document["dependencies"] if one["ref"] not in gone]
    for entry in document["dependencies"]:
        entry["dependsOn"] = [ref for ref in entry.get("dependsOn", []) if ref not in gone]


def component(package: Package) -> Json:
    """Return one of Debian's packages as a component."""
    named = purl(package)
    return {
        "type": "library",
        "bom-ref": named,
        "name": package.name,
        "version": package.version,
        "purl": named,
    }


def purl(package: Package) -> str:
    """Return the package's URL (purl-spec, type deb)."""
    version = quote(package.version, safe="")
    return f"pkg:deb/debian/{package.name}@{version}?arch={package.architecture}&distro=debian-{RELEASE}"
