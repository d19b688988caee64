"""What is said to an optimizer that reflects: the verdict, and each step that went wrong."""

import dspy
import pytest

from questree.lm.failure import Failure
from questree.metrics import metric
from questree.metrics.found_passages import passage_fingerprint
from questree.optimize.feedback import feedback
from questree.optimize.optimizers.instructions import _about_what_ran, _with_sound_demonstrations
from questree.optimize.verdicts import Verdicts
from questree.programs.demonstrations import note
from questree.programs.tree import ReasoningTree
from questree.retrieval import Passage
from questree.signatures.chain_of_query import PlannedStep
from questree.signatures.evidence import Fact

NOVEL = Passage(id="n", title="The Metamorphosis", text="A novella by Franz Kafka.")
OTHER = Passage(id="o", title="Max Brod", text="A friend.")
EXAMPLE = dspy.Example(question="q", answers=["Vltava"], gold_titles=["The Metamorphosis", "Prague"])


def answered(tree, **fields):
    return dspy.Prediction(**{"answer": "Danube", "failure": None, "references": [], "tree": tree} | fields)


def test_each_step_that_went_wrong_has_a_line():
    tree = ReasoningTree(question="q")
    wrong = tree.grow(None, query="Who wrote it?", answer="Max Brod", stance="contradicts", found=(NOVEL,))
    author = tree.grow(
        None,
        query="Who wrote it?",
        answer="Franz Kafka",
        found=(NOVEL,),
        passage=NOVEL,
        support=NOVEL.text,
        replaces=wrong.id,
    )
    born = tree.grow(author, query="Where was he born?", source="unsolved", stance="silent", found=(OTHER,))
    tree.grow(born, query="Which river?", answer="Danube", source="lm", stance="silent", found=(OTHER,))
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
    tree = ReasoningTree(question="q")
    kept = {"query": "Who wrote it?", "answer": "Franz Kafka", "found": (NOVEL,)}
    first = tree.grow(None, stance="contradicts", **kept)
    tree.grow(None, stance="supports", support=NOVEL.text, replaces=first.id, **kept)
    assert "was wrong" not in feedback(EXAMPLE, answered(tree), right=False)


def test_where_gold_passages_are_known_another_part_of_the_article_is_not_what_the_answer_needs():
    tree = ReasoningTree(question="q")
    tree.grow(None, query="Who wrote it?", answer="Franz Kafka", found=(NOVEL,), support=NOVEL.text)
    for gold, found in [("n", True), (passage_fingerprint(NOVEL.title, NOVEL.text), True), ("n2", False)]:
        told = feedback(EXAMPLE.copy(gold_passages=[gold, "p"], gold_titles=[]), answered(tree), right=False)
        assert f"No query found {2 - found} of the passages that the answer needs." in told
        assert ("found no passage that the answer needs" in told) != found


def test_a_fact_that_was_never_looked_up_is_told_as_its_annotation_has_it():
    tree = ReasoningTree(question="q")
    tree.grow(None, query="Who wrote it?", answer="Franz Kafka", found=(NOVEL,))
    steps = [
        {"question": "Who wrote it?", "answer": "Franz Kafka", "support_title": "The Metamorphosis"},
        {"question": "Where was #1 born?", "answer": "Prague", "support_title": "Franz Kafka"},
    ]
    example = EXAMPLE.copy(gold_titles=["The Metamorphosis", "Franz Kafka"], annotated_steps=steps)
    told = feedback(example, answered(tree), right=False).splitlines()
    assert told[1:] == ["No query found the article 'Franz Kafka', which answers 'Where was Franz Kafka born?'."]


def test_a_step_is_told_what_it_remembered_wrongly():
    steps = [
        {"question": "Who wrote it?", "answer": "Franz Kafka"},
        {"question": "Where was #1 born?", "answer": "Prague"},
    ]
    example = EXAMPLE.copy(annotated_steps=steps)

    def told(**reply):
        step = (dspy.Predict("question -> answer"), {"question": "q"}, dspy.Prediction(**reply))
        return feedback(example, answered(None), right=False, step=step).splitlines()[1:]

    planned = [PlannedStep(query="Who wrote it?", recalled="Kafka"), PlannedStep(query="Where was #1 born?")]
    assert told(planned_chain=planned) == ["No fault of this step by itself is known."]
    planned[1] = PlannedStep(query="Where was #1 born?", recalled="Vienna", sure=True)
    assert told(planned_chain=planned) == [
        "What this reply remembers for 'Where was #1 born?', 'Vienna', is wrong; it is 'Prague'."
    ]


