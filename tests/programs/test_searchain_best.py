"""SearChain as it is by default, call by call on hand-made cases."""

import json
from functools import partial
from itertools import count
from typing import Any

import pytest
from fakes import FoundRetriever, GivingRetriever, ListReader, ListRetriever

from questree.metrics import tells
from questree.programs import ReasoningTree, SearChainSettings
from questree.programs.chain_branches import with_answer
from questree.programs.modules.reader import LMReader
from questree.programs.modules.verdict import independent_passages, sentence_with
from questree.programs.tree_views import node_line
from questree.retrieval import Passage

QUESTION = "Which river flows through the birthplace of the author of The Metamorphosis?"
AUTHOR, BIRTH, RIVER = (
    "Who wrote The Metamorphosis?",
    "Where was Franz Kafka born?",
    "Which river flows through Prague?",
)
BORN, FLOWS = "Where was #1 born?", "Which river flows through #2?"
PASSAGES = {
    AUTHOR: "It was long forgotten. The Metamorphosis is a novella by Franz Kafka.",
    BIRTH: "Franz Kafka was born in Prague.",
    RIVER: "Prague lies on the Vltava.",
}
TOLD = {
    "final_content": "Franz Kafka wrote it [1]. He was born in Prague [2]. It lies on the Vltava [3].",
    "answer": "Vltava",
}


def verdict(verdict: str, found: str = "", remembered: str = "") -> dict[str, object]:
    return {"passage_number": int(bool(found)), "found": found, "verdict": verdict, "remembered": remembered}


supports, contradicts = partial(verdict, "supports"), partial(verdict, "contradicts")
SILENT, NO_REST = verdict("silent"), {"rest": []}


def planned(query: str, recalled: str | None = None, sure: bool = False) -> dict[str, object]:
    return {"query": query, "recalled": recalled, "sure": sure}


def plan(*recalled: str | None) -> list[tuple[Any, ...]]:
    return [(query, answer, answer is not None) for query, answer in zip((AUTHOR, BORN, FLOWS), recalled, strict=True)]


@pytest.fixture
def ask(run):
    """Ask SearChain, with an LM that plans these steps, gives these replies, and tells the path."""

    def ask(steps, *replies, found=PASSAGES, told=TOLD, **how):
        retriever = ListRetriever(found) if isinstance(found, dict) else found
        plan = {"planned_chain": [planned(*step) for step in steps]}
        return run("searchain", plan, *replies, told, **{"question": QUESTION, **how}, found=retriever)

    return ask


def test_what_was_recalled_and_supported_is_cited_step_by_step(ask):
    asked = ask(plan("Franz Kafka", "Prague", "Vltava"), *map(supports, ("Franz Kafka", "Prague", "Vltava")))
    assert asked.prediction.answer == "Vltava"
    assert [node.source for node in asked.path] == ["lm", "lm", "lm"]
    assert [passage.text for passage in asked.prediction.references] == list(PASSAGES.values())
    assert '"support": "The Metamorphosis is a novella by Franz Kafka."' in asked.prompts[-1]
    assert "forgotten" not in asked.prompts[-1], "the sentence that holds the answer, not the whole passage"


HERON = {"How heavy is the deck of Heron Bridge?": "The deck of Heron Bridge weighs 3.5 tonnes."}


@pytest.mark.parametrize("recalled", ["35 tonnes", "36 tonnes", "-3.5 tonnes", "5.3 tonnes"])
def test_a_number_that_was_recalled_wrong_is_corrected_and_its_mark_goes(recalled, ask):
    told = {"final_content": f"It weighs {recalled} [1], or 3.5 tonnes [1].", "answer": "3.5 tonnes"}
    asked = ask([(*HERON, recalled, True)], contradicts("3.5 tonnes"), found=HERON, told=told)
    assert [(node.answer, node.source) for node in asked.path] == [("3.5 tonnes", "corrected")]
    assert asked.prediction.final_content == f"It weighs {recalled}, or 3.5 tonnes [1]."


@pytest.mark.parametrize(
    "said", ["Prague [1]", "[1] Prague", "Prague.", "**Prague**", "“Prague”", "Prague【1】", "Prague [Passage 1]"]
)
def test_what_is_copied_from_a_passage_is_found_in_it_whatever_stands_round_it(said, ask):
    (node,) = ask([(BIRTH,)], supports(said)).path
    assert (node.source, node.support) == ("completed", PASSAGES[BIRTH])


@pytest.mark.parametrize(
    ("query", "said", "stance", "answer"),
    [
        ("Which film did he make in 2011?", "Unknown", "supports", "Unknown (2011 film)"),
        ("Which film did he make in 2011?", "unknown", "supports", None),
        ("Which film did he make in 2011?", "Unknown", "silent", None),
        ("Who wrote the film Unknown?", "Unknown", "supports", None),
    ],
)
def test_unknown_is_found_where_the_passage_has_this_title(query, said, stance, answer, ask):
    films = GivingRetriever([Passage(id="p", title="Unknown (2011 film)", text="It is a film of 2011.")])
    rest = [] if answer else [NO_REST]
    asked = ask([(query,), ("Who played in #1?",)], verdict(stance, said), *rest, supports("film"), found=films)
    assert asked.path[0].answer == answer
    assert asked.path[1].query == f"Who played in {answer or f'(the answer to: {query[:-1]})'}?"


