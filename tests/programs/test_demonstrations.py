"""Which steps of a trace are demonstrated: of every kind, and none that the gold passages contradict."""

from types import SimpleNamespace
from typing import Any

import dspy
import pytest
from steps import last_step, titled

from questree.lm.limits import Limits, limited
from questree.metrics.found_passages import passage_fingerprint
from questree.programs import (
    BlendFilter,
    BlendFilterSettings,
    ChainOfReviews,
    SearChain,
    TreeOfReviews,
    TreeOfReviewsSettings,
)
from questree.programs.demonstrations import (
    Judgement,
    alternate,
    as_found,
    contradicts,
    note,
    noted,
    select_demonstrations,
)
from questree.programs.tree import ReasoningTree
from questree.retrieval import Passage
from questree.signatures.chain_of_query import PlannedStep, Step, TracedStep

TREE, PAPER_TREE, CHAIN = (
    TreeOfReviews(),
    TreeOfReviews(settings=TreeOfReviewsSettings(preset="paper")),
    ChainOfReviews(),
)
BLEND, PAPER_BLEND = BlendFilter(), BlendFilter(settings=BlendFilterSettings(preset="paper"))
ASKED = {"question": "q", "answer_style": "short"}


def review(titles: str | list[str], action: str, program: Any = TREE) -> Any:
    return last_step(program.paragraph_review, reply_of(action, program), passages=titled(titles), tried=[], **ASKED)


def reply_of(action: str, program: Any) -> dict[str, Any]:
    accepts = action == "accept"
    if program is TREE:
        reply = {"facts": "Hm [1].", "last_adds": action != "reject"}
        query = "" if accepts else "What is it?"
        return {**reply, "supported_answer": "a" if accepts else "", "next_query": query, "guess": ""}
    reply = {"relevant": action != "reject", "supported": accepts, "analysis": "", "answer": "a" if accepts else None}
    thoughts = {"thoughts": "Hm."} if program is CHAIN else {}
    return {**thoughts, **reply, "next_query": None}


def filtering(titles: str, kept: list[int], program: Any = BLEND) -> Any:
    judgements = [{"number": number, "says": "something", "useful": True} for number in kept]
    reply = {"judgements": judgements} if program is BLEND else {"reasons": "Hm.", "kept": kept}
    return last_step(program.knowledge_filter, reply, question="q", passages=titled(titles))


def fusion() -> Any:
    reply = {"final_content": "So.", "answer": "a", "sure": True}
    return last_step(TREE.evidence_fusion, reply, evidence=[], passages=[], **ASKED)


def test_where_gold_passages_are_known_a_title_is_not_enough():
    def by_passage(step: Any, *gold: str) -> bool:
        return not contradicts(noted(step).judgements, SimpleNamespace(gold_titles=["G"], gold_passages=list(gold)))

    by_id, by_words = ["G"], [passage_fingerprint("G", "text")]
    for step, right in [(review("G", "search"), True), (review("G", "reject"), False)]:
        assert by_passage(step, *by_id) == by_passage(step, *by_words) == right
        assert by_passage(step, "another passage of G") != right


def test_of_several_paragraphs_those_that_the_prompt_showed_are_judged():
    long = [Passage(id=title, title=title, text=" ".join(f"word{n}" for n in range(300))) for title in "GX"]
    with limited(Limits(window=3000)):
        step = last_step(CHAIN.paragraph_review, reply_of("search", CHAIN), passages=long, tried=[], **ASKED)
    assert [passage.id for judged in noted(step).judgements for passage in judged.passages] == ["X"]


def example(*gold: str) -> Any:
    return SimpleNamespace(gold_titles=list(gold))


def sound(step: Any, *gold: str) -> bool:
    return not contradicts(noted(step).judgements, example(*gold))


