"""Ask a program many questions, keep and score each answer, and compute the evaluation."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import dspy

from ..common.errors import QuestreeError
from ..common.event_loop import off_loop
from ..common.interruption import stoppable
from ..lm.account import Account
from ..lm.episode import EpisodeStep, episode
from ..lm.failure import Failure, counting_failures
from ..lm.limits import OutOfBudgetError, RunPolicy, limited
from ..lm.spent import Spent, total
from ..metrics import normalise_title
from ..metrics.found_passages import names_as
from ..programs import Program
from ..programs.program import checked_program
from .evaluation import Evaluation
from .identity import lms_facts, lms_of
from .kept_run import KeptRun, begin
from .leak import refuse_demonstrated
from .notebook_bar import notebook_bar
from .pools import EventLoop, Pool, Threads, at_most
from .record_scores import (
    MetricError,
    ScoreFunction,
    checked_metrics,
    current_record,
    judges_among,
    keeps_scores,
    metric_name,
    score,
    scored_alone,
)
from .records import Record, check_example, question_id, record_answer, record_error
from .run_file import writing
from .traces import about

logger = logging.getLogger(__name__)

LOOK = 0.5  # seconds between looks at whether the user wants to stop


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; everything that was finished is kept, and the message says how to go on.

    Attributes:
        at_once: whether it was pressed twice: threads that nobody waits for may still be asking questions.
    """

    def __init__(self, message: str = "", at_once: bool = False):
        super().__init__(message)
        self.at_once = at_once


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
        done: questions that are answered and scored, those of an earlier run among them.
        total: questions of the run.
        spent: on the questions that are done.
        failed: how many of them have no answer.
    """

    done: int
    total: int
    spent: Spent = field(default_factory=Spent)
    failed: int = 0

    def after(self, record: Record) -> Progress:
        """Return the progress after one more question."""
        failed = self.failed + (record.failure is not None)
        return Progress(self.done + 1, self.total, total([self.spent, record.spent]), failed)


def evaluate(
    program: Program,
    examples: Sequence[dspy.Example],
    metrics: ScoreFunction | Sequence[ScoreFunction],
    *,
    task: str = "",
    out: str | Path | KeptRun | None = None,
    seed: int = 0,
    policy: RunPolicy | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Ask the program every question, and score the answers.

    Each answer is on the disk before it is scored. A run that was interrupted goes on where it stopped: questions
    that are answered are not asked again, those that failed are. With other metrics, the answers in the folder are
    scored by them, and nothing is asked; a metric of your own, whose code may have changed, scores them anew. A
    question whose words were changed since is asked again; the answer to one whose gold side was changed is scored
    again. The result does not depend on which question finishes first.

    Args:
        program: asked through ``program(**example.inputs())``, several questions at a time.
        examples: with unique ids; a `Task`'s ``examples(split)``.
        metrics: the first is the run's score.
        task: the name of what is asked, for the run's manifest.
        out: folder of the run, which is the file ``runs.db`` in it; or a run in an open file; None keeps nothing.
        seed: of the intervals.
        policy: concurrency, time, retries, the budget, and when to give up; kept with the run, which may go
            on under another one. The budget counts every call of an LM of DSPy's, those of judges and
            of metrics too, and what an earlier attempt was stopped or killed in.
        on_progress: called in the caller's thread after each question, and once before the first; by default a bar in
            a notebook.

    Raises:
        QuestreeError: if the program is none, there are no questions, one cannot be asked or stands among the program's
            demonstrations, ids repeat, the metrics cannot score them, ``out`` holds another run or cannot be written,
            or the policy stops the run; an `OutOfBudgetError` if the budget does.
        MetricError: if a metric cannot score an answer; the answers are kept.
        Interrupted: on Ctrl-C.
    """
    checked_program(program)
    policy = policy or RunPolicy()
    by_id = _by_id(examples)
    metrics = checked_metrics(metrics, by_id.values())
    refuse_demonstrated([program], by_id.values())
    with ExitStack() as stack:
        stack.enter_context(limited(policy))
        kept = out if isinstance(out, KeptRun) else None
        if isinstance(out, (str, Path)):
            file = stack.enter_context(writing(Path(out), "evaluation"))
            named = file.rows("SELECT name FROM run")
            kept = begin(file, named[0][0] if named else program.name, program, task, policy)
        account = Account(kept.file, kept.number) if kept else Account()
        stack.enter_context(account.open())
        loop = _Loop(program, by_id, metrics, policy, kept, account)
        loop.run(on_progress or notebook_bar())
        names = [metric_name(metric) for metric in metrics]
        lm, scored = lms_facts(program), scored_alone((loop.records[id] for id in by_id), names)
        evaluation = Evaluation(names[0], scored, bool(lm["simulated"]), seed, paid_for_all=account.paid)
        if kept is not None:
            kept.end(names, seed, list(by_id))
    _check_corpus(evaluation.records)
    return evaluation