@pytest.mark.parametrize(
    ("said", "source"),
    [
        (["Brod", "Kafka"], "completed"),
        ("Kafka, Brod and Weltsch", "completed"),
        ("Kafka, Werfel", "lm"),
        ("May, 1883", "lm"),  # of a date, each part may stand in the passage by itself
    ],
)
def test_listed_names_stand_in_a_passage_each_by_itself(said, source, ask):
    text = "Kafka was born in 1883. In Prague he met Weltsch in May, and with Max Brod he travelled."
    (*_, node) = ask([(BIRTH,)], {**supports("-"), "found": said}, found={BIRTH: text}).path
    assert (node.source, node.support) == (source, text if source == "completed" else None)


def test_steps_that_one_passage_supports_cite_it_whatever_score_each_query_gave_it(ask):
    scores = count(1)

    def scored(query: str, k: int) -> list[Passage]:
        return [Passage(id="p", text=f"{PASSAGES[BIRTH]} {PASSAGES[RIVER]}", score=float(next(scores)))]

    told = {"final_content": "Franz Kafka was born in Prague [1]. It lies on the Vltava [1].", "answer": "Vltava"}
    steps = [(BIRTH, "Prague", True), (RIVER, "Vltava", True)]
    prediction = ask(steps, supports("Prague"), supports("Vltava"), found=scored, told=told).prediction
    assert (prediction.final_content, len(prediction.references)) == (told["final_content"], 1)


GUESSED = {"Where was Max Brod born?": "Max Brod was born in Prague.", AUTHOR: "A novella."}


KAFKA, PRAGUE, VLTAVA = supports("Franz Kafka"), supports("Prague"), supports("Vltava")
BROD_BORN, BRNO = "Where was Max Brod born?", "Which river flows through Brno?"
BROD = [(AUTHOR, "Max Brod", True), (BROD_BORN, "Brno", True), (BRNO, "Svratka", True)]


@pytest.mark.parametrize(
    ("steps", "replies", "sources"),
    [
        (plan(None, None, None), [KAFKA, PRAGUE, VLTAVA], "completed completed completed"),
        (plan("Franz Kafka", "Vienna", "Danube"), [KAFKA, contradicts("Prague"), VLTAVA], "lm corrected completed"),
        (BROD, [contradicts("Franz Kafka"), PRAGUE, VLTAVA], "corrected completed completed"),
        (plan(None, None, None), [KAFKA, verdict("silent", remembered="Prague"), VLTAVA], "completed lm completed"),
    ],
    ids=["found", "corrected", "two steps after a correction", "remembered"],
)
def test_what_is_found_is_filled_into_later_queries_without_a_call_for_a_new_rest(ask, steps, replies, sources):
    asked = ask(steps, *replies)
    assert [node.answer for node in asked.path] == ["Franz Kafka", "Prague", "Vltava"]
    assert ([node.source for node in asked.path], asked.queries) == (sources.split(), [AUTHOR, BIRTH, RIVER])
    told = " ".join(asked.prompts[-2:])
    assert [word for word in ("Danube", "Vienna", "Svratka", "Brno") if word in told] == [], "answers to other queries"


def test_where_no_query_is_planned_the_question_is_looked_up(ask):
    (node,) = ask([], VLTAVA, found={QUESTION: PASSAGES[RIVER]}).path
    assert (node.query, node.answer) == (QUESTION, "Vltava")


def test_where_a_search_finds_no_passage_at_all_the_lm_plans_anew_as_well(ask):
    asked = ask([("Who wrote it?",)], {"rest": [planned(AUTHOR, "Franz Kafka")]}, found={})
    assert "Who wrote it?" in asked.prompts[1]
    assert [node.answer for node in asked.path] == ["Franz Kafka"]


DESCRIBED = "Where was (the answer to: Who wrote The Metamorphosis) born?"
SAYING = "a writer of Prague who worked for an insurance company"
NOTHING = {AUTHOR: "A novella.", DESCRIBED: "Nothing."}


@pytest.mark.parametrize(
    ("steps", "replies", "found", "queries"),
    [
        ([(AUTHOR,), (BORN,)], [SILENT, SILENT], NOTHING, [AUTHOR, DESCRIBED]),
        ([(AUTHOR, SAYING), (BORN,)], [SILENT, SILENT], NOTHING, [AUTHOR, f"{AUTHOR} {SAYING}", DESCRIBED]),
        (
            [(AUTHOR, SAYING), (BORN,)],
            [supports(SAYING), SILENT],
            {AUTHOR: f"It is by {SAYING}.", f"Where was {SAYING} born?": "Nothing."},
            [AUTHOR, f"Where was {SAYING} born?"],
        ),
        (
            [(AUTHOR,), (BORN,)],
            [supports("Min Dikkha (r. 1554–56)"), supports("Prague")],
            {AUTHOR: "By Min Dikkha (r. 1554–56).", "Where was Min Dikkha born?": "In Prague."},
            [AUTHOR, "Where was Min Dikkha born?"],
        ),
    ],
    ids=["no answer", "a long guess", "a long fact", "a king without the years of his reign"],
)
def test_what_stands_in_later_queries(ask, steps, replies, found, queries):
    asked = ask(steps, *replies, found=found, max_rounds=1)
    assert asked.queries == queries
    assert QUESTION in asked.prompts[1], "a check sees the question"


