"""Files of questions, good and bad."""

import json
from pathlib import Path

import published_rows as published
import pytest
from hypothesis import given
from hypothesis import strategies as st

from questree.common.errors import QuestreeError
from questree.data import read_questions, split_of
from questree.data.question_files import check_row

GOOD = {"id": "q0", "question": "Who?", "answers": ["Ada"]}
LIST = {"id": "q1", "question": "Which suppliers deliver both?", "style": "list"}


def written(folder: Path, *rows: object, name: str = "own.jsonl") -> Path:
    path = folder / name
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_plain_line_takes_its_task_from_the_file_and_its_style_from_the_type(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "\ufeff" + json.dumps(GOOD),
        "",
        {**GOOD, "id": 1, "type": "boolean", "answers": ["no"], "hops": None, "facts": ["left out"]},
        {**GOOD, "id": 2, "type": "boolean", "style": "short"},
        {**GOOD, "id": 3, "task": "fever", "answers": ["REFUTES"]},
    )
    questions = read_questions(path)
    assert [(q.id, q.task, q.style) for q in questions] == [
        ("q0", "own", "short"),
        ("1", "own", "yes-no"),
        ("2", "own", "short"),
        ("3", "fever", "label"),
    ]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{not json", r"line 2: not JSON"),
        ("[" * 100_000, r"line 2: not JSON"),
        ('{"id": ' + "1" * 5_000, r"line 2: not JSON"),
        ("[1]", r"line 2: a list, where a JSON object"),
        ({"id": "q1", "question": "Who?"}, r"line 2: answers: Field required"),
        ({"id": "q1", "answers": ["Ada"]}, r"line 2: question: Field required"),
        ({"id": "q1", "question": "Who?", "answers": "Ada"}, r"line 2: answers: a list is needed"),
        ({**GOOD, "id": "q1", "answers": None}, r"line 2: answers"),
        ({**GOOD, "id": "q1", "answers": [["Ada", "A."]]}, r"line 2: .*list of spellings is for style 'list'"),
        ({**LIST, "answers": ["Ann", " "]}, r"line 2: .*item 2 of the list is empty"),
        ({**LIST, "answers": ["Ann", []]}, r"line 2: .*item 2 of the list is empty"),
        ({**LIST, "answers": [["Ann", ""]]}, r"line 2: .*item 1 of the list is empty, or has an empty spelling"),
        ({**LIST, "answers": ["Ann", "Bo", "the ann"]}, r"line 2: .*item 3 of the list, 'the ann', is item 1 already"),
        ({**LIST, "answers": [["Ann", "A. L."], ["Bo", "A. L."]]}, r"line 2: .*item 2 .*, 'Bo', is item 1 already"),
        ({**LIST, "answers": ["4 March 1998", "1998-03-04"]}, r"line 2: .*item 2 .* is item 1 already"),
        (
            {**LIST, "answers": ["Ann"], "answers_are_regex": True},
            r"line 2: .*items of a list are texts, and no regular",
        ),
        ({**GOOD, "id": "q1", "question": " "}, r"line 2: question"),
        ({**GOOD, "id": "q1", "hops": 0}, r"line 2: hops"),
        ({**GOOD, "id": "q1", "split": "validation"}, r"line 2: split"),
        ({**GOOD, "id": "q1", "steps": [{"answer": "x"}]}, r"line 2: steps\.0\.question"),
        ({**GOOD, "id": "q1", "answers": ["("], "answers_are_regex": True}, r"line 2: .*regular expression"),
        ({**GOOD, "id": "q1", "type": "boolean"}, r"line 2: .*answered yes or no"),
        ({**GOOD, "id": "q1", "type": "claim"}, r"line 2: .*answered SUPPORTS or REFUTES or NOT ENOUGH INFO, not"),
        ({**GOOD, "id": "q1", "style": "two-label", "answers": ["NOT ENOUGH INFO"]}, r"SUPPORTS or REFUTES, not"),
        (GOOD, r"line 2: id 'q0' is already that of line 1"),
        ({**GOOD, "id": "q1", "paragraphs": [{"text": "\udc00"}]}, r"line 2: paragraphs\.0\.text: .*valid string"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(tmp_path: Path, bad: object, message: str) -> None:
    with pytest.raises(QuestreeError, match=message) as caught:
        read_questions(written(tmp_path, GOOD, bad))
    assert "own.jsonl" in str(caught.value)


def test_a_field_that_is_nearly_one_that_is_read_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read_questions(written(tmp_path, {**GOOD, "gold_title": ["Ada"], "answer": "Ada", "level": "hard"}))
    [said] = caplog.messages
    assert "the field 'gold_title' is not read. Did you mean 'gold_titles'?" in said


def test_an_empty_an_absent_and_a_binary_file_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(QuestreeError, match=r"own\.jsonl holds no questions"):
        read_questions(written(tmp_path, "", ""))
    with pytest.raises(QuestreeError, match=r"Cannot read questions from .*absent\.jsonl: No such file or directory$"):
        read_questions(tmp_path / "absent.jsonl")
    for name, text in {"UTF-16": "utf-16", "Latin-1": "latin-1"}.items():
        (tmp_path / "other.jsonl").write_bytes(json.dumps({**GOOD, "question": "Où?"}, ensure_ascii=False).encode(text))
        with pytest.raises(QuestreeError, match=rf"Cannot read questions from .*other\.jsonl: not UTF-8 .*be {name};"):
            read_questions(tmp_path / "other.jsonl")


@pytest.mark.parametrize(
    ("row", "id", "answers", "style"),
    [
        ({"id": "test_0", "golden_answers": ["Ada", "A"], "metadata": {}}, "test_0", ("Ada", "A"), "short"),  # FlashRAG
        ({"_id": "7", "answer": "Ada"}, "7", ("Ada",), "short"),
        ({"id": 7.0, "answer": "Ada", "answers": ["Ada L."]}, "7", ("Ada L.",), "short"),
        ({"id": 7, "answer": 1961.0}, "7", ("1961",), "short"),
        ({"id": 7, "answers": [3.5, 4]}, "7", ("3.5", "4"), "short"),
        ({"id": 7, "answers": [True]}, "7", ("yes",), "yes-no"),
        ({"id": 7, "answer": False}, "7", ("no",), "yes-no"),
        ({"id": 7, "answer": False, "style": "short"}, "7", ("no",), "short"),
        ({"answers": ["Ada"]}, "own-", ("Ada",), "short"),
    ],
)
def test_fields_as_other_data_sets_have_them(tmp_path: Path, caplog, row, id, answers, style) -> None:
    [read] = read_questions(written(tmp_path, {"question": "Who?", **row}))
    assert (read.id[:4] if id == "own-" else read.id, read.answers, read.style) == (id, answers, style)
    assert not caplog.messages
    assert read_questions(written(tmp_path, "", {"question": "who?", **row}))[0].id == read.id  # of its words, or given


@pytest.mark.parametrize("style", ["short", "yes-no", "label", "long", "list"])
def test_the_corpus_may_not_tell_an_answer_in_any_style(tmp_path: Path, style: str) -> None:
    [read] = read_questions(written(tmp_path, {**GOOD, "answers": [], "style": style}))
    assert (read.answers, read.needed, read.items) == ((), (), ())


def test_of_a_list_every_item_is_needed_in_one_of_its_spellings(tmp_path: Path) -> None:
    lines = [{**LIST, "answers": ["Ann Lee", ["Bo Ek", "B. Ek"]]}, {**GOOD, "answers": ["Ada", "Ada"]}]
    listed, other = read_questions(written(tmp_path, *lines))
    assert (listed.answers, listed.items) == (("Ann Lee", "Bo Ek"), (("Ann Lee",), ("Bo Ek", "B. Ek")))
    assert (other.needed, other.items) == ((), (("Ada", "Ada"),))
    assert read_questions(written(tmp_path, {**GOOD, "needed": "a field of somebody's own"}))[0].needed == ()
    row = """q,Which?,list,"['Ann Lee', ['Bo Ek', 'B. Ek']]\""""
    assert read_questions(written(tmp_path, "id,question,style,answers", row, name="own.csv"))[0].items == listed.items
    assert read_questions(written(tmp_path, {**LIST, "answers": [1907, 1911]}))[0].answers == ("1907", "1911")


def test_arrays_csv_and_parquet_are_read_as_lines_are(tmp_path: Path) -> None:
    from pyarrow import parquet, table

    rows = [{**GOOD, "hops": 2, "gold_titles": ["A", "B"]}, {**GOOD, "id": "q1", "answers": ["Ada, L.", "Ada"]}]
    expected = read_questions(written(tmp_path, *rows))
    header = "id,question,Answers,hops,gold_titles"
    csv = [header, """q0,Who?,Ada,2,"['A', 'B']\"""", 'q1,Who?,"[""Ada, L."", ""Ada""]",,']
    parquet.write_table(
        table({name: [row.get(name) for row in rows] for name in ("id", "question", "answers", "hops", "gold_titles")}),
        tmp_path / "own.parquet",
    )
    files = [
        written(tmp_path, json.dumps(rows, indent=1), name="own.json"),
        written(tmp_path, *csv, name="own.csv"),
        tmp_path / "own.parquet",
    ]
    for file in files:
        assert read_questions(file) == expected
    for name, lines in {"bad.json": ([GOOD, {**GOOD, "answers": [""]}],), "bad.csv": ("id,question", "a,Who?")}.items():
        with pytest.raises(QuestreeError, match=rf"{name}, line [12]: answers"):
            read_questions(written(tmp_path, *lines, name=name))


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("hotpotqa", [published.HOTPOT]),
        ("hotpotqa", published.HOTPOT_ON_THE_HUB),
        ("2wikimultihopqa", [published.TWOWIKI]),
        ("squad", published.SQUAD),
        ("musique", published.MUSIQUE),
        ("strategyqa", [published.STRATEGYQA]),
        ("triviaqa", published.TRIVIAQA),
        ("phantomwiki", [published.PHANTOMWIKI]),  # whose answers are all needed
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_published_files_are_told_how_to_become_a_task(tmp_path: Path, name: str, published: object, indent) -> None:
    path = written(tmp_path, json.dumps(published, indent=indent), name="dev.json")
    with pytest.raises(QuestreeError, match=rf"published.*questree fetch {name} --from {path}.*--task {name}"):
        read_questions(path)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
fields = ["id", "task", "question", "answers", "type", "hops", "steps", "split", "style", "gold_titles", "paragraphs"]


@given(st.dictionaries(st.sampled_from(fields), anything))
def test_whatever_a_line_holds_it_is_a_question_or_a_named_fault(row: dict[str, object]) -> None:
    fault = "own.jsonl, line 7: "
    try:
        check_row({**GOOD, **row}, Path("own.jsonl"), 7)
    except QuestreeError as error:
        fault = str(error)
    assert fault.startswith("own.jsonl, line 7: ")


def test_splits_are_40_30_30_and_hang_on_the_words_alone() -> None:
    splits = [split_of("own", f"Question number {n}?") for n in range(4_000)]
    shares = {split: splits.count(split) / 4_000 for split in ("train", "dev", "test")}
    assert shares == pytest.approx({"train": 0.4, "dev": 0.3, "test": 0.3}, abs=0.03)
    assert split_of("own", "Who  wrote Emma?") == split_of("other", "who wrote emma?")


def test_bamboogle_is_never_trained_on() -> None:
    assert {split_of("bamboogle", f"Question number {n}?") for n in range(50)} == {"test"}


def test_a_split_in_the_file_is_kept(tmp_path: Path) -> None:
    rows = [{**GOOD, "id": n, "split": split} for n, split in enumerate(["test", "train", "test"])]
    assert [q.split for q in read_questions(written(tmp_path, *rows))] == ["test", "train", "test"]


def test_a_split_of_null_is_none(tmp_path: Path) -> None:
    assert read_questions(written(tmp_path, {**GOOD, "split": None}))[0].split == split_of("own", "Who?")
    with pytest.raises(QuestreeError, match=r"1 of 2 questions have a split"):
        read_questions(written(tmp_path, {**GOOD, "split": "train"}, {**GOOD, "id": "q1", "split": None}))
