"""Whole experiments from what a user types: evaluate, compile, ablate, compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .parts import build_lm, build_program
from .settings import RunSettings

if TYPE_CHECKING:
    import dspy

    from .data import Question, Task
    from .evaluation.comparison.comparison import Comparison
    from .evaluation.evaluation import Evaluation
    from .evaluation.run import Progress
    from .evaluation.tracking import Tracking
    from .optimize import Compiled, CompileProgress
    from .programs import Program


def evaluate_named(
    name: str,
    settings: RunSettings,
    *,
    metrics: Sequence[str] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **program_settings: Any,
) -> tuple[Evaluation, Path]:
    """Evaluate a program on the split that the settings name.

    Args:
        name: of a program, or where a compiled one is.
        settings: everything else.
        metrics: by name, the first is the score; the task's own where None.
        on_progress: as `questree.optimize.evaluate` takes it.
        program_settings: of an uncompiled program.

    Returns:
        What was found, and the folder that holds each question.
    """
    from .data import load_task
    from .evaluation.identity import digest
    from .evaluation.run import evaluate, run_identity
    from .metrics import metric

    task = load_task(settings.task, seed=settings.seed)
    scores = [metric(one) for one in metrics or task_metrics(task)]
    use_lm(settings)
    program = build_program(name, settings, **program_settings)
    identity = run_identity(program, scores, task=task.name)
    out = settings.out or Path("runs") / f"{program.name}-{_plain(task.name)}-{digest(identity)[:8]}"
    tracking, policy = build_tracking(settings), settings.policy
    named, facts = f"evaluate {program.name}", identity | {"policy": policy.model_dump(exclude_none=True)}
    with tracking.run(named, facts, simulated=identity["lm"]["simulated"]) as tracked, tracked.traces():
        evaluation = evaluate(
            program,
            examples_of(task, settings.split, settings.limit),
            scores,
            task=task.name,
            out=out,
            seed=settings.seed,
            policy=policy,
            on_progress=on_progress,
        )
        tracked.evaluation(evaluation)
    return evaluation, out


def compile_named(
    name: str,
    settings: RunSettings,
    *,
    optimizer: str | None = None,
    optimizer_settings: dict[str, Any] | None = None,
    train_limit: int | None = None,
    metric_name: str | None = None,
    on_progress: Callable[[CompileProgress], None] | None = None,
    **program_settings: Any,
) -> tuple[Compiled, Path]:
    """Compile a program on a task's training questions, and score it before and after on the split of the settings.

    Args:
        name: of a program.
        settings: everything else; ``limit`` is of the questions that it is scored on.
        optimizer: one of `questree.optimize.OPTIMIZERS`; the program's own default where None.
        optimizer_settings: of the optimizer.
        train_limit: at most so many training questions.
        metric_name: the task's own where None.
        on_progress: as `questree.optimize.compile` takes it.
        program_settings: of the program.

    Returns:
        What came of it, and the folder that holds all of it.
    """
    from .data import load_task
    from .metrics import metric
    from .optimize import Examples, compile
    from .optimize import optimizer as optimizer_named
    from .programs.registry import kind_named

    chosen = optimizer_named(optimizer or kind_named(name).default_optimizer, **(optimizer_settings or {}))
    task = load_task(settings.task, seed=settings.seed)
    score = metric(metric_name or task.metric)
    use_lm(settings)
    program = build_program(name, settings, **program_settings)
    out = settings.out or Path("runs") / f"compile-{program.name}-{_plain(task.name)}-{chosen.name}"
    compiled = compile(
        program,
        Examples(
            train=examples_of(task, "train", train_limit),
            dev=examples_of(task, settings.split, settings.limit),
            task=task.name,
        ),
        score,
        optimizer=chosen,
        seed=settings.seed,
        policy=settings.policy,
        out=out,
        tracking=build_tracking(settings),
        on_progress=on_progress,
    )
    return compiled, out


def ablate_named(
    name: str,
    settings: RunSettings,
    *,
    over: Sequence[str],
    values: Sequence[Any] | None = None,
    metrics: Sequence[str] | None = None,
    on_progress: Callable[[str, Progress], None] | None = None,
    **program_settings: Any,
) -> tuple[Comparison, Path]:
    """Evaluate a program under several settings on the same questions; its defaults come first.

    Args:
        name: of a program.
        settings: everything else.
        over: the program's settings to vary; of several, every combination.
        values: of the one setting, where its type does not list them.
        metrics: by name, the first is the score; the task's own where None.
        on_progress: as `questree.optimize.compare` takes it.
        program_settings: what stays the same.

    Returns:
        What was found, and the folder that holds each question.
    """
    from .programs import variants

    varied = variants(name, over, values)
    use_lm(settings)
    programs = {label: build_program(name, settings, **program_settings, **one) for label, one in varied.items()}
    out = settings.out or Path("runs") / f"ablate-{name}-{_plain(Path(settings.task).stem)}-{'-'.join(over)}"
    title = f"ablate {name} over {', '.join(over)}"
    return _compared(programs, settings, metrics, out=out, title=title, on_progress=on_progress), out


def compare_named(
    names: Sequence[str],
    settings: RunSettings,
    *,
    metrics: Sequence[str] | None = None,
    on_progress: Callable[[str, Progress], None] | None = None,
) -> tuple[Comparison, Path]:
    """Evaluate programs on the same questions, with the same retriever, LM and metrics.

    Args:
        names: of programs, or where compiled ones are; the others are compared with the first.
        settings: everything else.
        metrics: by name, the first is the score; the task's own where None.
        on_progress: as `questree.optimize.compare` takes it.

    Returns:
        What was found, and the folder that holds each question and the files of the comparison. By default it is
        one for each task, LM, retriever, reader and metric: what another comparison has asked is not asked again.
    """
    from .evaluation.identity import digest, lm_facts

    use_lm(settings)
    programs = _labelled(names, settings)
    shared = [lm_facts(), settings.retriever, settings.reader, settings.duplicates, metrics]
    out = settings.out or Path("runs") / f"compare-{_plain(Path(settings.task).stem)}-{digest(shared)[:8]}"
    title = f"compare on {settings.task}"
    return _compared(programs, settings, metrics, out=out, title=title, on_progress=on_progress), out


def _compared(
    programs: Mapping[str, Program],
    settings: RunSettings,
    metrics: Sequence[str] | None,
    *,
    out: Path,
    title: str,
    on_progress: Callable[[str, Progress], None] | None,
) -> Comparison:
    from .data import load_task
    from .evaluation.comparison.comparison import compare
    from .metrics import metric

    task = load_task(settings.task, seed=settings.seed)
    return compare(
        programs,
        examples_of(task, settings.split, settings.limit),
        [metric(one) for one in metrics or task_metrics(task)],
        task=task.name,
        out=out,
        seed=settings.seed,
        policy=settings.policy,
        tracking=build_tracking(settings),
        title=title,
        on_progress=on_progress,
    )


def _labelled(names: Sequence[str], settings: RunSettings) -> dict[str, Program]:
    """The programs by what they are shown as: ``searchain``, ``searchain-compiled``, ``searchain-compiled-2`` …"""
    from .programs import PROGRAMS

    programs: dict[str, Program] = {}
    for name in dict.fromkeys(names):
        program = build_program(name, settings)
        label = program.name if name in PROGRAMS else f"{program.name}-compiled"
        number = 1 + sum(known.startswith(label) for known in programs)
        programs[label if label not in programs else f"{label}-{number}"] = program
    return programs


def use_lm(settings: RunSettings) -> None:
    """Configure DSPy with the LM, the cache and the limits of the settings."""
    import dspy

    from .lm.kept_replies import use_lm_cache
    from .lm.limits import limit_process

    use_lm_cache(settings.api_base)
    dspy.configure(lm=build_lm(settings))
    limit_process(settings.limits)


def build_tracking(settings: RunSettings) -> Tracking:
    """Return where the settings track to."""
    from .evaluation.tracking import Tracking

    return Tracking.off() if settings.tracking_uri == "none" else Tracking(uri=settings.tracking_uri)


def examples_of(task: Task, splits: str, limit: int | None) -> list[dspy.Example]:
    """The first ``limit`` questions of one split, or of several: ``dev,test``."""
    examples = [example for split in splits.split(",") for example in task.examples(split.strip())]
    return examples[:limit]


def questions_of(settings: RunSettings) -> list[Question]:
    """The questions that the settings name, with their paragraphs."""
    from .data import load_task

    task = load_task(settings.task, seed=settings.seed)
    questions = [question for split in settings.split.split(",") for question in task.split(split.strip())]
    return questions[: settings.limit]


def task_metrics(task: Task) -> list[str]:
    """The task's metric first; for short answers also the two that the other papers report."""
    return [task.metric, *(["em", "f1"] if task.style == "short" else [])]


def _plain(name: str) -> str:
    """A task's name as part of a folder's."""
    return "".join(character if character.isalnum() else "-" for character in name).strip("-")
