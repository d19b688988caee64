"""One run of an optimizer: the student, the teacher and the metric that it is given, and the program that it leaves."""

from __future__ import annotations

import time

import dspy

from ..lm.failure import counting_failures
from ..lm.limits import limited
from ..programs import Program
from ..programs.program import restore_names, signature_names
from ..programs.states import members_of
from .budget import LMBill
from .candidates import CandidateKeeper
from .demonstrations import AnnotatedTeacher
from .optimizers import Job
from .plan import Plan
from .result import Compilation
from .verdicts import Verdicts


def run_optimizer(
    plan: Plan, train: list[dspy.Example], val: list[dspy.Example], bill: LMBill, keeper: CandidateKeeper
) -> Compilation:
    """Let the optimizer work; return what it made, tried and paid."""
    began, verdicts = time.perf_counter(), Verdicts(plan.metric)
    student = plan.program.deepcopy()
    student._compiled = False
    teacher: Program | None = None
    if plan.teacher == "annotations":
        teacher = AnnotatedTeacher(plan.program, train)
    elif plan.teacher is not None:
        teacher = plan.teacher.deepcopy()
        teacher._compiled = True  # else DSPy takes its LM and demonstrations
    job = Job(verdicts, train, val, plan.seed, plan.policy.concurrency, plan.prompt_lm, teacher)
    watched = dspy.context(callbacks=[*dspy.settings.callbacks, keeper])
    with watched, counting_failures(), bill.settled(), limited(plan.policy):
        program = plan.optimizer.compile(student, job)
    plan.policy.check_judged(verdicts.failures, verdicts.asked)
    for candidate in [] if keeper.candidates else getattr(program, "candidate_programs", []):
        keeper.keep(candidate["program"], float(candidate["score"]), len(train))
    keeper.end()
    _strip(program, like=student)
    judged = {"asked": verdicts.asked, "accepted": verdicts.accepted, **verdicts.failures}
    seconds = time.perf_counter() - began
    return Compilation(program, tuple(keeper.candidates), bill.spent, bill.paid, seconds, judged)


def _strip(program: Program, like: Program) -> None:
    """Remove what optimizers attach to a program (logs, candidates), and restore the names that they take away."""
    for one in members_of(program):
        restore_names(one, signature_names(like))
        for extra in vars(one).keys() - vars(like).keys() - {"_compiled"}:
            delattr(one, extra)
