"""The methods as DSPy programs."""

from .building import build
from .failure import Failure
from .modules.ledger import Spent
from .program import Program, answered
from .registry import PROGRAMS
from .searchain import SearChain, SearChainSettings
from .tree import Node, ReasoningTree

__all__ = [
    "PROGRAMS",
    "Failure",
    "Node",
    "Program",
    "ReasoningTree",
    "SearChain",
    "SearChainSettings",
    "Spent",
    "answered",
    "build",
]
