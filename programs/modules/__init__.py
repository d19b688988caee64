"""Modules: one LM call each, composed by the programs."""

from .acting import Acting
from .answering import DirectAnswer, PassageAnswer, Recitation, StepByStepAnswer, ThoughtsAnswer
from .chain_of_query import ChainOfQuery, CompletedChain, CorrectedChain
from .evidence_fusion import EvidenceFusion
from .knowledge import KnowledgeAnswer, KnowledgeFilter, QueryBlending, TopicNaming
from .paragraph_review import MissingParagraph, ParagraphReview
from .reading import LMReader
from .searching import NextThought, SearchQuery, Writing
from .subquestions import FollowUp, FollowUps, QuestionSplit, StepPlan, StepsJudge, SubquestionAnswer
from .tracing import Tracing
from .verification import Verification

__all__ = [
    "Acting",
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
    "NextThought",
    "ParagraphReview",
    "PassageAnswer",
    "QueryBlending",
    "QuestionSplit",
    "Recitation",
    "SearchQuery",
    "StepByStepAnswer",
    "StepPlan",
    "StepsJudge",
    "SubquestionAnswer",
    "ThoughtsAnswer",
    "TopicNaming",
    "Tracing",
    "Verification",
    "Writing",
]
