"""The bill of materials: a CycloneDX document that is the same for the same image."""

import msgspec

from flotilla_common.control.plan import Json
from flotilla_dev.image import python_packages, sbom
from flotilla_dev.image.base import Package

LIBC = Package("libc6", "2.36-9+deb12u14", "amd64", "Package: libc6\n")
ZLIB = Package("zlib1g", "1:1.2.13.dfsg-1", "amd64", "Package: zlib1g\n")


def made() -> Json:
    return msgspec.json.decode(sbom.bill(python_packages.exported(), [LIBC, ZLIB], python_packages.LOCAL_PACKAGES))


def test_it_is_the_same_each_time() -> None:
    assert made() == made()
    assert "serialNumber" not in made()
    assert "timestamp" not in made()["metadata"]


def test_it_is_a_cyclonedx_document() -> None:
    """The fields that the specification requires, names that are unique, and references that lead somewhere."""
    bill = made()
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.5", 1)
    assert bill["metadata"]["component"]["type"] == "container"
    components = bill["components"]
    assert all(one["type"] == "library" and one["name"] and one["version"] for one in components)
    known = [one["bom-ref"] for one in (*components, bill["metadata"]["component"])]
    assert len(known) == len(set(known))
    named = {name for entry in bill["dependencies"] for name in (entry["ref"], *entry.get("dependsOn", []))}
    assert named <= set(known)


def test_it_has_all_locked_packages_ours_and_debian_s() -> None:
    versions = {one["name"]: one["version"] for one in made()["components"]}
    locked = [line.split()[0].split("==") for line in python_packages.locked().splitlines() if "==" in line.split()[0]]
    assert len(locked) > 20
    assert {name: versions.get(name) for name, _ in locked} == dict(locked)
    assert {"flotilla-cloneset", "flotilla-webhook", "flotilla-cli"} <= versions.keys()
    assert "flotilla-dev" not in versions
    assert (versions["libc6"], versions["zlib1g"]) == (LIBC.version, ZLIB.version)


def test_the_image_depends_on_debian_s_packages() -> None:
    bill = made()
    (root,) = [one for one in bill["dependencies"] if one["ref"] == bill["metadata"]["component"]["bom-ref"]]
    assert {sbom.purl(LIBC), sbom.purl(ZLIB)} <= set(root["dependsOn"])


def test_package_urls_escape_what_they_have_to() -> None:
    assert sbom.purl(ZLIB) == "pkg:deb/debian/zlib1g@1%3A1.2.13.dfsg-1?arch=amd64&distro=debian-12"
    assert sbom.purl(LIBC) == "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64&distro=debian-12"
