"""Chunks: what is kept, and what is done again."""

import logging
import os
import random
from functools import partial
from pathlib import Path

import pytest
from chunk_encoder import LetterEncoder, load

from questree.retrieval import BuildProgress, Passage
from questree.retrieval.indexes import chunks
from questree.retrieval.indexes.contents import PassageStore, write_passages
from questree.retrieval.indexes.encoding import encode_corpus
from questree.retrieval.indexes.index_kind import Order

SIZE = 8
LOAD = partial(load, SIZE)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", SIZE)


@pytest.fixture
def index(tmp_path) -> Path:
    """A folder with passages, of which the last chunk is not full."""
    return stored(tmp_path / "index", 43)


def stored(folder: Path, count: int, seed: int = 3) -> Path:
    draw = random.Random(seed)
    folder.mkdir()
    write_passages(folder, (Passage(id=str(n), text="ab" * draw.randint(1, 20) + f" {n}") for n in range(count)))
    return folder


def encoded(index: Path, encoder=None, identity="letters", report=None) -> int:
    told = report if report is not None else []
    order = Order(index, PassageStore(index), report=told.append)
    return encode_corpus(order, "chunks", encoder or LetterEncoder(), identity, LOAD)


def content(index: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((index / "chunks").iterdir())}


class Once(LetterEncoder):
    """Counts what it encodes; raises when it has encoded so many passages."""

    def __init__(self, until: int | None = None) -> None:
        super().__init__()
        self.encoded, self.until = 0, until

    def passages(self, texts, progress=lambda _: None):
        for matrix in super().passages(texts, progress):
            if self.encoded == self.until:
                raise RuntimeError("interrupted")
            self.encoded += 1
            yield matrix


def test_rows_are_those_of_each_passage(index):
    told: list[BuildProgress] = []
    filled = encoded(index, report=told)
    records = [chunks.read_record(index / "chunks", number) for number in range(6)]
    assert [len(record.lengths) for record in records] == [8, 8, 8, 8, 8, 3]
    rows = chunks.read_rows(index / "chunks", 5)
    texts = chunks.texts_of(PassageStore(index), 5)
    assert rows[:][:, 0].tolist() == [ord(letter) for text in texts for letter in text]
    assert filled == sum(record.filled for record in records) > 0
    assert [(now.done, now.total) for now in told[-1:]] == [(43, 43)]
    assert [now.done for now in told] == sorted(now.done for now in told)


@pytest.mark.parametrize("seed", range(6))
def test_interrupted_anywhere_it_becomes_the_same(tmp_path, seed):
    whole, broken = stored(tmp_path / "whole", 43), stored(tmp_path / "broken", 43)
    expected = encoded(whole)
    draw, kept = random.Random(seed), 0
    for _ in range(3):
        until = draw.randrange(43 - kept)
        kept += until // SIZE * SIZE
        with pytest.raises(RuntimeError, match="interrupted"):
            encoded(broken, Once(until))
    last = Once()
    assert encoded(broken, last) == expected
    assert last.encoded == 43 - kept
    assert content(broken) == content(whole)


def test_what_is_there_is_not_encoded_again(index):
    encoded(index)
    before, again, told = content(index), Once(), []
    encoded(index, again, report=told)
    assert again.encoded == 0
    assert content(index) == before
    assert (told[-1].kept, told[-1].done) == (43, 43)


def change_a_byte(file: Path, seed: int) -> None:
    spoilt = bytearray(file.read_bytes())
    spoilt[random.Random(seed).randrange(len(spoilt))] ^= 1
    file.write_bytes(spoilt)


@pytest.mark.parametrize("name", ["000002.npy", "000002.chunk.json"])
@pytest.mark.parametrize(
    "spoil",
    [*(partial(change_a_byte, seed=seed) for seed in range(3)), lambda file: os.truncate(file, 30), Path.unlink],
    ids=["a byte", "another", "a third", "shortened", "missing"],
)
def test_a_chunk_that_is_not_whole_is_done_again(index, name, spoil):
    encoded(index)
    expected = content(index)
    spoil(index / "chunks" / name)
    again = Once()
    encoded(index, again)
    assert again.encoded == SIZE
    assert content(index) == expected


def test_only_chunks_whose_passages_changed_are_done_again(index, caplog):
    encoded(index)
    kept = list(PassageStore(index))
    kept[20] = Passage(id="20", text="another")
    (fresh := index.with_name("fresh")).mkdir()
    for folder in (index, fresh):
        write_passages(folder, kept[:35])
    again = Once()
    with caplog.at_level(logging.WARNING):
        encoded(index, again)
    assert again.encoded == SIZE + 3  # the third chunk, and the fifth, which is shorter now
    assert "3 encoded chunks are damaged, or of other passages" in caplog.text  # those, and one that is no more
    encoded(fresh)
    assert content(index) == content(fresh)


def test_another_encoder_keeps_nothing(index):
    encoded(index)
    again = Once()
    encoded(index, again, identity="other letters")
    assert again.encoded == 43


def test_files_of_a_killed_writer_are_removed(index):
    encoded(index)
    expected = content(index)
    (index / "chunks" / "000001.npy.4711.part").write_bytes(b"half")
    encoded(index)
    assert content(index) == expected