TEXAS = "Were Louis Malle and the director of Paris, Texas born in the same country?"
FILM, SPACE = "Who directed Paris, Texas?", "Did 2001: A Space Odyssey come out before his first film?"
OSCAR = "Which film won the Oscar in {}?"


@pytest.mark.parametrize(
    ("question", "old", "new", "queries"),
    [
        (TEXAS, "Paris", "Thumeries", {FILM: FILM}),
        (TEXAS, "Paris", "Thumeries", {FILM: FILM, "In which country is Paris?": "In which country is Thumeries?"}),
        (SPACE, "2001", "1982", {"Who made 2001: A Space Odyssey?": None, OSCAR.format(2001): OSCAR.format(1982)}),
        ("Is Paris older than his birthplace?", "Paris", "Thumeries", {"How old is Paris?": None}),
        ("is paris older?", "Paris", "Thumeries", {"How old is Paris?": None}),
        ("Older: Lyon, Paris, or it?", "Paris", "Thumeries", {"How old is Paris?": None}),
        ("What is there?", "Paris", "Thumeries", {"Who is Paris's mayor?": "Who is Thumeries's mayor?"}),
        ("What is there?", "Paris", "Thumeries", {"Who is a Parisian?": None}),
        ("Who won Paris–Roubaix?", "Paris", "Thumeries", {"Who won Paris–Roubaix?": None}),
        ("Who told us?", "US", "UK", {"Who told us?": None}),
        ("Who led it?", "US", "UK", {"Who led the US, which told us?": "Who led the UK, which told us?"}),
        ("Who led them?", "The Beatles", "Queen", {"Who led the Beatles?": "Who led Queen?"}),
        ("How high is it?", "5", "7", {"What is 3.5 or 5,000 m or 5?": "What is 3.5 or 5,000 m or 7?"}),
        ("How many?", "2", "7", {"What is #2 of 2?": "What is #2 of 7?"}),
    ],
)
def test_names_of_the_question_stay_where_a_corrected_answer_is_replaced(question, old, new, queries):
    tree = ReasoningTree(question=question)
    for query in queries:
        tree.grow(None, query=query)
    changed = {query: with_answer(tree, query, old, new) for query in queries}
    assert changed == {query: told or query for query, told in queries.items()}


@pytest.mark.parametrize(
    ("fragment", "answer", "told"),
    [
        ("Kafka's novella", "Franz Kafka", True),
        ("It lasted from 1939 to 1945", "1939–1945", True),
        ("He was the 45th", "45", True),
        ("It lasted long", "1939–1945", False),
        ("It is by Brod", "Franz Kafka", False),
    ],
)
def test_a_mark_stands_where_the_text_tells_the_answer_whatever_joins_its_words(fragment, answer, told):
    assert tells(fragment, answer) is told


def test_an_answer_that_no_passage_holds_is_told_without_a_mark(ask):
    asked = ask(
        plan("Franz Kafka", "Prague", "Vltava"),
        SILENT,
        supports("in the city of Brno"),  # does not stand in the passage
        supports("Vltava"),
        told={"final_content": "Franz Kafka [1], Prague [1], and the Vltava [1].", "answer": "Vltava"},
    )
    assert asked.prompts[-1].count('"mark": null') == 2
    assert asked.prediction.final_content == "Franz Kafka, Prague, and the Vltava [1]."
    assert [passage.text for passage in asked.prediction.references] == [PASSAGES[RIVER]]


@pytest.mark.parametrize(
    ("span", "read"),
    [
        ("Franz Kafka", "Franz Kafka"),
        ("Franz Kafka [1]", "Franz Kafka"),
        ('"Franz Kafka"', '"Franz Kafka"'),
        ("franz kafka.", "franz kafka."),
        ("Max Brod", ""),
        ("none", ""),
        ("Franz Kaf", ""),  # no whole word
    ],
)
def test_the_lm_as_reader_may_quote_what_it_copies(scripted, span, read):
    scripted({"span": span, "confidence": 0.95})
    passage = Passage(id="p", text=f"{PASSAGES[AUTHOR]} Nonetheless he was unknown.")
    found = LMReader()(query=AUTHOR, passage=passage)
    assert (found.text, found.score > LMReader.threshold) == (read, bool(read))


def test_where_nothing_is_found_the_lm_plans_anew_and_once_for_all_rounds(ask):
    author = "Who is the author of the novella The Metamorphosis?"
    asked = ask(
        plan(None, None, None),
        SILENT,
        {"rest": [planned(author), planned(BORN)]},
        SILENT,
        NO_REST,
        SILENT,
        NO_REST,
        found={AUTHOR: "A novel.", author: "A novella.", f"Where was (the answer to: {author[:-1]}) born?": "Nothing."},
        told={"final_content": "It was not found.", "answer": "not known"},
    )
    assert "Who wrote The Metamorphosis?" in asked.prompts[2]
    assert f'["{BORN}", "{FLOWS}"]' in asked.prompts[2], "as the plan has them"
    assert (asked.prediction.answer, asked.prediction.references) == ("", []), "not known is no answer"


