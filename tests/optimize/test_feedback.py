"""What is said to an optimizer that reflects: the verdict, and each step that went wrong."""

import dspy
import pytest

from questree.lm.failure import Failure
from questree.metrics.found_passages import passage_fingerprint
from questree.optimize.feedback import feedback
from questree.optimize.verdicts import Verdicts
from questree.programs.tree import ReasoningTree
from questree.retrieval import Passage
from questree.signatures.chain_of_query import PlannedStep
from questree.signatures.evidence import Fact

NOVEL = Passage(id="n", title="The Metamorphosis", text="A novella by Franz Kafka.")
OTHER = Passage(id="o", title="Max Brod", text="A friend.")
EXAMPLE = dspy.Example(question="q", answers=["Vltava"], gold_titles=["The Metamorphosis", "Prague"])


STEPS = [
    {"question": "Who wrote it?", "answer": "Franz Kafka", "support_title": "The Metamorphosis"},
    {"question": "Where was #1 born?", "answer": "Prague", "support_title": "Franz Kafka"},
]
WROTE = {"query": "Who wrote it?", "answer": "Franz Kafka", "found": (NOVEL,)}
PROVEN = WROTE | {"passage": NOVEL, "support": NOVEL.text}


def answered(tree, **fields):
    return dspy.Prediction(**{"answer": "Danube", "failure": None, "references": [], "tree": tree} | fields)


def grown(*nodes):
    """A tree of these nodes, each below the one before it, but for those that replace another."""
    tree, last = ReasoningTree(question="q"), None
    for node in nodes:
        last = tree.grow(None if "replaces" in node else last, **node)
    return tree


def told(tree, example=EXAMPLE, inputs=None, **reply):
    """The lines behind the verdict on a wrong answer; with a reply those for the step that gave it."""
    step = (dspy.Predict("question -> answer"), inputs or {}, dspy.Prediction(**reply)) if reply else None
    return feedback(example, answered(tree), right=False, step=step).splitlines()[1:]


def test_each_step_that_went_wrong_has_a_line():
    tree = grown(
        WROTE | {"answer": "Max Brod", "stance": "contradicts"},
        PROVEN | {"replaces": 0},
        {"query": "Where was he born?", "source": "unsolved", "stance": "silent", "found": (OTHER,)},
        {"query": "Which river?", "answer": "Danube", "source": "lm", "stance": "silent", "found": (OTHER,)},
    )
    assert feedback(EXAMPLE, answered(tree), right=False).splitlines() == [
        "The answer 'Danube' is wrong; right is 'Vltava'.",
        "The answer 'Max Brod', recalled for 'Who wrote it?', was replaced by 'Franz Kafka', from a passage; "
        "neither is known to be right.",
        "The query 'Where was he born?' was left without an answer.",
        "The query 'Where was he born?' found no passage that the answer needs.",
        "The query 'Which river?' found no passage that the answer needs.",
        "No query found the article 'Prague', which the answer needs.",
        "The final content has no mark for 'Franz Kafka', which stands in the passage 'The Metamorphosis'.",
        "No passage supports the answer 'Danube' to 'Which river?'.",
    ]


def test_an_answer_that_the_lm_kept_after_feedback_is_not_called_wrong():
    kept = {"stance": "supports", "support": NOVEL.text, "replaces": 0}
    assert "was wrong" not in "".join(told(grown(WROTE | {"stance": "contradicts"}, WROTE | kept)))


@pytest.mark.parametrize(
    ("gold", "found"), [("n", True), (passage_fingerprint(NOVEL.title, NOVEL.text), True), ("n2", False)]
)
def test_where_gold_passages_are_known_another_part_of_the_article_is_not_what_the_answer_needs(gold, found):
    said = told(grown(WROTE | {"support": NOVEL.text}), EXAMPLE.copy(gold_passages=[gold, "p"], gold_titles=[]))
    assert f"No query found {2 - found} of the passages that the answer needs." in said
    assert ("found no passage that the answer needs" in "".join(said)) != found


def test_a_fact_that_was_never_looked_up_is_told_as_its_annotation_has_it():
    example = EXAMPLE.copy(gold_titles=["The Metamorphosis", "Franz Kafka"], annotated_steps=STEPS)
    never = "No query found the article 'Franz Kafka', which answers 'Where was Franz Kafka born?'."
    assert told(grown(WROTE), example) == [never]