def ask_again(
    program: Program,
    records: Sequence[Record],
    metrics: Sequence[ScoreFunction],
    *,
    simulated: bool,
    seed: int = 0,
    **how: Any,
) -> tuple[Evaluation, Evaluation]:
    """Return an evaluation of the stored answers by the present metrics, and a new one of the same questions.

    ``simulated`` says whether the simulated LM gave the stored answers; the rest is as for `evaluate`.
    """
    examples = [record.example for record in records]
    after = evaluate(program, examples, metrics, seed=seed, **how)
    bare = [record.model_copy(update={"scores": {}}) for record in records]
    then = tuple(score(record, example, metrics) for record, example in zip(bare, examples, strict=True))
    return Evaluation(after.metric, then, simulated, seed), after


def _check_corpus(records: Sequence[Record]) -> None:
    """Warn if gold titles were found and no gold passage: then the corpus is probably cut into other passages."""
    if any(record.retrieval.get("recall@all") for record in records):
        return
    titled = [
        record
        for record in records
        if record.gold_passages and {*map(normalise_title, record.gold_titles)} & {*names_as(record.seen, ())}
    ]
    if titled:
        logger.warning(
            "No gold passage was found, though the titles of some were, for %d questions: the corpus is cut into other "
            "passages than the questions name. Leave `gold_passages` and `paragraphs` out of the file to go by title.",
            len(titled),
        )


def answer(program: Program, example: dspy.Example) -> tuple[Record, list[EpisodeStep]]:
    """Ask a question; return its record, also after an error, and its steps."""
    began, spent = time.perf_counter(), None
    with episode() as kept, about(question_id(example)) as traced:
        try:
            # its own trace: DSPy's default one is shared by all and keeps growing
            with dspy.context(trace=[]), counting_failures():
                prediction = program(**example.inputs())
            spent = prediction.get("spent")
            record = record_answer(example, prediction)
        except Exception as error:
            seconds = time.perf_counter() - began
            record = record_error(example, program.name, error, seconds, spent or kept.spent, kept.found)
    own = bool(writer := example.get("written_by")) and any(lm and lm.model == writer for lm in lms_of(program))
    return record.model_copy(update={"trace": traced.place, "self_written": own}), kept.ordered


def _by_id(examples: Sequence[dspy.Example]) -> dict[str, dspy.Example]:
    examples = list(examples)
    for example in examples:
        check_example(example)
    by_id = {question_id(example): example for example in examples}
    if not by_id:
        raise QuestreeError("There are no questions to ask; choose another split or a higher limit.")
    if len(by_id) < len(examples):
        repeated = Counter(map(question_id, examples)).most_common(1)[0][0]
        raise QuestreeError(f"Question id {repeated!r} stands there more than once; ids must be unique.")
    return by_id


