"""The papers' analyses, each on records whose answer is known."""

import json
from pathlib import Path
from types import SimpleNamespace as Row

import dspy
import pytest
from run_files import keep

from questree.common.errors import QuestreeError
from questree.evaluation.analyses import (
    efficiency,
    helped_by_retrieval,
    knowledge_sources,
    misled_by_retrieval,
    reasoning_steps,
    steps_by_hops,
)
from questree.evaluation.evaluation import Evaluation, is_grounded
from questree.evaluation.records import Record, record_answer
from questree.evaluation.stored_runs import stored_runs
from questree.lm.failure import Failure
from questree.lm.spent import Spent
from questree.metrics.found_passages import passage_fingerprint
from questree.programs import ReasoningTree
from questree.retrieval import Passage

METRIC = "cover-em"


def grown(*sources: str, answer: str | None = "an answer", text: str = "a passage") -> ReasoningTree:
    """A chain of nodes with these knowledge sources, one round each."""
    tree, node = ReasoningTree(question="Who?"), None
    for number, source in enumerate(sources, start=1):
        passage = Passage(id=f"p{number}", title=f"T{number}", text=text)
        node = tree.grow(node, query=f"query {number}", answer=answer, source=source, round=number, passage=passage)
    return tree


def answered(id: str, score: float, *sources: str, hops: int | None = None, failed: bool = False, **fields) -> Record:
    """A question that was asked; its path has nodes of these sources."""
    tree = fields.pop("tree", grown(*sources))
    return Record(
        id=id,
        question=f"question {id}?",
        gold_answers=("gold",),
        tree=tree,
        sources=sources,
        rounds=len(tree.nodes) if tree else 0,
        scores=fields.pop("scores", {METRIC: score}),
        failure=Failure(cause="timeout", message="late") if failed else None,
        hops=hops,
        **fields,
    )


SPENT = Spent(calls=4, tokens_in=30, tokens_out=10, words_in=200, words_out=20, cost=0.5)


def test_a_repeated_query_has_no_source_of_its_own():
    tree = grown("lm", "corrected")
    tree.grow(tree.nodes[-1], query="Query 1", answer="an answer", source="lm", repeats=0)
    example = dspy.Example(question="Who?", answers=["gold"]).with_inputs("question")
    assert record_answer(example, dspy.Prediction(answer="x", tree=tree)).sources == ("lm", "corrected")


def test_the_sources_are_those_of_the_path_that_was_accepted():
    tree = ReasoningTree(question="q")
    accepted = tree.grow(None, query="a", answer="x", source="completed")
    tree.update(accepted, ended="accepted")
    tree.grow(None, query="b", answer="y", source="lm")
    example = dspy.Example(id="1", question="q", answers=["x"]).with_inputs("question")
    assert record_answer(example, dspy.Prediction(answer="x", tree=tree)).sources == ("completed",)


def test_knowledge_sources_are_counted_by_node():
    records = [answered("1", 1, "lm", "lm", "corrected"), answered("2", 0, "completed", "unsolved")]
    shares = {source: figures for source, *figures in map(dict.values, knowledge_sources(records))}
    assert shares == {
        **{"lm": [2, 0.4, 0.5], "corrected": [1, 0.2, 0.25]},
        **{"completed": [1, 0.2, 0.25], "unsolved": [1, 0.2, None]},
    }
    with pytest.raises(QuestreeError, match="SearChain"):
        knowledge_sources([answered("1", 1, "passage")])


def test_the_score_where_retrieval_helped_is_of_those_questions_alone():
    with_ = [
        answered("1", 1, "lm", "corrected"),
        answered("2", 1, "completed"),
        answered("3", 0, "lm"),
        answered("4", 1, "corrected", failed=True),
        answered("5", 1, "corrected"),
    ]
    without = [answered(id, score, "lm") for id, score in (("1", 0), ("2", 1), ("3", 1), ("4", 1))]
    found = Row(**helped_by_retrieval(with_, without, METRIC))
    assert (found.questions, found.helped) == (3, 2), "a failure is no answer, and 5 was asked only once"
    assert found.without.mean == pytest.approx(2 / 3)
    assert (found.without_on_helped.mean, found.with_on_helped.mean, found.difference.mean) == (0.5, 1.0, 0.5)


def test_a_correction_off_the_final_path_helped_too():
    tree = grown("corrected")
    tree.grow(None, query="another", answer="x", source="lm")
    found = Row(**helped_by_retrieval([answered("1", 1, "lm", tree=tree)], [answered("1", 0, "lm")], METRIC))
    assert found.helped == 1


