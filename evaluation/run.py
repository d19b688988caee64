"""Ask a program many questions, keep each as it finishes, and add up."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy

from ..common.errors import QuestreeError
from ..common.files import write_atomically
from ..lm.ledger import Spent, total
from ..lm.limits import limited
from ..lm.policy import OutOfBudgetError, RunPolicy
from ..programs import Program
from .evaluation import Evaluation
from .identity import lm_facts, reader_facts, retriever_facts, state_digest
from .interruption import Stop, stoppable
from .records import Record, ScoreFunction, metric_name, question_id, record, record_of_error
from .run_folder import RunFolder, open_run

LOOK = 0.5  # seconds between looks at whether the user wants to stop


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after everything that was finished has been kept; the message says how to go on.

    Attributes:
        at_once: at the second one: questions may still be on their way, on threads that nobody waits for.
    """

    def __init__(self, message: str = "", at_once: bool = False):
        super().__init__(message)
        self.at_once = at_once


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
        done: questions finished, those of an earlier run among them.
        total: questions of the run.
        latest: the one that finished last; None before the first.
        spent: on the questions that are done.
        failed: how many of them have no answer.
    """

    done: int
    total: int
    latest: Record | None = None
    spent: Spent = field(default_factory=Spent)
    failed: int = 0

    def after(self, record: Record) -> Progress:
        """One question further."""
        failed = self.failed + (record.failure is not None)
        return Progress(self.done + 1, self.total, record, total([self.spent, record.spent]), failed)


def evaluate(
    program: Program,
    examples: Sequence[dspy.Example],
    metrics: ScoreFunction | Sequence[ScoreFunction],
    *,
    task: str = "",
    out: str | Path | None = None,
    seed: int = 0,
    policy: RunPolicy | None = None,
    spent_before: Spent | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Ask the program every question, and score the answers.

    Each finished question is on the disk at once, and a run that was interrupted goes on where it stopped: the
    questions that are answered are not asked again, those that failed are. The result does not depend on which
    question finishes first.

    Args:
        program: asked through ``program(**example.inputs())``, several questions at a time.
        examples: with unique ids; a `Task`'s ``examples(split)``.
        metrics: the first is the run's score.
        task: the name of what is asked, for the run's manifest.
        out: folder of the run; None keeps nothing.
        seed: of the intervals.
        policy: concurrency, time, retries, the budget, and when to give up; kept with the run (``policy.json``),
            which may be gone on with under another.
        spent_before: what the same budget has paid for outside this run.
        on_progress: called in the caller's thread after each question, and once before the first.

    Raises:
        QuestreeError: if there are no questions, ids repeat, ``out`` holds another run or cannot be written,
            or the policy stops the run; an `OutOfBudgetError` where the budget does.
        Interrupted: on Ctrl-C.
    """
    metrics = [metrics] if callable(metrics) else list(metrics)
    policy = policy or RunPolicy()
    ids = _ids(examples)
    with ExitStack() as stack:
        stack.enter_context(limited(policy.limits))
        folder = None
        if out is not None:
            folder = stack.enter_context(open_run(Path(out), run_identity(program, metrics, task=task)))
            write_atomically(folder.path / "policy.json", policy.model_dump_json(indent=2))
        done = _answered(folder, set(ids), metrics)
        loop = _Loop(program, metrics, policy, folder, spent_before or Spent())
        todo = [example for example, id in zip(examples, ids, strict=True) if id not in done]
        kept = Progress(len(done), len(ids), spent=total([record.spent for record in done.values()]))
        loop.ask(todo, kept, on_progress or (lambda progress: None))
        done |= loop.finished
    simulated = bool(lm_facts()["simulated"])
    return Evaluation(metric_name(metrics[0]), tuple(done[id] for id in ids), simulated=simulated, seed=seed)


def run_identity(program: Program, metrics: Sequence[ScoreFunction], *, task: str) -> dict[str, Any]:
    """What must be the same for a run to be gone on with."""
    return {
        "program": program.name,
        "settings": program.settings.model_dump(mode="json"),
        "compiled state": state_digest(program),
        "task": task,
        "lm": lm_facts(),
        "retriever": retriever_facts(program),
        "reader": reader_facts(program),
        "metrics": [metric_name(metric) for metric in metrics],
    }


def _ids(examples: Sequence[dspy.Example]) -> list[str]:
    ids = [question_id(example) for example in examples]
    if not ids:
        raise QuestreeError("There are no questions to ask; choose another split or a higher limit.")
    repeated = [id for id, count in Counter(ids).items() if count > 1]
    if repeated:
        raise QuestreeError(f"Question id {repeated[0]!r} stands there more than once; ids must be unique.")
    return ids


