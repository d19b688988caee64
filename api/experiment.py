"""Experiments on programs, from what a user types: evaluate, compile, ablate, compare, attack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .common.errors import QuestreeError, unknown_name
from .parts import Parts

if TYPE_CHECKING:
    import dspy

    from .evaluation import Comparison, Evaluation, Progress, Repeats
    from .evaluation.attacks import AttackRun
    from .evaluation.audit import Audit
    from .evaluation.records import ScoreFunction
    from .optimize import Compiled, CompileProgress
    from .optimize.recheck import Recheck
    from .programs import Program


class Experiment(Parts):
    """What can be done with programs and the parts that the settings name.

    Each method takes programs by name, or by the place of a compiled one, and returns what was found and the folder
    that holds each question. The settings' ``split`` and ``limit`` are of the questions that programs are scored on.
    Where a method takes them, ``metrics`` are by name (the first is the score; the task's own where None),
    ``program_settings`` are of an uncompiled program, and ``on_progress`` is called with how far it is, and first with
    the label of the program, if there are several.
    """

    def evaluate(
        self,
        name: str,
        *,
        metrics: Sequence[str] | None = None,
        judge: str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        **program_settings: Any,
    ) -> tuple[Evaluation, Path]:
        """Score a program."""
        from .evaluation.comparison.comparison import evaluate_tracked
        from .evaluation.identity import digest
        from .evaluation.records import metric_name
        from .evaluation.run import run_identity

        scores, task = self._scores(metrics, judge), self.task.name
        with self._asking() as how:
            program = self.program(name, **program_settings)
            # the folder is the same for all metrics, so that another one scores the answers that are there
            named_by = run_identity(program, task=task) | {"metrics": list(map(metric_name, self._scores(None)))}
            out = self._folder(f"{program.name}-{_plain(task)}-{digest(named_by)[:8]}")
            return evaluate_tracked(
                f"evaluate {program.name}",
                program,
                self._questions_for([program]),
                scores,
                task=task,
                out=out,
                on_progress=on_progress,
                **how,
            ), out

    def audit(self, on_progress: Callable[[str, int, int], None] | None = None) -> tuple[Audit, Path]:
        """Return what of the task's questions stands in the retriever's corpus.

        Beside it stands the file with the ids of the questions that cannot be answered.
        """
        from .common.files import alone_in, write_atomically
        from .evaluation.audit import audit

        ids = [example.id for example in self.examples(self.settings.split, self.settings.limit)]
        by_id = {question.id: question for split in self.task.questions.values() for question in split}
        folder = self._folder(f"audit-{_plain(Path(self.settings.task).stem)}")
        with alone_in(folder, "the audit"):
            found = audit([by_id[id] for id in ids], self.undefended, on_progress)
            write_atomically(folder / "unanswerable.txt", "".join(f"{asked.id}\n" for asked in found.unanswerable))
        return found, folder / "unanswerable.txt"

    def repeat(
        self,
        name: str,
        count: int,
        *,
        metrics: Sequence[str] | None = None,
        judge: str | None = None,
        on_progress: Callable[[str, Progress], None] | None = None,
        **program_settings: Any,
    ) -> tuple[Repeats, Path]:
        """Score a program several times, each time with replies of its own; the LM has to sample."""
        from .evaluation import repeat
        from .evaluation.identity import digest
        from .evaluation.run import run_identity

        scores, task = self._scores(metrics, judge), self.task.name
        with self._asking() as how:
            program = self.program(name, **program_settings)
            identity = run_identity(program, task=task)
            out = self._folder(f"repeats-{program.name}-{_plain(task)}-{digest(identity)[:8]}")
            questions = self._questions_for([program])
            return repeat(program, questions, scores, count, task=task, out=out, on_progress=on_progress, **how), out

    def compile(
        self,
        name: str,
        *,
        optimizer: str | None = None,
        optimizer_settings: Mapping[str, Any] | None = None,
        train_limit: int | None = None,
        metric: str | None = None,
        teacher: str | None = None,
        register: str | None = None,
        on_progress: Callable[[CompileProgress], None] | None = None,
        **program_settings: Any,
    ) -> tuple[Compiled, Path]:
        """Compile a program on the task's training questions, and score it before and after.

        Args:
            optimizer: one of `questree.optimize.OPTIMIZERS`; the program's own default where None.
            optimizer_settings: of the optimizer.
            train_limit: at most so many training questions.
            metric: by name; the task's own where None.
            teacher: what makes the demonstrations: "annotations", or the place of a compiled program; the program
                itself where None.
            register: the name under which MLflow's registry gets the program.
        """
        from .metrics import metric as metric_named
        from .optimize import Examples, compile
        from .optimize import optimizer as optimizer_named
        from .programs import REGISTRY

        chosen = optimizer_named(optimizer or REGISTRY.named(name).default_optimizer, **(optimizer_settings or {}))
        score = metric_named(metric or self.task.metric)
        with self._asking() as how:
            program = self.program(name, **program_settings)
            out = self._folder(f"compile-{program.name}-{_plain(self.task.name)}-{chosen.name}")
            train, dev = self.examples("train", train_limit), self._questions_for([program])
            return compile(
                program,
                Examples(train=train, dev=dev, task=self.task.name),
                score,
                optimizer=chosen,
                teacher=self._teacher(teacher),
                register=register,
                out=out,
                on_progress=on_progress,
                **how,
            ), out

    def _teacher(self, named: str | None) -> Program | Literal["annotations"] | None:
        return self.program(named) if named and named != "annotations" else "annotations" if named else None

    def recheck(self, place: str, *, on_progress: Callable[[Progress], None] | None = None) -> tuple[Recheck, Path]:
        """Ask a compiled program its dev questions again; tell what it scored then and scores now.

        Args:
            place: the folder of the program, in the folder of its compilation.
        """
        from .evaluation.identity import digest, versions
        from .evaluation.run import run_identity
        from .optimize.recheck import recheck
        from .programs.prompts import rendered_prompts

        self.use_lm()
        program = self.compiled(place, allow_changed_signatures=True)
        sent = [prompt.text for prompt in rendered_prompts(program)]
        # answers of another version are not gone on with, whatever the user names the folder
        named_by = digest([run_identity(program, task=place), versions(), sent])[:8]
        out = self._folder(f"recheck-{program.name}") / named_by
        settings = self.settings
        found = recheck(
            Path(place), program, out=out, seed=settings.seed, policy=settings.policy, on_progress=on_progress
        )
        return found, out

    def ablate(
        self,
        name: str,
        *,
        over: Sequence[str],
        values: Sequence[Any] | None = None,
        metrics: Sequence[str] | None = None,
        on_progress: Callable[[str, Progress], None] | None = None,
        **program_settings: Any,
    ) -> tuple[Comparison, Path]:
        """Score a program under several settings; what it has by default comes first, if it is among the values.

        Args:
            over: the program's settings to vary; of several, every combination.
            values: of the one setting, where its type does not list them.

        Raises:
            QuestreeError: a setting cannot be varied, or is varied and given.
        """
        from .programs import allow, variants

        allow(name, program_settings)
        varied = variants(name, over, values, program_settings)
        if twice := sorted(program_settings.keys() & {setting for one in varied.values() for setting in one}):
            raise QuestreeError(f"{twice[0]} is varied here (--over {' '.join(over)}) and cannot be set as well.")
        with self._asking() as how:
            programs = {label: self.program(name, **program_settings, **one) for label, one in varied.items()}
            out = self._folder(f"ablate-{_plain(name)}-{_plain(Path(self.settings.task).stem)}-{'-'.join(over)}")
            title = f"ablate {name} over {', '.join(over)}"
            return self._compare(programs, self._scores(metrics), out, title=title, on_progress=on_progress, **how), out

    def compare(
        self,
        names: Iterable[str],
        *,
        metrics: Sequence[str] | None = None,
        judge: str | None = None,
        on_progress: Callable[[str, Progress], None] | None = None,
    ) -> tuple[Comparison, Path]:
        """Score programs on the same questions, with the same retriever, LM and metrics.

        By default the folder is one for each task, LM, retriever, defence, reader and duplicate check: what another
        comparison has asked is not asked again, whichever metrics score it. The others are compared with the first
        program.
        """
        from .evaluation.identity import digest, lm_facts

        with self._asking() as how:
            settings = self.settings
            shared = [lm_facts(), settings.retriever, settings.reader, settings.duplicates]
            shared += [None]  # whichever metrics
            shared += [settings.rerank] if settings.rerank else []
            shared += [settings.defence] if settings.defence != "none" else []
            out = self._folder(f"compare-{_plain(Path(settings.task).stem)}-{digest(shared)[:8]}")
            programs = self._labelled(names, out)
            scores, title = self._scores(metrics, judge), f"compare on {settings.task}"
            return self._compare(programs, scores, out, title=title, on_progress=on_progress, **how), out

    def attack(
        self,
        names: Iterable[str],
        *,
        kinds: Sequence[str],
        planted: Sequence[int],
        defences: Sequence[str],
        writer: str = "template",
        credulous: float | None = None,
        on_progress: Callable[[str, Progress], None] | None = None,
    ) -> tuple[AttackRun, Path]:
        """Ask programs over the corpus as it is, and with planted passages in it.

        Args:
            kinds: what is planted: of `questree.evaluation.attacks.KINDS`; ``injection`` stands for its three.
            planted: passages for each question; every kind is tried with each number.
            defences: of `questree.retrieval.defences.DEFENCES`; each is a row.
            writer: who writes what is planted: ``template``, or ``lm`` for the LM of the settings.
            credulous: of the simulated LM: the share of claims and orders that it falls for.

        Raises:
            QuestreeError: something of it does not exist, or ``credulous`` is given for a real LM.
        """
        from .evaluation.attacks import Attack, attack
        from .evaluation.attacks.plants import written_by_lm
        from .evaluation.identity import digest, lm_facts
        from .metrics import metric

        settings, tried = self.settings, _attack_kinds(kinds)
        if credulous is not None:
            self.lm = _credulous(self.lm, credulous)
        self.use_lm()
        shared = [lm_facts(), str(settings.retriever), settings.reader, settings.seed, writer]
        out = self._folder(f"attack-{Path(settings.task).stem}-{digest(shared)[:8]}")
        programs = self._labelled(names, out)
        run = attack(
            programs,
            self._questions_for(programs.values()),
            metric(self.task.metric),
            [Attack(kind, count, settings.seed) for kind in tried for count in dict.fromkeys(planted)],
            retriever=self.undefended,
            pool=[question.to_example() for split in self.task.questions.values() for question in split],
            defences=list(dict.fromkeys(defences)),
            reader=self.reader if "reader" in defences else None,
            write=written_by_lm if writer == "lm" else None,
            task=self.task.name,
            out=out,
            seed=settings.seed,
            policy=settings.policy,
            on_progress=on_progress,
        )
        return run, out

    def _compare(
        self, programs: Mapping[str, Program], scores: Sequence[ScoreFunction], out: Path, **how: Any
    ) -> Comparison:
        from .evaluation import compare

        return compare(programs, self._questions_for(programs.values()), scores, task=self.task.name, out=out, **how)

    @contextmanager
    def _asking(self) -> Iterator[dict[str, Any]]:
        """Configure the LM, and give how questions are asked: by whom, within which bounds, and where it is tracked.

        Those who answer are the workers of the cluster that ``--on`` names; None for this process.
        """
        from .lm.failure import address_of
        from .lm.policy import GivenUpError
        from .remote_answers import answering

        settings = self.settings
        with nullcontext() if settings.on is None else answering(settings) as answerers:
            self.use_lm()
            how = {"seed": settings.seed, "policy": settings.policy, "answerers": answerers, "tracking": self.tracking}
            try:
                yield how
            except GivenUpError as error:
                if error.shared and (address := address_of(self.lm)):  # which no record shows
                    error.args = (f"{error} The LM was asked at {address}.",)
                raise

    def _folder(self, name: str) -> Path:
        return self.settings.out or Path("runs") / name

    def _scores(self, names: Sequence[str] | None, judge: str | None = None) -> list[ScoreFunction]:
        """Return these metrics; else the task's own, and for short answers also the two that other papers report.

        Args:
            names: of metrics.
            judge: the name of an LM that judges as well, greedily; the address of ``--lm`` is only its own.
        """
        from .metrics import metric

        own = [self.task.metric, *(["em", "f1"] if self.task.style == "short" else [])]
        scores: list[ScoreFunction] = [metric(one) for one in names or own]
        if judge is None:
            return scores
        from .evaluation.lm_judge import Judge

        address = self.settings.api_base if judge == self.settings.lm else None
        asked = self.settings.model_copy(update={"lm": judge, "api_base": address, "temperature": 0.0})
        return [*scores, Judge(Parts(asked).lm)]

    def _labelled(self, names: Iterable[str], out: Path) -> dict[str, Program]:
        """Return programs by the name to show: ``searchain``, ``searchain-compiled``.

        Args:
            names: of programs, or the places of compiled ones.
            out: the folder of the comparison or attack; a compiled program keeps the name that it has there.
        """
        from .evaluation.comparison.labels import of_compiled, unused
        from .programs import REGISTRY

        programs: dict[str, Program] = {}
        for name in dict.fromkeys(names):
            program = self.program(name)
            label = program.name if REGISTRY.means(name) else of_compiled(program, out, programs)
            programs[unused(label, programs)] = program
        return programs

    def _questions_for(self, programs: Iterable[Program]) -> list[dspy.Example]:
        """Return the questions to score these programs on.

        Raises:
            QuestreeError: a program has one of them among its demonstrations.
        """
        from .evaluation.leak import refuse_demonstrated

        examples = self.examples(self.settings.split, self.settings.limit)
        refuse_demonstrated(programs, examples)
        return examples


def _plain(name: str) -> str:
    """Return a task's name as part of a folder's."""
    return "".join(character if character.isalnum() else "-" for character in name).strip("-")


def _attack_kinds(kinds: Sequence[str]) -> list[str]:
    """Return the kinds of attack, with the three injections for ``injection``."""
    from .evaluation.attacks import INJECTIONS, KINDS

    named = [one for kind in kinds for one in (INJECTIONS if kind == "injection" else (kind,))]
    if unknown := [kind for kind in named if kind not in KINDS]:
        raise QuestreeError(unknown_name("attack", unknown[0], [*KINDS, "injection"]))
    return list(dict.fromkeys(named))


def _credulous(lm: dspy.LM, share: float) -> dspy.LM:
    from .simulate import credulous_lm, is_simulated

    if not 0 <= share <= 1:
        raise QuestreeError(f"--credulous {share}: give a share from 0 to 1.")
    if not is_simulated(lm):
        raise QuestreeError("--credulous is a trait of the simulated LM; leave it out with a real one.")
    return credulous_lm(lm, share)
