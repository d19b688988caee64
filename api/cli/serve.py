"""questree serve"""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from ..common.errors import QuestreeError, needs_extra
from ..service.service_limits import ServiceLimits
from ..settings import RunSettings
from . import options
from .screen import echo, waiting

if TYPE_CHECKING:
    from ..experiment import Experiment
    from ..service import Service

SERVED = "task seed LM LIMITS PARTS CODE TRACKING"
"""The settings of a server of programs."""


def serve(
    settings: Annotated[RunSettings, SERVED],
    limits: Annotated[ServiceLimits, "max_running", "max_queued", "per_client", "follow_ups", "stream_lm"],
    programs: list[str],
    host: options.Host = "127.0.0.1",
    port: options.Port = 8080,
    token_file: options.TokenFile = None,
    behind_proxy: options.BehindProxy = False,
    questions: Path = Path("runs/questions"),
    runs: list[Path] | None = None,
    mlflow_ui: str | None = None,
) -> None:
    """Serve programs: a page to ask on and watch the tree grow, and an API, OpenAI's included.

    Args:
        programs: Programs by name (react:k=3 with a setting), or compiled ones: folders, runs:/…, models:/… or hf://….
            NAME=PROGRAM names one.
        questions: Folder in which every question is kept, for its permalink.
        runs: Runs to show as well: a folder, a capsule, or 'mlflow' for those that are tracked; repeat it.
        mlflow_ui: Address of MLflow's pages, to link runs and traces to. Default: the tracking URI's own.
    """
    options.refuse((mlflow_ui and not runs, "--mlflow-ui is for links of runs: name them with --runs"))
    from ..evaluation import Tracking
    from ..experiment import Experiment
    from ..retrieval.serving.access import read_token

    with needs_extra("serve"):
        from ..retrieval.serving.listener import check_address, serve_app
        from ..service import create_app

    token = read_token(token_file)
    check_address(host, port, token)  # before an index is loaded
    shown = [source for source in runs or [] if source != _TRACKED]
    for source in shown:
        if not source.exists():
            raise QuestreeError(f"There are no runs at {source}.")
    if len(shown) < len(runs or []) and settings.tracking_uri == "none":
        raise QuestreeError("Nothing is tracked to 'none'. Name the store of your runs: --tracking-uri.")
    mlflow, experiment = _address(mlflow_ui, settings.tracking_uri), Experiment(settings)
    tracking, opened = experiment.tracking if len(shown) < len(runs or []) else Tracking(uri=""), ExitStack()
    with waiting("loading the programs, the index and the store of runs"):
        examples = example_questions(experiment) if settings.retriever is None or settings.lm == "simulated" else ()
        service = service_of(experiment, programs, questions, limits, examples)
        run = tracking.run(f"serve {', '.join(service.names)}", {}, simulated=service.simulated)
        service.traces = opened.enter_context(run).traces

    def ready(address: str) -> None:
        names, lm = ", ".join(service.names), " (the LM is simulated)" if service.simulated else ""
        echo(f"{names} at {address}{lm}; questions are kept in {questions}; Ctrl-C ends it")

    app = create_app(service, token, shown, tracking if tracking.uri else None, mlflow)
    with opened:
        serve_app(app, host, port, token=token, ready=ready, ending=service.close, behind_proxy=behind_proxy)


def example_questions(experiment: "Experiment") -> list[str]:
    """Return a question of the task for each number of hops, and a claim."""
    found = {(one.get("hops"), one.question.endswith("?")): one.question for one in experiment.examples("dev", None)}
    return list(found.values())[:5]


_TRACKED = Path("mlflow")
"""Named as runs, it stands for those of the tracking URI."""


def _address(given: str | None, tracking_uri: str) -> str:
    """Return the address of MLflow's pages, without a password; empty if none is known."""
    with suppress(ValueError):  # no address at all: http://[
        parts = urlsplit(given or tracking_uri)
        if parts.scheme in ("http", "https") and parts.netloc:
            return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")
    if given:
        raise QuestreeError(f"--mlflow-ui {given!r}: give the address of MLflow's pages: http://127.0.0.1:5000")
    return ""


def service_of(
    experiment: "Experiment", programs: list[str], questions: Path, limits: ServiceLimits, examples: Sequence[str] = ()
) -> "Service":
    """Return what answers by these programs; a question may take as long as the deadline, where there is one."""
    from ..service import KeptQuestions, Service

    experiment.use_lm()
    served = {name: experiment.program(program) for name, program in named_programs(programs).items()}
    if (deadline := experiment.settings.deadline) is not None:
        limits = limits.model_copy(update={"seconds": deadline})
    return Service(served, KeptQuestions(questions), limits, examples=examples)


def named_programs(programs: list[str]) -> dict[str, str]:
    """Return each program by the name that clients use: the given one, else the last part of what names it."""
    named: dict[str, str] = {}
    for given in programs:
        name, equals, program = given.partition("=")
        if not equals or "/" in name:  # a folder's own =, as in runs/lr=2/program
            name, program = _own_name(given), given
        elif ":" in name:  # a setting's, as in react:k=3
            name, program = name.partition(":")[0], given
        elif not name or not program:
            raise QuestreeError(
                f"Give a name before the = and a program after it: {name or 'NAME'}={program or 'PROGRAM'}"
            )
        if name in named:
            raise QuestreeError(f"Two programs are called {name!r}; give one another name: NAME={program}")
        named[name] = program
    return named


def _own_name(program: str) -> str:
    """Return the last part of what names a program; of a registered model its name, without version or alias."""
    if program.startswith("models:/"):
        return program.removeprefix("models:/").partition("/")[0].partition("@")[0]
    return program.rstrip("/").rpartition("/")[2]
