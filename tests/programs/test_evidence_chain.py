"""Evidence chain: what it asks, what it cites, and when it stops."""

from typing import Any

import dspy
import pytest
from fakes import FoundRetriever

from questree.programs.basis import standing_of
from questree.programs.demonstrations import noted
from questree.programs.tree_views import as_text
from questree.retrieval import Passage
from questree.signatures.answers import FORMS

Q = "Where did the painter of The Red Barge die?"
BARGE = Passage(
    id="1", title="The Red Barge", text="The Red Barge is a painting of 1931. It was painted by Brenka Ostal."
)
OSTAL = Passage(id="2", title="Brenka Ostal", text="Brenka Ostal was a Velian painter. She died in Orvane in 1987.")
OTHER = Passage(id="3", title="Barge", text="A barge is a boat with a flat bottom.")
PAINTED = {"fact": "The Red Barge was painted by Brenka Ostal.", "passage": 1, "quote": "painted by Brenka Ostal"}
DIED = {"fact": "Brenka Ostal died in Orvane.", "passage": 2, "quote": "She died in Orvane"}
FOUND = {Q: [BARGE, OTHER], "Brenka Ostal death": [OSTAL, OTHER]}


def reads(*facts: Any, missing: Any = (), answer: str = "Orvane", sure: bool = True, comparison: Any = ()) -> Any:
    return {
        **{"evidence": list(facts), "comparison": list(comparison), "searches": list(missing)},
        **{"answer": answer, "sure": str(sure)},
    }


@pytest.fixture
def ask(run):
    """Ask with an LM that gives these replies; ``found`` are passages by query, or those of the question."""

    def ask(*replies: Any, found: Any = FOUND, **settings: Any) -> Any:
        retriever = FoundRetriever(found if isinstance(found, dict) else {Q: found})
        return run("evidence-chain", *replies, found=retriever, question=Q, **settings)

    return ask


DEATH, ALL = ["Brenka Ostal death"], [BARGE, OSTAL]


def test_one_call_if_nothing_is_missing(ask):
    prediction, *_ = ask(reads(PAINTED, DIED), found=ALL)
    assert prediction.final_content == (
        "The Red Barge was painted by Brenka Ostal [1]. Brenka Ostal died in Orvane [2]. So the answer is: Orvane."
    )
    assert (prediction.answer, prediction.rests_on) == ("Orvane", "passages")
    assert [passage.title for passage in prediction.references] == ["The Red Barge", "Brenka Ostal"]
    assert [(node.answer, node.source, node.support) for node in prediction.tree.nodes[1:]] == [
        ("Brenka Ostal", "completed", "It was painted by Brenka Ostal."),
        ("Orvane", "completed", "She died in Orvane in 1987."),
    ]


def test_what_is_missing_is_searched_for_and_the_next_call_sees_facts_and_proofs(ask):
    prediction, asked, queries = ask(reads(PAINTED, missing=DEATH), reads(PAINTED, DIED))
    assert queries == [Q, *DEATH]
    told = ['["The Red Barge was painted by Brenka Ostal. [1]"]', "[1] The Red Barge", "[2] Brenka Ostal", "[3] Barge"]
    assert [one for one in [*told, '["Brenka Ostal death"]'] if one not in asked[1].text] == []
    assert "\n1\n" in asked[1].text.split("searches_left")[1]
    assert (prediction.answer, len(prediction.references)) == ("Orvane", 2)


def test_a_fact_that_was_proven_before_needs_no_quote_again(ask):
    again = {"fact": f"{PAINTED['fact']} [1]", "passage": 0, "quote": ""}  # copied with its tag
    unproven = {**DIED, "passage": 1, "quote": "The Red Barge is a painting"}
    prediction, asked, _ = ask(reads(PAINTED, unproven, missing=DEATH), reads(again, DIED))
    known = ["The Red Barge was painted by Brenka Ostal. [1]", "Brenka Ostal died in Orvane. (unproven)"]
    assert asked[1].given("known_facts") == known
    assert prediction.final_content.startswith("The Red Barge was painted by Brenka Ostal [1]. Brenka Ostal died")


