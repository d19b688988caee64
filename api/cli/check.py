"""questree check"""

from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from ..common.errors import QuestreeError
from ..settings import RunSettings
from .screen import Screen, table_of, waiting

if TYPE_CHECKING:
    from ..experiment import Experiment


def check(
    settings: Annotated[RunSettings, "task split limit seed LM PARTS timeout retries deadline window"],
    question: str = "In which town was the composer of The Magic Flute born?",
) -> None:
    """Look at an LM, an index and a task before you spend on them: one screen, and exit code 1 if something is wrong.

    The LM is asked one question, past the cache of replies.

    Args:
        question: What is searched for and asked.
    """
    from ..experiment import Experiment

    experiment, rows = Experiment(settings), list[dict[str, str]]()
    looks = {"LM": _named, "known of it": _known, "index": _searched, "reply": _asked, "task": _audited}
    for what, look in looks.items():
        with waiting(what):
            try:
                rows.append({"": "ok", "what": what, "is": look(experiment, question)})
            except QuestreeError as error:
                rows.append({"": "WRONG", "what": what, "is": str(error)})
    Screen().print(table_of(rows, {name: {} for name in rows[0]}))
    raise typer.Exit(int(any(row[""] == "WRONG" for row in rows)))


def _named(experiment: "Experiment", _: str) -> str:
    """Return the LM's name; refuse it if the server says which models it has, and this is none of them."""
    import httpx

    experiment.use_lm()
    name, address, models = str(experiment.lm.model), experiment.settings.api_base, list[str]()
    if address is None:
        return name
    key = {"Authorization": f"Bearer {experiment.lm.kwargs.get('api_key')}"}
    with suppress(httpx.HTTPError, ValueError, KeyError, TypeError):  # the reply will tell
        told = httpx.get(f"{address.rstrip('/')}/models", headers=key, timeout=10).raise_for_status().json()
        models = [str(one["id"]) for one in told["data"]]
    if models and name.partition("/")[2] not in models:
        raise QuestreeError(f"{name} is not at {address}, which has {', '.join(models[:5])}")
    return f"{name} at {address}"


def _known(experiment: "Experiment", _: str) -> str:
    from ..lm.models import facts_of
    from ..lm.window import known_window

    window, facts = experiment.settings.window or known_window(experiment.lm), facts_of(str(experiment.lm.model))
    price, room = facts.get("output_cost_per_token"), f"a window of {window:,} tokens" if window else "no window"
    return f"{room}; " + (f"${1e6 * price:.2f} a million tokens of replies" if price else "no price: set no --max-cost")


def _searched(experiment: "Experiment", question: str) -> str:
    began, retriever = perf_counter(), experiment.retriever
    titles = ", ".join(one.title or one.id for one in retriever(question, 3))
    return f"{retriever.name}, {perf_counter() - began:.2f} s; it finds {titles or 'nothing'}"


def _asked(experiment: "Experiment", question: str) -> str:
    """Return what one real call brings: a prompt with passages, in the form that the adapter gives it."""
    import dspy

    with dspy.context(lm=experiment.lm.copy(cache=False)):
        said = experiment.program("evidence-chain", max_calls=1)(question=question)
    if said.failure:
        raise QuestreeError(str(said.failure))
    return f"{said.answer or 'no answer'}; {said.seconds:.1f} s, {said.spent.calls} calls until it could be read"


def _audited(experiment: "Experiment", _: str) -> str:
    from ..evaluation.audit import audit

    task, settings = experiment.task, experiment.settings
    asked = task.split(settings.split)[: settings.limit]
    lacking = audit(asked, experiment.undefended).unanswerable
    told = f"{task.name}: {len(asked)} questions; answers that do not stand in the corpus: {len(lacking)}"
    if lacking:
        raise QuestreeError(f"{told}, of {lacking[0].id} for one (questree audit)")
    return told
