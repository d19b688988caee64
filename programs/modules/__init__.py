"""Modules: one LM call each, composed by the programs."""

from .answering import DirectAnswer, PassageAnswer, Recitation, StepByStepAnswer, ThoughtsAnswer
from .chain_of_query import ChainOfQuery, CompletedChain, CorrectedChain
from .evidence_fusion import EvidenceFusion
from .knowledge import KnowledgeAnswer, KnowledgeFilter, QueryBlending, TopicNaming
from .paragraph_review import MissingParagraph, ParagraphReview
from .reading import LMReader
from .subquestions import FollowUp, FollowUps, QuestionSplit, StepPlan, StepsJudge, SubquestionAnswer
from .together import together
from .tracing import Tracing

__all__ = [
    "ChainOfQuery",
    "CompletedChain",
    "CorrectedChain",
    "DirectAnswer",
    "EvidenceFusion",
    "FollowUp",
    "FollowUps",
    "KnowledgeAnswer",
    "KnowledgeFilter",
    "LMReader",
    "MissingParagraph",
    "ParagraphReview",
    "PassageAnswer",
    "QueryBlending",
    "QuestionSplit",
    "Recitation",
    "StepByStepAnswer",
    "StepPlan",
    "StepsJudge",
    "SubquestionAnswer",
    "ThoughtsAnswer",
    "TopicNaming",
    "Tracing",
    "together",
]
