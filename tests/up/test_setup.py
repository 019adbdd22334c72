"""scripts/setup installs only pinned versions."""

import os
import re
import subprocess
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_uv_that_is_not_the_pinned_one_is_not_installed(tmp_path: Path) -> None:
    pinned = re.search(r"^uv==(\S+)", (ROOT / "scripts" / "uv.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    wheels, cache = tmp_path / "wheels", tmp_path / "cache"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / f"uv-{pinned[1]}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("uv/__init__.py", "")
    ours = {"FLOTILLA_CACHE": str(cache), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    reply = subprocess.run(
        [ROOT / "scripts" / "setup"], env=os.environ | ours, capture_output=True, text=True, timeout=120, check=False
    )
    assert reply.returncode == 1
    assert "DO NOT MATCH THE HASHES" in reply.stderr
    assert f"uv {pinned[1]} could not be installed" in reply.stderr
    assert not (cache / f"tools-{pinned[1]}").exists()