def test_queries_are_searched_for_once(ask):
    assert ask(reads(PAINTED, missing=[Q.upper(), "none"]))[2] == [Q]


def test_it_stops_when_a_search_brings_nothing_that_was_not_read(ask):
    ask(reads(PAINTED, missing=["boats"], sure=False), found={Q: [BARGE, OTHER], "boats": [OTHER]})


@pytest.mark.parametrize(("query", "known"), [("boats", ["boats"]), (Q, [])])
def test_a_reply_that_waits_for_a_search_in_vain_is_asked_for_the_answer(ask, query: str, known: list[str]):
    """It leaves the answer empty as long as it searches, and so invents none."""
    found = {Q: [BARGE, OTHER], "boats": [OTHER]}
    waits, answers = reads(PAINTED, missing=[query], answer="", sure=False), reads(PAINTED, answer="Bonn", sure=False)
    prediction, asked, queries = ask(waits, answers, found=found)
    assert [(one.given("searches_left"), one.titles) for one in asked] == [
        ("2", ("The Red Barge", "Barge")),
        ("0", ("The Red Barge", "Barge")),
    ]
    assert (asked[1].given("queries"), queries) == (known, [Q, *known])
    assert (prediction.answer, prediction.rests_on) == ("Bonn", "guess")


@pytest.mark.parametrize("answer", ["unknown", "not found", ""])
@pytest.mark.parametrize("sure", [True, False])
def test_no_answer_is_no_guess_and_rests_on_nothing(ask, answer: str, sure: bool):
    prediction, *_ = ask(reads(PAINTED, answer=answer, sure=sure), found=ALL)
    assert (prediction.answer, prediction.rests_on) == ("", None)
    assert prediction.final_content == "The Red Barge was painted by Brenka Ostal [1]."


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ("Ostal was born on 0872-10-18.", "0872-10-18"),
        ("Ostal was born on 18 October 0872 in Orvane.", "18 October 0872, Orvane"),
        ("Ostal was born on October 18, 0872.", "October 18, 0872"),
        ("Ostal lived from 1901 to 1987.", "1901, 1987"),
        ("The Red Barge was painted.", ""),
    ],
)
def test_the_tree_shows_what_a_fact_adds_as_it_is_written(ask, fact: str, told: str):
    passage = OSTAL.model_copy(update={"title": "Ostal", "text": fact})
    given = {"fact": fact, "passage": 1, "quote": fact}
    before = {"fact": "Ostal was a painter.", "passage": 0, "quote": ""}
    line = as_text(ask(reads(before, given), found=[passage])[0].tree)
    assert line.splitlines()[-1].strip() == f"└─● {fact}{told and f' → {told}'}  (found in Ostal)"


def test_a_search_that_proved_nothing_is_made_again_in_other_words(ask):
    recalled = {**DIED, "passage": 0, "quote": ""}
    replies = reads(PAINTED, recalled, missing=["death"]), reads(PAINTED, recalled, missing=["boats"]), reads(DIED)
    prediction, *_ = ask(*replies, found={Q: [BARGE], "death": [OTHER], "boats": [OSTAL]})
    assert prediction.rests_on == "passages"


def test_copies_of_a_passage_are_shown_once(ask):
    found = {Q: [BARGE], "Brenka Ostal death": [OSTAL, OSTAL.model_copy(update={"id": "9"})]}
    _, asked, _ = ask(reads(PAINTED, missing=DEATH), reads(PAINTED, DIED), found=found)
    assert asked[1].text.count("Velian painter") == 1


@pytest.mark.parametrize(
    ("fact", "mark"),
    [
        ({**DIED, "passage": 1}, "[1]"),  # the wrong number: the quote tells the passage
        ({**DIED, "quote": "she passed away in Orvane"}, ""),
        ({**DIED, "quote": "Brenka Ostal"}, ""),
        ({**DIED, "passage": 0, "quote": ""}, ""),
        ({**DIED, "passage": 77}, "[1]"),
    ],
)
def test_a_mark_stands_only_where_the_quote_does(ask, fact: dict[str, Any], mark: str):
    prediction, *_ = ask(reads(fact), found=ALL, max_calls=1)
    told = "Brenka Ostal died in Orvane"
    assert prediction.final_content.startswith(f"{told} {mark}." if mark else f"From memory: {told}.")
    assert prediction.rests_on == ("passages" if mark else "memory")


