"""`flotilla run nodeagent`: gives this process to the agent, which is small because it imports none of this."""

import os
import sys
from collections.abc import Sequence

NAME = "nodeagent"


def replace_process(arguments: Sequence[str]) -> None:
    """Become the agent. Returns never."""
    os.execv(sys.executable, [sys.executable, "-m", "flotilla_nodeagent", *arguments])
