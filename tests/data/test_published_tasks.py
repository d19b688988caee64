"""Every task from the files of its authors and from the rows of the hub: the same questions."""

import bz2
import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import published_rows as rows
import pytest

from questree.common.errors import QuestreeError
from questree.data import KNOWN_TASKS, Question, fetch_task, load_task, task_fetch
from questree.data.tasks import Row
from questree.metrics import METRICS, metric

WIKI = "https://en.wikipedia.org/wiki/"
LINKS = [f"{WIKI}Low_Barge (the second table)", f"{WIKI}Wend,_Vale, {WIKI}Osmund#Life,{WIKI}Larkhall_(town);"]
FLAG = "\U0001f1ec\U0001f1e7"  # JSON writes it in four halves of letters
UNANSWERABLE = {**rows.MUSIQUE, "answerable": False}  # under the same id, as in the full files
MILL = {"gold_titles": ("Larkhall", "Osmund Vale"), "kind": "bridge", "hops": 2}
TWO_HOPS = {"answers": ("Wend", "River Wend"), "kind": "2hop", "hops": 2}

FILES: list[tuple[str, str, object, dict[str, Any]]] = [
    ("hotpotqa", "hotpot_dev_distractor_v1.json", [rows.HOTPOT], MILL),
    ("hotpotqa-fullwiki", "hotpot_dev_fullwiki_v1.json", [rows.HOTPOT], {**MILL, "paragraphs": ()}),
    ("musique", "musique_ans_v1.0_dev.jsonl", [rows.MUSIQUE], TWO_HOPS),
    ("musique", "musique_full_v1.0_dev.jsonl", [UNANSWERABLE, rows.MUSIQUE], {**TWO_HOPS, "position": 2}),
    ("2wikimultihopqa", "dev.json", [rows.TWOWIKI], {"hops": 2, "answers": ("Ada Vale",)}),
    ("strategyqa", "strategyqa_train.json", [rows.STRATEGYQA], {"answers": ("yes",)}),
    ("strategyqa", "task.json", rows.BIG_BENCH, {"answers": ("yes",)}),
    ("zsre", "structured_zeroshot-dev-kilt.jsonl", rows.ZSRE, {"question": "Which river runs by Larkhall?"}),
    ("trex", "trex-dev-kilt.jsonl", rows.TREX, {"question": "Where was Larkhall born?"}),
    ("fever", "fever-dev-kilt.jsonl", rows.FEVER, {"style": "two-label"}),
    ("fever", "shared_task_dev.jsonl", rows.FEVER_BY_ITS_AUTHORS,
     {"answers": ("NOT ENOUGH INFO",), "gold_titles": ("Soft Hay (film)",)}),
    ("eli5", "eli5-dev-kilt.jsonl", rows.ELI5, {"answers": ("Because it clings.", "It is a matter of taste.")}),
    ("eli5", "eli5_eval_bm25_top100.json", [rows.ELI5_OF_ALCE], {}),
    ("nq", "NQ-open.dev.jsonl", rows.NQ, {}),
    ("nq", "biencoder-nq-dev.json", [rows.NQ_OF_DPR], {"gold_titles": ("Larkhall",)}),
    ("nq", "nq-dev.qas.csv", "which river is by larkhall\t['Wend', 'River Wend']\n", {}),
    ("triviaqa", "unfiltered-web-dev.json", rows.TRIVIAQA, {}),
    ("webquestions", "webquestions.examples.test.json", rows.WEBQUESTIONS, {"answers": ("Vale", 'Up "North"')}),
    ("webquestions", "test.json", rows.WEBQUESTIONS_BY_BRMSON, {}),
    ("trec", "large2180-test.tsv", rows.TREC, {"question": 'How deep is the "Wend"?', "answers_are_regex": True}),
    ("squad", "dev-v1.1.json", rows.SQUAD, {}),
    ("bamboogle", "bamboogle.csv", rows.BAMBOOGLE, {"split": "test"}),
    ("hover", "hover_dev_release_v1.1.json", [rows.HOVER],
     {"answers": ("no",), "hops": 2, "style": "yes-no", "gold_titles": ("Osmund", "Larkhall")}),
    ("popqa", "train.jsonl", rows.POPQA, {"split": "test", "id": "7", "answers": ("Wend", "River Wend")}),
    ("popqa", "test.jsonl", {**rows.POPQA, "possible_answers": json.dumps(["Wend", FLAG, None])},
     {"answers": ("Wend", FLAG)}),
    ("phantomwiki", "questions.json", [rows.PHANTOMWIKI],
     {"style": "list", "needed": (("Bo Ek",), ("Osmund Vale",)), "kind": "several", "hops": 1}),
    ("musique-full", "musique_full_v1.0_dev.jsonl", [rows.MUSIQUE], TWO_HOPS),
    ("musique-full", "musique_full_v1.0_dev.jsonl", [UNANSWERABLE],
     {"answers": (), "id": "2hop__1_2-untold", "hops": 2, "kind": "2hop"}),
    ("frames", "train.jsonl", rows.FRAMES, {"split": "test", "gold_titles": ("Low Barge", "Larkhall, Wend")}),
    ("frames", "test.jsonl", {**rows.FRAMES, "wiki_links": str(LINKS)},
     {"gold_titles": ("Low Barge", "Wend, Vale", "Osmund", "Larkhall (town)"), "hops": 4}),
    ("hipporag-musique", "musique.json", [rows.MUSIQUE], {"split": "dev"}),
    ("hipporag-hotpotqa", "hotpotqa.json", [rows.HOTPOT], {"split": "dev"}),
    ("hipporag-2wiki", "2wikimultihopqa.json", [rows.TWOWIKI], {"split": "dev"}),
]  # fmt: skip
"""A file of the authors of a task, and what its question then holds."""

