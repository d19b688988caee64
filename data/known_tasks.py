"""The tasks that are known by name: answer style, metric, licence, and whom to cite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .answer_styles import Style
from .task import Split

_KILT = "KILT (Petroni et al., NAACL 2021)"


@dataclass(frozen=True)
class KnownTask:
    """What is known of a task before its file is read.

    Attributes:
        style: the answer style of its questions; ``mixed`` where each question's type decides.
        metric: the name of the metric that it is scored by.
        licence: of the questions.
        citation: whom to cite.
        source: where it is published.
        only_split: the split that all of its questions belong to, where it must not be trained on.
    """

    style: Style | Literal["mixed"]
    metric: str
    licence: str
    citation: str
    source: str
    only_split: Split | None = None


def _short(licence: str, citation: str, source: str, only_split: Split | None = None) -> KnownTask:
    return KnownTask("short", "cover-em", licence, citation, source, only_split)


KNOWN_TASKS: dict[str, KnownTask] = {
    "mini": KnownTask("mixed", "by-style", "Apache-2.0", "Questree", "bundled with Questree"),
    "hotpotqa": _short("CC BY-SA 4.0", "Yang et al., EMNLP 2018", "https://hotpotqa.github.io"),
    "musique": _short("CC BY 4.0", "Trivedi et al., TACL 2022", "https://github.com/StonyBrookNLP/musique"),
    "2wikimultihopqa": _short("Apache-2.0", "Ho et al., COLING 2020", "https://github.com/Alab-NII/2wikimultihop"),
    "strategyqa": KnownTask("yes-no", "yes-no", "MIT", "Geva et al., TACL 2021", "https://allenai.org/data/strategyqa"),
    "fever": KnownTask("label", "label", "CC BY-SA 3.0", "Thorne et al., NAACL 2018", "https://fever.ai"),
    "zsre": _short("MIT", f"Levy et al., CoNLL 2017; {_KILT}", "https://github.com/facebookresearch/KILT"),
    "trex": _short("MIT", f"Elsahar et al., LREC 2018; {_KILT}", "https://github.com/facebookresearch/KILT"),
    "eli5": KnownTask(
        "long", "rouge-l", "not stated", "Fan et al., ACL 2019", "https://github.com/facebookresearch/ELI5"
    ),
    "nq": _short(
        "CC BY-SA 3.0",
        "Kwiatkowski et al., TACL 2019; Lee et al., ACL 2019",
        "https://ai.google.com/research/NaturalQuestions",
    ),
    "squad": _short("CC BY-SA 4.0", "Rajpurkar et al., EMNLP 2016", "https://rajpurkar.github.io/SQuAD-explorer/"),
    "triviaqa": _short("Apache-2.0", "Joshi et al., ACL 2017", "https://nlp.cs.washington.edu/triviaqa/"),
    "webquestions": _short(
        "CC BY 4.0", "Berant et al., EMNLP 2013", "https://github.com/brmson/dataset-factoid-webquestions"
    ),
    "trec": _short("not stated", "Voorhees and Tice, SIGIR 2000", "https://trec.nist.gov/data/qa.html"),
    "bamboogle": _short(
        "MIT", "Press et al., Findings of EMNLP 2023", "https://github.com/ofirpress/self-ask", only_split="test"
    ),
    "recorded": _short(
        "MIT (questions as their data sets)",
        "Cao et al., EMNLP 2023 (ProbTree), over the questions' data sets",
        "https://github.com/THU-KEG/ProbTree",
    ),
}
"""Every task known by name. A file of another name is read by its questions' own types."""
