"""Compile a program against a task's metric: score it, let the optimizer work, save, score again, track."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import dspy

from ..common.errors import QuestreeError
from ..evaluation import Evaluation, Interrupted, OutOfBudgetError, RunPolicy, Tracking, evaluate
from ..evaluation.identity import lm_facts, versions
from ..evaluation.kept_run import KeptRun, begin
from ..evaluation.notebook_bar import notebook_bar
from ..evaluation.record_scores import MetricError, ScoreFunction, checked_metrics, keeps_scores
from ..evaluation.run_file import WritableFile, writing
from ..evaluation.tracking import OFF, UNTRACKED, TrackedRun
from ..evaluation.tracking_store import without_password
from ..programs import Program
from .budget import BudgetSpentError, LMBill
from .candidates import Candidate, CandidateKeeper
from .demonstrations import annotated, apart_from
from .kept_compilation import KeptCompilation
from .optimizer_run import run_optimizer
from .optimizers import Optimizer
from .plan import Plan, check_asked, checked, checked_examples, checked_optimizer, checked_student, checked_teacher
from .result import Compilation, Compiled, CompileProgress, Examples
from .verdicts import MetricFaultError

MOST_TRACKED = 100  # candidates as nested runs of MLflow


def compile(
    program: Program,
    examples: Examples,
    metric: ScoreFunction,
    *,
    optimizer: Optimizer | str | None = None,
    teacher: Program | Literal["annotations"] | None = None,
    prompt_lm: dspy.BaseLM | None = None,
    seed: int = 0,
    policy: RunPolicy | None = None,
    out: str | Path | None = None,
    tracking: Tracking = OFF,
    register: str | None = None,
    on_progress: Callable[[CompileProgress], None] | None = None,
) -> Compiled:
    """Compile a program, and score it before and after on questions that the optimizer never sees.

    What is finished is on the disk at once: each scored question, each candidate, and each reply of the LM in
    DSPy's cache. The same call with the same ``out`` resumes: finished questions and a finished program are not made
    again. An optimizer that was stopped starts over, but does everything in the same order. So the replies that it had
    come from the cache, and it tries the same candidates. Without a cache on disk it asks, and pays, again. It also
    does so where the metric is one of your own, whose code may have changed since.

    Args:
        program: stays as it is.
        examples: see `Examples`.
        metric: gives at most 1. Called with a trace, it accepts an answer by True or 1.
        optimizer: one of `OPTIMIZERS` by name with its defaults, or with settings: ``optimizer(name, k=4)``; the
            program's own default where None.
        teacher: the program that makes the demonstrations; this one where None. "annotations": this one, with the
            annotations of the training questions in the place of its LM.
        prompt_lm: writes instructions, for optimizers that use such an LM; the configured LM by default.
        seed: of everything random.
        policy: concurrency, time and retries, when to give up, and a budget for all of it: both scorings and the
            optimizer. Calls that are on their way when it is spent are finished.
        out: folder for ``program``, and ``runs.db`` with the runs before and after and the candidates; None keeps
            nothing.
        tracking: where to track; not at all by default. A finished compilation that is repeated is not tracked again.
        register: the name under which MLflow's registry gets the compiled program, as a new version.
        on_progress: called in the caller's thread.

    Raises:
        QuestreeError: as `evaluate`; also if there are too few questions, or the optimizer finds nothing; an
            `OutOfBudgetError` if the budget is spent, a `MetricError` if the metric cannot judge an answer.
        Interrupted: on Ctrl-C.
    """
    plan = Plan(
        program=checked_student(program),
        examples=checked_examples(examples),
        metric=checked_metrics([metric], ())[0],
        optimizer=checked_optimizer(optimizer, program),
        teacher=checked_teacher(teacher, program),
        prompt_lm=checked("prompt_lm", prompt_lm),
        seed=seed,
        policy=checked("policy", policy) or RunPolicy(),
        out=None if out is None else Path(out),
        tell=on_progress,
        register=register,
    )
    checked("tracking", tracking)
    if register and not tracking.uri:
        raise QuestreeError(f"register={register!r} needs MLflow: name a store to track to (--tracking-uri).")
    plan.optimizer.check(program, plan.policy)
    check_asked(plan.optimizer, teacher=plan.teacher, prompt_lm=plan.prompt_lm)
    place: AbstractContextManager[str] = TemporaryDirectory() if plan.out is None else nullcontext(str(plan.out))
    with place as folder, writing(Path(folder), "compilation", durable=plan.out is not None) as file:
        plan.claim(file)
        here = without_password(tracking.uri)
        known = file.fact("tracked") if keeps_scores(plan.metric) else None
        if known and known["uri"] == here and register in (None, known.get("register")):
            return replace(_Stages(plan, file, UNTRACKED).take(), address=known["address"])
        facts = plan.facts() | {"policy": plan.policy.model_dump(exclude_none=True), "versions": versions()}
        named, simulated = f"{program.name} {plan.optimizer.name}", bool(lm_facts()["simulated"])
        with tracking.run(named, facts, simulated=simulated) as run:
            compiled = _Stages(plan, file, run).take()
            if compiled.address:
                file.set_fact("tracked", {"uri": here, "address": compiled.address, "register": register})
            return compiled


class _Stages:
    """The stages of a compilation. Each is done once: what an interrupted attempt finished is taken over."""

    def __init__(self, plan: Plan, file: WritableFile, run: TrackedRun):
        self.plan, self.file, self.run = plan, file, run
        self.program = plan.program

    def take(self) -> Compiled:
        """Score the program, compile it, save it and score it again."""
        plan = self.plan
        train, val = plan.examples.split(plan.seed, compares=plan.optimizer.compares)
        train = apart_from(train, plan.examples.dev)
        if plan.teacher == "annotations":
            train = annotated(train)
        kept, bill = KeptCompilation(plan, self.file, self.run), LMBill(plan.policy, self.file)
        with bill.open():
            before = self.score(self.program, "before")
            with self.stopping():
                compilation = kept.finished() or self.optimize(train, val, bill)
            counts = {"train": len(train), "val": len(val), "dev": len(plan.examples.dev)}
            compilation = replace(compilation, questions=counts)
            self.begin("after", compilation.program)  # refuses a program that differs from that of an earlier attempt
            kept.save(compilation)  # before the scores, as scoring may be interrupted
            after = self.score(compilation.program, "after")
            return kept.keep(Compiled(compilation, before, after))

    def begin(self, stage: str, program: Program) -> KeptRun | None:
        """Return the run of a program in the file, or None where nothing is to be kept."""
        plan = self.plan
        return begin(self.file, stage, program, plan.examples.task, plan.policy) if plan.out else None

    def score(self, program: Program, stage: Literal["before", "after"]) -> Evaluation:
        """Return the program's scores on the dev questions."""
        plan, task, tell = self.plan, self.plan.examples.task, self.plan.tell
        bar = notebook_bar(stage) if tell is None else lambda progress: tell(CompileProgress(stage, questions=progress))
        with self.run.traces():
            evaluation = evaluate(
                program,
                plan.examples.dev,
                plan.metric,
                task=task,
                out=self.begin(stage, program),
                seed=plan.seed,
                policy=plan.policy,
                on_progress=bar,
            )
        self.run.evaluation(evaluation, task, prefix=f"{stage}_")
        return evaluation

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Raise an error that says how to go on, if the budget is spent, the metric fails, or Ctrl-C is pressed."""
        try:
            yield
        except KeyboardInterrupt as stop:
            told = f": {str(stop).rstrip('.')}" if str(stop) else ""
            kept = f"; what was scored is kept in {self.plan.out}" if self.plan.out else ""
            said, again = f"Stopped while compiling{told}{kept}.", f"again: {_what_is_paid_again()}."
            if isinstance(stop, BudgetSpentError):
                raise OutOfBudgetError(f"{said} Set a larger budget and run the same {again}") from None
            if isinstance(stop, MetricFaultError):
                raise MetricError(f"{said} Mend the metric and run the same {again}") from stop.__cause__
            raise Interrupted(f"{said} Run the same {again}", at_once=getattr(stop, "at_once", False)) from None

    def optimize(self, train: list[dspy.Example], val: list[dspy.Example], bill: LMBill) -> Compilation:
        """Let the optimizer work, and tell and track the candidates that it tries."""
        plan, tracked, whole = self.plan, count(), min(len(train), len(val)) or len(train)
        tell = plan.tell or (lambda progress: None)

        def on_candidate(candidate: Candidate) -> None:
            # GEPA looks at hundreds of candidates, each on three questions, before it scores one on all of them
            if candidate.questions >= whole and next(tracked) < MOST_TRACKED:
                figures = {"score": candidate.score, "questions": candidate.questions}
                self.run.candidate(candidate.number, figures, candidate.state)
            tell(CompileProgress("compile", candidate=candidate))

        tell(CompileProgress("compile"))
        with self.run.traces(compilation=True):
            return run_optimizer(plan, train, val, bill, CandidateKeeper(self.file, on_candidate))


def _what_is_paid_again() -> str:
    """Return whether a stopped optimizer asks and pays again, in words."""
    if dspy.cache.enable_disk_cache and getattr(dspy.settings.lm, "cache", False):
        return "answered LM calls come from the cache"
    return "the replies of this LM are not kept on disk, so the optimizer asks it all of its questions anew"