def test_a_reading_is_told_what_its_facts_lack():
    tree = ReasoningTree(question="q")
    tree.grow(None, query="Franz Kafka wrote it.", answer="Franz Kafka", passage=NOVEL, support=NOVEL.text)
    facts = [Fact(fact="Franz Kafka wrote it.", passage=1, quote=NOVEL.text), Fact(fact="Kafka was a Czech.")]
    reply = dspy.Prediction(evidence=facts, answer="Danube")
    inputs = {"passages": ["[1] The Metamorphosis | A novella by Franz Kafka.", "[2] Kafka | Born in Prague."]}
    steps = [
        {"question": "Who wrote it?", "answer": "Franz Kafka"},
        {"question": "Where was #1 born?", "answer": "Prague"},
        {"question": "Which river flows through #2?", "answer": "Vltava"},  # no passage tells it
    ]
    example = EXAMPLE.copy(gold_titles=[], annotated_steps=steps)
    told = feedback(example, answered(tree), right=False, step=(dspy.Predict("question -> answer"), inputs, reply))
    assert told.splitlines()[1:] == [
        "No quote proves the fact 'Kafka was a Czech.'.",
        "No fact of this reply tells 'Prague', which answers 'Where was Franz Kafka born?'; a passage holds it.",
        "The wrong answer 'Danube' began in this reply.",
    ]


@pytest.mark.parametrize(
    ("prediction", "right", "full", "said"),
    [
        (answered(None, answer="Vltava"), True, True, "The answer 'Vltava' is right."),
        (
            answered(None, answer="the river"),
            True,
            False,
            "The answer 'the river' is good enough, without the full score; right is 'Vltava'.",
        ),
        (
            answered(None, answer="the Vltava"),
            False,
            True,
            "The answer 'the Vltava' is right, but the metric does not accept what was given.",
        ),
        (answered(None, answer=""), False, True, "In the end, 'q' got no answer; right is 'Vltava'."),
        (
            answered(None, failure=Failure(cause="timeout", message="too slow")),
            False,
            True,
            "No answer was given: timeout: too slow.",
        ),
        (None, False, True, "No answer was given."),
    ],
)
def test_the_verdict_is_told_in_words(prediction, right, full, said):
    assert feedback(EXAMPLE, prediction, right=right, full=full) == said


def test_a_needed_passage_that_was_turned_away_is_told():
    tree = ReasoningTree(question="q")
    tree.grow(None, query="Who wrote it?", source="passage", found=(NOVEL,), passage=NOVEL, ended="rejected")
    told = "The passage 'The Metamorphosis', which the answer needs, was rejected."
    assert told in feedback(EXAMPLE, answered(tree), right=False)


def test_a_step_is_told_only_what_it_had_part_in():
    tree = ReasoningTree(question="q")
    author = tree.grow(None, query="Who wrote it?", answer="Kafka", found=(NOVEL,), passage=NOVEL, support=NOVEL.text)
    born = {"template": "Where was #1 born?", "source": "unsolved", "stance": "silent", "found": (OTHER,)}
    tree.grow(author, query="Where was Kafka born?", **born)

    def told(inputs, **reply):
        step = (dspy.Predict("question -> answer"), inputs, dspy.Prediction(**reply))
        return feedback(EXAMPLE, answered(tree), right=False, step=step).splitlines()

    end = "In the end, the answer 'Danube' to 'q' is wrong; right is 'Vltava'."
    unanswered = "The query 'Where was Kafka born?' was left without an answer."
    needless = "The query 'Where was Kafka born?' found no passage that the answer needs."
    never = "No query found the article 'Prague', which the answer needs."
    planned = [PlannedStep(query=query) for query in ("Who wrote it?", "Where was #1 born?")]
    assert told({"question": "q"}, planned_chain=planned) == [end, unanswered, needless, never]
    assert told({"query": "Where was Kafka born?"}, verdict="silent") == [end, unanswered, needless]
    assert told({"query": "Who wrote it?"}, found="Kafka") == [end, "No fault of this step by itself is known."]
    unmarked, given, began = (
        "The final content has no mark for 'Kafka', which stands in the passage 'The Metamorphosis'.",
        "The wrong answer 'Danube' stands in what this step was given.",
        "The wrong answer 'Danube' began in this reply.",
    )
    assert told({"steps": ["Danube"]}, final_content="Danube.") == [end, unmarked, given]
    assert told({"passages": ["The Danube."]}, final_content="Danube.") == [end, unmarked, began]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Franz Kafka", "Max Brod", "was right, and 'Max Brod' was put in its place."),
        ("Max Brod", "Franz Kafka", "was wrong; a passage corrected it to 'Franz Kafka'."),
        ("Max Brod", "Felix Weltsch", "was replaced by 'Felix Weltsch', from a passage; neither is known to be right."),
    ],
)
def test_a_correction_is_called_one_where_the_annotations_say_so(old, new, said):
    steps = [{"question": "Who is the author?", "answer": "Franz Kafka"}]
    tree, example = ReasoningTree(question="q"), EXAMPLE.copy(annotated_steps=steps)
    first = tree.grow(None, query="Who wrote it?", answer=old)
    tree.grow(None, query="Who wrote it?", answer=new, support="So.", replaces=first.id)
    assert f"The answer {old!r}, recalled for 'Who wrote it?', {said}" in feedback(example, answered(tree), right=False)


