"""What a process must not share with one that it forked: connections, whose answers would mix, and its threads."""

from __future__ import annotations

import os
from typing import Any
from weakref import WeakSet

_held: WeakSet[Any] = WeakSet()


def renew_in_forks(holder: Any) -> None:
    """Call ``renew()`` of the holder in every process that is forked from now on, as long as it lives."""
    _held.add(holder)


def _renew_all() -> None:
    for holder in list(_held):
        holder.renew()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_renew_all)
