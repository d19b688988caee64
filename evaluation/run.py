"""Ask a program many questions, keep each answer, score it, and add up."""

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
from typing import Any, Protocol, TypeVar

import dspy

from ..common.errors import QuestreeError
from ..common.event_loop import off_loop
from ..lm.account import Account
from ..lm.exchanges import Exchange
from ..lm.failure import Failure, counting_failures
from ..lm.ledger import Spent, ledger, total
from ..lm.limits import limited
from ..lm.policy import OutOfBudgetError, RunPolicy
from ..metrics import normalise_title
from ..metrics.found_passages import names_as
from ..programs import Program
from ..programs.program import checked_program
from ..retrieval.indexes.cluster import ClusterError
from .environment import environment_of
from .evaluation import Evaluation
from .identity import duplicates_facts, lms_facts, lms_of, reader_facts, retriever_facts, state_digest
from .interruption import Stop, stoppable
from .kept_run import KeptRun, begin_run, kept_run
from .leak import refuse_demonstrated
from .notebook_bar import notebook_bar
from .pools import EventLoop, Pool, Threads, at_most
from .records import (
    MetricError,
    Record,
    ScoreFunction,
    check_example,
    checked_metrics,
    judges_among,
    keeps_scores,
    metric_name,
    question_id,
    record_answer,
    record_error,
    score,
    scored_alone,
    still_answers,
    with_gold_of,
)
from .run_file import WritableFile
from .traces import about

_Item = TypeVar("_Item")

logger = logging.getLogger(__name__)

LOOK = 0.5  # seconds between looks at whether the user wants to stop

Asking = Callable[[dspy.Example], tuple[Record, list[Exchange]]]
"""Asks a question; returns its record, whatever happens in it, and what was asked for it outside the program."""


