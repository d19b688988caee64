"""Compile, evaluate, track; and the compiled artifact."""

from .artifact import load, read_manifest, save
from .candidates import Candidate
from .compilation import compile
from .compiled import Compilation, Compiled, CompileProgress, Examples
from .optimizers import OPTIMIZERS, Optimizer, optimizer
from .serving import answer_all, log_model

__all__ = [
    "OPTIMIZERS",
    "Candidate",
    "Compilation",
    "CompileProgress",
    "Compiled",
    "Examples",
    "Optimizer",
    "answer_all",
    "compile",
    "load",
    "log_model",
    "optimizer",
    "read_manifest",
    "save",
]
