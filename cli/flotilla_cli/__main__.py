"""`python -m flotilla_cli` is the `flotilla` command."""

from flotilla_cli.main import main

main(prog_name="flotilla")
