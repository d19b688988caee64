"""What each LM call takes and gives. To change a prompt, change it here."""

from .answer_style import AnswerStyle
from .chain_of_query import CompleteChain, CorrectChain, PlanChain, Step
from .evidence_fusion import Assertion, FuseAnalyses, FuseEvidence, FuseParagraphs
from .knowledge import AnswerWithKnowledge, FilterKnowledge, FilterKnowledgeOnTopic, NameTopic, RecallPassage
from .paragraph_review import CompleteParagraphs, ReviewParagraphs, ReviewParagraphsCoT
from .reading import ReadPassage
from .tracing import CitedStep, TraceAnswer

__all__ = [
    "AnswerStyle",
    "AnswerWithKnowledge",
    "Assertion",
    "CitedStep",
    "CompleteChain",
    "CompleteParagraphs",
    "CorrectChain",
    "FilterKnowledge",
    "FilterKnowledgeOnTopic",
    "FuseAnalyses",
    "FuseEvidence",
    "FuseParagraphs",
    "NameTopic",
    "PlanChain",
    "ReadPassage",
    "RecallPassage",
    "ReviewParagraphs",
    "ReviewParagraphsCoT",
    "Step",
    "TraceAnswer",
]