def shown(prompt: str, field: str) -> Any:
    return json.loads(prompt.split(f"[[ ## {field} ## ]]\n")[1].split("\n")[0])


def test_a_new_plan_is_told_which_solved_steps_are_guesses(ask):
    steps, found = [(AUTHOR, "Max Brod"), (BORN,), (RIVER,)], {**GUESSED, RIVER: "A river."}
    asked = ask(steps, SILENT, supports("Prague"), SILENT, NO_REST, found=found)
    assert shown(asked.prompts[4], "solved") == [
        {"query": AUTHOR, "answer": "Max Brod", "sure": False},
        {"query": "Where was Max Brod born?", "answer": "Prague", "sure": False},
    ], "the second rests on the first"


def test_what_rests_on_a_guess_is_told_as_a_guess(ask):
    asked = ask([(AUTHOR, "Max Brod"), (BORN,)], SILENT, supports("Prague"), found=GUESSED)
    assert asked.queries == [AUTHOR, f"{AUTHOR} Max Brod", "Where was Max Brod born?"]
    first, second = shown(asked.prompts[-1], "steps")
    assert first == {"query": AUTHOR, "answer": "Max Brod", "mark": None, "title": None, "support": None, "sure": False}
    assert (second["answer"], second["mark"], second["sure"]) == ("Prague", 1, False)
    assert second["title"] == asked.prediction.passages[-1].title != ""
    assert asked.prediction.rests_on == "guess"


def test_revisions_end_with_the_rounds_and_the_rest_is_looked_up(ask):
    steps, found = [(AUTHOR,), (BIRTH, "Prague")], {**PASSAGES, AUTHOR: "Nothing of it."}
    asked = ask(steps, SILENT, supports("Prague"), found=found, max_rounds=1)
    assert [node.stance for node in asked.prediction.tree.nodes] == ["silent", "supports"]


@pytest.mark.parametrize(
    ("off", "recalled", "sure", "checked"),
    [
        ("verification", "Vienna", True, False),
        ("verification", "Vienna", False, True),
        ("completion", "Vienna", True, True),
        ("completion", "Vienna", False, False),
        ("completion", None, False, False),
    ],
)
def test_what_the_lm_is_sure_of_is_verified_and_what_it_guesses_is_completed(ask, off, recalled, sure, checked):
    asked = ask([(BIRTH, recalled, sure)], *[contradicts("Prague")] * checked, **{off: False})
    corrected = ("Prague", "corrected" if sure else "completed")
    left = (recalled, "lm" if recalled else "unsolved")
    assert (asked.path[-1].answer, asked.path[-1].source) == (corrected if checked else left)
    assert checked or asked.prediction.references == []


def test_a_repeated_query_shares_the_outcome_of_the_first_and_is_told_once(ask):
    told = {"final_content": "Prague [1].", "answer": "Prague"}
    asked = ask([(BIRTH, "Vienna"), (BIRTH, "Vienna")], contradicts("Prague"), told=told)
    assert asked.prompts[-1].count('"answer": "Prague"') == 1
    assert "Vienna" not in asked.prompts[-1]
    assert len(asked.prediction.references) == 1


def test_what_the_lm_recalls_for_a_query_that_failed_before_is_checked_and_told(ask):
    other = "Which language did Franz Kafka speak?"
    asked = ask(
        [(BIRTH,)],
        SILENT,
        {"rest": [planned(other, "German", True), planned(BIRTH, "Prague", True)]},
        supports("German"),
        SILENT,
        found={BIRTH: "Franz Kafka was born.", other: "Franz Kafka spoke German."},
    )
    assert [node.answer for node in asked.path] == ["German", "Prague"]
    assert f'"query": "{BIRTH}", "answer": "Prague", "mark": null' in asked.prompts[-1]


@pytest.mark.parametrize("solved", [KAFKA, contradicts("Franz Kafka")], ids=["confirmed", "corrected"])
def test_a_new_plan_does_not_replace_what_is_solved(ask, solved):
    again = {"rest": [planned(AUTHOR), planned("Where was #2 born?")]}
    steps = [(AUTHOR, "Kafka" if solved is KAFKA else "Max Brod", True), ("Where is #1 from?",)]
    asked = ask(steps, solved, SILENT, again, PRAGUE, told={"final_content": "It is Prague.", "answer": "Prague"})
    assert asked.queries == [AUTHOR, "Where is Franz Kafka from?", BIRTH]
    assert asked.path[-1].answer == "Prague"
    assert asked.prompts[-1].count(f'"query": "{AUTHOR}"') == 1


KAFKAS = Passage(id="k", title="Franz Kafka", text="Franz Kafka wrote The Metamorphosis. He was born in Prague.")
BRODS = Passage(id="b", title="Max Brod", text="Max Brod was born on Haštal Square, as Franz Kafka was.")


