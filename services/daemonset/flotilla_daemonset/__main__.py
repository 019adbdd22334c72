"""The daemonset service as a process of its own."""

import sys

from flotilla_common.service import main as run
from flotilla_daemonset.app import service


def main() -> None:
    """Run until told to stop; the exit code is the process's."""
    sys.exit(run(service()))


if __name__ == "__main__":
    main()
