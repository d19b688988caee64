"""The figures that the papers report, with their source; they are shown beside our own runs and never as ours.

Figures are percentages, as printed. The papers used other models, corpora, prompts and samples, so a difference to a
figure of ours says nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Published(NamedTuple):
    """One figure of a paper, in percent; task, metric and program by our names.

    StrategyQA's and FEVER's cover-EM is our ``yes-no`` and ``label``. The retriever is empty for methods without one.
    """

    source: str
    model: str
    retriever: str
    task: str
    metric: str
    program: str
    percent: float


def published(task: str, programs: set[str]) -> list[Published]:
    """Return the papers' figures for these programs on a task.

    ``recorded:musique`` and ``musique:searchain`` count as ``musique``.
    """
    names = {part.removesuffix("-fullwiki") for part in task.split(":")}
    return [figure for figure in _all() if figure.task in names and figure.program in programs]


class Paper(NamedTuple):
    """A paper's table: a heading of tasks and metrics, and a line of figures for each program."""

    source: str
    model: str
    retriever: str
    table: str


_SEARCHAIN = """
program hotpotqa/cover-em musique/cover-em 2wikimultihopqa/cover-em strategyqa/yes-no \
zsre/cover-em trex/cover-em fever/label eli5/rouge-l
direct                     31.95  5.91 25.82 66.25 22.75 43.85 73.45 21.90
auto-cot                   33.53 10.55 29.15 65.40 21.30 43.98 76.61 21.55
cot                        35.04  9.46 30.41 65.83 22.36 44.51 76.98 21.79
self-consistency           36.85 10.02 32.68 70.84 24.74 46.06 77.15 22.05
recite                     36.49 10.97 32.53 70.47 24.98 46.14 77.35 22.10
self-ask                   33.95 11.10 35.65 65.45 20.16 44.71 75.31 21.73
least-to-most              34.05 11.45 32.88 65.78 21.86 44.98 75.98 21.95
plan-and-solve             36.33 12.95 35.68 73.21 25.15 47.58 77.08 22.23
searchain-without-retrieval 38.36 13.61 40.49 75.62 30.14 52.69 77.06 22.54
oner                       34.09 10.22 30.01 66.78 52.29 59.28 78.25 23.40
toolformer                 36.75 12.98 35.49 67.02 51.35 59.17 80.79 23.05
self-ask-retrieval         40.05 14.28 39.58 67.65 50.51 59.12 79.41 23.25
plan-and-solve-retrieval   41.65 15.07 42.05 74.58 52.15 60.03 81.04 24.56
react-self-consistency     43.15 15.49 40.36 70.43 53.27 60.42 80.59 24.05
verify-and-edit            44.03 15.57 40.83 71.09 53.95 61.10 80.67 23.80
tree-of-thought            50.65 15.61 42.49 72.55 54.88 62.40 81.03 24.20
dsp                        51.97 15.83 43.52 72.41 54.35 61.32 80.65 23.46
searchain                  56.91 17.07 46.27 76.95 57.29 65.07 81.15 25.57
"""

_TREE_OF_REVIEWS = """
program hotpotqa/em hotpotqa/f1 2wikimultihopqa/em 2wikimultihopqa/f1 musique/em musique/f1
direct             40.6 52.2 38.4 47.6 25.9 36.0
cot                39.6 53.3 42.2 51.8 24.0 36.8
oner               40.2 53.6 32.6 42.4 26.2 37.4
oner-cot           39.6 52.3 36.6 47.0 22.8 34.9
react              34.8 47.5 37.7 48.2 26.4 38.0
self-ask-retrieval 39.1 51.3 41.1 52.6 28.8 40.6
iter-retgen        46.2 58.9 39.8 51.0 31.4 43.3
ircot              42.8 53.9 39.2 49.3 28.6 40.1
chain-of-reviews   41.7 55.3 43.6 54.1 26.6 38.4
tree-of-reviews    49.2 63.1 51.0 62.9 30.9 43.6
"""

_BLENDFILTER = """
program hotpotqa/em hotpotqa/f1 2wikimultihopqa/em 2wikimultihopqa/f1 strategyqa/yes-no
blendfilter 50.8 62.4 40.4 47.0 74.4
"""

_PAPERS = (
    Paper("Xu et al., WWW 2024, table 1", "gpt-3.5-turbo", "ColBERTv2", _SEARCHAIN),
    Paper("Li et al., 2024, table 2 (Tree of Reviews)", "gpt-4-1106-preview", "Contriever", _TREE_OF_REVIEWS),
    Paper("Wang et al., 2024 (BlendFilter), k=5", "gpt-3.5-turbo-instruct", "ColBERTv2", _BLENDFILTER),
)

_ALONE = {"direct", "auto-cot", "cot", "self-consistency", "recite", "self-ask", "least-to-most", "plan-and-solve"}
_WITHOUT_RETRIEVAL = _ALONE | {"searchain-without-retrieval"}


def _all() -> Iterator[Published]:
    for paper in _PAPERS:
        (_, *columns), *lines = (line.split() for line in paper.table.strip().splitlines())
        for program, *figures in lines:
            retriever = "" if program in _WITHOUT_RETRIEVAL else paper.retriever
            for column, figure in zip(columns, figures, strict=True):
                task, metric = column.split("/")
                yield Published(paper.source, paper.model, retriever, task, metric, program, float(figure))