def _answered(folder: RunFolder | None, ids: set[str], metrics: Sequence[ScoreFunction]) -> dict[str, Record]:
    """The questions of an earlier run that need not be asked again."""
    names = {metric_name(metric) for metric in metrics}
    there = folder.records if folder else {}
    return {id: r for id, r in there.items() if id in ids and r.failure is None and names <= r.scores.keys()}


class _Loop:
    """Asks questions on threads, each in a copy of the caller's context; keeps records on the caller's thread."""

    def __init__(
        self,
        program: Program,
        metrics: Sequence[ScoreFunction],
        policy: RunPolicy,
        folder: RunFolder | None,
        spent_before: Spent,
    ):
        self.program, self.metrics, self.policy, self.folder = program, metrics, policy, folder
        self.spent_before = spent_before
        self.finished: dict[str, Record] = {}

    def ask(
        self, examples: Sequence[dspy.Example], progress: Progress, on_progress: Callable[[Progress], None]
    ) -> None:
        """Ask them all; ``finished`` grows, also when this raises."""
        on_progress(progress)
        todo, running = deque(examples), set[Future[Record]]()
        pool = ThreadPoolExecutor(self.policy.concurrency, thread_name_prefix="question")
        at_once = False
        with stoppable() as stop:
            try:
                self.check_budget(progress, todo, running)
                while running or (todo and not stop.wanted):
                    # no question is begun before the finished ones have been looked at: a run that stops, stops
                    while todo and not stop.wanted and len(running) < self.policy.concurrency:
                        running.add(pool.submit(copy_context().run, self.ask_one, todo.popleft()))
                    for record in self.finish(running, stop):
                        progress = progress.after(record)
                        on_progress(progress)
                    self.policy.check([r.failure for r in self.finished.values()], len(examples))
                    self.check_budget(progress, todo, running)
                if stop.wanted:  # also where nothing is left to ask here: whoever asked may go on to something else
                    raise KeyboardInterrupt
            except KeyboardInterrupt:
                at_once = stop.wanted and bool(running)
                self.keep_all({one for one in running if one.done()} if at_once else running)
                raise Interrupted(f"Stopped; {self.how_to_go_on('run the same again')}", at_once) from None
            except BaseException:
                self.keep_all(running)
                raise
            finally:
                pool.shutdown(wait=not at_once, cancel_futures=True)

    def finish(self, running: set[Future[Record]], stop: Stop) -> list[Record]:
        """Wait for a question to finish, or for the user; keep what has finished, and take it out of ``running``."""
        done, _ = wait(running, timeout=LOOK, return_when=FIRST_COMPLETED)
        for future in done:
            self.keep(future.result())
            running.discard(future)
        if stop.wanted and running:
            stop.say(len(running))
        return [future.result() for future in done]

    def ask_one(self, example: dspy.Example) -> Record:
        """On a thread: the question's record, whatever happens in it."""
        began = time.perf_counter()
        try:
            # a trace of its own: DSPy's default one is shared by everything and grows
            with dspy.context(trace=[]):
                prediction = self.program(**example.inputs())
            return record(example, prediction, self.metrics)
        except Exception as error:
            return record_of_error(example, self.program.name, error, time.perf_counter() - began, self.metrics)

    def keep(self, record: Record) -> None:
        """Onto the disk, and into the result."""
        if self.folder is not None:
            self.folder.append(record)
        self.finished[record.id] = record

    def keep_all(self, running: set[Future[Record]]) -> None:
        """Questions on their way are paid for: wait for them, and keep them."""
        while running:
            future = next(iter(running))
            self.keep(future.result())
            running.discard(future)

    def check_budget(self, progress: Progress, todo: deque[dspy.Example], running: set[Future[Record]]) -> None:
        """Stop where there is something left to ask and nothing left to spend."""
        over = self.policy.over_budget(total([self.spent_before, progress.spent])) if todo else None
        if over:
            self.keep_all(running)
            raise OutOfBudgetError(f"Stopped: {over}; {self.how_to_go_on('run the same with more of it')}")

    def how_to_go_on(self, by: str) -> str:
        """For whoever stopped it."""
        finished = f"{len(self.finished)} more questions were finished"
        if self.folder is None:
            return f"{finished} and are lost, as no --out was given."
        return f"{finished} and are kept in {self.folder.path}: {by} to go on."
