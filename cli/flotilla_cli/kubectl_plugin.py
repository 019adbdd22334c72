"""`kubectl flotilla`: the command as a plugin of kubectl, and its completion.

kubectl runs `kubectl-flotilla`, found on the PATH, for `kubectl flotilla …`, and `kubectl_complete-flotilla` for the
words that may come next. It passes the arguments so far; the last one is the word being typed, which may be empty.
"""

import sys
from collections.abc import Sequence

from click.shell_completion import ShellComplete

from flotilla_cli.main import main

NAME = "kubectl flotilla"
NO_FILES, FILES = 4, 0
"""Directives for kubectl: offer only the printed words, or file names as well."""


def plugin() -> None:
    """Run the command under the name that users typed."""
    main(prog_name=NAME)


def complete() -> None:
    """Print what may come next, in the form that kubectl reads."""
    print("\n".join(completions(sys.argv[1:])))


def completions(arguments: Sequence[str]) -> list[str]:
    """Return a line for each word that may come next, with its help after a tab, and the directive for kubectl."""
    *before, typed = arguments or [""]
    found = ShellComplete(main, {}, NAME, "").get_completions(before, typed)
    words = [f"{item.value}\t{item.help}" if item.help else str(item.value) for item in found if item.type == "plain"]
    return [*words, f":{FILES if any(item.type != 'plain' for item in found) else NO_FILES}"]
