"""questree ui"""

from typing import TYPE_CHECKING

import typer

from . import options

if TYPE_CHECKING:
    from ..settings import RunSettings

SETTINGS = ("tracking_uri",)


def ui(settings: "RunSettings", host: options.Host = "127.0.0.1", port: options.Port = 5000) -> None:
    """Show the tracked runs and traces in MLflow's pages.

    `mlflow ui` fetches a price list of LMs when it starts; without a network it can wait for it forever. Here it takes
    the list that is installed.
    """
    import os
    import sys

    from ..common.errors import QuestreeError
    from ..common.secrets import without_secrets

    store = settings.tracking_uri
    if store == "none":
        raise QuestreeError("Nothing is tracked to 'none'. Name the store of your runs: --tracking-uri.")
    if store.startswith(("http://", "https://")):
        raise QuestreeError(f"{without_secrets(store)} is a server, and has the pages itself: open it in a browser.")
    typer.echo(f"{store} at http://{host}:{port}; Ctrl-C ends it")
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store]
    command += ["--host", host, "--port", str(port), "--workers", "1"]
    # without the processes of jobs, which nothing here needs, the pages are up in two thirds of the time
    quick = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **os.environ}
    raise typer.Exit(_run(command, quick | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}))


def _run(command: list[str], env: dict[str, str]) -> int:
    """Run the server in a process group of its own and return its exit code; what ends us ends all of the group."""
    import os
    import signal
    import subprocess
    from contextlib import suppress

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
