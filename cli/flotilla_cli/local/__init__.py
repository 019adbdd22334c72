"""Access to the clusters and buses that run on this machine.

The commands find them by files in the user's state folder: `state` reads the file of `flotilla up`, `process` tells
whether a recorded process still runs, `paths` names the folders. The programs themselves are started by the package
flotilla-dev (`devcluster/`), which `plugins` finds where it is installed.
"""