HUB: dict[str, dict[str, Any]] = {
    "hotpotqa": rows.HOTPOT_ON_THE_HUB,
    "hotpotqa-fullwiki": rows.HOTPOT_ON_THE_HUB,
    "musique": rows.MUSIQUE,
    "2wikimultihopqa": rows.TWOWIKI_ON_THE_HUB,
    "strategyqa": rows.STRATEGYQA,
    "zsre": rows.ZSRE,
    "trex": rows.TREX,
    "fever": rows.FEVER,
    "eli5": rows.ELI5,
    "nq": rows.NQ,
    "triviaqa": rows.TRIVIAQA_ON_THE_HUB,
    "webquestions": rows.WEBQUESTIONS_ON_THE_HUB,
    "trec": dict(zip(("number", "kind", "question", "pattern"), rows.TREC.rstrip("\n").split("\t"), strict=True)),
    "squad": rows.SQUAD_ON_THE_HUB,
    "bamboogle": rows.BAMBOOGLE_ON_THE_HUB,
    "hover": rows.HOVER,
    "popqa": rows.POPQA,
    "frames": rows.FRAMES,
    "phantomwiki": rows.PHANTOMWIKI,
    "hipporag-musique": rows.MUSIQUE,
    "hipporag-hotpotqa": rows.HOTPOT,
    "hipporag-2wiki": rows.TWOWIKI,
}


def only(name: str) -> Question:
    (question,) = [question for split in load_task(name).questions.values() for question in split]
    return question


@pytest.fixture
def fetched(data: Path, published: Callable[..., Path]) -> Callable[[str, str, object], Question]:
    """The one question of a task that is fetched from one file."""

    def fetch(name: str, file: str, content: object) -> Question:
        beside = [published("articles.json", rows.PHANTOMWIKI_ARTICLES)] if name == "phantomwiki" else []
        fetch_task(name, files=[published(file, content), *beside])
        return only(name)

    return fetch


@pytest.mark.parametrize(("name", "file", "content", "held"), FILES)
def test_a_file_of_the_authors_becomes_a_question_in_its_split(fetched, name, file, content, held) -> None:
    question = fetched(name, file, content)
    told = {"task": name, "position": 1, "style": KNOWN_TASKS[name].style}
    if found := re.search("dev|test", file):
        told["split"] = found[0]
    assert {field: getattr(question, field) for field in told | held} == told | held


def test_every_task_that_is_fetched_has_such_a_file_and_such_a_row_here() -> None:
    fetchable = {name for name, task in KNOWN_TASKS.items() if task.read}
    assert {name for name, *_ in FILES} == fetchable
    assert set(HUB) == {name for name in fetchable if KNOWN_TASKS[name].hub}