def test_a_fact_whose_quote_proves_nothing_is_searched_for(ask):
    replies = reads({**DIED, "passage": 1, "quote": "she lived there"}), reads(DIED)
    prediction, _, queries = ask(*replies, found={Q: [OSTAL], DIED["fact"]: [OTHER]})
    assert prediction.references[0].title == "Brenka Ostal"
    assert queries == [Q, DIED["fact"]]


def test_a_fact_that_says_more_than_its_quote_has_no_mark_and_costs_no_search(ask):
    fact = {"fact": "Brenka Ostal died in Orvane, aged 76.", "passage": 1, "quote": "She died in Orvane"}
    prediction, _, queries = ask(reads(fact), found=[OSTAL])
    assert prediction.final_content.startswith("From memory: Brenka Ostal died in Orvane, aged 76.")
    assert queries == [Q]


def test_the_calls_are_bounded_and_the_last_one_is_told_so(ask):
    prediction, asked, _ = ask(reads(missing=DEATH), reads(missing=["boats"], sure=False), max_calls=2)
    assert "\n0\n" in asked[1].text.split("searches_left")[1]
    assert prediction.final_content == "A guess: Orvane."


@pytest.mark.parametrize(("sure", "answer"), [(False, ""), (True, "Orvane")])
def test_abstaining_leaves_a_guess_out(ask, sure: bool, answer: str):
    for abstain in ("unsure", True):  # as it was set before there were two ways
        assert ask(reads(PAINTED, sure=sure), abstain=abstain)[0].answer == answer


def test_compared_values_decide_if_they_are_proven(ask):
    facts = [
        {"fact": "The Red Barge is of 1931.", "passage": 1, "quote": "is a painting of 1931"},
        {"fact": "Brenka Ostal died in 1987.", "passage": 2, "quote": "died in Orvane in 1987"},
    ]
    compared = ["latest", "The Red Barge: 1931", "Brenka Ostal: 1987"]
    for proven, answer in ((facts, "Brenka Ostal"), (facts[:1], "The Red Barge")):
        assert ask(reads(*proven, answer="The Red Barge", comparison=compared), found=ALL)[0].answer == answer


def test_a_confirmation_may_ask_for_one_more_search(ask):
    lacks = {"lacking": "Brenka Ostal death", "follows": "False"}
    prediction, asked, _ = ask(reads(PAINTED), lacks, reads(PAINTED, DIED), confirm=True)
    assert prediction.answer == "Orvane"
    assert "The Red Barge: It was painted by Brenka Ostal." in asked[1].text


@pytest.mark.parametrize("found", [[], [OTHER.model_copy(update={"id": str(n)}) for n in range(10)]])
def test_without_evidence_it_still_answers(ask, found: list[Passage]):
    prediction, *_ = ask(reads(sure=False), found=found)
    assert (prediction.final_content, prediction.references) == ("A guess: Orvane.", [])


def test_a_reply_of_a_hundred_facts_is_cut(ask):
    facts = ({**DIED, "fact": f"Brenka Ostal died in Orvane{' again' * n}."} for n in range(100))
    prediction = ask(reads(*facts), found=[OSTAL])[0]
    assert len(prediction.tree.nodes) == 51
    assert "50 further facts of the reply were not read." in prediction.final_content


@pytest.mark.parametrize(
    ("passage", "missing", "answer", "exemplary"),
    [(2, [], "Orvane", True), (1, [], "Orvane", False), (2, ["boats"], "Orvane", False), (2, ["boats"], "", True)],
)
def test_a_reading_that_numbers_a_passage_wrongly_or_answers_while_it_searches_is_no_demonstration(
    ask, passage: int, missing: list[str], answer: str, exemplary: bool
):
    with dspy.context(trace=[]):
        ask(
            reads({**DIED, "passage": passage}, missing=missing, answer=answer),
            *[reads(DIED)] * (not answer),
            found=ALL,
        )
        step = dspy.settings.trace[0]
    assert noted(step).exemplary is exemplary


