"""What each LM call takes and gives. To change a prompt, change it here."""

from .answer_style import AnswerStyle
from .chain_of_query import CompleteChain, CorrectChain, PlanChain, Step
from .reading import ReadPassage
from .tracing import CitedStep, TraceAnswer

__all__ = [
    "AnswerStyle",
    "CitedStep",
    "CompleteChain",
    "CorrectChain",
    "PlanChain",
    "ReadPassage",
    "Step",
    "TraceAnswer",
]
