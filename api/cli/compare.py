"""questree compare"""

from shlex import quote
from typing import Annotated

import typer

from ..common.errors import QuestreeError
from ..settings import RunSettings, read_value
from . import options
from .screen import echo, print_json


def compare(
    settings: RunSettings,
    programs: Annotated[list[str] | None, typer.Argument()] = None,
    all_: bool = False,
    over: list[str] | None = None,
    value: list[str] | None = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE")] = None,
    metric: options.Metrics = None,
    judge: options.Judge = None,
    details: options.Details = False,
    as_json: options.AsJson = False,
) -> None:
    """Score several programs, or one under several settings, on the same questions: a table and a page with plots.

    Baselines search for k=5 passages and take at most 8 turns, if nothing else is said of one (react:k=3). The others
    are compared with the first; with --over, what the program has by default is the first, if it is among
    the values. The same command goes on where it was interrupted. By default its folder is one for each task, LM,
    retriever, defence, reader and duplicate check: what another comparison has asked is not asked again.

    Args:
        programs: Programs' names, with settings if need be (searchain:preset=paper,k=5), or compiled ones' folders,
            runs:/…, models:/… or hf://…; the first is the baseline.
        all_: Add every registered program.
        over: Compare one program under several values of this setting; repeat it for combinations.
        value: With --over: a value; repeat it. Default: every value, if the setting's type lists them.
        set_: With --over: a setting that all have.
    """
    from ..evaluation import compare as compared
    from ..evaluation.identity import lm_facts
    from ..experiment import Experiment
    from ..programs import PROGRAMS
    from .progress import progress_bars
    from .report import print_agreement, print_comparison

    names = [*(programs or []), *(PROGRAMS if all_ else [])]
    if not names and (over or "program" in settings.model_fields_set):
        names = [settings.program]
    twice = next((name for name in programs or [] if names[: len(programs or [])].count(name) > 1), None)
    options.refuse(
        (twice, f"{twice} is named more than once: name each program once"),
        (over and len(names) > 1, "--over varies the settings of one program: name one"),
        ((value or set_) and not over, "--value and --set are of a program that --over varies"),
    )
    experiment = Experiment(settings)
    scores, given = experiment.scores(metric, judge), options.named_values(set_, "--set")
    with progress_bars(as_json) as bars, experiment.asking() as how:
        if over:
            values = [read_value(one) for one in value] if value else None
            out = experiment.folder("compare", names[0], settings.task, *over)
            asked, title = experiment.varied(names[0], over, values, given), f"{names[0]} over {', '.join(over)}"
        else:
            parts = settings.model_dump(include={"retriever", "reader", "duplicates", "rerank", "defence"})
            out = experiment.folder("compare", settings.task, of=[lm_facts(), parts])
            asked, title = experiment.labelled(names, out, alike=True), f"compare on {settings.task}"
        questions = experiment.questions_for(asked.values())
        how |= {"title": title, "task": experiment.task.name, "out": out, "on_progress": bars.run}
        comparison = compared(asked, questions, scores, **how)
    if as_json:
        print_json(comparison.as_json())
    else:
        print_comparison(comparison, details=details)
        print_agreement(comparison.evaluations.values())
        echo(f"page, with details: {out / 'page.html'}\neach question: questree show {quote(f'{out}/PROGRAM')}")
    if comparison.stopped:
        raise QuestreeError(comparison.stopped)
