"""Taking a cluster over from OpenKruise, and giving it back.

`look` reads the cluster into a `Found`. `plan` and `undo` make the steps from it and know no cluster, so that a dry run
prints what would happen and tests are tables. `carry_out` does the steps. What an object was before the first change of
it is kept in ConfigMaps (`before`); each step leaves a cluster on which the command can be run again.
"""
