"""The content of the image, and what it must not contain."""

from pathlib import Path

import pytest

from flotilla_dev.image import base, python_packages
from flotilla_dev.image.tree import File


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("usr/bin/python3.11", True),
        ("usr/bin/pdb3.11", False),
        ("usr/bin/sh", False),
        ("usr/sbin/update-ca-certificates", False),
        ("usr/lib/x86_64-linux-gnu/libc.so.6", True),
        ("usr/lib/x86_64-linux-gnu/gconv/BIG5.so", False),
        ("usr/lib64/ld-linux-x86-64.so.2", True),
        ("usr/lib/python3.11/asyncio/runners.py", True),
        ("usr/lib/python3.11/curses/ascii.py", False),
        ("usr/lib/python3.11/lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so", True),
        ("usr/lib/python3.11/lib-dynload/_sqlite3.cpython-311-x86_64-linux-gnu.so", False),
        ("usr/share/zoneinfo/Europe/Berlin", True),
        ("usr/share/zoneinfo/right/Europe/Berlin", False),
        ("usr/share/doc/libc6/copyright", True),
        ("usr/share/doc/libc6/changelog.Debian.gz", False),
        ("usr/share/man/man1/python3.11.1.gz", False),
        ("etc/os-release", True),
        ("etc/profile", False),
        ("var/lib/dpkg/info/x.list", False),
    ],
)
def test_files_of_debian_s_packages(path: str, kept: bool) -> None:
    assert base.is_kept(path) is kept


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("./lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libc.so.6"),
        ("./lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2"),
        ("./usr/lib/a", "usr/lib/a"),
        ("./library/a", "library/a"),
    ],
)
def test_packages_may_name_files_by_the_old_folders(name: str, path: str) -> None:
    assert base.merged(name) == path


@pytest.mark.parametrize(
    ("path", "shipped"),
    [
        ("aiohttp/web.py", True),
        ("aiohttp/_http_parser.cpython-311-x86_64-linux-gnu.so", True),
        ("aiohttp/_http_parser.pyx", False),
        ("uvloop/loop.c", False),
        ("bin/uvicorn", False),
        (".lock", False),
        ("certifi/tests/test_certify.py", False),
        ("flotilla_common/testing.py", True),
        ("msgspec/__pycache__/x.cpython-311.pyc", False),
        ("msgspec-0.22.0.dist-info/METADATA", True),
        ("msgspec-0.22.0.dist-info/RECORD", False),
        ("flotilla_cli-0.1.0.dist-info/direct_url.json", False),
    ],
)
def test_files_of_python_packages(path: str, shipped: bool) -> None:
    assert python_packages.shipped(path) is shipped


def test_each_entry_point_of_ours_is_a_program_and_no_other() -> None:
    ours = b"[console_scripts]\nflotilla-jobs = flotilla_jobs.app:main\n\n[flotilla.services]\njobs = a:b\n"
    made = python_packages.scripts(
        {
            "flotilla_jobs-1.dist-info/entry_points.txt": File(ours),
            "uvicorn-1.dist-info/entry_points.txt": File(b"[console_scripts]\nuvicorn = uvicorn.main:main\n"),
        }
    )
    assert set(made) == {"usr/local/bin/flotilla-jobs"}
    program = made["usr/local/bin/flotilla-jobs"]
    assert isinstance(program, File)
    assert program.executable
    assert program.content.startswith(b"#!/usr/bin/python3.11\n")
    assert b"from flotilla_jobs.app import main\n" in program.content
    compile(program.content, "flotilla-jobs", "exec")


def test_a_change_of_our_code_is_a_change_of_the_layer() -> None:
    named = python_packages.sources(python_packages.service_packages())[::2]
    assert b"services/cloneset/flotilla_cloneset/app.py" in named
    assert b"cli/pyproject.toml" in named
    assert not [name for name in named if b"__pycache__" in name or name.startswith((b"tests/", b"devcluster/"))]


def test_nothing_of_the_local_cluster_is_in_it(tmp_path: Path) -> None:
    names = python_packages.service_packages()
    assert {"flotilla-cli", "flotilla-common", "flotilla-nodeagent", "flotilla-webhook"} < set(names)
    files = python_packages.own(tmp_path, names)
    assert "usr/local/bin/flotilla" in files
    assert f"{python_packages.SITE}/flotilla_cli/main.py" in files
    assert [name for name in files if "flotilla_dev" in name or "flotilla-dev" in name] == []
    made = python_packages.own(tmp_path, python_packages.LOCAL_PACKAGES)
    assert f"{python_packages.SITE}/flotilla_dev/cluster/up.py" in made
    assert not files.keys() & made.keys()


def test_the_local_cluster_needs_no_dependency_of_its_own() -> None:
    """It is a layer above that of the services' dependencies."""
    everything = python_packages.uv(*python_packages.LOCKED, "--all-packages", "--no-emit-workspace", "--no-annotate")
    assert [line for line in everything.splitlines() if line[0] != "#"] == python_packages.locked().splitlines()


def test_the_lock_names_every_file_by_its_sum_and_no_tool_of_developers() -> None:
    lines = python_packages.locked().replace("\\\n", " ").splitlines()
    assert all("--hash=sha256:" in line for line in lines if line)
    assert not [line for line in lines if line.startswith(("pytest", "ruff", "flotilla"))]
    assert [line for line in lines if line.startswith("aiohttp==")]
