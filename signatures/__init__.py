"""What each LM call takes and gives. To change a prompt, change it here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazily

if TYPE_CHECKING:
    from .answers import Answer as Answer
    from .answers import AnswerFromPassages as AnswerFromPassages
    from .answers import AnswerFromThoughts as AnswerFromThoughts
    from .answers import AnswerStepByStep as AnswerStepByStep
    from .answers import AnswerStyle as AnswerStyle
    from .answers import answer_field as answer_field
    from .answers import answer_style_field as answer_style_field
    from .answers import passages_field as passages_field
    from .answers import question_field as question_field
    from .chain_of_query import CompleteChain as CompleteChain
    from .chain_of_query import CorrectChain as CorrectChain
    from .chain_of_query import PlanChain as PlanChain
    from .chain_of_query import PlannedStep as PlannedStep
    from .chain_of_query import PlanSureChain as PlanSureChain
    from .chain_of_query import PlanWholeChain as PlanWholeChain
    from .chain_of_query import ReviseChain as ReviseChain
    from .chain_of_query import SolvedStep as SolvedStep
    from .chain_of_query import Step as Step
    from .chain_of_query import TraceAnswer as TraceAnswer
    from .chain_of_query import TracedStep as TracedStep
    from .evidence import Basis as Basis
    from .evidence import ConfirmAnswer as ConfirmAnswer
    from .evidence import ReadEvidence as ReadEvidence
    from .knowledge import AnswerWithKnowledge as AnswerWithKnowledge
    from .knowledge import FilterKnowledge as FilterKnowledge
    from .knowledge import FilterKnowledgeOnTopic as FilterKnowledgeOnTopic
    from .knowledge import JudgePassages as JudgePassages
    from .knowledge import NameTopic as NameTopic
    from .knowledge import RecallPassage as RecallPassage
    from .notes import TakeNotes as TakeNotes
    from .reader import RankPassages as RankPassages
    from .reader import ReadPassage as ReadPassage
    from .reviews import Assertion as Assertion
    from .reviews import CompleteParagraphs as CompleteParagraphs
    from .reviews import FuseAnalyses as FuseAnalyses
    from .reviews import FuseEvidence as FuseEvidence
    from .reviews import FuseParagraphs as FuseParagraphs
    from .reviews import ReviewParagraphs as ReviewParagraphs
    from .reviews import ReviewParagraphsCoT as ReviewParagraphsCoT
    from .reviews import ReviewPath as ReviewPath
    from .searches import AnswerByActing as AnswerByActing
    from .searches import AnswerWithFindings as AnswerWithFindings
    from .searches import JudgeSearchesNeeded as JudgeSearchesNeeded
    from .searches import WriteNextThought as WriteNextThought
    from .searches import WriteOrSearch as WriteOrSearch
    from .searches import WriteSearchQuery as WriteSearchQuery
    from .subquestions import AnswerSubquestion as AnswerSubquestion
    from .subquestions import AnswerSubquestionFromPassages as AnswerSubquestionFromPassages
    from .subquestions import AskFollowUp as AskFollowUp
    from .subquestions import JudgeSteps as JudgeSteps
    from .subquestions import PlanSteps as PlanSteps
    from .subquestions import ProposeFollowUps as ProposeFollowUps
    from .subquestions import SplitQuestion as SplitQuestion
    from .summaries import AnswerFromSummaries as AnswerFromSummaries
    from .summaries import SummarizePassages as SummarizePassages
    from .summaries import WriteQueryFromSummaries as WriteQueryFromSummaries
    from .verdict import CheckStep as CheckStep
    from .verdict import Stance as Stance
    from .verification import AskToVerify as AskToVerify
    from .verification import EditSentence as EditSentence

__getattr__ = lazily(__name__)
