"""Image references (imagepull.md §5.3)."""

import pytest

from flotilla_common.api.images import ImageName, is_reported_as, reference_of

SHA = "sha256:" + "0f" * 32


@pytest.mark.parametrize(
    ("reference", "name", "tag", "repository"),
    [
        ("nginx", "nginx", "latest", "docker.io/library/nginx"),
        ("library/nginx", "nginx", "latest", "docker.io/library/nginx"),
        ("docker.io/library/nginx:1.25", "nginx", "1.25", "docker.io/library/nginx"),
        ("index.docker.io/acme/app", "acme/app", "latest", "docker.io/acme/app"),
        ("docker.io/library/a/b", "library/a/b", "latest", "docker.io/library/a/b"),
        ("reg.example:5000/a/b:v1", "reg.example:5000/a/b", "v1", "reg.example:5000/a/b"),
        ("localhost/x", "localhost/x", "latest", "localhost/x"),
        ("[fe80::1]:5000/x", "[fe80::1]:5000/x", "latest", "[fe80::1]:5000/x"),
        ("reg:5000", "reg", "5000", "docker.io/library/reg"),
        (f"reg.example/a@{SHA}", "reg.example/a", SHA, "reg.example/a"),
        (f"nginx:1.25@{SHA}", "nginx", SHA, "docker.io/library/nginx"),
    ],
)
def test_names(reference: str, name: str, tag: str, repository: str):
    image = ImageName.parse(reference)
    assert (image.name, image.tag, image.repository) == (name, tag, repository)
    assert image.digest == ("@" in reference)
    assert ImageName.parse(str(image)) == image


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("Nginx", "must be lowercase"),
        ("reg.io/Nginx", "must be lowercase"),
        ("a b", "invalid reference format"),
        ("", "invalid reference format"),
        ("a:", "bad tag"),
        ("a:b c", "bad tag"),
        ("a:" + "x" * 129, "bad tag"),
        ("a//b", "invalid reference format"),
        ("https://reg.io/a", "bad registry"),
        ("a@", "unsupported digest algorithm"),
        ("a@md5:" + "0" * 32, "unsupported digest algorithm"),
        ("a@sha256:12", "invalid checksum digest"),
        ("a@sha256:" + "F" * 64, "invalid checksum digest"),
        ("0" * 64, "64 hexadecimal digits"),
        ("a/" * 130 + "a", "more than 255 characters"),
    ],
)
def test_refused(reference: str, problem: str):
    with pytest.raises(ValueError, match=problem):
        ImageName.parse(reference)


@pytest.mark.parametrize(("tag", "text"), [("1", "nginx:1"), (SHA, f"nginx@{SHA}")])
def test_what_a_runtime_is_asked_for(tag: str, text: str):
    assert reference_of("nginx", tag) == text


@pytest.mark.parametrize(
    ("image", "reported", "same"),
    [
        ("nginx:1", "nginx:1", True),
        ("nginx:1", "docker.io/library/nginx:1", True),
        ("nginx", "docker.io/library/nginx:latest", True),
        ("reg.io:5000/nginx", "reg.io:5000/nginx:latest", True),
        (f"nginx@{SHA}", f"docker.io/library/nginx@{SHA}", True),
        ("nginx:1", "nginx:2", False),
        ("nginx:1", "docker.io/library/my-nginx:1", False),
        ("nginx:1", "", False),
    ],
)
def test_what_a_kubelet_reports(image: str, reported: str, same: bool):
    assert is_reported_as(image, reported) is same