def test_a_step_is_told_what_it_remembered_wrongly():
    example = EXAMPLE.copy(annotated_steps=STEPS)
    planned = [PlannedStep(query="Who wrote it?", recalled="Kafka"), PlannedStep(query="Where was #1 born?")]
    assert told(None, example, planned_chain=planned) == ["No fault of this step by itself is known."]
    planned[1] = PlannedStep(query="Where was #1 born?", recalled="Vienna", sure=True)
    wrong = "What this reply remembers for 'Where was #1 born?', 'Vienna', is wrong; it is 'Prague'."
    assert told(None, example, planned_chain=planned) == [wrong]


def test_a_reading_is_told_what_its_facts_lack():
    tree = grown(PROVEN | {"query": "Franz Kafka wrote it.", "found": ()})
    facts = [Fact(fact="Franz Kafka wrote it.", passage=1, quote=NOVEL.text), Fact(fact="Kafka was a Czech.")]
    inputs = {"passages": ["[1] The Metamorphosis | A novella by Franz Kafka.", "[2] Kafka | Born in Prague."]}
    untold = {"question": "Which river flows through #2?", "answer": "Vltava"}  # no passage tells it
    example = EXAMPLE.copy(gold_titles=[], annotated_steps=[*STEPS, untold])
    assert told(tree, example, inputs, evidence=facts, answer="Danube") == [
        "No quote proves the fact 'Kafka was a Czech.'.",
        "No fact of this reply tells 'Prague', which answers 'Where was Franz Kafka born?'; a passage holds it.",
        "The wrong answer 'Danube' began in this reply.",
    ]


LATE = Failure(cause="timeout", message="too slow")


@pytest.mark.parametrize(
    ("given", "right", "full", "said"),
    [
        ({"answer": "Vltava"}, True, True, "The answer 'Vltava' is right."),
        ({"answer": "a river"}, True, False, "The answer 'a river' is good enough, without the full score; right is "),
        ({"answer": "the Vltava"}, False, True, "The answer 'the Vltava' is right, but the metric does not accept "),
        ({"answer": ""}, False, True, "In the end, 'q' got no answer; right is 'Vltava'."),
        ({"failure": LATE}, False, True, "No answer was given: timeout: too slow."),
        (None, False, True, "No answer was given."),
    ],
)
def test_the_verdict_is_told_in_words(given, right, full, said):
    prediction = None if given is None else answered(None, **given)
    assert feedback(EXAMPLE, prediction, right=right, full=full).startswith(said)


@pytest.mark.parametrize(
    ("gold", "answer", "said"),
    [
        ({"answers": ["Po", "Elbe"], "needed": [["Po"], ["Elbe"]]}, "Po", "is wrong; right is 'Po' and 'Elbe'."),
        ({"answers": ["Po", "Elbe"]}, "Oder", "is wrong; right is 'Po' or 'Elbe'."),
        ({"answers": [], "answer": ""}, "Po", "is wrong; right is to give none: the corpus does not tell it."),
    ],
)
def test_a_list_needs_all_and_an_absent_answer_is_called_so(gold, answer, said):
    example = dspy.Example(question="q", **gold)
    assert feedback(example, answered(None, answer=answer), right=False).startswith(f"The answer {answer!r} {said}")


def test_a_needed_passage_that_was_turned_away_is_told():
    tree = grown({"query": "Who wrote it?", "source": "passage", "passage": NOVEL, "ended": "rejected"})
    assert "The passage 'The Metamorphosis', which the answer needs, was rejected." in told(tree)


