"""Pollers and subscribers have a thread of their own, which may want the GIL: it must be gone before the interpreter ends."""

from __future__ import annotations

import atexit
import weakref
from typing import Protocol


class Closable(Protocol):
    def close(self) -> None: ...


_open: weakref.WeakSet[Closable] = weakref.WeakSet()


def close_at_exit(worker: Closable) -> None:
    """The interpreter closes it when it ends, if nobody has before."""
    _open.add(worker)


@atexit.register
def _close_all() -> None:
    for worker in list(_open):
        worker.close()
