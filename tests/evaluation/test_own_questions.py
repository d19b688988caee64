"""Chains become a file of questions: splits share no passage, a budget stops it, and the same call goes on."""

import json
from itertools import islice, pairwise
from pathlib import Path

import dspy
import pytest
from lms import answering as answering

from questree.data import MINI_CORPUS, load_task
from questree.data.review import decide
from questree.evaluation.comparison.page import as_page
from questree.evaluation.comparison.rows import Comparison
from questree.evaluation.evaluation import Evaluation
from questree.evaluation.own_questions import QuestionShares, chains_of, dropped_file, write_questions
from questree.evaluation.records import Record
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import stored_runs
from questree.evaluation.tables import SELF_WRITTEN, SIMULATED
from questree.lm.limits import OutOfBudgetError, RunPolicy
from questree.metrics import metric
from questree.pages.shown_runs import ShownRuns
from questree.pages.study import Study
from questree.programs import build
from questree.programs.written_questions import Chain, QuestionWriting
from questree.retrieval import LinkedRetriever, Passage, build_index, load_index
from questree.simulate import simulated_lm

ONE_HOP = QuestionShares(single=0, list=0, comparison=0, absent=0)
ONE_AT_A_TIME = RunPolicy(concurrency=1)


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> LinkedRetriever:
    return load_index(build_index(MINI_CORPUS, tmp_path_factory.mktemp("index") / "linked", kind="linked"))


def mini_lm() -> dspy.LM:
    return simulated_lm([one for split in load_task("mini").questions.values() for one in split])


@pytest.fixture
def lm():
    with dspy.context(lm=mini_lm(), adapter=None):
        yield


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(linked: LinkedRetriever, folder: Path, count: int = 6, seed: int = 0, **how) -> list[dict]:
    chains, out = chains_of(linked, ONE_HOP, seed), folder / "own.jsonl"
    return write_questions(QuestionWriting(linked), chains, count, folder=folder / "run", out=out, **how)


def test_no_passage_is_in_two_splits_and_the_seed_tells_the_chains(linked) -> None:
    chains = list(islice(chains_of(linked, QuestionShares(), 3), 150))
    assert chains == list(islice(chains_of(linked, QuestionShares(), 3), 150))
    assert chains != list(islice(chains_of(linked, QuestionShares(), 4), 150))
    splits = {split: {p.id for c in chains if c.split == split for p in c.shown} for split in ("train", "dev", "test")}
    assert all(splits.values())
    assert sum(map(len, splits.values())) == len(set().union(*splits.values()))
    assert len({frozenset(p.id for p in chain.passages) for chain in chains}) == len(chains)


def test_passages_of_a_chain_are_linked(linked) -> None:
    for chain in islice(chains_of(linked, ONE_HOP, 0), 40):
        assert 2 <= len(chain.passages) <= 4
        places = linked.links.positions([one.id for one in chain.passages])
        for before, after in pairwise(places):
            titles = set(linked.links.links.of(before[None])[1].tolist())
            names = set(linked.links.names.of(before[None])[1].tolist())
            shared = names & set(linked.links.names.of(after[None])[1].tolist())
            assert shared or int(linked.links.title_of[after]) in titles


def test_a_prompt_also_shows_what_a_search_for_a_sentence_finds_and_that_makes_up_for_a_link(tmp_path: Path) -> None:
    texts = {
        "Leave": "Parents take sixteen weeks of paid leave after a birth.",
        "Notice": "Tell your manager of paid leave three months before it begins.",
        "Desk": "Everybody gets a chair and a desk that can be raised and lowered.",
    }
    passages = [Passage(id=title, title=title, text=text) for title, text in texts.items()]
    index = build_index(passages, tmp_path / "index", kind="linked")
    shares = QuestionShares(single=0, list=0, comparison=0, absent=0)
    chains = list(chains_of(load_index(index), shares, 0))
    assert {(*(p.id for p in c.passages), *(p.id for p in c.near)) for c in chains} >= {("Leave", "Notice")}
    assert not any(p.id == "Desk" for c in chains for p in c.near)


@pytest.mark.parametrize(
    ("shares", "kind"),
    [({"absent": 1}, "absent"), ({"comparison": 1}, "comparison"), ({"single": 1}, "single"), ({"list": 1}, "list")],
)
def test_a_share_is_of_its_kind(linked, shares: dict, kind: str) -> None:
    none = {"single": 0, "list": 0, "comparison": 0, "absent": 0}
    chains = list(islice(chains_of(linked, QuestionShares(**(none | shares)), 0), 20))
    assert {chain.kind for chain in chains} == {kind}
    assert {len(chain.passages) for chain in chains} <= {1, 2, 3}


def test_the_file_is_a_task_and_every_other_question_says_why_it_was_dropped(linked, lm, tmp_path: Path) -> None:
    rows = write(linked, tmp_path)
    kept, dropped = rows_of(tmp_path / "own.jsonl"), rows_of(dropped_file(tmp_path / "own.jsonl"))
    assert len(kept) == 6
    assert len(rows) == len(kept) + len(dropped)
    assert all(row["dropped"] for row in dropped)
    assert {one.id for split in load_task(tmp_path / "own.jsonl").questions.values() for one in split} == {
        row["id"] for row in kept
    }
    assert all(row["written_by"] and row["checked_by"] and len(row["quotes"]) == len(row["steps"]) for row in kept)


