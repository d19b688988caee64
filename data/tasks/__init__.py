"""The papers' tasks by name. A task is added with its file and its name here."""

from .base import BadRow as BadRow
from .base import Corpus as Corpus
from .base import KnownTask as KnownTask
from .base import Row as Row
from .base import Sample as Sample
from .eli5 import ELI5
from .fever import FEVER
from .frames import FRAMES
from .hipporag import HOTPOTQA_HIPPORAG, MUSIQUE_HIPPORAG, TWOWIKI_HIPPORAG
from .hotpotqa import HOTPOTQA, HOTPOTQA_FULLWIKI
from .hover import HOVER
from .musique import MUSIQUE
from .open_questions import BAMBOOGLE, NQ, POPQA
from .slots import TREX, ZSRE
from .squad import SQUAD
from .strategyqa import STRATEGYQA
from .trec import TREC
from .triviaqa import TRIVIAQA
from .twowiki import TWOWIKI
from .webquestions import WEBQUESTIONS

_MINI = KnownTask(
    name="mini",
    style="mixed",
    metric="by-style",
    licence="Apache-2.0",
    citation="Questree",
    source="bundled with Questree",
    sizes={"train": 74, "dev": 53, "test": 53},
    corpus=Corpus("bundled"),
)
_RECORDED = KnownTask(
    name="recorded",
    licence="MIT (questions as their data sets)",
    citation="Cao et al., EMNLP 2023 (ProbTree), over the questions' data sets",
    source="https://github.com/THU-KEG/ProbTree",
)
_MULTI_HOP = (HOTPOTQA, HOTPOTQA_FULLWIKI, MUSIQUE, TWOWIKI, STRATEGYQA, HOVER)
_HIPPORAG = (MUSIQUE_HIPPORAG, HOTPOTQA_HIPPORAG, TWOWIKI_HIPPORAG)
_KNOWLEDGE_INTENSIVE = (ZSRE, TREX, FEVER, ELI5)
_TESTING = (BAMBOOGLE, POPQA, FRAMES)
_CALIBRATION = (NQ, TRIVIAQA, WEBQUESTIONS, TREC, SQUAD)

_PUBLISHED = (*_MULTI_HOP, *_HIPPORAG, *_KNOWLEDGE_INTENSIVE, *_CALIBRATION, *_TESTING)

KNOWN_TASKS: dict[str, KnownTask] = {task.name: task for task in (_MINI, *_PUBLISHED, _RECORDED)}
"""Every task known by name. A file of another name is read by its questions' own types."""
