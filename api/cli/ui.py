"""questree ui"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Annotated

import typer

from ..common.errors import QuestreeError
from ..settings import RunSettings
from . import options
from .screen import echo


def ui(
    settings: Annotated[RunSettings, "tracking_uri"],
    host: str = "127.0.0.1",
    port: options.Port = 5000,
) -> None:
    """Show the tracked runs and traces in MLflow's pages, to this machine alone: they ask for no token.

    `mlflow ui` fetches a price list of LMs when it starts; without a network it can wait for it forever. Here it takes
    the list that is installed.

    Args:
        host: Address of this machine to listen at.
    """
    from ..evaluation.tracking_store import check_exists, without_password
    from ..retrieval.serving.access import is_loopback
    from ..retrieval.serving.listener import listening

    store = settings.tracking_uri
    if store == "none":
        raise QuestreeError("Nothing is tracked to 'none'. Name the store of your runs: --tracking-uri.")
    if store.startswith(("http://", "https://")):
        raise QuestreeError(f"{without_password(store)} is a server, and has the pages itself: open it in a browser.")
    check_exists(store)
    if not is_loopback(host):
        raise QuestreeError(
            f"{host} can be reached from other machines, and MLflow's pages ask for no token: whoever reaches them can "
            "change the runs. Leave --host out, or run `mlflow server` behind something that asks who comes."
        )
    with listening(host, port) as free:  # MLflow would end without an error where the address is taken
        port = free.getsockname()[1]
    echo(f"{without_password(store)} at http://{host}:{port}; Ctrl-C ends it")
    command = [sys.executable, "-m", "mlflow", "server", "--host", host, "--port", str(port), "--workers", "1"]
    # without the processes of jobs, which nothing here needs, the pages are up in two thirds of the time
    quick = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **os.environ}
    known = {"MLFLOW_BACKEND_STORE_URI": store}  # not in the command, where every user reads it: it may hold a password
    raise typer.Exit(_run(command, quick | known | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}))


def _run(command: list[str], env: dict[str, str]) -> int:
    """Run the server in a process group of its own and return its exit code; what ends us ends all of the group."""
    server = subprocess.Popen(command, env=env, start_new_session=True)

    def end(*signalled: object) -> None:
        with suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(server.pid, signal.SIGTERM)
            else:  # Windows
                server.terminate()

    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)
    return server.wait()
