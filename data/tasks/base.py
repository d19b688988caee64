"""What is known of a task before its questions are fetched, and how one published row is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ...common.errors import QuestreeError
from ..task import Split, Style, plain_words

Fields = dict[str, Any]
"""A question as `Question` takes it, without its split."""


class BadRow(QuestreeError):
    """A published row that is no question of its task: the message names the place and the fault."""


@dataclass(frozen=True)
class Row:
    """One published row.

    Attributes:
        place: where it stands, for messages: file and line, or split and row.
        references: what the other files of the same task hold, by key (StrategyQA's paragraphs).
    """

    place: str
    data: Mapping[str, Any]
    references: Mapping[str, Any] = field(default_factory=dict)

    def needed(self, column: str) -> Any:
        """Return the value of a column."""
        if (value := self.data.get(column)) is None:
            raise BadRow(f"{self.place}: it lacks {column!r}; it has {', '.join(map(repr, self.data)) or 'nothing'}.")
        return value

    def text(self, column: str) -> str:
        """Return a column that must be text (or a number, which is written out), without space around it."""
        value = self.needed(column)
        if not isinstance(value, (str, int)) or isinstance(value, bool) or not str(value).strip():
            raise BadRow(f"{self.place}: {column!r} is {value!r}, where a text is needed.")
        return str(value).strip()

    def records(self, column: str) -> list[Any]:
        """Return the entries of a column: a list, JSON text of one, or columns side by side as `datasets` has them."""
        value = self.needed(column)
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError) as error:
                raise BadRow(f"{self.place}: {column!r} is no JSON list ({error}).") from None
        if isinstance(value, Mapping):
            names, columns = list(value), list(value.values())
            if not all(isinstance(one, list) and len(one) == len(columns[0]) for one in columns):
                raise BadRow(f"{self.place}: the columns of {column!r} are not lists of one length.")
            return [dict(zip(names, entry, strict=True)) for entry in zip(*columns, strict=True)]
        if not isinstance(value, list):
            raise BadRow(f"{self.place}: {column!r} is a {type(value).__name__}, where a list is needed.")
        return value


@dataclass(frozen=True)
class Hub:
    """Where `datasets` finds the questions, pinned.

    Attributes:
        id: of a repository on the hub, or of a builder of `datasets` (``csv``), with ``files`` at a pinned address.
        columns: that every split must have.
        splits: our name of each split that has answers, and the published one.
        files: by published split; None leaves it to the repository.
        references: the configuration that holds what rows refer to, with the same splits; None if there is none.
    """

    id: str
    columns: tuple[str, ...]
    splits: Mapping[Split, str] = field(default_factory=lambda: {"train": "train", "dev": "validation"})
    revision: str | None = None
    config: str | None = None
    files: Mapping[str, str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    references: str | None = None

    @property
    def pin(self) -> str:
        """Return what tells one state of the published questions from another: a commit, or addresses with one."""
        return self.revision or " ".join(sorted((self.files or {}).values()))


@dataclass(frozen=True)
class Corpus:
    """The passages that a task is answered from.

    Attributes:
        address: of the archive; None if the corpus is made of the questions' own paragraphs.
        file: the archive's name, for the next command.
    """

    name: str
    address: str | None = None
    file: str = ""


WIKIPEDIA_2017 = Corpus(
    "Wikipedia 2017 abstracts",
    "https://nlp.stanford.edu/projects/hotpotqa/enwiki-20171001-pages-meta-current-withlinks-abstracts.tar.bz2",
    "enwiki-20171001-pages-meta-current-withlinks-abstracts.tar.bz2",
)
"""The first paragraphs of 5.2 million articles (Yang et al., EMNLP 2018)."""

DPR_PASSAGES = Corpus(
    "DPR passages", "https://dl.fbaipublicfiles.com/dpr/wikipedia_split/psgs_w100.tsv.gz", "psgs_w100.tsv"
)
"""Wikipedia of December 2018 in 21 million passages of 100 words (Karpukhin et al., EMNLP 2020)."""

OWN_PARAGRAPHS = Corpus("its own paragraphs")
"""The paragraphs that come with the questions; fetching writes them as a corpus."""


@dataclass(frozen=True)
class Sample:
    """A part of a task that a paper scores on; it never holds a question of ``train``.

    Attributes:
        splits: where its questions are taken from.
        first: how many are taken from the beginning, in the published order.
        drawn: how many are drawn at random, the same ones for everybody. Without either, all are taken.
    """

    source: str
    splits: tuple[Literal["dev", "test"], ...] = ("dev",)
    first: int | None = None
    drawn: int | None = None


SEARCHAIN_SUBSET = Sample("Xu et al., WWW 2024, section 4.1: 1.2k questions; which ones is not published", drawn=1200)
SEARCHAIN_WHOLE = Sample("Xu et al., WWW 2024, section 4.1: the whole development set")
TREE_OF_REVIEWS = Sample("Li et al., 2024, section 4.1: the first 500 of dev", first=500)
BLENDFILTER = Sample("Wang et al., EMNLP 2024, after Shao et al., 2023: the first 500 of dev", first=500)


@dataclass(frozen=True)
class KnownTask:
    """What is known of a task.

    Attributes:
        style: the answer style of its questions; ``mixed`` if each question's type decides.
        metric: the name of the metric that it is scored by.
        sizes: questions with answers in each split, as published at the pinned revision.
        only_split: the split that all of its questions belong to, if it must not be trained on.
        hub: where `fetch_task` finds it; None if there is nothing to fetch.
        files: which files of its authors `fetch_task` reads.
        read: makes a question of a row, or None of a row that is to be passed over.
        references: a part of the names of files that hold what rows refer to, by key; empty if there are none.
        reference_id: the field of their key, where such a file has an object a line.
        passages: makes passages of what rows refer to, if these are the corpus.
        unpack: takes the rows out of a JSON document that is no list.
        cells: the names of tab-separated columns, by how many there are.
        place: gives the split of a question by the published one (None if no name tells it), its row, its words and
            the row's number from 1; None for the usual rule.
        readable: makes a question of words that are not written as one.
    """

    name: str
    licence: str
    citation: str
    source: str
    style: Style | Literal["mixed"] = "short"
    metric: str = "cover-em"
    sizes: Mapping[Split, int] = field(default_factory=dict)
    only_split: Split | None = None
    corpus: Corpus | None = None
    hub: Hub | None = None
    files: str = ""
    read: Callable[[Row], Fields | None] | None = None
    references: str = ""
    reference_id: str = "id"
    passages: Callable[[Mapping[str, Any]], Iterable[Fields]] = lambda references: ()
    unpack: Callable[[Mapping[str, Any]], Iterable[Any] | None] = lambda document: None
    cells: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    place: Callable[[Split | None, Row, str, int], Split] | None = None
    readable: Callable[[str], str] = lambda question: question
    samples: Mapping[str, Sample] = field(default_factory=dict)


MINI = KnownTask(
    name="mini",
    style="mixed",
    metric="by-style",
    licence="Apache-2.0",
    citation="Questree",
    source="bundled with Questree",
    sizes={"train": 74, "dev": 53, "test": 53},
    corpus=Corpus("bundled"),
)
MINI_LISTS = replace(MINI, name="mini-lists", sizes={"train": 8, "dev": 8, "test": 8})
RECORDED = KnownTask(
    name="recorded",
    licence="MIT (questions as their data sets)",
    citation="Cao et al., EMNLP 2023 (ProbTree), over the questions' data sets",
    source="https://github.com/THU-KEG/ProbTree",
)
"""It comes with a file of recorded replies; the two before it, with Questree."""


def words_id(prefix: str, words: str) -> str:
    """Return an id for a question that was published without one; it depends on the words alone."""
    return f"{prefix}-{hashlib.sha256(plain_words(words).encode()).hexdigest()[:16]}"


def distinct_texts(texts: Iterable[Any]) -> list[str]:
    """Return the texts that are not empty, each once, in order."""
    return list(dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip()))