@pytest.mark.parametrize("name", HUB)
def test_a_row_of_the_hub_gives_what_the_file_gives(fetched, name: str) -> None:
    task = KNOWN_TASKS[name]
    assert set(task.hub.columns) <= set(HUB[name])
    of_file = fetched(*next(entry[:3] for entry in FILES if entry[0] == name))
    of_hub = task.read(Row("row 1", HUB[name]))
    assert of_hub["question"] == of_file.question
    if name != "webquestions":
        assert (of_hub["id"], set(of_hub["answers"])) == (of_file.id, set(of_file.answers))
    assert tuple(of_hub.get("gold_titles") or ()) == of_file.gold_titles
    assert len(of_hub.get("steps") or ()) == len(of_file.steps)


def test_2wikimultihopqa_is_read_from_its_parquet_files_alone(data: Path, tmp_path: Path, monkeypatch) -> None:
    """Its repository holds a script, for which `datasets` refuses it whole."""
    import pandas as pd

    task = KNOWN_TASKS["2wikimultihopqa"]
    files = {split: tmp_path / f"{split}.parquet" for split in task.hub.files}
    for split, file in files.items():
        assert task.hub.files[split].endswith(f"/{file.name}")
        pd.DataFrame([{**rows.TWOWIKI_ON_THE_HUB, "_id": split, "question": f"Who is {split}?"}]).to_parquet(file)
    local = replace(task.hub, files={split: str(file) for split, file in files.items()})
    monkeypatch.setitem(task_fetch.KNOWN_TASKS, task.name, replace(task, hub=local))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    assert fetch_task(task.name).manifest.counts == {"train": 1, "dev": 1}


def test_a_sample_of_hipporag_is_a_dev_set_with_the_corpus_of_its_own_paragraphs(data: Path, tmp_path, monkeypatch):
    """Through `datasets`, which has to read lists of texts and numbers."""
    task = KNOWN_TASKS["hipporag-hotpotqa"]
    assert task.hub.files["dev"].endswith("/hotpotqa.json")
    second = {**rows.HOTPOT, "question": "Which other river?", "_id": "other"}
    (tmp_path / "sample.json").write_text(json.dumps([rows.HOTPOT, second], indent=4))
    local = replace(task.hub, files={"dev": str(tmp_path / "sample.json")})
    monkeypatch.setitem(task_fetch.KNOWN_TASKS, task.name, replace(task, hub=local))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    there, loaded = fetch_task(task.name), load_task(task.name)
    assert (there.manifest.counts, there.manifest.passages) == ({"dev": 2}, len(loaded.split("dev")[0].paragraphs))
    assert loaded.corpus == there.corpus
    assert loaded.split("dev")[0].known_gold()


def test_hover_is_read_from_its_authors_lists_of_facts_by_datasets_too(tmp_path: Path) -> None:
    """A fact is a list of a text and a number, which not every reader of JSON takes."""
    import datasets

    (tmp_path / "dev.json").write_text(json.dumps([rows.HOVER, {**rows.HOVER, "uid": "h2"}]))
    files, cache = {"dev": str(tmp_path / "dev.json")}, str(tmp_path / "cache")
    read = datasets.load_dataset("json", data_files=files, split="dev", cache_dir=cache)
    assert KNOWN_TASKS["hover"].read(Row("row 1", read[0]))["gold_titles"] == ["Osmund", "Larkhall"]


def test_hotpotqa(fetched) -> None:
    question = fetched("hotpotqa", "hotpot_dev_distractor_v1.json", [rows.HOTPOT])
    assert [(p.title, p.text, p.is_supporting) for p in question.paragraphs] == [
        ("Larkhall", "Larkhall lies on the Wend. It has a mill.", True),
        ("Osmund Vale", "Osmund built it.", True),
        ("Other", "Nothing of note.", False),
    ]
    mill = question.to_example().gold_sentences[0]
    assert mill["sentences"] == ["Larkhall lies on the Wend.", "It has a mill."]
    assert [list(one["supporting"]) for one in question.gold_sentences()] == [[0, 1], [0]]


def test_musique_keeps_its_decomposition(fetched) -> None:
    question = fetched("musique", "musique_ans_v1.0_dev.jsonl", [rows.MUSIQUE])
    assert [step.support_title for step in question.steps] == ["Osmund Vale", "Larkhall"]
    assert question.resolved_steps()[1].question == "Which river flows by Larkhall ?"


