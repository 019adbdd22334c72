"""Migrates a cluster from OpenKruise to Flotilla, and back.

`look` reads the cluster into a `Found`. `plan` and `undo` derive the steps from it without access to the cluster, so
that a dry run prints what would happen and tests are tables. `carry_out` executes the steps. Objects are backed up in
ConfigMaps before their first change (`before`); after each step the command can be run again.
"""
