"""An attack from what a user types: which programs, over which corpus, with which plants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .common.errors import QuestreeError
from .experiments import examples_of, use_lm
from .parts import build_program, build_reader, build_retriever
from .settings import RunSettings

if TYPE_CHECKING:
    from .evaluation.attacks import AttackRun
    from .evaluation.run import Progress
    from .programs import Program


def attack_named(
    names: Sequence[str],
    settings: RunSettings,
    *,
    kinds: Sequence[str],
    planted: Sequence[int],
    defences: Sequence[str],
    writer: str = "template",
    credulous: float | None = None,
    on_progress: Callable[[str, Progress], None] | None = None,
) -> tuple[AttackRun, Path]:
    """Ask programs the questions of a split over the corpus as it is, and with plants in it.

    Args:
        names: of programs, or where compiled ones are.
        settings: everything else.
        kinds: what is planted: of `questree.evaluation.attacks.KINDS`; ``injection`` stands for its three.
        planted: passages for each question; every kind is tried with each number.
        defences: of `questree.retrieval.defences.DEFENCES`; each is a row.
        writer: who writes what is planted: ``template``, or ``lm`` for the LM of the settings.
        credulous: of the simulated LM: the share of claims and orders that it falls for.
        on_progress: called with what is being asked.

    Returns:
        What came of it, and the folder that holds each question and the table.

    Raises:
        QuestreeError: if something of it does not exist, or ``credulous`` is given for a real LM.
    """
    from .data import load_task
    from .evaluation.attacks import Attack, attack
    from .evaluation.attacks.plants import written_by_lm
    from .evaluation.identity import digest, lm_facts
    from .metrics import metric

    tried = _kinds(kinds)
    task = load_task(settings.task, seed=settings.seed)
    use_lm(settings)
    if credulous is not None:
        _make_credulous(credulous)
    shared = [lm_facts(), str(settings.retriever), settings.reader, settings.seed, writer]
    out = settings.out or Path("runs") / f"attack-{Path(settings.task).stem}-{digest(shared)[:8]}"
    run = attack(
        _by_label(names, settings),
        examples_of(task, settings.split, settings.limit),
        metric(task.metric),
        [Attack(kind, count, settings.seed) for kind in tried for count in planted],
        retriever=build_retriever(settings.model_copy(update={"defence": "none"})),
        pool=[question.to_example() for split in task.questions.values() for question in split],
        defences=defences,
        reader=build_reader(settings) if "reader" in defences else None,
        write=written_by_lm if writer == "lm" else None,
        task=task.name,
        out=out,
        seed=settings.seed,
        policy=settings.policy,
        on_progress=on_progress,
    )
    return run, out


def _by_label(names: Sequence[str], settings: RunSettings) -> Mapping[str, Program]:
    labels: dict[str, Program] = {}
    for name in dict.fromkeys(names):
        program = build_program(name, settings)
        labels[program.name if program.name not in labels else f"{program.name}-{len(labels) + 1}"] = program
    return labels


def _kinds(kinds: Sequence[str]) -> list[str]:
    from .evaluation.attacks import INJECTIONS, KINDS

    named = [one for kind in kinds for one in (INJECTIONS if kind == "injection" else (kind,))]
    unknown = [kind for kind in named if kind not in KINDS]
    if unknown:
        raise QuestreeError(
            f"There is no attack {unknown[0]!r}. There are: {', '.join(KINDS)}, and injection for three."
        )
    return list(dict.fromkeys(named))


def _make_credulous(share: float) -> None:
    import dspy

    from .simulate import credulous_lm, is_simulated

    if not 0 <= share <= 1:
        raise QuestreeError(f"--credulous {share}: give a share from 0 to 1.")
    if not is_simulated(dspy.settings.lm):
        raise QuestreeError("--credulous is a trait of the simulated LM; leave it out with a real one.")
    dspy.configure(lm=credulous_lm(dspy.settings.lm, share))