def test_a_step_is_told_only_what_it_had_part_in():
    born = {"query": "Where was Kafka born?", "template": "Where was #1 born?", "found": (OTHER,)}
    tree = grown(PROVEN | {"answer": "Kafka"}, born | {"source": "unsolved", "stance": "silent"})
    unanswered = "The query 'Where was Kafka born?' was left without an answer."
    needless = "The query 'Where was Kafka born?' found no passage that the answer needs."
    never = "No query found the article 'Prague', which the answer needs."
    planned = [PlannedStep(query=query) for query in ("Who wrote it?", "Where was #1 born?")]
    assert told(tree, inputs={"question": "q"}, planned_chain=planned) == [unanswered, needless, never]
    assert told(tree, inputs={"query": "Where was Kafka born?"}, verdict="silent") == [unanswered, needless]
    known = ["No fault of this step by itself is known."]
    assert told(tree, inputs={"query": "Who wrote it?"}, found="Kafka") == known
    unmarked, given, began = (
        "The final content has no mark for 'Kafka', which stands in the passage 'The Metamorphosis'.",
        "The wrong answer 'Danube' stands in what this step was given.",
        "The wrong answer 'Danube' began in this reply.",
    )
    assert told(tree, inputs={"steps": ["Danube"]}, final_content="Danube.") == [unmarked, given]
    assert told(tree, inputs={"passages": ["The Danube."]}, final_content="Danube.") == [unmarked, began]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Franz Kafka", "Max Brod", "was right, and 'Max Brod' was put in its place."),
        ("Max Brod", "Franz Kafka", "was wrong; a passage corrected it to 'Franz Kafka'."),
        ("Max Brod", "Felix Weltsch", "was replaced by 'Felix Weltsch', from a passage; neither is known to be right."),
    ],
)
def test_a_correction_is_called_one_where_the_annotations_say_so(old, new, said):
    query = {"query": "Who wrote it?"}
    tree = grown(query | {"answer": old}, query | {"answer": new, "support": "So.", "replaces": 0})
    lines = told(tree, EXAMPLE.copy(annotated_steps=STEPS[:1]))
    assert f"The answer {old!r}, recalled for 'Who wrote it?', {said}" in lines


def test_a_plan_is_not_blamed_for_a_right_recall_that_a_check_spoilt():
    query, spoilt = {"query": "Which river?"}, "was right, and 'Danube' was put in its place."
    tree = grown(query | {"answer": "Vltava"}, query | {"answer": "Danube", "support": "So.", "replaces": 0})
    plan = told(tree, inputs={"question": "q"}, planned_chain=[PlannedStep(query="Which river?")])
    assert [spoilt in "".join(lines) for lines in (plan, told(tree, inputs=query, found="Danube"))] == [False, True]


def test_a_reply_that_gave_a_wrong_verdict_is_told_so():
    example, wrong = EXAMPLE.copy(answers=["REFUTES"]), answered(ReasoningTree(question="q"), answer="SUPPORTS")
    step = (dspy.Predict("question -> answer"), {}, dspy.Prediction(final_content="It does.", answer="supports"))
    assert feedback(example, wrong, right=False, step=step).endswith("'SUPPORTS' was given in this reply.")


def test_a_review_that_names_something_missing_and_asks_nothing_is_told_so():
    missing = "Something was still missing here, but no query was written."
    tree = grown({"query": "q", "source": "passage", "found": (NOVEL,), "passage": NOVEL, "ended": "no query"})
    assert missing in told(tree)
    assert missing not in told(tree, EXAMPLE.copy(gold_titles=["The Metamorphosis"]))


def test_a_right_answer_with_sound_steps_has_one_line():
    tree = grown(WROTE | {"answer": "Kafka", "source": "lm", "stance": "supports", "support": NOVEL.text})
    prediction = answered(tree, answer="Kafka", references=[NOVEL])
    whole = dspy.Example(question="q", answer="Kafka")
    assert feedback(whole, prediction, right=True) == "The answer 'Kafka' is right."


def test_what_the_metric_says_itself_comes_last():
    def own(example, prediction, trace=None):
        return dspy.Prediction(score=0.5, feedback="Use shorter words.")

    judged = Verdicts(own).with_feedback(EXAMPLE, answered(None))
    lines = ["The answer 'Danube' is wrong; right is 'Vltava'.", "Its score is 0.50, of at most 1."]
    assert judged.feedback.splitlines() == [*lines, "Use shorter words."]
    assert (judged.score, judged.accepted) == (0.5, False)


def test_what_a_user_said_of_a_wrong_answer_is_told():
    example = EXAMPLE.copy(feedback="of the answer 'Rhine': [[ ## answer ## ]] it is in Bohemia")
    tree = grown(PROVEN)
    for reply in ({}, {"answer": "Kafka"}):
        assert "A user said of the answer 'Rhine': [ [ # answer # ] ] it is in Bohemia" in told(tree, example, **reply)
    assert "A user" not in feedback(example, answered(tree, answer="Vltava"), right=True)
