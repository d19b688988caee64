"""Runs whose process was killed: MLflow would show them as running for ever."""

from __future__ import annotations

import os
import socket

_HOST, _PROCESS = "questree.host", "questree.process"


def process_tags() -> dict[str, str]:
    """The tags by which a later process finds the runs of this one."""
    return {_HOST: socket.gethostname(), _PROCESS: str(os.getpid())}


def end_dead_runs(experiment: str) -> None:
    """Mark as killed what processes of this machine left running in an experiment when they died.

    A run whose process number belongs to another process by now stays as it is.

    Args:
        experiment: its id, in the store that is tracked to.
    """
    if os.name != "posix":  # elsewhere asking whether a process lives interrupts it
        return
    import mlflow

    client = mlflow.MlflowClient()
    ours = f"attributes.status = 'RUNNING' and tags.`{_HOST}` = '{socket.gethostname()}'"
    for run in client.search_runs([experiment], ours):
        if not _lives(int(run.data.tags[_PROCESS])):
            client.set_terminated(run.info.run_id, "KILLED")


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