class Answerers(Protocol):
    """Other processes that answer questions; everything else of a run is done in this one."""

    def asking(self, program: Program) -> Asking:
        """Return what asks a program there; it is called on several threads and waits for the answer."""


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
        latest: the question that finished last; None before the first.
        spent: on the questions that are done.
        failed: how many of them have no answer.
    """

    done: int
    total: int
    latest: Record | None = None
    spent: Spent = field(default_factory=Spent)
    failed: int = 0

    def after(self, record: Record) -> Progress:
        """Return the progress after one more question."""
        failed = self.failed + (record.failure is not None)
        return Progress(self.done + 1, self.total, record, total([self.spent, record.spent]), failed)


def evaluate(
    program: Program,
    examples: Sequence[dspy.Example],
    metrics: ScoreFunction | Sequence[ScoreFunction],
    *,
    task: str = "",
    out: str | Path | KeptRun | None = None,
    seed: int = 0,
    policy: RunPolicy | None = None,
    answerers: Answerers | None = None,
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
        answerers: who answers the questions; None for this process.
        on_progress: called in the caller's thread after each question, and once before the first; by default a bar in
            a notebook.

    Raises:
        QuestreeError: if the program is none, there are no questions, one cannot be asked or stands among the program's
            demonstrations, ids repeat, the metrics cannot score them, ``out`` holds another run or cannot be written,
            or the policy stops the run; an `OutOfBudgetError` if the budget does.
        ClusterError: if the others cannot answer; what was answered is kept.
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
            about, around = run_identity(program, task=task), environment_of(program)
            kept = stack.enter_context(kept_run(Path(out), program.name, about, policy, around))
        account = Account(kept.file, kept.number) if kept else Account()
        stack.enter_context(account.open())
        loop = _Loop(program, answerers, by_id, metrics, policy, kept, account)
        loop.run(on_progress or notebook_bar())
        names = [metric_name(metric) for metric in metrics]
        lm, scored = lms_facts(program), scored_alone((loop.records[id] for id in by_id), names)
        evaluation = Evaluation(names[0], scored, bool(lm["simulated"]), seed, paid_for_all=account.paid)
        if kept is not None:
            kept.end(names, seed, list(by_id))
    _check_corpus(evaluation.records)
    return evaluation


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


def begin(
    file: WritableFile | None, name: str, program: Program, task: str, policy: RunPolicy | None
) -> KeptRun | None:
    """Begin the run of a program in a file, or go on with it (`begin_run`); None without a file."""
    if file is None:
        return None
    about = run_identity(program, task=task)
    return begin_run(file, name, about, policy or RunPolicy(), environment_of(program))


def run_identity(program: Program, *, task: str) -> dict[str, Any]:
    """Return what must be the same for a run to go on: all that an answer depends on, and no metric."""
    return {
        "program": program.name,
        "settings": program.settings.model_dump(mode="json"),
        "compiled state": state_digest(program),
        "task": task,
        "lm": lms_facts(program),
        "retriever": retriever_facts(program),
        "reader": reader_facts(program),
        "duplicates": duplicates_facts(program),
    }


def answer(program: Program, example: dspy.Example) -> tuple[Record, list[Exchange]]:
    """Ask a question; return its record, whatever happens in it, and what was asked for it outside the program."""
    began, spent = time.perf_counter(), None
    with ledger() as kept, about(question_id(example)) as traced:
        try:
            # a trace of its own: DSPy's default one is shared by everything and grows
            with dspy.context(trace=[]), counting_failures():
                prediction = program(**example.inputs())
            spent = prediction.get("spent")
            record = record_answer(example, prediction)
        except Exception as error:
            seconds = time.perf_counter() - began
            record = record_error(example, program.name, error, seconds, spent or kept.spent, kept.found)
    return record.model_copy(update={"trace": traced.place}), kept.exchanges


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


def _answered(
    folder: KeptRun, examples: Mapping[str, dspy.Example], metrics: Sequence[ScoreFunction]
) -> dict[str, Record]:
    """Return the stored answers to these questions as they are now, and say which questions were changed since.

    They are without the scores of those metrics whose code may have been changed since, too.

    Raises:
        QuestreeError: if an answer cannot be written with its new gold side.
    """
    found = {id: folder.records[id] for id in examples if id in folder.records and not folder.records[id].failure}
    valid = {id: record for id, record in found.items() if still_answers(record, examples[id])}
    current = {id: with_gold_of(record, examples[id]) for id, record in valid.items()}
    corrected = [record for id, record in current.items() if record is not valid[id]]
    for record in corrected:
        folder.append(record)
        if record.scores:
            folder.append_scores(record)
    if len(found) > len(valid):
        changed = len(found) - len(valid)
        logger.warning("Questions that were changed since they were asked: %d. They are asked again.", changed)
    if corrected:
        said = "Answers whose gold side was changed since: %d. They are scored again."
        logger.warning(said, len(corrected))
    anew = {metric_name(metric) for metric in metrics if not keeps_scores(metric)}
    kept = {
        id: {name: one for name, one in record.scores.items() if name not in anew} for id, record in current.items()
    }
    return {id: record.model_copy(update={"scores": kept[id]}) for id, record in current.items()}


def _failed_before(folder: KeptRun | None) -> dict[str, str]:
    records = folder.records.items() if folder else ()
    return {id: record.failure.cause for id, record in records if record.failure}


def _append_scores(folder: KeptRun, record: Record) -> None:
    if record.scores != folder.records[record.id].scores:
        folder.append_scores(record)


class _Loop:
    """Asks and scores questions, each in a copy of the caller's context.

    Everything is kept on the caller's thread: first the answer, then its scores.

    Attributes:
        records: of the questions that are answered, by id.
        asked: how many were asked here.
        failed: why those failed that have no answer.
        failed_before: the causes of those that failed earlier, by id, if others were answered then.
        as_before: how many failed here of the same cause.
        unscored: answers kept without their scores, those that a judge is to score last.
        todo: questions to be asked.
        unwritten: what could not be put onto the disk yet, in order.
        account: of what the run has paid.
    """

    def __init__(
        self,
        program: Program,
        answerers: Answerers | None,
        examples: Mapping[str, dspy.Example],
        metrics: Sequence[ScoreFunction],
        policy: RunPolicy,
        folder: KeptRun | None,
        account: Account,
    ):
        self.answer: Asking = partial(answer, program) if answerers is None else answerers.asking(program)
        self.examples, self.metrics, self.judges = examples, metrics, judges_among(metrics)
        self.lms = [*lms_of(program), *(getattr(judge, "lm", None) for judge in self.judges.values())]
        self.policy, self.folder, self.account = policy, folder, account
        self.pays_elsewhere = answerers is not None
        self.concurrency = at_most(policy.concurrency)
        self.unwritten = deque[Callable[[], None]]()
        self.records = _answered(folder, examples, metrics) if folder else {}
        self.asked, self.failed = 0, list[Failure]()
        self.failed_before = _failed_before(folder) if self.records else {}  # else nothing is known to work
        self.as_before = 0
        self.exchanges: dict[str, list[Exchange]] = {}
        names = {metric_name(metric) for metric in metrics}
        unscored = [record for record in self.records.values() if not names <= record.scores.keys()]
        self.unscored = deque(sorted(unscored, key=self.asks_judge))
        self.todo = deque(example for id, example in examples.items() if id not in self.records)
        self.asking, self.scoring = set[Future[Record]](), set[Future[Record]]()
        self.done = SimpleQueue[Future[Record]]()
        on_loop = policy.event_loop and answerers is None  # a thread waits for each answer of another process
        self.pool: Pool = EventLoop() if on_loop else Threads(self.concurrency)

    def run(self, on_progress: Callable[[Progress], None]) -> None:
        """Ask what is not answered, and score what is not scored; ``records`` grows, also if this raises."""
        left = {record.id for record in self.unscored}
        done = [record for id, record in self.records.items() if id not in left]
        progress = Progress(len(done), len(self.examples), spent=total([record.spent for record in done]))
        on_progress(progress)
        at_once = False
        with stoppable() as stop:
            try:
                self.check_budget()
                while self.running or (self.is_more and not stop.wanted):
                    # no question is begun before the finished ones have been looked at: a run that stops, stops
                    room = self.concurrency if not (stop.wanted or self.unwritten) else 0
                    while self.is_more and len(self.running) < room:
                        self.begin_next()
                    for record in self.finish(stop):
                        progress = progress.after(record)
                        on_progress(progress)
                    if not self.running:
                        self.write_rest()
                    self.policy.check(self.failed, self.asked, len(self.examples), self.as_before)
                    self.check_budget()
                if stop.wanted:  # also if nothing is left to ask here: the caller may go on to something else
                    raise KeyboardInterrupt
            except KeyboardInterrupt:
                at_once = stop.wanted and bool(self.running)
                self.keep_all({one for one in self.running if one.done()} if at_once else self.running)
                raise Interrupted(f"Stopped; {self.how_to_go_on('run the same again')}", at_once) from None
            except MetricError as error:
                self.keep_all(self.running)
                way = "put the metric right and run the same again"
                raise MetricError(f"{error} Stopped; {self.how_to_go_on(way)}") from error
            except ClusterError as error:
                self.keep_all(self.running)
                raise ClusterError(
                    f"{error} Stopped; {self.how_to_go_on('when it is mended, run the same again')}"
                ) from error
            except BaseException:
                self.keep_all(self.running)
                raise
            finally:
                self.pool.end(at_once=at_once)

    @property
    def is_more(self) -> bool:
        """Return whether there is something left to begin."""
        return bool(self.unscored or self.todo)

    def begin_next(self) -> None:
        """Begin to score an answer that was kept without its scores; where there is none, to ask a question."""
        if self.unscored:
            self.scoring.add(self.start(self.score, self.unscored.popleft()))
        else:
            self.asking.add(self.start(self.ask, self.todo.popleft()))

    @property
    def running(self) -> set[Future[Record]]:
        """Return what is being asked or scored."""
        return self.asking | self.scoring

    def ask(self, example: dspy.Example) -> Record:
        """Return the question's record, whatever happens in it."""
        record, self.exchanges[question_id(example)] = self.answer(example)
        return record

    def score(self, record: Record) -> Record:
        """Return the record with its scores."""
        return off_loop(partial(score, record, self.examples[record.id], self.metrics))  # may ask an LM

    def asks_judge(self, record: Record) -> bool:
        """Return whether scoring this answer asks an LM."""
        return not self.judges.keys() <= record.scores.keys()

    def start(self, step: Callable[[_Item], Record], item: _Item) -> Future[Record]:
        """Begin a step; when it has ended, `ended` tells."""
        begun = self.pool.start(step, item)
        begun.add_done_callback(self.done.put)  # `wait` would look at each of a thousand whenever one has ended
        return begun

    def ended(self) -> set[Future[Record]]:
        """Return the steps that have ended since the last look; wait a while for one."""
        found = set[Future[Record]]()
        with suppress(Empty):
            found.add(self.done.get(timeout=LOOK))
            while True:
                found.add(self.done.get_nowait())
        return found

    def finish(self, stop: Stop) -> list[Record]:
        """Wait for a question to be answered or scored, or for the user; return those that are scored."""
        done = self.ended()
        for answered in done & self.asking:
            self.scoring.add(self.start(self.score, self.keep(answered)))
        scored = [self.keep_scores(future) for future in done & self.scoring]
        if stop.wanted and self.running:
            stop.announce(len(self.running))
        return scored

    def keep(self, answered: Future[Record]) -> Record:
        """Put an answer onto the disk, and into the result."""
        self.asking.discard(answered)
        record = answered.result()
        exchanges = self.exchanges.pop(record.id)
        if self.pays_elsewhere:
            self.account.add(record.spent)
        if self.folder is not None:
            self.write(partial(self.folder.append, record, exchanges, self.policy.limits))
        self.records[record.id] = record
        self.asked += 1
        self.failed += [record.failure] if record.failure else []
        self.as_before += record.failure is not None and record.failure.cause == self.failed_before.get(record.id)
        return record

    def keep_scores(self, scored: Future[Record]) -> Record:
        """Put the scores of an answer onto the disk, and into the result."""
        self.scoring.discard(scored)
        record = scored.result()
        if self.folder is not None:
            self.write(partial(_append_scores, self.folder, record))
        self.records[record.id] = record
        return record

    def write(self, step: Callable[[], None]) -> None:
        """Put something onto the disk, after what is not there yet; if that fails, it waits: others are on their way.

        No question is begun meanwhile. What could not be written since too many files were open can be, later.
        """
        self.unwritten.append(step)
        with suppress(QuestreeError):
            self.write_rest()

    def write_rest(self) -> None:
        """Put onto the disk what is not there yet.

        Raises:
            QuestreeError: if that fails.
        """
        while self.unwritten:
            self.unwritten[0]()
            self.unwritten.popleft()

    def keep_all(self, running: set[Future[Record]]) -> None:
        """Wait for questions on their way, which are paid for, and keep them; what is unscored is scored next time."""
        for future in running:
            if future.exception() is None:
                (self.keep if future in self.asking else self.keep_scores)(future)
        self.write_rest()

    def check_budget(self) -> None:
        """Stop if there is something left to ask, of the program or of a judge, and nothing left to spend."""
        to_judge = bool(self.unscored) and self.asks_judge(self.unscored[-1])  # the last of them, if any
        if not (self.todo or to_judge):
            return
        spent = self.account.total
        over = self.policy.over_budget(spent)
        unpriced = next(filter(None, (self.policy.unpriced(lm, spent) for lm in self.lms)), None)
        if over or unpriced:
            self.keep_all(self.running)
            way = "run the same with more of it" if over else "run the same so"
            raise OutOfBudgetError(f"Stopped: {over or unpriced}; {self.how_to_go_on(way)}")

    def how_to_go_on(self, by: str) -> str:
        """Return what was kept, and how to go on with it."""
        finished = f"{self.asked} more questions were finished"
        if self.folder is None:
            return f"{finished} and are lost, as no --out was given."
        return f"{finished} and are kept in {self.folder.place}: {by} to go on."
