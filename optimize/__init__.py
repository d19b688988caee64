"""Compile, evaluate, track; and the compiled artifact."""

from .artifact import load, read_manifest, save
from .comparing.comparison import Comparison, compare
from .compiling.compile import compile
from .compiling.compiled import Compilation, Compiled, CompileProgress, Examples
from .compiling.observers import Candidate
from .evaluating.evaluate import Interrupted, Progress, evaluate
from .evaluating.evaluation import Evaluation
from .evaluating.policy import OutOfBudgetError, RunPolicy
from .evaluating.records import Record
from .evaluating.run_folder import read_records
from .optimizers import OPTIMIZERS, Optimizer, optimizer
from .tracking.run import Tracking
from .tracking.serving import answer_all, log_model

__all__ = [
    "OPTIMIZERS",
    "Candidate",
    "Comparison",
    "Compilation",
    "CompileProgress",
    "Compiled",
    "Evaluation",
    "Examples",
    "Interrupted",
    "Optimizer",
    "OutOfBudgetError",
    "Progress",
    "Record",
    "RunPolicy",
    "Tracking",
    "answer_all",
    "compare",
    "compile",
    "evaluate",
    "load",
    "log_model",
    "optimizer",
    "read_manifest",
    "read_records",
    "save",
]
