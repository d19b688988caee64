"""The tasks: questions with their answers, steps and gold passages, loaded by name or from a file."""

from .answer_styles import Style, style_of_type
from .known_tasks import KNOWN_TASKS, KnownTask
from .loading import DATA_VARIABLE, MINI_CORPUS, load_task, task_names
from .question_files import read_questions, split_of
from .task import SPLITS, AnnotatedStep, Paragraph, Question, Split, Task

__all__ = [
    "DATA_VARIABLE",
    "KNOWN_TASKS",
    "MINI_CORPUS",
    "SPLITS",
    "AnnotatedStep",
    "KnownTask",
    "Paragraph",
    "Question",
    "Split",
    "Style",
    "Task",
    "load_task",
    "read_questions",
    "split_of",
    "style_of_type",
    "task_names",
]