def test_2wikimultihopqa_asks_for_each_triple(fetched) -> None:
    question = fetched("2wikimultihopqa", "dev.json", [rows.TWOWIKI])
    assert [(s.question, s.answer, s.support_title) for s in question.steps] == [
        ("Who directed Grey Harvest?", "Osmund Vale", "Grey Harvest (film)"),
        ("Who is the mother of #1?", "Ada Vale", "Osmund Vale"),
    ]
    assert question.resolved_steps()[1].question == "Who is the mother of Osmund Vale?"
    assert question.hops == 2


def test_2wikimultihopqa_takes_the_aliases_that_its_official_score_knows(data: Path, published) -> None:
    aliases = [
        {"Q_id": "Q7", "aliases": ["Ada of Larkhall", "Ada Vale"], "demonyms": ["Valean"]},
        {"Q_id": "Q8", "aliases": ["someone else"], "demonyms": []},
    ]
    lines = "".join(json.dumps(one) + "\n" for one in aliases)
    files = [published("dev.json", [{**rows.TWOWIKI, "answer_id": "Q7"}]), published("id_aliases.json", lines)]
    fetch_task("2wikimultihopqa", files=files)
    assert only("2wikimultihopqa").answers == ("Ada Vale", "Ada of Larkhall", "Valean")


def test_strategyqa_takes_paragraphs_from_the_second_file(data: Path, published: Callable[..., Path]) -> None:
    files = [
        published("strategyqa_train_paragraphs.json", rows.STRATEGYQA_PARAGRAPHS),
        published("strategyqa_train.json", [rows.STRATEGYQA]),
    ]
    there = fetch_task("strategyqa", files=files)
    question = only("strategyqa")
    assert question.answers == ("yes",)
    assert question.gold_titles == ("Larkhall", "Low Barge")
    assert [step.question for step in question.steps] == rows.STRATEGYQA["decomposition"]
    assert [p.text for p in question.paragraphs] == ["Larkhall lies on the Wend."]
    assert there.manifest.passages == 1
    with pytest.raises(QuestreeError, match="no file with questions is among these"):
        fetch_task("strategyqa", files=files[:1], update=True)


def test_trec_is_answered_by_a_pattern(fetched) -> None:
    question = fetched("trec", "large2180-test.tsv", rows.TREC)
    score = metric("cover-em")
    example = question.to_example()
    predictions = [type("P", (), {"answer": answer})() for answer in ("it is 12 feet deep", "it is 112 feet deep")]
    assert [score.score(example, prediction) for prediction in predictions] == [1, 0]


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_a_file_may_be_compressed_and_begin_with_a_byte_order_mark(data: Path, tmp_path: Path, ending, pack) -> None:
    path = tmp_path / f"NQ-open.dev.jsonl{ending}"
    path.write_bytes(pack(b"\xef\xbb\xbf" + json.dumps(rows.NQ).encode() + b"\n\n"))
    assert fetch_task("nq", files=[path]).manifest.counts == {"dev": 1}


def test_json_lines_may_be_called_json(fetched, published) -> None:
    twice = json.dumps(rows.NQ) + "\n" + json.dumps({**rows.NQ, "question": "which other river"}) + "\n"
    path = published("NQ-open.dev.json", twice)
    assert fetch_task("nq", files=[path]).manifest.counts == {"dev": 2}