@pytest.mark.parametrize(
    ("query", "said", "found", "searched", "state"),
    [
        (BORN, [PRAGUE], {}, False, "found in Franz Kafka, read before"),
        ("In which towns was #1 born?", [PRAGUE], {}, True, "found in Franz Kafka"),  # it says nothing of towns
        ("Who wrote The Metamorphosis and was born in Prague?", [KAFKA], {}, True, "found in Franz Kafka"),
        (BORN, [SILENT, supports("Haštal Square")], {BIRTH: [KAFKAS, BRODS]}, True, "found in Max Brod"),
        (BORN, [SILENT, NO_REST], {BIRTH: [KAFKAS]}, True, "not found: 1 passage read"),
    ],
)
def test_what_was_read_before_and_is_about_the_query_is_looked_at_before_a_search(
    ask, query, said, found, searched, state
):
    retriever = FoundRetriever({AUTHOR: [KAFKAS], filled(query): [KAFKAS]} | found)
    asked = ask([(AUTHOR, "Franz Kafka", True), (query,)], KAFKA, *said, found=retriever)
    assert asked.queries == [AUTHOR, *[filled(query)] * searched]
    assert asked.prompts[2].count("[1] Franz Kafka | ") == 1
    tree = asked.prediction.tree
    assert node_line(asked.path[-1], tree).endswith(f"({state})")
    if asked.path[-1].answer:
        unsolved = tree.nodes[1]
        assert node_line(unsolved, tree).endswith("→ ?  (found: the step that took its place has the answer)")


def filled(query: str) -> str:
    return query.replace("#1", "Franz Kafka")


def test_the_support_of_a_step_holds_its_answer_and_the_trace_is_not_told_to_doubt(ask):
    text = "The mother of Laverne Tyner is Hilde Byers. The brothers of Laverne Tyner are Barney Byers, Emmett Byers."
    query, told = "Who is a sibling of Laverne Tyner?", {"final_content": "Barney Byers [1].", "answer": "Barney Byers"}
    asked = ask([(query,)], supports("Barney Byers"), found={query: text}, told=told)
    (step,) = shown(asked.prompts[-1], "steps")
    assert step["support"] == "The brothers of Laverne Tyner are Barney Byers, Emmett Byers."
    assert "does not say exactly" not in asked.prompts[-1]


def test_a_failed_query_is_not_looked_up_again_where_the_new_plan_numbers_its_answers(ask):
    steps = [(AUTHOR, "Franz Kafka", True), (BORN,)]
    asked = ask(steps, supports("Franz Kafka"), SILENT, {"rest": [planned(BORN)]})
    assert asked.queries == [AUTHOR, BIRTH]


def test_the_same_prompt_is_not_asked_twice(ask):
    asked = ask([(AUTHOR,), (AUTHOR,)], SILENT, found={AUTHOR: "A novella."}, max_rounds=1)
    assert len(asked.prompts) == len(["the plan", "one check", "the trace"])
    assert len(asked.prompts) == len(set(asked.prompts))


def test_a_trained_reader_takes_the_place_of_the_verdict(ask):
    reader = ListReader({AUTHOR: ("Franz Kafka", 3.0), BIRTH: ("Prague", 3.0), RIVER: ("Vltava", -3.0)})
    path = ask(plan("Franz Kafka", "Vienna", "Danube"), NO_REST, reader=reader).path
    assert [(node.answer, node.stance) for node in path[:2]] == [("Franz Kafka", "supports"), ("Prague", "supports")]
    assert path[2].support is None, "the reader was not sure enough"


@pytest.mark.parametrize("preset", ["best", "paper"])
def test_a_long_answer_that_agrees_with_the_passage_is_kept_whole_and_cited(run, preset):
    about, told = "What is Jaws about?", "Jaws is about a great white shark that attacks people at a summer resort"
    support = "Jaws is a 1975 film about a great white shark that attacks people."
    plans = {"planned_chain": [planned(about, told, sure=True)], "chain": [{"query": about, "answer": told}]}
    found, reader = ListRetriever({about: f"{support} It was a success."}), ListReader({about: ("1975", 9.0)})
    replies = plans, {"final_content": f"{told} [1].", "answer": told}
    ran = run("searchain", *replies, found=found, reader=reader, preset=preset, question=about, style="long")
    prediction, (node,) = ran.prediction, ran.path
    assert (node.answer, node.source, node.support) == (told, "lm", support)
    assert (prediction.final_content, len(prediction.references)) == (f"{told} [1].", 1)


@pytest.mark.parametrize(
    ("recalled", "found", "born"),
    [
        ("Kafka", "Franz Kafka", BIRTH),
        ("Muawiyah I", "Mu'awiyah", "Where was Muawiyah I born?"),
        ("Richard I", "his brother Richard", "Where was Richard I born?"),
        ("4,800 m", "about 4,810 m", "Where was about 4,810 m born?"),
    ],
)
def test_later_queries_have_the_fuller_of_the_recalled_name_and_the_passages(ask, recalled, found, born):
    passages = {AUTHOR: f"It is by {found}.", born: "In Prague."}
    asked = ask([(AUTHOR, recalled), (BORN, "Prague")], supports(found), supports("Prague"), found=passages)
    first, second = asked.path
    assert asked.queries == [AUTHOR, born]
    assert (first.answer, first.support, second.answer) == (found, f"It is by {found}.", "Prague")


BOTH = "The Metamorphosis is a novella by Franz Kafka, or by Max Brod."


