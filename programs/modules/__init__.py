"""Modules: steps that ask an LM, composed by the programs. The signatures stand in files of the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.lazy import lazily

if TYPE_CHECKING:
    from .answers import DirectAnswer as DirectAnswer
    from .answers import PassageAnswer as PassageAnswer
    from .answers import Recitation as Recitation
    from .answers import StepByStepAnswer as StepByStepAnswer
    from .answers import ThoughtsAnswer as ThoughtsAnswer
    from .chain_of_query import ChainOfQuery as ChainOfQuery
    from .chain_of_query import CompletedChain as CompletedChain
    from .chain_of_query import CorrectedChain as CorrectedChain
    from .chain_of_query import PublishedChainOfQuery as PublishedChainOfQuery
    from .chain_of_query import RevisedChain as RevisedChain
    from .chain_of_query import Tracing as Tracing
    from .knowledge import KnowledgeAnswer as KnowledgeAnswer
    from .knowledge import KnowledgeFilter as KnowledgeFilter
    from .knowledge import PublishedKnowledgeFilter as PublishedKnowledgeFilter
    from .knowledge import QueryBlending as QueryBlending
    from .knowledge import TopicNaming as TopicNaming
    from .reader import LMReader as LMReader
    from .reranker import LMRerankedRetriever as LMRerankedRetriever
    from .reviews import EvidenceFusion as EvidenceFusion
    from .reviews import MissingParagraph as MissingParagraph
    from .reviews import ParagraphReview as ParagraphReview
    from .reviews import PathReview as PathReview
    from .searches import Acting as Acting
    from .searches import NextThought as NextThought
    from .searches import SearchQuery as SearchQuery
    from .searches import Writing as Writing
    from .subquestions import FollowUp as FollowUp
    from .subquestions import FollowUps as FollowUps
    from .subquestions import QuestionSplit as QuestionSplit
    from .subquestions import StepPlan as StepPlan
    from .subquestions import StepsJudge as StepsJudge
    from .subquestions import SubquestionAnswer as SubquestionAnswer
    from .verdict import StepCheck as StepCheck
    from .verification import Verification as Verification

__getattr__ = lazily(__name__)
