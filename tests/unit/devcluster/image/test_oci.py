"""The image as registries see it."""

import gzip
from pathlib import Path

import msgspec

from flotilla_dev.image import build, oci
from flotilla_dev.image.oci import digest
from flotilla_dev.image.tree import File
from tests.unit.devcluster.image.build import program

LAYERS = [oci.Layer.of(title, {title: File(title.encode())}) for title in ("base", "flotilla")]


def test_the_same_files_give_the_same_image() -> None:
    again = [oci.Layer.of(title, {title: File(title.encode())}) for title in ("base", "flotilla")]
    first, second = (oci.image(layers, "amd64", build.run_config()) for layers in (LAYERS, again))
    assert first.digest == second.digest
    assert first.digest != oci.image(LAYERS[:1], "amd64", build.run_config()).digest


def test_manifest_and_configuration_name_what_is_there() -> None:
    made = oci.image(LAYERS, "arm64", build.run_config())
    manifest = msgspec.json.decode(made.manifest)
    named = [manifest["config"], *manifest["layers"]]
    assert {entry["digest"]: entry["size"] for entry in named} == {name: len(blob) for name, blob in made.blobs.items()}
    config = msgspec.json.decode(made.blobs[manifest["config"]["digest"]])
    assert config["architecture"] == "arm64"
    unpacked = [gzip.decompress(made.blobs[entry["digest"]]) for entry in manifest["layers"]]
    assert config["rootfs"]["diff_ids"] == [digest(layer) for layer in unpacked]
    assert [layer.size for layer in LAYERS] == [len(layer) for layer in unpacked]


def test_nobody_is_root_and_users_are_numbers() -> None:
    """kubelet cannot check runAsNonRoot against a name."""
    user = build.run_config()["User"]
    assert all(int(part) > 0 for part in user.split(":"))


def test_a_layout_holds_each_blob_under_its_digest(tmp_path: Path) -> None:
    made = oci.image(LAYERS, "amd64", build.run_config())
    oci.write(made, tmp_path, "flotilla/flotilla:1")
    (entry,) = msgspec.json.decode((tmp_path / "index.json").read_bytes())["manifests"]
    assert entry["digest"] == made.digest
    assert entry["annotations"]["org.opencontainers.image.ref.name"] == "flotilla/flotilla:1"
    blobs = {f"sha256:{path.name}": path.read_bytes() for path in (tmp_path / "blobs" / "sha256").iterdir()}
    assert blobs == {**made.blobs, made.digest: made.manifest}
    assert all(digest(blob) == name for name, blob in blobs.items())


def test_nats_server_lies_where_both_public_images_have_it(tmp_path: Path) -> None:
    (tmp_path / "nats-server").write_bytes(program())
    made = build.bus_image(tmp_path / "nats-server")
    layer = msgspec.json.decode(made.manifest)["layers"][0]["digest"]
    assert b"usr/local/bin/nats-server" in gzip.decompress(made.blobs[layer])
    config = msgspec.json.decode(made.blobs[msgspec.json.decode(made.manifest)["config"]["digest"]])["config"]
    assert config["Entrypoint"] == ["/usr/local/bin/nats-server"]
    assert config["User"] == build.run_config()["User"]