def test_questions_that_retrieval_misled_are_those_that_were_right_without_it():
    without = [answered(str(n), score, "lm") for n, score in enumerate((1, 1, 1, 1, 0, 0))]
    with_ = [answered(str(n), score, "lm") for n, score in enumerate((1, 1, 1, 0, 0, 1))]
    found = Row(**misled_by_retrieval(with_, without, METRIC))
    assert (found.questions, found.right, found.misled.mean) == (6, 4, 0.25)
    failed = [*with_[:3], answered("3", 0, "lm", failed=True)]
    assert misled_by_retrieval(failed, without, METRIC)["misled"].mean == 0, "a failure is not misled"
    with pytest.raises(QuestreeError, match=r"misled none.* lower --right"):
        misled_by_retrieval(with_, [answered("0", 0.4, "lm")], METRIC)
    assert misled_by_retrieval(with_, [answered("0", 0.4, "lm")], METRIC, right=0.3)["right"] == 1


def test_steps_are_those_of_the_path_behind_the_answer_by_hops():
    records = [
        answered("1", 1, "lm", "lm", hops=2),
        answered("2", 0, "lm", "lm", "lm", "lm", hops=2),
        answered("3", 1, "lm", "lm", "lm", hops=3),
        answered("4", 1, "lm", hops=3, failed=True),
    ]
    two, three = (Row(**one) for one in steps_by_hops(records, METRIC))
    assert (two.hops, two.questions, two.steps.mean, two.score.mean) == (2, 2, 3.0, 0.5)
    assert (three.hops, three.questions, three.steps.mean) == (3, 1, 3.0)
    [one] = (Row(**row) for row in steps_by_hops([answered(id, 1, "lm", hops=2) for id in "12"], METRIC))
    assert (one.steps.low, one.steps.high) == (1.0, 1.0), "a count is no share, also where it is 1"
    assert one.score.low < 1
    with pytest.raises(QuestreeError, match="hops"):
        steps_by_hops([answered("1", 1, "lm")], METRIC)


def test_of_a_tree_the_longest_accepted_path_counts():
    tree = ReasoningTree(question="q")
    first = tree.grow(None, query="q", source="passage", action="search")
    tree.grow(first, query="q", source="passage", ended="accepted")
    dead = tree.grow(first, query="q", source="passage", action="search")
    tree.grow(dead, query="q", source="passage", ended="rejected")
    assert reasoning_steps(answered("1", 1, tree=tree)) == 2


def test_what_a_search_found_is_no_step_of_its_own():
    tree = ReasoningTree(question="q")
    found = Passage(id="p", text="It is 9 km long.")
    first = tree.add_search(None, "Which river?", [found])
    assert reasoning_steps(answered("1", 1, tree=tree)) == 1
    tree.add_search(first, "How long is it?", [found])
    assert reasoning_steps(answered("1", 1, tree=tree)) == 2


def test_efficiency_is_of_a_question():
    records = [answered("1", 1, "lm", "lm", spent=SPENT, seconds=3.0), answered("2", 1, "lm", seconds=1.0)]
    found = Row(**efficiency([*records, answered("3", 0, "lm", failed=True, seconds=100.0)]))
    assert (found.questions, found.words_in, found.words_out, found.calls) == (2, 100, 10, 2)
    assert (found.rounds, found.seconds, found.cached, found.tokens, found.cost) == (1.5, 2.0, 0, 20, 0.25)


def test_what_the_cache_answered_in_part_has_no_tokens_and_no_cost(tmp_path, questree):
    records = [
        answered("1", 1, "lm", spent=SPENT.model_copy(update={"cached": 1})),
        answered("2", 1, "lm", spent=SPENT),
    ]
    found = Row(**efficiency(records))
    assert (found.calls, found.cached, found.tokens, found.cost) == (4, 0.5, None, None)
    keep(tmp_path / "run", records)
    assert questree("analyse", "efficiency", tmp_path / "run").out.count("part cached") == 2
    (line,) = json.loads(questree("analyse", "efficiency", tmp_path / "run", "--json").out)
    assert (line["tokens"], line["cost"]) == (None, None)


def test_a_score_that_was_not_taken_is_named():
    with pytest.raises(QuestreeError, match=r"'f1'; it has: cover-em"):
        misled_by_retrieval([answered("1", 1, "lm")], [answered("1", 1, "lm")], "f1")


