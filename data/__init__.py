"""The tasks: questions with their answers, steps and gold passages, loaded by name or from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazily

if TYPE_CHECKING:
    from .loader import BUNDLED as BUNDLED
    from .loader import MINI_CORPUS as MINI_CORPUS
    from .loader import REGISTRY as REGISTRY
    from .loader import load_task as load_task
    from .loader import task_names as task_names
    from .question_files import read_questions as read_questions
    from .question_files import split_of as split_of
    from .task import SPLITS as SPLITS
    from .task import AnnotatedStep as AnnotatedStep
    from .task import Paragraph as Paragraph
    from .task import Question as Question
    from .task import Style as Style
    from .task import Task as Task
    from .task_fetch import Fetched as Fetched
    from .task_fetch import fetch_task as fetch_task
    from .task_files import DATA_VARIABLE as DATA_VARIABLE
    from .task_files import data_folder as data_folder
    from .task_files import read_task_manifest as read_task_manifest
    from .tasks import KNOWN_TASKS as KNOWN_TASKS
    from .tasks import KnownTask as KnownTask

__getattr__ = lazily(__name__)
