"""Ends processes together with the process that started them, also when it is killed."""

import os
import threading
import time

LOOK_SECONDS = 0.5


def end_with_parent() -> None:
    """End this process soon after its parent has ended: for the forks of a pool, which have no other way to notice.

    The kernel's own signal for this (PR_SET_PDEATHSIG) is sent when the *thread* ends that forked, and a pool ends its
    threads before its processes.
    """
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(1)
