"""questree evaluate"""

from shlex import quote
from typing import Annotated

import typer

from ..settings import RunSettings
from . import options
from .screen import echo, print_json


def evaluate(
    settings: RunSettings,
    program: options.Program = None,
    metric: options.Metrics = None,
    judge: options.Judge = None,
    set_: options.ProgramSettings = None,
    repeats: Annotated[int, typer.Option(min=1)] = 1,
    details: options.Details = False,
    as_json: options.AsJson = False,
) -> None:
    """Ask a program every question of a split and score it.

    The same command goes on where it was interrupted.

    Args:
        repeats: Ask everything so often, with an LM that samples (--temperature).
    """
    from ..evaluation import repeat
    from ..evaluation.identity import run_identity
    from ..evaluation.record_scores import metric_name
    from ..evaluation.series import evaluate_tracked
    from ..evaluation.stored_runs import stored_runs
    from ..experiment import Experiment
    from .progress import progress_bars
    from .report import print_agreement, print_evaluations, spread_of

    experiment, name = Experiment(settings), program or settings.program
    scores, task = experiment.scores(metric, judge), experiment.task.name
    with progress_bars(as_json) as bars, experiment.asking() as how:
        asked = experiment.program(name, **options.named_values(set_, "--set"))
        questions, about = experiment.questions_for([asked]), run_identity(asked, task=task)
        if repeats > 1:
            out = experiment.folder("repeats", asked.name, task, of=about)
            repeated = repeat(asked, questions, scores, repeats, task=task, out=out, on_progress=bars.run, **how)
        else:
            # the folder is the same for all metrics, so that another one scores the answers that are there
            about |= {"metrics": [metric_name(one) for one in experiment.scores(None)]}
            out, title = experiment.folder(asked.name, task, of=about), f"evaluate {asked.name}"
            how |= {"task": task, "out": out, "on_progress": bars.questions}
            evaluation = evaluate_tracked(title, asked, questions, scores, **how)
    if as_json:
        print_json(repeated.as_json() if repeats > 1 else stored_runs([out])[0].as_json())
    elif repeats > 1:
        print_evaluations({f"repeat-{n}": one for n, one in enumerate(repeated.runs, start=1)}, details=details)
        echo(spread_of(repeated))
        print_agreement(repeated.runs)
        echo(f"each question: questree show {quote(f'{out}/repeat-1')}")
    else:
        print_evaluations({name: evaluation}, details=details)
        print_agreement([evaluation])
        echo(f"each question: questree show {quote(str(out))}")
