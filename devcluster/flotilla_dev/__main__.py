"""Runs the `flotilla-dev` command: `python -m flotilla_dev`."""

from flotilla_dev.main import main

main(prog_name="flotilla-dev")