def _stored_answers(
    kept: KeptRun, examples: Mapping[str, dspy.Example], metrics: Sequence[ScoreFunction]
) -> dict[str, Record]:
    """Return the stored answers to these questions as they are now, and say which questions were changed since.

    Scores of metrics whose code may have changed are left out.
    """
    found = {id: kept.earlier[id] for id in examples if id in kept.earlier and not kept.earlier[id].failure}
    current = {id: now for id, record in found.items() if (now := current_record(record, examples[id]))}
    corrected = [record for id, record in current.items() if record is not found[id]]
    for record in corrected:
        kept.append(record)
    if changed := len(found) - len(current):
        logger.warning("Questions that were changed since they were asked: %d. They are asked again.", changed)
    if corrected:
        logger.warning("Answers whose gold side was changed since: %d. They are scored again.", len(corrected))
    anew = {metric_name(metric) for metric in metrics if not keeps_scores(metric)}
    return {
        id: record.model_copy(update={"scores": {n: score for n, score in record.scores.items() if n not in anew}})
        for id, record in current.items()
    }


class _Loop:
    """Asks questions, keeps each answer, scores it and keeps its scores; each question is one task of a pool.

    Attributes:
        finished: the ids of the questions that were answered here, or failed.
        failures: why questions failed here, by id.
        failed_before: the causes of earlier failures, by id, if other questions were answered then.
        todo: answers to be scored, those for a judge last; then questions to be asked.
        running: tasks on their way, and those whose outcome was not looked at yet.
        account: counts what the run has paid.
    """

    def __init__(
        self,
        program: Program,
        examples: Mapping[str, dspy.Example],
        metrics: Sequence[ScoreFunction],
        policy: RunPolicy,
        kept: KeptRun | None,
        account: Account,
    ):
        self.answer = partial(answer, program)
        self.examples, self.metrics, self.judges = examples, metrics, judges_among(metrics)
        self.lms = [*lms_of(program), *(getattr(judge, "lm", None) for judge in self.judges.values())]
        self.policy, self.kept, self.account = policy, kept, account
        self.records = _stored_answers(kept, examples, metrics) if kept else {}
        earlier = kept.earlier.items() if kept and self.records else ()  # without an answer, all may have failed alike
        self.failed_before = {id: record.failure.cause for id, record in earlier if record.failure}
        self.finished, self.failures = list[str](), dict[str, Failure]()
        self.unwritten = deque[tuple[Record, list[EpisodeStep]]]()  # answers that could not be written to the disk
        names = {metric_name(metric) for metric in metrics}
        unscored = [record for record in self.records.values() if not names <= record.scores.keys()]
        asked = [example for id, example in examples.items() if id not in self.records]
        self.todo: deque[Record | dspy.Example] = deque([*sorted(unscored, key=self.asks_judge), *asked])
        self.running, self.done = set[Future[Record]](), SimpleQueue[Future[Record]]()
        self.told_of_stop = False
        self.concurrency = at_most(policy.concurrency)
        self.pool: Pool = EventLoop() if policy.event_loop else Threads(self.concurrency)

    def run(self, on_progress: Callable[[Progress], None]) -> None:
        """Ask what is not answered, and score what is not scored; ``records`` grows, also if this raises."""
        waiting = {one.id for one in self.todo if isinstance(one, Record)}
        done = [record for id, record in self.records.items() if id not in waiting]
        progress = Progress(len(done), len(self.examples), spent=total([record.spent for record in done]))
        on_progress(progress)
        at_once = False
        with stoppable() as signals:
            try:
                self.check_budget()
                while self.running or (self.todo and not signals):
                    # look at the finished questions before beginning others: one of them may stop the run
                    while self.todo and not signals and len(self.running) < self.concurrency:
                        self.start(self.todo.popleft())
                    for ended in self.ended(signals):
                        progress = progress.after(ended.result())
                        self.running.discard(ended)
                        on_progress(progress)
                    self.check_failures()
                    self.check_budget()
                if signals:  # even if nothing is left to ask here, as the caller may have more to do
                    raise KeyboardInterrupt
            except BaseException as error:
                at_once = isinstance(error, KeyboardInterrupt) and bool(signals and self.running)
                if not at_once:
                    self.wait_for_all()
                if isinstance(error, KeyboardInterrupt):
                    raise Interrupted(self.how_to_go_on("run the same again"), at_once) from None
                if isinstance(error, MetricError):
                    way = self.how_to_go_on("put the metric right and run the same again")
                    raise MetricError(f"{error} Stopped; {way}") from error
                raise
            finally:
                self.pool.end(at_once=at_once)

    def start(self, given: Record | dspy.Example) -> None:
        """Begin to score an answer, or to ask a question; `ended` returns it when it has ended."""
        begun = self.pool.start(self.score if isinstance(given, Record) else self.ask, given)
        self.running.add(begun)
        begun.add_done_callback(self.done.put)  # `concurrent.futures.wait` would look at all of them each time

    def ask(self, example: dspy.Example) -> Record:
        """Return the question's record with its scores, also after an error; it is kept before it is scored."""
        record, steps = self.answer(example)
        try:
            off_loop(partial(self.keep, record, steps))
        except QuestreeError:
            self.unwritten.append((record, steps))
            raise
        return self.score(record)

    def keep(self, record: Record, steps: list[EpisodeStep]) -> None:
        """Write an answer to the disk, and add it to the result."""
        if self.kept is not None:
            self.kept.append(record, steps, self.policy.limits)
        self.records[record.id] = record
        if record.failure:
            self.failures[record.id] = record.failure
        self.finished.append(record.id)

    def score(self, record: Record) -> Record:
        """Return the record with its scores, which are kept."""
        scored = off_loop(partial(score, record, self.examples[record.id], self.metrics))  # may ask an LM
        if self.kept is not None:
            off_loop(partial(self.kept.append_scores, scored))
        self.records[record.id] = scored
        return scored

    def asks_judge(self, record: Record) -> bool:
        """Return whether scoring this answer asks an LM."""
        return not self.judges.keys() <= record.scores.keys()

    def ended(self, signals: list[int]) -> list[Future[Record]]:
        """Return the tasks that ended since the last look; wait a while for one. Log once that a stop is waiting."""
        found = list[Future[Record]]()
        with suppress(Empty):
            found.append(self.done.get(timeout=LOOK))
        found += [self.done.get_nowait() for _ in range(self.done.qsize())]
        if signals and not self.told_of_stop and len(found) < len(self.running):
            self.told_of_stop, waits = True, len(self.running) - len(found)
            logger.warning("Stopping: waiting for %d questions on their way. Ctrl-C again ends at once.", waits)
        return found

    def wait_for_all(self) -> None:
        """Wait for questions on their way, which are paid for; write the answers that could not be written before."""
        for future in self.running:
            future.exception()
        while self.unwritten:
            self.keep(*self.unwritten[0])
            self.unwritten.popleft()

    def check_failures(self) -> None:
        """Raise a `GivenUpError` if so many questions failed that the run should stop."""
        failures = self.failures.copy()
        as_before = sum(failure.cause == self.failed_before.get(id) for id, failure in failures.items())
        self.policy.check(list(failures.values()), len(self.finished), len(self.examples), as_before)

    def check_budget(self) -> None:
        """Stop if the budget is spent while the program or a judge is still to be asked."""
        last = self.todo[-1] if self.todo else None
        if last is None or (isinstance(last, Record) and not self.asks_judge(last)):
            return
        spent = self.account.total
        over = self.policy.over_budget(spent)
        unpriced = next(filter(None, (self.policy.unpriced(lm, spent) for lm in self.lms)), None)
        if over or unpriced:
            self.wait_for_all()
            way = "run the same with a larger budget" if over else "run the same with such a budget"
            raise OutOfBudgetError(f"Stopped: {over or unpriced}; {self.how_to_go_on(way)}")

    def how_to_go_on(self, by: str) -> str:
        """Return a message on what was kept and how to resume."""
        were, are = (" was", "is") if len(self.finished) == 1 else ("s were", "are")
        finished = f"{len(self.finished)} more question{were} finished"
        if self.kept is None:
            return f"{finished} and {are} lost, as no --out was given."
        return f"{finished} and {are} kept in {self.kept.place}: {by} to go on."