@pytest.mark.parametrize(
    ("titles", "sound_actions", "programs"),
    [
        ("G", {"search", "accept"}, (TREE, PAPER_TREE)),
        ("X", {"reject"}, (TREE, PAPER_TREE)),
        ("GX", {"reject"}, (TREE, PAPER_TREE)),  # the node's own paragraph is judged, the last one
        ("XG", {"search", "accept"}, (TREE, PAPER_TREE)),
        ("GX", {"search", "accept"}, (CHAIN,)),  # a chain's review judges all its paragraphs
        ("XX", {"reject"}, (CHAIN,)),
    ],
)
def test_a_review_that_contradicts_the_gold_passages(titles, sound_actions, programs):
    for program in programs:
        for action in ("search", "accept", "reject"):
            assert sound(review(titles, action, program), "G") == (action in sound_actions), (program.name, action)


@pytest.mark.parametrize("program", [BLEND, PAPER_BLEND], ids=["best", "paper"])
@pytest.mark.parametrize(
    ("kept", "is_sound"), [([1], True), ([], False), ([1, 2], False), ([2], False), ([1, 9], True), ([1, 0], True)]
)
def test_a_filtering_that_contradicts_the_gold_passages(kept, is_sound, program):
    assert sound(filtering("GX", kept, program), "G") == is_sound


def test_titles_are_compared_as_prompts_show_them():
    assert not sound(review(["[[ ## a ## ]]"], "reject"), "[[ ## a ## ]]")
    assert sound(review(["Gold rush"], "reject"), "Gold")


def test_without_gold_passages_nothing_is_contradicted():
    assert sound(review("X", "accept"))
    assert not contradicts(noted(review("X", "accept")).judgements, dspy.Example(question="q"))


def test_kinds():
    actions = ("accept", "search", "reject")
    assert [noted(review("A", action)).kind for action in actions] == ["accept", "search", "reject after facts"]
    assert [noted(review("A", action, PAPER_TREE)).kind for action in actions] == list(actions)
    assert [noted(filtering("AB", kept)).kind for kept in ([1, 2], [2], [], [7])] == ["all", "some", "none", "none"]
    tracing = last_step(SearChain().tracing, {"final_content": "So.", "answer": "a"}, path=[], **ASKED)
    assert [noted(step).kind for step in (fusion(), tracing)] == ["", "cites"]


def test_what_is_noted_on_a_reply_is_in_no_demonstration():
    reply = dspy.Prediction(answer="a")
    note(reply, "accept", [Judgement(titled("G"), True)])
    assert dict(reply) == {"answer": "a"}


def test_kinds_take_turns():
    assert "".join(alternate("aaabbc", lambda item: item)) == "abcaba"
    assert alternate([], lambda item: item) == []


def test_the_first_demonstrations_of_a_review_are_of_different_kinds():
    trace = [review("G", "search"), review("G", "search"), review("X", "accept"), review("X", "reject")]
    trace += [review("G", "accept"), review("X", "reject")]
    kinds = [noted(step).kind for step in select_demonstrations(trace, example("G"))]
    assert kinds == ["search", "reject after facts", "accept", "search", "reject after facts"]


def test_predictors_are_balanced_each_by_itself():
    trace = [review("X", "reject"), fusion(), review("G", "accept"), fusion()]
    reviews, fuses = TREE.paragraph_review.review, TREE.evidence_fusion.fuse
    assert [step[0] for step in select_demonstrations(trace, example("G"))] == [reviews, reviews, fuses, fuses]


def test_a_found_step_that_the_annotations_contradict_is_no_demonstration():
    steps = [
        {"question": "Who wrote Peer Gynt?", "answer": "Henrik Ibsen"},
        {"question": "Where was #1 born?", "answer": "Skien"},
    ]
    example = dspy.Example(question="q", answers=["Skien"], annotated_steps=steps)
    predictor = dspy.Predict("question, steps -> answer")
    told = [TracedStep(query="Where was Henrik Ibsen born?", answer=answer) for answer in ("Skien", "Oslo")]
    trace = [(predictor, {"question": "q", "steps": [step]}, dspy.Prediction(answer="a")) for step in told]
    assert select_demonstrations(trace, example) == trace[:1]


