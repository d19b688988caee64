"""DSPy's teleprompters that write instructions: the settings that we give each, and how it is called."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO
from itertools import islice
from random import Random
from typing import Any, Literal

import dspy
from dspy.propose.dataset_summary_generator import create_dataset_summary
from dspy.propose.grounded_proposer import GroundedProposer
from dspy.propose.utils import get_dspy_source_code
from dspy.teleprompt.infer_rules import RulesInductionProgram
from dspy.teleprompt.mipro_optimizer_v2 import AUTO_RUN_SETTINGS
from dspy.teleprompt.mipro_optimizer_v2 import BOOTSTRAPPED_FEWSHOT_EXAMPLES_IN_CONTEXT as _SHOWN_TO_PROPOSE
from pydantic import Field

from ...common.errors import QuestreeError, needs_extra
from ...lm.failure import CallFailedError
from ...lm.guard import complete_demonstrations
from ...lm.limits import RunPolicy
from ...programs import Program
from .base import Job
from .demonstration_sets import Bootstrap, demonstration_sets
from .few_shot import Demonstrating
from .scores import Scoring

Effort = Literal["light", "medium", "heavy"]
"""How long DSPy searches, where it chooses the number of trials itself."""


class Mipro(Demonstrating):
    """MIPROv2 (Opsahl-Ong et al., EMNLP 2024): proposed instructions and demonstrations, searched together."""

    name = "mipro"
    compares = True
    auto: Effort | None = "light"
    candidates: int | None = Field(default=None, ge=2)
    trials: int | None = Field(default=None, ge=1)
    minibatch_size: int = Field(default=35, ge=1)
    init_temperature: float = Field(default=1.0, ge=0)

    def check(self, program: Program, policy: RunPolicy) -> None:
        """Check that Optuna is there, and that either DSPy chooses how long to search, or the settings do."""
        with needs_extra("optimizers"):
            import optuna  # noqa: F401

        chosen = [self.candidates is not None, self.trials is not None]
        if any(chosen) if self.auto else not all(chosen):
            raise QuestreeError(
                "mipro takes either auto, or both candidates and trials with auto=None (--optimizer-set auto=null)."
            )

    def make(self, student: Program, job: Job) -> Any:
        """Search as DSPy does; where it chooses how long to search, it compares on a sample of the questions."""
        compared = min(len(job.valset), AUTO_RUN_SETTINGS[self.auto]["val_size"] if self.auto else len(job.valset))
        teleprompter = _MiproSearch(
            job,
            metric=job.verdicts,
            prompt_model=job.prompt_lm,
            auto=self.auto,
            num_candidates=self.candidates,
            seed=job.seed,
            init_temperature=self.init_temperature,
            **self.counts(),
        )
        return teleprompter.compile(
            student,
            teacher=job.teacher,
            trainset=job.trainset,
            valset=job.valset,
            num_trials=self.trials,
            minibatch=self.minibatch_size < compared,
            minibatch_size=min(self.minibatch_size, compared),
        )


class _MiproSearch(dspy.MIPROv2):
    """`dspy.MIPROv2` that prints nothing, asks for instructions by `Proposals`, and scores by `Scoring`."""

    def __init__(self, job: Job, **settings: Any):
        super().__init__(**settings)
        self.job = job

    def _bootstrap_fewshot_examples(
        self,
        program: Program,
        trainset: list[dspy.Example],
        seed: int,
        teacher: Program | None,
        *,
        num_fewshot_candidates: int,
        max_bootstrapped_demos: int,
        max_labeled_demos: int,
        **_: Any,
    ) -> dict[int, list[Any]]:
        """Return each predictor's sets of demonstrations; where none is to be shown, those for the proposer.

        DSPy's function prints, and takes no `Bootstrap`.
        """
        most = max_bootstrapped_demos if max_bootstrapped_demos or max_labeled_demos else _SHOWN_TO_PROPOSE

        def bootstrap(questions: list[dspy.Example], size: int) -> Any:
            counts = {"max_bootstrapped_demos": size, "max_labeled_demos": max_labeled_demos}
            return Bootstrap(metric=self.metric, **counts).compile(program, teacher=teacher, trainset=questions)

        def draw(number: int, questions: list[dspy.Example]) -> int:
            self.rng.shuffle(questions)
            size: int = self.rng.randint(1, most)
            return size

        rows = max_labeled_demos or None
        sets = demonstration_sets(program, trainset, bootstrap, draw, bootstrapped=most, labeled=rows)
        made = [one.predictors() for one in islice(sets, num_fewshot_candidates)]
        return {n: [predictors[n].demos for predictors in made] for n in range(len(program.predictors()))}

    def _propose_instructions(
        self, program: Program, trainset: list[dspy.Example], demonstrations: Any, rows: int, *_: Any, **how: Any
    ) -> Any:
        """Return each predictor's own instructions and those that the LM proposes.

        DSPy's method lets its proposer print. Here the proposer gets the program's code and the data summary silently.
        """
        proposer = GroundedProposer(
            self.prompt_model,
            program,
            trainset,
            use_dataset_summary=False,
            program_aware=False,
            num_demos_in_context=_SHOWN_TO_PROPOSE,
            use_instruct_history=False,
            set_history_randomly=False,
            rng=self.rng,
            init_temperature=self.init_temperature,
        )
        with suppress(Exception), redirect_stdout(StringIO()):  # a program typed into a shell has no source
            proposer.program_code_string = get_dspy_source_code(program)
            proposer.program_aware = True
        with self.job.proposals.asked():
            with suppress(Exception):  # `Proposals` logs it
                proposer.data_summary = create_dataset_summary(trainset, rows, self.prompt_model)
                proposer.use_dataset_summary = True
            proposed = proposer.propose_instructions_for_program(
                trainset, program, demonstrations, trial_logs={}, N=how["num_instruct_candidates"]
            )
        for number, predictor in enumerate(program.predictors()):
            proposed[number][0] = predictor.signature.instructions
        return proposed

    def _optimize_prompt_parameters(
        self, program: Program, instructions: Any, demonstrations: Any, evaluate: dspy.Evaluate, *given: Any
    ) -> Any:
        """Return the program with the best instructions and demonstrations."""
        scoring = Scoring(devset=evaluate.devset, metric=self.metric)
        return super()._optimize_prompt_parameters(program, instructions, demonstrations, scoring, *given)


class InferRules(Demonstrating):
    """InferRules: the LM makes rules from each predictor's demonstrations, which are added to its instructions.

    Attributes:
        candidates: sets of rules that are compared on the validation questions.
        rules: how many the LM is asked for, for each predictor.
    """

    name = "infer-rules"
    compares = True
    candidates: int = Field(default=8, ge=1)
    rules: int = Field(default=10, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """Compare copies of the bootstrapped program, each with other rules, as ``dspy.InferRules`` does."""
        bootstrap = Bootstrap(metric=job.verdicts, **self.counts())
        bootstrapped = bootstrap.compile(student, teacher=job.teacher, trainset=job.trainset)
        inducing = RulesInductionProgram(self.rules)
        inducing.rng = Random(job.seed)

        def ruled() -> Program:
            with job.proposals.asked(job.prompt_lm):
                return _with_rules(bootstrapped.deepcopy(), inducing)

        evaluate = Scoring(devset=job.valset, metric=job.verdicts)
        return max((ruled() for _ in range(self.candidates)), key=lambda candidate: evaluate(candidate).score)


def _with_rules(program: Program, inducing: RulesInductionProgram) -> Program:
    """Add rules to the instructions of each predictor that has demonstrations, which they follow.

    DSPy would make rules of the task's rows, which lack most fields of a predictor inside a program, and show them in
    Python's notation, without a word of what they are examples of. And it would write the rules into the class of the
    signature, which all copies of the program share.
    """
    for predictor in program.predictors():
        if rules := _rules(predictor, inducing):
            instructions = f"{predictor.signature.instructions}\n\nFollow these rules:\n{rules}"
            predictor.signature = predictor.signature.with_instructions(instructions)
    return program


def _rules(predictor: dspy.Predict, inducing: RulesInductionProgram) -> str:
    """Return rules that the demonstrations follow, as many of them as the LM's window holds; "" without any."""
    shown = complete_demonstrations(predictor)
    while shown:
        try:
            return str(inducing(_as_examples(predictor.signature, shown)))
        except CallFailedError as error:
            if error.failure.cause != "context-window" or len(shown) == 1:
                raise
            shown = shown[:-1]
    return ""


def _as_examples(signature: type[dspy.Signature], demonstrations: Sequence[Any]) -> str:
    """Return the task of a predictor, and its demonstrations as its prompt shows them."""
    adapter = dspy.ChatAdapter()
    turns = adapter.format_demos(signature, [dict(one) for one in demonstrations])
    shown = [f"{'Input' if turn['role'] == 'user' else 'Output'}:\n{turn['content']}" for turn in turns]
    return "\n\n".join([f"The task:\n{signature.instructions}", adapter.format_field_description(signature), *shown])
