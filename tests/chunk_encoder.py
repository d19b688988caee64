"""An encoder without a model, for other processes too: a row for each letter, made from the letter alone."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy

from questree.retrieval.indexes import chunks


class Rows(list[list[int]]):
    """As much of a tensor as a chunk asks for: torch takes a process seconds to import."""

    def numpy(self) -> Any:
        """(rows, dim) float16."""
        return numpy.array(self, dtype=numpy.float16)


class LetterEncoder:
    """Every text has as many rows as letters, in ``dim`` dimensions. A text of ``window`` letters or more fills it."""

    dim, row_type = 4, "f2"

    def __init__(self, window: int = 30) -> None:
        self.filled = 0
        self.window = window

    def passages(self, texts: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> Iterator[Any]:
        for text in texts:
            self.filled += len(text) >= self.window
            yield Rows([[ord(letter)] * self.dim for letter in text])
            progress(1)


class Dying(LetterEncoder):
    """Is killed at the text that holds ``word``, so many times: each leaves a mark in a folder."""

    def __init__(self, marks: Path, word: str, times: int) -> None:
        super().__init__()
        self.marks, self.word, self.times = marks, word, times

    def passages(self, texts: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> Iterator[Any]:
        for text, matrix in zip(texts, super().passages(texts, progress), strict=True):
            if self.word in text and len(list(self.marks.iterdir())) < self.times:
                (self.marks / str(time.time_ns())).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield matrix


def load(size: int) -> LetterEncoder:
    """A letter encoder in a process whose chunks are of that size."""
    chunks.CHUNK = size
    return LetterEncoder()


def load_dying(size: int, marks: str, word: str, times: int) -> LetterEncoder:
    """A mortal one."""
    chunks.CHUNK = size
    return Dying(Path(marks), word, times)