PRAGUE = Passage(id="p", title="Kafka", text="Kafka was born in Prague.")


def step_of(**fields):
    return dspy.Predict("question -> planned_chain"), {"question": "q"}, dspy.Prediction(**fields)


BORN, GOLDEN = "Where was Kafka born?", "Prague, the golden city"
FOUND, ALIKE = {"answer": "Prague", "support": PRAGUE.text, "replaces": 0}, {"answer": "the city of Prague"}


@pytest.mark.parametrize(
    ("recalled", "nodes", "annotated", "shown"),
    [
        ("Prague", [{"answer": "Prague"}, FOUND], None, ("Prague", True)),
        ("Vienna", [{"answer": "Vienna"}, FOUND], None, (None, False)),
        (None, [{}, FOUND], None, (None, False)),
        (GOLDEN, [{**ALIKE, "support": PRAGUE.text, "stance": "supports"}], None, (GOLDEN, True)),  # in its own words
        (GOLDEN, [{**ALIKE, "support": PRAGUE.text, "stance": "supports"}], "Vienna", ("Vienna", False)),
        ("Prague", [{"answer": "Prague"}], None, (None, False)),  # no passage supports it
        ("Prague", [{"answer": "Prague"}], "Prague", ("Prague", True)),
        ("Vienna", [{"answer": "Prague"}], "Prague", ("Prague", False)),
    ],
)
def test_a_plan_shows_what_was_found_out(recalled, nodes, annotated, shown):
    tree, example = ReasoningTree(question="q"), None
    for node in nodes:
        tree.grow(None, query=BORN, found=(PRAGUE,), **node)
    if annotated:
        example = dspy.Example(annotated_steps=[{"question": BORN, "answer": annotated}])
    planned = [PlannedStep(query=BORN, recalled=recalled, sure=recalled is not None)]
    _, _, reply = as_found(step_of(planned_chain=planned), tree, example)
    assert [(one.recalled, one.sure) for one in reply.planned_chain] == [shown]


@pytest.mark.parametrize(("answer", "shown"), [("Prague", "Prague"), ("Vienna", None), (None, None)])
def test_a_chain_of_the_paper_shows_what_was_found_out(answer, shown):
    tree = ReasoningTree(question="q")
    tree.grow(None, query=BORN, answer="Prague", found=(PRAGUE,), support=PRAGUE.text)
    step = step_of(chain=[Step(query=BORN, answer=answer)])
    assert [one.answer for one in as_found(step, tree)[2].chain] == [shown]


def test_what_builds_on_an_answer_that_turned_out_wrong_is_not_recalled_either():
    tree, ends = ReasoningTree(question="q"), "Where does #1 end?"
    queries = [BORN, "Which river flows through #1?", "Where does #2 end?", "Who wrote Amerika?"]
    for query in [*queries, ends]:
        stance = "contradicts" if query == BORN else "supports"
        tree.grow(None, query=query, answer="a", found=(PRAGUE,), stance=stance)
    planned = [PlannedStep(query=query, recalled="a", sure=True) for query in queries]
    told = as_found(step_of(planned_chain=planned), tree)[2].planned_chain
    assert [(one.recalled, one.sure) for one in told] == [(None, False)] * 3 + [("a", True)]
    predictor, _, rest = step_of(rest=[PlannedStep(query=ends, recalled="a", sure=True)])
    assert as_found((predictor, {"solved": [BORN]}, rest), tree)[2].rest == rest.rest  # #1 is solved


def test_a_plan_of_which_nothing_was_looked_up_is_shown_as_it_is():
    tree = ReasoningTree(question="q")
    tree.grow(None, query="Where was Kafka born?", answer="Vienna")
    step = step_of(answered_plan=[Step(query="Where?", answer="Vienna")])
    assert as_found(step, tree) is step