def test_a_plan_is_not_blamed_for_a_right_recall_that_a_check_spoilt():
    tree = ReasoningTree(question="q")
    first = tree.grow(None, query="Which river?", answer="Vltava")
    tree.grow(None, query="Which river?", answer="Danube", support="So.", replaces=first.id)
    spoilt, predict = "was right, and 'Danube' was put in its place.", dspy.Predict("question -> answer")
    plan = (predict, {"question": "q"}, dspy.Prediction(planned_chain=[PlannedStep(query="Which river?")]))
    check = (predict, {"query": "Which river?"}, dspy.Prediction(found="Danube"))
    assert spoilt not in feedback(EXAMPLE, answered(tree), right=False, step=plan)
    assert spoilt in feedback(EXAMPLE, answered(tree), right=False, step=check)


def test_a_reply_that_gave_a_wrong_verdict_is_told_so():
    example, wrong = EXAMPLE.copy(answers=["REFUTES"]), answered(ReasoningTree(question="q"), answer="SUPPORTS")
    step = (dspy.Predict("question -> answer"), {}, dspy.Prediction(final_content="It does.", answer="supports"))
    assert feedback(example, wrong, right=False, step=step).endswith("'SUPPORTS' was given in this reply.")


def test_a_review_that_names_something_missing_and_asks_nothing_is_told_so():
    tree, missing = ReasoningTree(question="q"), "Something was still missing here, but no query was written."
    tree.grow(None, query="q", source="passage", found=(NOVEL,), passage=NOVEL, ended="no query")
    assert missing in feedback(EXAMPLE, answered(tree), right=False)
    whole = EXAMPLE.copy(gold_titles=["The Metamorphosis"])
    assert missing not in feedback(whole, answered(tree), right=False)


def test_a_right_answer_with_sound_steps_has_one_line():
    tree = ReasoningTree(question="q")
    tree.grow(
        None, query="Who wrote it?", answer="Kafka", source="lm", stance="supports", found=(NOVEL,), support=NOVEL.text
    )
    example = dspy.Example(question="q", answer="Kafka")
    prediction = answered(tree, answer="Kafka", references=[NOVEL])
    assert feedback(example, prediction, right=True) == "The answer 'Kafka' is right."


def test_what_the_metric_says_itself_comes_last():
    def own(example, prediction, trace=None):
        return dspy.Prediction(score=0.5, feedback="Use shorter words.")

    judged = Verdicts(own).with_feedback(EXAMPLE, answered(None))
    assert judged.feedback == (
        "The answer 'Danube' is wrong; right is 'Vltava'.\nIts score is 0.50, of at most 1.\nUse shorter words."
    )
    assert (judged.score, judged.accepted) == (0.5, False)


def test_simba_is_given_no_call_that_contradicts_and_plans_as_they_turned_out():
    tree = ReasoningTree(question="q")
    tree.grow(None, query="Who wrote it?", answer="Max Brod", stance="contradicts", found=(NOVEL,))
    plan, tells = dspy.Predict("question -> planned_chain"), dspy.Predict("steps -> final_content")
    planned = dspy.Prediction(planned_chain=[PlannedStep(query="Who wrote it?", recalled="Max Brod", sure=True)])
    false_mark = dspy.Prediction(final_content="He did [9].")
    note(false_mark, exemplary=False)
    whole = {"question": EXAMPLE.question}
    wrong = (dspy.Predict("question -> answer"), whole, dspy.Prediction(answer="Danube"))
    trace = [(plan, whole, planned), (tells, {"steps": []}, false_mark), wrong]
    shown, verdicts = [], Verdicts(metric("cover-em"))

    def append(bucket, system):
        shown.extend(bucket[0]["trace"])
        return True

    best = {"trace": trace, "example": EXAMPLE, "prediction": answered(tree), "score": 0.4}
    assert not _with_sound_demonstrations(append, verdicts)([best | {"output_metadata": {"accepted": False}}], None)
    assert not shown
    bucket = [best | {"output_metadata": {"accepted": True}}, {"score": 0.0}]
    _with_sound_demonstrations(append, verdicts)(bucket, None)
    ((_, _, reply),) = shown
    assert [(one.recalled, one.sure) for one in reply.planned_chain] == [(None, False)]
    assert len(bucket[0]["trace"]) == 3


def test_simba_asks_for_advice_on_the_steps_that_ran_alone(mini):
    ran, *others = mini.program().predictors()
    program, named = mini.program(), {}
    assert others
    (name, _), *_ = program.named_predictors()

    def append(bucket, system, **how):
        named.update(system.named_predictors())
        return True

    runs = [{"trace": [(ran, {}, {})], "prediction": None}, {"trace": [], "prediction": None}]
    assert _about_what_ran(append)(runs, program, predictor2name={id(ran): name})
    assert {*named} == {name}
    assert len(program.named_predictors()) == 1 + len(others)  # as before
    assert not _about_what_ran(append)(runs[1:], program, predictor2name={})  # nothing to ask about