@pytest.mark.parametrize(
    ("name", "file", "content", "message"),
    [
        ("hotpotqa", "dev.json", [rows.HOTPOT, {**rows.HOTPOT, "answer": None}], "entry 2: it lacks 'answer'"),
        ("hotpotqa", "dev.json", [{**rows.HOTPOT, "context": ["x"]}], r"entry 1: 'x' in 'context' is no title"),
        ("hotpotqa", "dev.json", [rows.HOTPOT, rows.HOTPOT], r"entry 2: the id 'h1' was that of another"),
        ("hotpotqa", "dev.json", '[{"_id"', r"dev\.json is no JSON: .*Is it all there"),
        ("hotpotqa", "dev.json", "[" * 100_000, r"dev\.json is no JSON"),
        ("hotpotqa", "dev.json", {"data": []}, r"dev\.json is not in a form in which hotpotqa is published: hotpot_"),
        ("hotpotqa", "dev.json", ["text"], r"entry 1: a str, where an object"),
        ("musique", "dev.jsonl", json.dumps(rows.MUSIQUE) + "\n{broken\n", r"dev\.jsonl, line 2: not JSON"),
        ("musique", "dev.jsonl", {**rows.MUSIQUE, "paragraphs": [{"idx": 1}]}, r"a paragraph or a step lacks 'title'"),
        ("2wikimultihopqa", "dev.json", [{**rows.TWOWIKI, "evidences": [["a", "b"]]}], r"entry 1: .* is no triple"),
        ("2wikimultihopqa", "dev.json", [{**rows.TWOWIKI, "evidences": "[["}], r"'evidences' is no JSON list"),
        ("strategyqa", "train.json", [{**rows.STRATEGYQA, "answer": "yes"}], r"'answer' is 'yes', where true or false"),
        ("fever", "dev.jsonl", rows.kilt("f", "A claim.", "MAYBE"), r"line 1: 'MAYBE' is no label"),
        ("hover", "train.json", [{**rows.HOVER, "label": "MAYBE"}], r"'MAYBE' is no label"),
        ("zsre", "test.jsonl", {**rows.ZSRE, "output": []}, r"'output' holds no answer; the test split"),
        ("trec", "test.tsv", rows.TREC + "1\tfactoid\tHow?\t(\n", r"test\.tsv, line 2: '\(' is no regular expression"),
        ("trec", "test.tsv", "only\ttwo\n", r"line 1: 2 columns, where trec has 4"),
        ("nq", "dev.csv", "who\t" + "[" * 100_000 + "\n", r"line 1: '\[{100}' in 'answers' is no list"),
        ("nq", "dev.csv", "who\tAda\n", r"line 1: 'Ada' in 'answers' is no list"),
        ("squad", "dev.json", {"data": [7]}, r"dev\.json is not in a form in which squad"),
        ("bamboogle", "b.csv", "Question,Answer\n", r"no questions of bamboogle"),
    ],
)
def test_a_bad_file_is_named_by_its_place_and_leaves_nothing(
    data: Path, published: Callable[..., Path], name: str, file: str, content: object, message: str
) -> None:
    with pytest.raises(QuestreeError, match=message):
        fetch_task(name, files=[published(file, content)])
    assert [path.name for path in data.iterdir() if not path.name.endswith(".lock")] == []


def test_bad_rows_can_be_left_out_and_are_counted(data: Path, published: Callable[..., Path]) -> None:
    file = published("dev.jsonl", [rows.MUSIQUE, {**rows.MUSIQUE, "id": "2hop__3_4", "answer": ""}])
    with pytest.raises(QuestreeError, match="--skip-bad"):
        fetch_task("musique", files=[file])
    manifest = fetch_task("musique", files=[file], skip_bad=True).manifest
    assert (manifest.counts, manifest.left_out) == ({"dev": 1}, {"bad row": 1})


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("dev.jsonl", '{"question": "a", "answer": ["Ada"]}\n{broken\n7\n{"question": "b", "answer": ["Bath"]}\n'),
        ("dev.csv", "who\t['Ada']\na line break\nin a field\t\t['x']\nwhere\t['Bath']\n"),
    ],
)
def test_lines_that_are_no_rows_at_all_can_be_left_out_too(data: Path, published: Any, file: str, content: str) -> None:
    manifest = fetch_task("nq", files=[published(file, content)], skip_bad=True).manifest
    assert (manifest.counts, manifest.left_out) == ({"dev": 2}, {"bad row": 2})