JO = Passage(id="5", title="Jo Rey", text="The hobby of Jo Rey is chess.")
MO = Passage(id="6", title="Mo Tan", text="The hobby of Mo Tan is ice hockey.")
LIKES = [
    {"fact": "The hobby of Jo Rey is chess.", "passage": 1, "quote": "hobby of Jo Rey is chess"},
    {"fact": "The hobby of Mo Tan is ice hockey.", "passage": 2, "quote": "hobby of Mo Tan is ice hockey"},
]


def test_each_item_of_a_list_has_its_sentence_its_mark_and_its_node(ask):
    reply = reads(*LIKES, answer="chess; ice hockey; boats")
    prediction, asked, _ = ask(reply, found=[JO, MO], style="list")
    assert asked[0].given("answer_style") == FORMS["list"]
    assert prediction.answers == ["chess", "ice hockey", "boats"]
    assert prediction.final_content == (
        "The hobby of Jo Rey is chess [1]. The hobby of Mo Tan is ice hockey [2]. "
        "So the answer is: chess; ice hockey; boats. Not in a passage: boats."
    )
    assert [(node.answer, node.passage) for node in prediction.tree.nodes[1:]] == [("chess", JO), ("ice hockey", MO)]
    assert [node.answer for node in prediction.tree.nodes_behind_answer()[1:]] == ["chess", "ice hockey"]


def test_a_list_searches_on_for_each_item_and_a_fact_that_was_read_before_the_answer_names_it(ask):
    first = reads(LIKES[0], missing=["Mo Tan hobby"], answer="")
    found = {Q: [JO], "Mo Tan hobby": [MO]}
    prediction, *_ = ask(first, reads(*LIKES, answer="chess; ice hockey"), found=found, style="list")
    assert [node.answer for node in prediction.tree.nodes if node.source == "completed"] == ["chess", "ice hockey"]


def test_a_question_of_one_answer_says_what_fits_as_well(ask):
    prediction, *_ = ask(reads(*LIKES, answer="chess; ice hockey"), found=[JO, MO])
    assert (prediction.answer, prediction.answers, prediction.others) == ("chess", ["chess"], ["ice hockey"])
    assert prediction.final_content.endswith("So the answer is: chess. Others fit as well: ice hockey.")
    assert standing_of(prediction).words == "Supported by passages"


def test_a_place_that_a_query_does_not_need_is_filled_by_another(ask):
    boats = [OTHER.model_copy(update={"id": f"b{n}", "text": f"Boat {n}."}) for n in range(4)]
    found = {Q: [BARGE], "one": [OSTAL, boats[0], boats[1]], "two": [OSTAL, boats[2], boats[3]]}
    prediction, asked, _ = ask(reads(PAINTED, missing=["one", "two"]), reads(DIED), found=found, k_more=4)
    assert [one.partition(" | ")[2] for one in asked[1].given("passages")] == [
        *(BARGE.text, OSTAL.text, "Boat 0.", "Boat 2.", "Boat 1."),
    ]
    assert [len(node.found) for node in prediction.tree.nodes if node.source == "query"] == [1, 3, 2]


@pytest.mark.parametrize(
    ("abstain", "answers", "told"),
    [("off", ["chess", "boats"], "A guess: chess; boats."), ("unsupported", ["chess"], "So the answer is: chess.")],
)
def test_an_item_that_no_passage_holds_is_left_out_alone(ask, abstain: str, answers: list[str], told: str):
    reply = reads(LIKES[0], answer="chess; boats", sure=False)
    prediction, *_ = ask(reply, found=[JO], style="list", abstain=abstain)
    assert (prediction.answers, prediction.nearest) == (answers, "boats" * (abstain != "off"))
    assert prediction.final_content.endswith(f"{told} Not in a passage: boats.")