def test_a_comparisons_folder_stands_for_its_runs(tmp_path, monkeypatch):
    simulated = {"simulated": True}
    keep(tmp_path / "c", [answered("1", 1, "lm")], "b", lm=simulated)
    keep(tmp_path / "c", [answered("1", 0, "lm")], "a", lm=simulated)
    keep(tmp_path / "a", [answered("1", 0, "lm")], lm=simulated)
    monkeypatch.chdir(tmp_path / "a")
    assert [run.name for run in stored_runs([Path()])] == ["a"]
    runs = stored_runs([tmp_path / "c", tmp_path / "a"])
    assert [one.name for one in runs] == ["b", "a", str(tmp_path / "a")]
    assert all(one.simulated and one.metric == METRIC for one in runs)
    with pytest.raises(QuestreeError, match="holds no run"):
        stored_runs([tmp_path / "d" / "nothing"])


SWEDEN = Passage(id="1", title="IKEA", text="IKEA was founded in Sweden.")

NORWAY = Passage(id="2", title="Oslo", text="It is the capital of Norway.")


def record(answer: str, rests_on: str | None = "passages", references=(SWEDEN,), score: float = 1.0) -> Record:
    fields = {"references": references, "scores": {"em": score}, "rests_on": rests_on}
    return Record(id=answer, question="?", answer=answer, **fields)


@pytest.mark.parametrize(
    ("one", "gold", "grounded"),
    [
        (record("Sweden"), {}, True),
        (record("Sweden", "memory"), {}, False),
        (record("Sweden", "guess"), {}, False),
        (record("Sweden", references=()), {}, False),
        (record("Norway"), {}, False),  # no cited passage names it
        (record("yes"), {}, True),
        (record("", None), {"gold_answers": ("Sweden",)}, False),
        (record("", None), {}, True),  # rightly none
        (record("Sweden"), {"gold_passages": ("1",)}, True),
        (record("Sweden"), {"gold_passages": (passage_fingerprint("IKEA", "IKEA was founded in Sweden"),)}, True),
        (record("Sweden"), {"gold_passages": ("2",)}, False),  # names the answer, and tells something else
        (record("Sweden"), {"gold_passages": ("2",), "gold_titles": ("ikea",)}, True),  # of the gold article
        (record("Sweden"), {"gold_titles": ("Sweden",)}, False),
        (record("Sweden", "guess"), {"gold_passages": ("1",)}, True),  # a gold passage names it
        (record("yes", "guess"), {"gold_passages": ("1",)}, False),
        (record("Norway and Sweden", references=(SWEDEN, NORWAY)), {}, True),  # a list, each item by its own passage
        (record("Norway and Sweden"), {}, False),
    ],
)
def test_what_is_grounded(one: Record, gold: dict[str, tuple[str, ...]], grounded: bool):
    assert is_grounded(one.model_copy(update=gold)) is grounded


@pytest.mark.parametrize("gold", [{}, {"gold_passages": ("1",)}])
def test_of_a_list_each_item_is_grounded_by_itself(gold: dict[str, tuple[str, ...]]):
    told = {"answer_style": "list", "answers": ("Sweden", "Norway"), "answer": "Sweden; Norway", "rests_on": "memory"}
    one = record("x").model_copy(update=told | gold)
    assert is_grounded(one) == 0.5
    assert is_grounded(one.model_copy(update={"answers": ("Sweden",)})) == 1
    many = tuple(f"City {number}" for number in range(9))
    assert is_grounded(one.model_copy(update={"answers": many, "answer": "; ".join(many)})) == 0, "no paragraph"


def test_the_score_of_answers_that_cite_the_whole_chain():
    gold = {"gold_passages": ("1", "2")}
    whole, part = (
        record("Sweden").model_copy(update=gold | {"retrieval": {"chain cited": share}}) for share in (1.0, 0.0)
    )
    failed = record("", score=0.0).model_copy(update=gold)
    assert Evaluation("em", (whole, part, failed)).chain_cited.mean == pytest.approx(1 / 3)
    assert Evaluation("em", (record("Sweden"),)).chain_cited is None


def test_the_score_counts_grounded_answers_alone():
    found = Evaluation("em", (record("Sweden"), record("yes", "memory"), record("no", score=0.0)))
    assert found.score.mean == pytest.approx(2 / 3)
    assert found.grounded.mean == pytest.approx(1 / 3)
    assert found.figures()["grounded"] == pytest.approx(1 / 3)