def test_a_budget_stops_it_and_the_same_call_goes_on_with_what_was_paid(linked, lm, tmp_path: Path) -> None:
    bounded, paid_then = RunPolicy(max_calls=5, concurrency=1), list[int]()
    for _ in range(2):  # what was paid by the first counts against the budget of the second, which asks nothing
        with pytest.raises(OutOfBudgetError, match="max_calls=5"):
            write(linked, tmp_path, policy=bounded)
        paid_then.append(stored_runs([tmp_path / "run"])[0].paid.calls)
    assert paid_then[0] == paid_then[1] >= 5
    first = rows_of(dropped_file(tmp_path / "own.jsonl")) + rows_of(tmp_path / "own.jsonl")
    assert 0 < len(first) <= 5
    write(linked, tmp_path, policy=ONE_AT_A_TIME)
    dspy.cache.reset_memory_cache()  # so that all of it is paid for
    with dspy.context(lm=mini_lm()):  # which was asked nothing before
        whole = write(linked, tmp_path / "whole", policy=ONE_AT_A_TIME)
    then = rows_of(dropped_file(tmp_path / "own.jsonl")) + rows_of(tmp_path / "own.jsonl")
    assert sorted(then, key=str) == sorted(whole, key=str)
    paid, at_once = (stored_runs([folder / "run"])[0].paid for folder in (tmp_path, tmp_path / "whole"))
    assert paid
    assert at_once
    assert paid.calls == at_once.calls


def test_a_question_in_the_words_of_another_one_is_dropped(linked, answering, tmp_path: Path) -> None:
    def reply(asked):
        if asked.wants == "steps":
            step = {"question": "Which stamp is it?", "passage": 1}
            return {"steps": [step], "written_question": step["question"], "answers": []}
        if asked.wants == "asker":
            return {"asker": "", "odd": "", "well_asked": True, "remembered": ""}
        return {"evidence": [], "comparison": [], "searches": [], "answer": "", "sure": "True"}

    answering(reply)
    chains = [Chain((linked.words.passages[place],), "absent", "dev") for place in range(2)]
    rows = write_questions(
        QuestionWriting(linked), iter(chains), 2, folder=tmp_path / "run", out=tmp_path / "own.jsonl"
    )
    assert [row.get("dropped") for row in rows] == [None, "it repeats another question"]


@pytest.mark.parametrize(("writer", "said"), [("answering/test", SELF_WRITTEN), ("openai/other", ""), (None, "")])
def test_scores_say_that_the_lm_wrote_the_questions(answering, tmp_path: Path, writer, said: str) -> None:
    answering(lambda asked: {"reasoning": "", "final_content": "", "answer": "Lindau"})
    row = {"question": "Where?", "answers": ["Lindau"], "split": "dev"} | ({"written_by": writer} if writer else {})
    (tmp_path / "own.jsonl").write_text(json.dumps(row), encoding="utf-8")
    examples = load_task(tmp_path / "own.jsonl").examples("dev")
    evaluation = evaluate(build("direct", {}), examples, metric("cover-em"), out=tmp_path / "run")
    again = stored_runs([tmp_path / "run"])[0].evaluation
    assert evaluation.warning == again.warning == said
    comparison = Comparison({"direct": evaluation})
    tables = [comparison.as_markdown(), comparison.as_json(), comparison._repr_html_()]
    for text in (str(evaluation), evaluation.as_json(), *tables):
        assert (SELF_WRITTEN in text) == bool(said)
    for page in (as_page(comparison), Study(ShownRuns([tmp_path / "run"])).page("index.html")):
        assert (f'<p class="warn note">{SELF_WRITTEN.capitalize()[:20]}' in page) == bool(said)


def test_a_warning_of_one_run_hides_no_other_one() -> None:
    answered = Record(id="q", question="Who?", gold_answers=("a",), answer="a", scores={"em": 1.0})
    runs = {"a": Evaluation("em", (answered,), simulated=True)}
    runs["b"] = Evaluation("em", (answered.model_copy(update={"self_written": True}),))
    assert Comparison(runs).warning == f"{SIMULATED}; {SELF_WRITTEN}"


def test_what_was_reviewed_outlives_the_same_command(linked, lm, tmp_path: Path) -> None:
    write(linked, tmp_path, 2, seed=1)
    kept = rows_of(tmp_path / "own.jsonl")
    decide(tmp_path / "own.jsonl", kept[0]["id"], "drop", question=kept[0]["question"], answers=kept[0]["answers"])
    decide(tmp_path / "own.jsonl", kept[1]["id"], "keep", question="Mended?", answers=kept[1]["answers"])
    for _ in range(2):
        write(linked, tmp_path, 2, seed=1)  # writes another in the place of the dropped one
        again = rows_of(tmp_path / "own.jsonl")
        assert len(again) == 2
        assert (again[0]["question"], again[0]["review"]) == ("Mended?", "mend")
        dropped = {row["id"]: row["dropped"] for row in rows_of(dropped_file(tmp_path / "own.jsonl"))}
        assert dropped[kept[0]["id"]] == "in review"
