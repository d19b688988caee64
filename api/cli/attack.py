"""questree attack"""

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..common.errors import QuestreeError, unknown_name
from ..settings import RunSettings
from . import options
from .screen import echo, print_figures, print_json

if TYPE_CHECKING:
    import dspy

    from ..evaluation.attacks import AttackRun


def attack(
    settings: Annotated[RunSettings, "- defence rerank tracking_uri"],
    programs: list[str],
    kind: list[str] | None = None,
    planted: Annotated[list[int] | None, typer.Option(min=1)] = None,
    defence: list[str] | None = None,
    writer: Literal["template", "lm"] = "template",
    credulous: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    as_json: options.AsJson = False,
) -> "AttackRun":
    """Plant passages against each question and count how often the attacker's answer is given.

    The same command goes on where it was interrupted.

    Args:
        programs: Programs' names, or compiled ones' folders, runs:/…, models:/… or hf://…
        kind: poison: passages that argue for a wrong answer; keywords: the same, in another order of words; injection:
            orders in genuine passages (task-irrelevant, task-relevant, targeted). Repeat it for several. Default:
            poison.
        planted: Passages to plant for each question; repeat it for several numbers. Default: 5.
        defence: none, agreement or reader; repeat it for a row of each. Default: none.
        writer: Who writes the poison: templates, or the LM.
        credulous: For the simulated LM: the share of claims and orders that it falls for.
    """
    from ..evaluation.attacks import Attack
    from ..evaluation.attacks import attack as attacked
    from ..evaluation.attacks.plants import written_by_lm
    from ..evaluation.identity import lm_facts
    from ..experiment import Experiment
    from ..metrics import metric
    from .progress import progress_bars

    experiment, kinds = Experiment(settings), _kinds(kind or ["poison"])
    defences = list(dict.fromkeys(defence or ["none"]))
    counts, seed, task = list(dict.fromkeys(planted or [5])), settings.seed, experiment.task
    if credulous is not None:
        experiment.lm = _credulous(experiment.lm, credulous)
    with progress_bars(as_json) as bars:
        experiment.use_lm()
        of = [lm_facts(), settings.retriever, settings.reader, seed, writer]
        out = experiment.folder("attack", settings.task, of=of)
        asked = experiment.labelled(programs, out)
        run = attacked(
            asked,
            experiment.questions_for(asked.values()),
            metric(task.metric),
            [Attack(one, count, seed) for one in kinds for count in counts],
            retriever=experiment.undefended,
            pool=[question.to_example() for split in task.questions.values() for question in split],
            defences=defences,
            reader=experiment.reader if "reader" in defences else None,
            write=written_by_lm if writer == "lm" else None,
            task=task.name,
            out=out,
            seed=seed,
            policy=settings.policy,
            on_progress=bars.run,
        )
    if as_json:
        print_json(run.files()["attack.json"])
    else:
        print_figures([_with_label(line) for line in run.table.lines], simulated=run.table.warning)
        echo(f"table: {out / 'attack.md'}\neach question: questree show {quote(f'{out}/DEFENCE/ATTACK/PROGRAM')}")
    if run.stopped:
        raise QuestreeError(run.stopped)
    return run


def _kinds(kinds: Sequence[str]) -> list[str]:
    """Return the kinds of attack, with the three injections for ``injection``."""
    from ..evaluation.attacks import INJECTIONS, KINDS

    named = [one for kind in kinds for one in (INJECTIONS if kind == "injection" else (kind,))]
    if unknown := [kind for kind in named if kind not in KINDS]:
        raise QuestreeError(unknown_name("attack", unknown[0], [*KINDS, "injection"]))
    return list(dict.fromkeys(named))


def _credulous(lm: "dspy.LM", share: float) -> "dspy.LM":
    from ..lm.models import is_simulated
    from ..simulate import credulous_lm

    if not is_simulated(lm):
        raise QuestreeError("--credulous is a trait of the simulated LM; leave it out with a real one.")
    return credulous_lm(lm, share)


def _with_label(line: Mapping[str, str]) -> dict[str, str]:
    """Return the row with all that tells it apart in its first column, which a narrow screen repeats."""
    names = ("program", "attack", "planted", "defence")
    rest = {heading: cell for heading, cell in line.items() if heading not in names}
    return {"program, attack, planted, defence": ", ".join(line[name] for name in names), **rest}