@pytest.mark.parametrize(
    ("further", "second", "answer"),
    [
        (BOTH, supports("Franz Kafka"), "Franz Kafka"),
        (BOTH, contradicts("Max Brod"), "Max Brod"),
        (BOTH, SILENT, "Kafka"),
        ("The Metamorphosis is a novella by Max Brod.", None, "Kafka"),  # it does not name the guess: it is not read
        (None, None, "Kafka"),
    ],
)
def test_a_guess_on_which_the_passages_are_silent_is_searched_for_once_more(ask, further, second, answer):
    found = {AUTHOR: "A novella."} | ({f"{AUTHOR} Kafka": further} if further else {})
    (last,) = ask([(AUTHOR, "Kafka")], SILENT, *filter(None, [second]), found=found).path
    assert (last.answer, last.query) == (answer, AUTHOR)
    assert [passage.text for passage in last.found] == ["A novella.", *([further] if second else [])]


@pytest.mark.parametrize(("said", "answer"), [("Franz Kafka", "Kafka"), ("Max Brod", "Max Brod")])
def test_a_guess_gives_way_to_what_its_passages_bring_to_mind(ask, said, answer):
    found = {AUTHOR: "A novella.", f"Where was {answer} born?": "In Prague."}
    remembered = verdict("silent", remembered=said)
    first, second = ask([(AUTHOR, "Kafka"), (BORN,)], remembered, supports("Prague"), found=found).path
    assert (first.answer, first.sure, first.source, first.support) == (answer, answer != "Kafka", "lm", None)
    assert (second.query, second.answer) == (f"Where was {answer} born?", "Prague")


def test_copies_of_a_passage_do_not_take_the_places_of_others(ask):
    long = "The Metamorphosis is a novella by Franz Kafka which was first published in 1915"
    texts = [("A", long), ("B", long), ("A", f"{long} again"), ("C", long.replace("1915", "2015")), ("D", "Other.")]
    many = GivingRetriever([Passage(id=str(n), title=title, text=text) for n, (title, text) in enumerate(texts)])
    (node,) = ask([(AUTHOR,)], supports("Franz Kafka"), found=many).path
    assert [passage.title for passage in node.found] == ["A", "C", "D"]


BLONDE = ["Blonde is by Raoul Walsh.", "Walsh remade it in 1948 as Sunday."]
SIEGE = ["It fell on 13–15 February 1942.", "It was taken back."]


@pytest.mark.parametrize(
    ("sentences", "answer", "query", "told"),
    [
        (["In 768 he became king.", "In 800 he was crowned."], "Charlemagne", "Who was crowned in 800?", 1),
        (SIEGE, "15 February 1942", "When did it end?", 0),
        (SIEGE, "1943", "When did it end?", None),
        (["It is a figure of Mario Puzo's novel."], "Mario Puzo", "Who wrote it?", 0),
        (BLONDE, "Raoul Walsh", "Who directed Sunday (1948)?", 1),
    ],
)
def test_the_sentence_that_is_shown_for_a_step_tells_its_answer(sentences, answer, query, told):
    passage = Passage(id="p", title="Charlemagne", text=" ".join(sentences))
    assert sentence_with(answer, passage, query) == (None if told is None else sentences[told])


@pytest.mark.parametrize(
    ("said", "sure"),
    [(supports("Virginia Woolf"), False), (verdict("silent", remembered="Virginia Woolf"), True)],
)
def test_an_answer_that_its_passage_does_not_hold_is_a_guess(said, sure, ask):
    (*_, node) = ask([("Who wrote it?",)], said, found={"Who wrote it?": "Ulysses is a novel of 1922."}).path
    assert (node.answer, node.source, node.sure, node.support) == ("Virginia Woolf", "lm", sure, None)


def test_the_rest_of_the_chain_may_be_asked_for_after_a_verdict_that_found_nothing(run):
    chain = {"chain": [{"query": AUTHOR, "answer": None}, {"query": BIRTH, "answer": "Prague"}]}
    replies = chain, SILENT, {"new_answer": "Franz Kafka", "new_steps": []}, TOLD
    ran = run("searchain", *replies, found=ListRetriever({AUTHOR: "A novella."}), continuation="ask")
    assert "[[ ## reference_answer ## ]]\n\n" in ran.prompts[2]


@pytest.mark.parametrize(
    ("recalled", "found", "passage", "contradicted"),
    [
        ("Mexico", "New Mexico", "Roswell is in New Mexico.", True),
        ("New Mexico", "Mexico", "Roswell is in Mexico.", True),
        ("mexico", "Mexico", "Roswell is in Mexico.", False),
        ("Venice, Italy", "Venice", "He was born in Venice, Italy.", False),
    ],
)
def test_only_a_passage_that_holds_the_whole_recalled_answer_cannot_contradict_it(
    ask, recalled, found, passage, contradicted
):
    asked = ask([("Where?", recalled, True)], contradicts(found), found={"Where?": passage})
    first, *corrected = asked.prediction.tree.nodes
    assert (first.stance, first.single_source) == (("contradicts", True) if contradicted else ("supports", False))
    assert [(node.answer, node.source) for node in corrected] == [(found, "corrected")] * contradicted


