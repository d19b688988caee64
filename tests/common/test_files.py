"""New files and folders inside a folder that somebody else made: nothing is written through a link or into a pipe."""

import os

import pytest
from chunk_encoder import LetterEncoder

from questree.common.errors import QuestreeError
from questree.common.files import write_atomically
from questree.data.task_files import TaskPlace
from questree.retrieval import Passage, build_index
from questree.retrieval.indexes.encoding import encode_corpus
from questree.retrieval.indexes.index_kind import Order

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")

WORLD = [Passage(id="1", text="Rome is the capital of Italy."), Passage(id="2", text="Oslo is the capital of Norway.")]
TRAPS = {"link": lambda place, victim: place.symlink_to(victim), "pipe": lambda place, victim: os.mkfifo(place)}


def index(folder):
    (folder / "out/version-1" / ".questree-building").touch()
    build_index(WORLD, folder / "out", kind="bm25")


WRITERS = {
    ".file.unfinished": lambda folder: write_atomically(folder / "file", "text"),
    "out/version-1/passages.jsonl": index,
    "out/version-1/passages.offsets.npy": index,
}


@pytest.mark.parametrize("place", WRITERS)
@pytest.mark.parametrize("trap", TRAPS)
def test_a_link_or_a_pipe_in_the_place_of_a_new_file_is_removed(trap, place, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    TRAPS[trap](tmp_path / place, victim)
    WRITERS[place](tmp_path)
    assert victim.read_text() == "precious"


def fetch(folder):
    with TaskPlace(folder, "out").being_made():
        pass


LINKED = {
    "out/version-1": lambda folder: build_index(WORLD, folder / "out", kind="bm25"),
    "chunks": lambda folder: encode_corpus(Order(folder, WORLD), "chunks", LetterEncoder(), "", LetterEncoder),  # type: ignore[arg-type]
    ".out.part": fetch,
}


@pytest.mark.parametrize("place", LINKED)
def test_a_linked_folder_is_refused(place, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).symlink_to(elsewhere)
    with pytest.raises(QuestreeError, match=r"is a link|is no index of questree's: it is left as it is"):
        LINKED[place](tmp_path)
    assert [path.name for path in elsewhere.iterdir()] == ["file"]
