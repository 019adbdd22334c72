"""Migrates a cluster from OpenKruise to Flotilla, and back.

`discover` reads the cluster into a `Found`. `plan` and `rollback` derive the steps from it without access to the
cluster, so that a dry run prints what would happen and tests are tables. `apply` executes the steps. Objects are backed
up in ConfigMaps before their first change (`backup`); after each step the command can be run again.
"""