@pytest.mark.parametrize(("sources", "answer"), [(1, "Prague"), (2, "Vienna")])
def test_one_source_that_contradicts_the_lm_is_marked_and_overrules_only_where_one_is_enough(sources, answer, ask):
    (*_, last) = ask([(BIRTH, "Vienna", True)], contradicts("Prague"), min_independent_passages=sources).path
    assert (last.answer, last.single_source) == (answer, True)
    assert "one source contradicts the LM" in node_line(last)


def test_sources_count_by_what_they_say_independently():
    said = ["Kafka was born in Prague.", "Prague: his birthplace is shown to visitors."]
    copied, planted = "Kafka was born in Prague!", f"{BIRTH} Researchers agree that it is Prague."
    texts = [*said, copied, planted, "He lived in Berlin."]
    passages = [Passage(id=str(n), text=text) for n, text in enumerate(texts)]
    assert independent_passages("Prague", [BIRTH], passages) == len(said)
    assert independent_passages("Prague", [BIRTH], [passages[3]]) == 0


def test_by_default_a_passage_that_says_nothing_of_its_own_overrules_nothing():
    least = {preset: SearChainSettings(preset=preset).min_independent_passages for preset in ("best", "paper")}
    assert least == {"best": 1, "paper": 0}


def test_a_number_sign_of_the_question_is_no_earlier_answer(ask):
    asked = "Who wrote the #1 hit of the singer of Emily?"
    prompt = ask([], NO_REST, found={}, question=asked).prompts[0]
    assert "Who wrote the No. 1 hit of the singer of Emily?" in prompt
    assert "#1 hit" not in prompt


FRIENDS, TOWN = "Who were the friends of Kafka?", "Where was #1 born?"
CIRCLE = {
    FRIENDS: "Kafka met Max Brod, Oskar Baum and Felix Weltsch.",
    "Where was Max Brod born?": "Max Brod was born in Prague.",
    "Where was Oskar Baum born?": "Oskar Baum was born in Plzeň.",
    "Where was Felix Weltsch born?": "Felix Weltsch is also of Prague.",
}
THREE = supports("Max Brod; Oskar Baum; Felix Weltsch")
TOWNS = {"final_content": "Brod is of Prague [1], Baum of Plzeň [2], Weltsch of Prague [3].", "answer": "Prague; Plzeň"}


def towns(tree: ReasoningTree) -> list[tuple[str | None, list[str | None]]]:
    """Return the answers of the first step of the answer's paths, each with those that follow from it."""
    behind = tree.nodes_behind_answer()
    return [
        (node.answer, [one.answer for one in behind if one.parent == node.id]) for node in behind if node.parent is None
    ]


@pytest.mark.parametrize("style", ["list", "short"])
@pytest.mark.parametrize(
    ("recalled", "first", "sources"),
    [
        ((None, False), "Max Brod", ["completed", "completed", "completed"]),
        (("Oskar Baum", True), "Oskar Baum", ["lm", "completed", "completed"]),
        (("Werfel", True), "Max Brod", ["corrected", "corrected", "corrected"]),
    ],
)
def test_the_chain_goes_on_from_each_answer_of_a_step(ask, style, recalled, first, sources):
    born = {"Max Brod": "Prague", "Oskar Baum": "Plzeň", "Felix Weltsch": "Prague"}
    names = [first, *(name for name in born if name != first)]
    stance = contradicts if recalled[0] == "Werfel" else supports
    replies = [stance("Max Brod; Oskar Baum; Felix Weltsch"), *(supports(born[name]) for name in names)]
    content = " ".join(f"{name} is of {born[name]} [{number}]." for number, name in enumerate(names, start=2))
    told = {"final_content": content, "answer": "Prague; Plzeň"}
    asked = ask([(FRIENDS, *recalled), (TOWN,)], *replies, found=CIRCLE, told=told, style=style)
    tree = asked.prediction.tree
    assert towns(tree) == [(name, [born[name]]) for name in names]
    assert asked.queries == [FRIENDS, *(f"Where was {name} born?" for name in names)]
    assert [node.source for node in tree.nodes_behind_answer() if node.parent is None] == sources
    assert [step["answer"] for step in shown(asked.prompts[-1], "steps")] == [*names, *map(born.get, names)]
    assert [passage.text for passage in asked.prediction.references] == [CIRCLE[query] for query in asked.queries[1:]]
    assert asked.prediction.answers == (["Prague", "Plzeň"] if style == "list" else ["Prague"])
    assert asked.prediction.rests_on == "passages"


def test_answers_that_no_later_step_needs_are_told_and_not_followed(ask):
    steps = [(FRIENDS,), ("Who wrote The Castle?",)]
    found = {**CIRCLE, "Who wrote The Castle?": "The Castle is by Kafka."}
    asked = ask(steps, THREE, supports("Kafka"), found=found, told=TOWNS, max_branches=1)
    assert asked.queries == [FRIENDS, "Who wrote The Castle?"]
    assert [step["answer"] for step in shown(asked.prompts[-1], "steps")] == [
        "Max Brod",
        "Oskar Baum",
        "Felix Weltsch",
        "Kafka",
    ]
    assert "not followed" not in asked.prediction.final_content


