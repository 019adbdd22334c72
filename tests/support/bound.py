"""Processes that end with the one that started them, however that ends."""

import os
import threading
import time

LOOK_SECONDS = 0.5


def end_with_parent() -> None:
    """End this process soon after its parent is gone: for the forks of a pool, which nothing else would tell.

    The kernel's own signal for it (PR_SET_PDEATHSIG) comes when the *thread* ends that made the fork, and a pool ends
    its threads before its processes.
    """
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(1)