@pytest.mark.parametrize("name", ["dev.jsonl.bz2", "dev.json.bz2", "dev.tsv.gz", "dev.jsonl.gz"])
def test_a_file_that_is_damaged_is_named(data: Path, tmp_path: Path, name) -> None:
    pack = bz2.compress if name.endswith("bz2") else gzip.compress
    packed = pack(b"x" * 3_000)
    for content in (packed[:-4], packed[:60] + b"damaged" * 20, b"no compressed file"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(QuestreeError, match=f"{name}"):
            fetch_task("nq", files=[tmp_path / name])


def test_a_file_that_is_absent_is_named(data: Path, tmp_path: Path) -> None:
    for name in ("absent.jsonl", "absent.json", "absent.tsv", "absent.jsonl.gz"):
        with pytest.raises(QuestreeError, match=rf"Cannot read .*{name}"):
            fetch_task("nq", files=[tmp_path / name])


def test_every_known_task_is_pinned_to_a_commit_has_a_metric_and_says_whom_to_cite() -> None:
    for name, task in KNOWN_TASKS.items():
        assert name == task.name
        assert task.metric in METRICS
        assert task.citation
        assert task.licence
        assert not any("train" in sample.splits for sample in task.samples.values())
        if hub := task.hub:
            assert hub.pin
            assert all(re.search(r"\b[0-9a-f]{40}\b", one) for one in hub.pin.split())
            assert set(task.sizes) == set(hub.splits)


@pytest.mark.parametrize(
    ("question", "answer", "held"),
    [
        ("Who is the son of Bo Ek?", [], {"answers": (), "style": "short", "kind": "none"}),
        ("Who is the son of Bo Ek?", ["Cy Ek"], {"answers": ("Cy Ek",), "style": "short", "kind": "one"}),
        ("How many sons does Bo Ek have?", ["1"], {"answers": ("1",), "style": "short", "kind": "count"}),
        ("How many sons does the friend of Bo Ek have?", ["1", "3"], {"style": "list", "kind": "several"}),
    ],
)
def test_an_invented_world_asks_for_one_answer_several_a_count_or_none(fetched, question, answer, held) -> None:
    read = fetched("phantomwiki", "questions.json", [{**rows.PHANTOMWIKI, "question": question, "answer": answer}])
    assert {field: getattr(read, field) for field in held} == held


def test_the_articles_of_a_world_are_its_corpus(data: Path, published) -> None:
    files = [published("questions.json", [rows.PHANTOMWIKI]), published("articles.json", rows.PHANTOMWIKI_ARTICLES)]
    there = fetch_task("phantomwiki", files=files)
    assert there.manifest.passages == 2
    ada, bo = map(json.loads, there.corpus.read_text(encoding="utf-8").splitlines())
    assert ada["title"] == "Ada Vale"
    assert ada["text"] == "Friends: The friends of Ada Vale are Bo Ek, Osmund Vale. Work: She rows."
    assert bo["text"] == "Attributes: The hobby of Bo Ek is hay."
    assert load_task("phantomwiki").corpus == there.corpus
    with pytest.raises(QuestreeError, match=r"give articles\.json beside questions\.json"):
        fetch_task("phantomwiki", files=files[:1], update=True)
    with pytest.raises(QuestreeError, match=r"article 'Ada Vale': it lacks 'article'"):
        fetch_task("phantomwiki", files=[files[0], published("articles.json", [{"title": "Ada Vale"}])], update=True)


def test_of_a_pair_one_question_has_no_answer_and_both_are_kept(data: Path, published) -> None:
    fewer = {**UNANSWERABLE, "paragraphs": rows.MUSIQUE["paragraphs"][::2]}
    fetch_task("musique-full", files=[published("musique_full_v1.0_dev.jsonl", [rows.MUSIQUE, fewer])])
    told, untold = sorted(load_task("musique-full").split("dev"), key=lambda one: one.id)
    assert (told.answers, untold.answers) == (("Wend", "River Wend"), ())
    assert [step.answer for step in untold.steps] == ["Larkhall", "Wend"]
    with pytest.raises(QuestreeError, match=r"musique-full is not on the hub.*--from FILE"):
        fetch_task("musique-full", update=True)


def test_spellings_of_an_item_are_written_as_they_were_given(data: Path, published, monkeypatch) -> None:
    def read(row: Row) -> dict[str, Any]:
        answers = ["Ann Lee", ["Bo Ek", "B. Ek"]]
        return {"id": "q", "question": row.text("question"), "answers": answers, "style": "list"}

    monkeypatch.setitem(task_fetch.KNOWN_TASKS, "nq", replace(KNOWN_TASKS["nq"], style="mixed", read=read))
    there = fetch_task("nq", files=[published("NQ-open.dev.jsonl", rows.NQ)])
    assert json.loads(there.questions.read_text(encoding="utf-8"))["answers"] == ["Ann Lee", ["Bo Ek", "B. Ek"]]
    assert only("nq").items == (("Ann Lee",), ("Bo Ek", "B. Ek"))