@pytest.mark.parametrize(("most", "left"), [(1, ["Oskar Baum", "Felix Weltsch"]), (2, ["Felix Weltsch"]), (3, [])])
def test_answers_beyond_max_branches_are_told_in_the_tree_and_in_the_text(ask, most, left):
    asked = ask([(FRIENDS,), (TOWN,)], THREE, *[PRAGUE] * 3, found=CIRCLE, told=TOWNS, max_branches=most)
    tree = asked.prediction.tree
    assert len(asked.queries) == 1 + most
    lines = [node_line(node, tree) for node in tree.nodes if node.ended == "not followed"]
    assert [line.split(" → ")[1].split("  (found, not followed")[0] for line in lines] == left
    told = f" Also found, but not followed (max_branches: {most}): {'; '.join(left)}."
    assert (told in asked.prediction.final_content) == bool(left)
    assert [name for name, _ in towns(tree)] == ["Max Brod", "Oskar Baum", "Felix Weltsch"][:most]


def test_a_query_that_another_branch_has_asked_is_not_asked_again(ask):
    castle = "Who wrote The Castle?"
    steps = [(FRIENDS,), (castle,), ("Did #1 know #2?",)]
    known = {f"Did {name} know Kafka?": f"{name} knew Kafka." for name in ("Max Brod", "Oskar Baum")}
    two = supports("Max Brod; Oskar Baum")
    asked = ask(steps, two, supports("Kafka"), *[supports("Kafka")] * 2, found={**CIRCLE, castle: "By Kafka.", **known})
    assert asked.queries == [FRIENDS, castle, *known]
    assert [step["query"] for step in shown(asked.prompts[-1], "steps")] == [FRIENDS, FRIENDS, castle, *known]


@pytest.mark.parametrize("first", ["", "Dot Moe; "])
def test_an_answer_of_several_counts_where_a_passage_holds_it_its_own_or_another(ask, first):
    passages = [
        Passage(id=str(n), title=name, text=f"{name} likes chess.") for n, name in enumerate(("Ann Low", "Bo Ek", "Cy"))
    ]
    said = {**supports(f"{first}Ann Low; Bo Ek [2];Cy; Dot Moe [3]; ann low"), "passage_number": 1}
    tree = ask([("Who likes chess?",)], said, found=GivingRetriever(passages)).prediction.tree
    told = [(node.answer, node.passage and node.passage.title) for node in tree.nodes_behind_answer()]
    assert told == [("Ann Low", "Ann Low"), ("Bo Ek", "Bo Ek"), ("Cy", "Cy")], "no passage names Dot Moe"


def test_where_several_passages_give_an_answer_the_next_ones_are_looked_at_too(ask):
    names = ("Ann", "Bo", "Cy", "Dot", "Eve", "Flo", "Gus")
    chess = GivingRetriever(Passage(id=name, title=name, text=f"{name} likes chess.") for name in names)
    said = [supports("Ann; Bo [2]"), supports("Cy; Dot [2]; Bo"), supports("Eve")]
    asked = ask([("Who likes chess?",)], *said, found=chess, k=2)
    behind = asked.prediction.tree.nodes_behind_answer()
    assert [node.answer for node in behind] == ["Ann", "Bo", "Cy", "Dot", "Eve"], "the third look found one alone"
    assert [passage.title for passage in behind[0].found] == list(names[:6])
    assert len(asked.prompts) == len(["the plan", *said, "the trace"])


def test_where_one_of_several_leads_nowhere_the_others_count(ask):
    asked = ask([(FRIENDS,), (TOWN,)], THREE, PRAGUE, supports("Plzeň"), SILENT, NO_REST, found=CIRCLE, told=TOWNS)
    *_, last = shown(asked.prompts[-1], "steps")
    assert (last["query"], last["answer"]) == ("Where was Felix Weltsch born?", None)
    assert asked.prediction.rests_on == "passages"


def test_a_plan_without_another_way_ends_the_chain(ask):
    asked = ask(plan(None, None, None), SILENT, NO_REST, found={AUTHOR: "A novella."}, told={**TOLD, "answer": ""})
    assert asked.queries == [AUTHOR]
    assert len(asked.prompts) == len(["the plan", "a check", "the new plan", "the trace"])
    assert [step["query"] for step in shown(asked.prompts[-1], "steps")] == [AUTHOR]
    assert (asked.prediction.answer, asked.prediction.answers) == ("", [])


def test_a_new_plan_sees_the_passages_of_solved_steps_and_the_trace_the_query_that_failed(ask):
    other = "In which city was Kafka born?"
    found = {AUTHOR: PASSAGES[AUTHOR], BIRTH: "Nothing of it.", other: PASSAGES[BIRTH]}
    rest = {"rest": [planned(other)]}
    asked = ask([(AUTHOR,), (BORN,)], KAFKA, SILENT, rest, PRAGUE, found=found)
    assert PASSAGES[AUTHOR] in asked.prompts[3]
    told = [(step["query"], step["answer"]) for step in shown(asked.prompts[-1], "steps")]
    assert told == [(AUTHOR, "Franz Kafka"), (BIRTH, None), (other, "Prague")]
    assert asked.prediction.rests_on == "passages"
