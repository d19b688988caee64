"""What each LM call takes and gives. To change a prompt, change it here."""

from .answer_style import AnswerStyle
from .answering import Answer, AnswerFromPassages, AnswerStepByStep
from .chain_of_query import CompleteChain, CorrectChain, PlanChain, Step
from .evidence_fusion import Assertion, FuseAnalyses, FuseEvidence, FuseParagraphs
from .knowledge import AnswerWithKnowledge, FilterKnowledge, FilterKnowledgeOnTopic, NameTopic, RecallPassage
from .paragraph_review import CompleteParagraphs, ReviewParagraphs, ReviewParagraphsCoT
from .reading import ReadPassage
from .searching import AnswerByActing, WriteNextThought, WriteOrSearch, WriteSearchQuery
from .subquestions import (
    AnswerSubquestion,
    AnswerSubquestionFromPassages,
    AskFollowUp,
    JudgeSteps,
    PlanSteps,
    ProposeFollowUps,
    SplitQuestion,
)
from .tracing import CitedStep, TraceAnswer
from .verification import AnswerFromThoughts, AskToVerify, EditSentence

__all__ = [
    "Answer",
    "AnswerByActing",
    "AnswerFromPassages",
    "AnswerFromThoughts",
    "AnswerStepByStep",
    "AnswerStyle",
    "AnswerSubquestion",
    "AnswerSubquestionFromPassages",
    "AnswerWithKnowledge",
    "AskFollowUp",
    "AskToVerify",
    "Assertion",
    "CitedStep",
    "CompleteChain",
    "CompleteParagraphs",
    "CorrectChain",
    "EditSentence",
    "FilterKnowledge",
    "FilterKnowledgeOnTopic",
    "FuseAnalyses",
    "FuseEvidence",
    "FuseParagraphs",
    "JudgeSteps",
    "NameTopic",
    "PlanChain",
    "PlanSteps",
    "ProposeFollowUps",
    "ReadPassage",
    "RecallPassage",
    "ReviewParagraphs",
    "ReviewParagraphsCoT",
    "SplitQuestion",
    "Step",
    "TraceAnswer",
    "WriteNextThought",
    "WriteOrSearch",
    "WriteSearchQuery",
]
