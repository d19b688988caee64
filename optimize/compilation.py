"""Compile a program against a task's metric: score it, let the optimizer work, save, score again, track."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import dspy
from pydantic import BaseModel

from ..common.errors import QuestreeError
from ..common.json_files import validate
from ..evaluation.evaluation import Evaluation
from ..evaluation.identity import code_digest, digest, lm_facts, versions
from ..evaluation.kept_run import begin, compare
from ..evaluation.notebook_bar import notebook_bar
from ..evaluation.records import (
    MetricError,
    ScoreFunction,
    checked_metrics,
    keeps_scores,
    metric_name,
    plain,
    question_id,
)
from ..evaluation.run import Answerers, Interrupted, evaluate, run_identity
from ..evaluation.run_file import NAME, WritableFile, writing
from ..evaluation.tracking import OFF, UNTRACKED, TrackedRun, Tracking
from ..evaluation.tracking_store import without_password
from ..lm.failure import counting_failures
from ..lm.limits import limited
from ..lm.policy import OutOfBudgetError, RunPolicy
from ..lm.spent import Spent
from ..programs import Program, saved_name
from ..programs.program import restore_names, signature_names
from ..programs.states import members_of
from . import checks
from .artifact import MANIFEST, load, read_artifact, save, tidy
from .budget import BudgetSpentError, LMBill
from .candidates import Candidate, CandidateKeeper, read_candidates
from .compiled import Compilation, Compiled, CompileProgress, Examples
from .demonstrations import AnnotatedTeacher, annotated, apart_from
from .mlflow_model import log_model
from .optimizers import Job, Optimizer
from .recheck import keep_prompts
from .trainings import Trainings
from .verdicts import MetricFaultError, Teaching, Verdicts

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
    answerers: Answerers | None = None,
    out: str | Path | None = None,
    tracking: Tracking = OFF,
    register: str | None = None,
    on_progress: Callable[[CompileProgress], None] | None = None,
) -> Compiled:
    """Compile a program, and score it before and after on questions that the optimizer never sees.

    What is finished is on the disk at once: each scored question, each candidate, and each reply of the LM in
    DSPy's cache. The same call with the same ``out`` goes on: finished questions and a finished program are not made
    again. The optimizer itself starts over, but does everything in the same order. So the replies that it had come
    from the cache, and it tries the same candidates. Without a cache on disk it asks, and pays, again.

    Args:
        program: stays as it is.
        examples: see `Examples`.
        metric: at most 1. Compilation asks it with a trace, and accepts what it gives True or 1.
        optimizer: one of `OPTIMIZERS` by name with its defaults, or with settings: ``optimizer(name, k=4)``; the
            program's own default where None.
        teacher: the program that makes the demonstrations; this one where None. "annotations": this one, with the
            annotations of the training questions in the place of its LM.
        prompt_lm: writes instructions, for optimizers that want some; the configured LM by default.
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
    plan = _Plan(
        program=checks.student(program),
        examples=checks.examples(examples),
        metric=checked_metrics([metric], ())[0],
        optimizer=checks.optimizer(optimizer, program),
        teacher=checks.teacher(teacher, program),
        prompt_lm=checks.prompt_lm(prompt_lm),
        seed=seed,
        policy=checks.policy(policy),
        answerers=answerers,
        out=None if out is None else Path(out),
        register=register,
        tell=on_progress or _notebook_bars(),
    )
    tracking = checks.tracking(tracking)
    if register and not tracking.uri:
        raise QuestreeError(f"register={register!r} needs MLflow: name a store to track to (--tracking-uri).")
    plan.optimizer.check(program, plan.policy)
    checks.asked_by(plan.optimizer, teacher=plan.teacher, prompt_lm=plan.prompt_lm)
    with writing(plan.out, "compilation") if plan.out else nullcontext() as file:
        if file is not None:
            plan = replace(plan, file=file)
            plan.claim(file)
            tidy(file.path.parent / "program")
        simulated, bounds = bool(lm_facts()["simulated"]), plan.policy.model_dump(exclude_none=True)
        facts = plan.facts() | {"policy": bounds, "versions": versions()}
        named = f"{program.name} {plan.optimizer.name}"
        if (address := plan.tracked_before(tracking)) and not register:
            return replace(plan.carry_out(UNTRACKED), address=address)
        with tracking.run(named, facts, simulated=simulated) as run:
            compiled = plan.carry_out(run)
            if file is not None and compiled.address:
                file.set_fact("tracked", {"uri": without_password(tracking.uri), "address": compiled.address})
            return compiled


