"""Compile, evaluate, track; and the compiled artifact."""

from .artifact import load, read_manifest, save
from .comparison import Comparison, compare
from .compile import compile
from .compiled import Compilation, Compiled, CompileProgress, Examples
from .evaluate import Interrupted, Progress, evaluate
from .evaluation import Evaluation
from .observers import Candidate
from .optimizers import OPTIMIZERS, Optimizer, optimizer
from .policy import RunPolicy
from .records import Record
from .run_folder import read_records
from .serving import answer_all, log_model
from .tracking import Tracking

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
