"""The durations of work in the simulated cluster, in fake seconds.

Much shorter than in a real cluster, so that a scenario takes a few seconds, but never zero: a controller must meet
every intermediate state.
"""

import msgspec


class Durations(msgspec.Struct, frozen=True, kw_only=True):
    schedule: float = 0.02
    start: float = 0.2  # from the binding to running containers
    kill: float = 0.05  # a container whose definition changed stops
    restart: float = 0.2  # and runs again
    readiness: float = 0.01  # conditions follow containers and readiness gates
    stop: float = 0.1  # a deleted pod's containers stop, if they are asked nicely
    complete: float = 1.0  # a pod that is a job succeeds
    collect: float = 0.05  # the garbage collector and its kin notice
    bind_claim: float = 0.05
    node_silence: float = 1.0  # until a silent node counts as lost
    eviction: float = 3.0  # until the pods of a lost node are deleted
    orphaned_pods: float = 3.0  # until the pods of a removed node are gone