def _notebook_bars() -> Callable[[CompileProgress], None]:
    """Return what shows a bar for each stage that asks questions, in a notebook."""
    bars = {stage: cache(partial(notebook_bar, stage)) for stage in ("before", "after")}

    def show(progress: CompileProgress) -> None:
        if progress.questions is not None:
            bars[progress.stage]()(progress.questions)

    return show


class _Done(BaseModel):
    """What an artifact says of its compilation."""

    spent: Spent
    paid: Spent
    seconds: float
    judged: dict[str, int]


@dataclass(frozen=True)
class _Plan:
    """A compilation as it was asked for."""

    program: Program
    examples: Examples
    metric: ScoreFunction
    optimizer: Optimizer
    teacher: Program | Literal["annotations"] | None
    prompt_lm: dspy.BaseLM | None
    seed: int
    policy: RunPolicy
    answerers: Answerers | None
    out: Path | None
    tell: Callable[[CompileProgress], None]
    register: str | None = None
    file: WritableFile | None = None

    def tracked_before(self, tracking: Tracking) -> str | None:
        """Return the address of this compilation in the same store, if it was finished and tracked there."""
        there = self.file.fact("tracked") if self.file is not None else None
        return there["address"] if there and there["uri"] == without_password(tracking.uri) else None

    def claim(self, file: WritableFile) -> None:
        """Write down what the compilation is about; if that was done before, compare.

        Raises:
            QuestreeError: if it is another; names what differs.
        """
        facts = json.loads(json.dumps(self.facts()))
        if (there := file.fact("about")) is None:
            file.set_fact("about", {**facts, "versions": versions()})
            return
        writer = there.pop("versions", {}).get("questree")
        compare(str(file.path.parent), there, facts, writer)

    def facts(self) -> dict[str, Any]:
        """Return what the compilation is about: what is tracked, and what must be the same to go on with it."""
        return {
            **run_identity(self.program, task=self.examples.task),
            "metrics": [metric_name(self.metric)],
            "optimizer": {"name": self.optimizer.name, **self.optimizer.model_dump(mode="json")},
            "code of the metric": None if keeps_scores(self.metric) else code_digest(self.metric),
            "teacher": self.teacher.name if isinstance(self.teacher, Program) else self.teacher,
            "settings and state of the teacher": _teacher_digest(self.teacher),
            "prompt lm": None if self.prompt_lm is None else lm_facts(self.prompt_lm),
            "seed": self.seed,
            "questions": {
                name: {"n": len(part), "digest": digest([question_id(example) for example in part])}
                for name, part in (
                    ("train", self.examples.train),
                    ("val", self.examples.val),
                    ("dev", self.examples.dev),
                )
            },
            # the program is made of their words; dev questions that are corrected are only scored again
            "training questions": digest([plain(dict(one)) for one in (*self.examples.train, *self.examples.val)]),
        }

    def carry_out(self, run: TrackedRun) -> Compiled:
        """Score the program, compile it, save it and score it again; return what came of it."""
        train, val = self.examples.split(self.seed, compares=self.optimizer.compares)
        train = apart_from(train, self.examples.dev)
        if self.teacher == "annotations":
            train = annotated(train)
        if self.out is not None or run.on:  # what cannot be saved is refused at once, and what is saved is known here
            saved_name(type(members_of(self.program)[0]))
        bill = LMBill(self.policy, self.file)
        with bill.open():
            return self.carry_on(run, train, val, bill)

    def carry_on(self, run: TrackedRun, train: list[dspy.Example], val: list[dspy.Example], bill: LMBill) -> Compiled:
        """Do what is not done yet, and pay for it."""
        before = self.score(self.program, "before", run)
        with self.stopping():
            compilation = self.load_finished() or self.optimize(train, val, run, bill)
        counts = {"train": len(train), "val": len(val), "dev": len(self.examples.dev)}
        compilation = replace(compilation, questions=counts)
        # workers of a cluster know the LM that the settings name, and no other
        scoring = self if compilation.lm is None else replace(self, answerers=None)
        with _asked_with(compilation.lm):
            if self.out is not None:  # at once, and not with the scores: scoring may be interrupted
                save(compilation.program, self.out / "program", **self.describe(compilation))
                if self.file is not None:
                    keep_prompts(self.file, compilation.program)
            after = scoring.score(compilation.program, "after", run)
            return self.keep(Compiled(compilation, before, after), run)

    def score(self, program: Program, stage: Literal["before", "after"], run: TrackedRun) -> Evaluation:
        """Return the program's scores on the dev questions."""
        with run.traces():
            evaluation = evaluate(
                program,
                self.examples.dev,
                self.metric,
                task=self.examples.task,
                out=begin(self.file, stage, program, self.examples.task, self.policy) if self.file else None,
                seed=self.seed,
                policy=self.policy,
                answerers=self.answerers,
                on_progress=lambda progress: self.tell(CompileProgress(stage, questions=progress)),
            )
        run.evaluation(evaluation, self.examples.task, prefix=f"{stage}_")
        return evaluation

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Raise an error that says how to go on, if the budget is spent, the metric fails, or Ctrl-C is pressed."""
        kept = f"; what was scored is kept in {self.out}" if self.out else ""
        try:
            yield
        except BudgetSpentError as over:
            raise OutOfBudgetError(
                f"Stopped while compiling: {over}{kept}. Run the same with more of it: {_what_is_asked_again()}."
            ) from None
        except MetricFaultError as fault:
            raise MetricError(
                f"{fault} Stopped while compiling{kept}. Put it right and run the same again: {_what_is_asked_again()}."
            ) from fault.__cause__
        except KeyboardInterrupt as stop:
            told = f" {stop}" if str(stop) else ""
            raise Interrupted(
                f"Stopped while compiling{kept}.{told} Run the same again: {_what_is_asked_again()}.",
                at_once=getattr(stop, "at_once", False),
            ) from None

    def load_finished(self) -> Compilation | None:
        """Return what an interrupted run of the same plan had finished compiling, or None."""
        if self.out is None:
            return None
        if not (self.out / "program" / MANIFEST).exists():
            return None
        program = load(
            self.out / "program",
            retriever=self.program.retriever,
            reader=getattr(self.program, "reader", None),
            duplicates=getattr(self.program, "duplicates", None),
        )
        manifest = read_artifact(self.out / "program").manifest
        try:
            done = validate(_Done, manifest.facts().get("compilation"))
        except ValueError as error:
            raise QuestreeError(
                f"{self.out / 'program' / MANIFEST} does not say how it was compiled ({error}); compile anew."
            ) from error
        lm, name = None, str(manifest.lm.get("name"))
        if self.optimizer.trains and name != dspy.settings.lm.model:
            if not Trainings(self.file).gave(name):  # a saved program alone chooses no model
                raise QuestreeError(
                    f"{self.out / 'program'} was compiled with the LM {name!r}, and {self.out / NAME} does not "
                    "say that it was trained for that; name another folder to train anew."
                )
            lm = dspy.settings.lm.copy(model=name)
        candidates = () if self.file is None else read_candidates(self.file)
        return Compilation(program, candidates, done.spent, done.paid, done.seconds, done.judged, lm)

    def optimize(
        self, train: list[dspy.Example], val: list[dspy.Example], run: TrackedRun, bill: LMBill
    ) -> Compilation:
        """Let the optimizer work; return what it made, tried and paid."""

        tracked = count()
        whole = min(len(train), len(val)) or len(train)

        def on_candidate(candidate: Candidate) -> None:
            # GEPA looks at hundreds of candidates, each on three questions, before it scores one on all of them
            if candidate.questions >= whole and next(tracked) < MOST_TRACKED:
                figures = {"score": candidate.score, "questions": candidate.questions}
                run.candidate(candidate.number, figures, candidate.state)
            self.tell(CompileProgress("compile", candidate=candidate))

        self.tell(CompileProgress("compile"))
        began, verdicts = time.perf_counter(), Verdicts(self.metric, Teaching())
        keeper = CandidateKeeper(self.file, on_candidate)
        student = self.program.deepcopy()
        student._compiled = False
        teacher = AnnotatedTeacher(self.program, train) if self.teacher == "annotations" else _as_it_is(self.teacher)
        trainings = Trainings(self.file, bill.check)
        job = Job(verdicts, train, val, self.seed, self.policy.concurrency, self.prompt_lm, teacher, trainings)
        watched = dspy.context(callbacks=[*dspy.settings.callbacks, keeper])
        with run.traces(compilation=True), watched, counting_failures(), bill.settled(), limited(self.policy):
            program = self.optimizer.compile(student, job)
        self.policy.check_judged(verdicts.failures, verdicts.asked)
        for candidate in [] if keeper.candidates else getattr(program, "candidate_programs", []):
            keeper.keep(candidate["program"], float(candidate["score"]), len(train))
        keeper.end()
        _strip(program, like=student)
        lm = _take_lm(program, trainings) if self.optimizer.trains else None
        judged = {"asked": verdicts.asked, "accepted": verdicts.accepted, **verdicts.failures}
        seconds = time.perf_counter() - began
        return Compilation(program, tuple(keeper.candidates), bill.spent, bill.paid, seconds, judged, lm)

    def keep(self, compiled: Compiled, run: TrackedRun) -> Compiled:
        """Save the program with its scores, and track it; return it with its folder and its address."""
        place: AbstractContextManager[str | Path] = nullcontext(self.out) if self.out else TemporaryDirectory()
        with place as out:
            folder = Path(out) / "program"
            scores = {"before": asdict(compiled.before.score), "after": asdict(compiled.after.score)}
            scores |= {"gain": asdict(compiled.gain), "grounded": asdict(compiled.after.grounded)}
            if self.out is not None or run.on:
                save(compiled.program, folder, scores=scores, **self.describe(compiled.compilation))
            address = _track(run, compiled, folder, self.register) if run.on else None
        return replace(compiled, artifact=folder if self.out else None, address=address)

    def describe(self, compilation: Compilation) -> dict[str, Any]:
        """Return what the artifact says of how it was made."""
        facts = self.facts()
        told = ("task", "metrics", "optimizer", "teacher", "prompt lm", "seed", "questions")
        return {
            **{key: facts[key] for key in told},
            "compilation": {
                "spent": compilation.spent.model_dump(),
                "paid": compilation.paid.model_dump(),
                "seconds": round(compilation.seconds, 3),
                "judged": dict(compilation.judged),
                "candidates": len(compilation.candidates),
            },
        }


def _teacher_digest(teacher: Program | Literal["annotations"] | None) -> str | None:
    """Return a digest of what a teacher answers by; None if it is no program."""
    if not isinstance(teacher, Program):
        return None
    return digest(run_identity(teacher, task=""))


def _as_it_is(teacher: Program | None) -> Program | None:
    """Return a teacher whose LM and demonstrations DSPy leaves alone: of one that is not compiled it takes both."""
    if teacher is None:
        return None
    kept = teacher.deepcopy()
    kept._compiled = True
    return kept


@contextmanager
def _asked_with(lm: dspy.LM | None) -> Iterator[None]:
    """Let programs be asked with a trained LM; with the configured one where None."""
    if lm is None:
        yield
        return
    lm.launch()  # one that is served on this machine
    with dspy.context(lm=lm):
        yield


def _take_lm(program: Program, trainings: Trainings) -> dspy.LM | None:
    """Take the LM from the predictors, as a program is asked with the configured one; return it, if it was trained."""
    lm = program.predictors()[0].lm
    program.set_lm(None)
    return lm if trainings.gave(str(lm.model)) else None


def _what_is_asked_again() -> str:
    """Return whether a stopped optimizer asks and pays again, in words."""
    lm = dspy.settings.lm
    if dspy.cache.enable_disk_cache and getattr(lm, "cache", False):
        return "answered LM calls come from the cache"
    return "the replies of this LM are not kept on disk, so the optimizer asks it all of its questions anew"


def _track(run: TrackedRun, compiled: Compiled, folder: Path, register: str | None) -> str | None:
    """Log what compilation gave and took, prompts, artifact and the model to serve; return the artifact's address."""
    gain, compilation = compiled.gain, compiled.compilation
    figures = {"gain": gain.mean, "gain_low": gain.low, "gain_high": gain.high}
    figures |= {f"compile_{name}": float(value) for name, value in compilation.spent.model_dump().items()}
    figures["score"] = compiled.after.score.mean
    figures |= {f"compile_judged_{name}": float(count) for name, count in compilation.judged.items()}
    run.figures(figures | {"compile_seconds": compilation.seconds, "candidates": len(compilation.candidates)})
    if compilation.lm is not None:
        run.params({"trained lm": compilation.lm.model})
    run.prompts(compiled.program)
    run.write(log_model, folder, "model", register)
    return run.folder(folder, "program")


def _strip(program: Program, like: Program) -> None:
    """Remove what optimizers attach to a program (logs, candidates), and restore the names that they take away."""
    for one in members_of(program):
        restore_names(one, signature_names(like))
        for extra in vars(one).keys() - vars(like).keys() - {"_compiled"}:
            delattr(one, extra)
