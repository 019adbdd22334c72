"""Checks before an image is pushed."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from flotilla_dev.image import build, oci, trial
from flotilla_dev.image.tree import File
from tests.unit.devcluster.image.build import DYNAMIC, INTERPRETER, LOAD, program


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(program(LOAD, INTERPRETER), "is linked dynamically (it has a program interpreter)", id="loader"),
        pytest.param(program(DYNAMIC), "is linked dynamically (it has a dynamic section)", id="libraries"),
        pytest.param(Path(sys.executable).read_bytes(), "is linked dynamically", id="this Python"),
        pytest.param(b"#!/bin/sh\n", "is no program for 64-bit Linux", id="script"),
        pytest.param(b"", "is no program for 64-bit Linux", id="empty"),
    ],
)
def test_programs_that_need_more_than_themselves_are_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "nats-server"
    file.write_bytes(content)
    with pytest.raises(click.ClickException) as refused:
        build.bus_image(file)
    assert str(refused.value).startswith(f"{file} {problem}")
    assert str(refused.value).endswith("Delete it and run this again: it is then got as this repository pins it.")


def test_a_static_program_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "nats-server"
    file.write_bytes(program())
    assert build.bus_image(file).manifest


BROKEN = oci.Layer.of("broken", {"usr/local/bin/broken": File(program(), executable=True)})
COMMANDS: Sequence[Sequence[str]] = [["/usr/local/bin/broken", "--version"]]


def test_an_image_that_does_not_start_is_not_pushed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "entrance", lambda: ["env", "-C"])  # as chroot does, but without a right of its own
    with pytest.raises(
        click.ClickException, match="The image does not start: `/usr/local/bin/broken --version` in it ended with"
    ):
        trial.start([BROKEN], COMMANDS)


def test_who_may_not_try_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", "/nowhere")
    assert trial.start([BROKEN], COMMANDS) == "not started before the push: that needs root, or user namespaces"
