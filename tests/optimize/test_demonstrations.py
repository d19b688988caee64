"""Demonstrations that no LM makes: written by hand, or of annotated questions whose passages state the answers."""

import json
import re
from importlib.resources import files

import dspy
import pytest
from house import prompts
from pydantic import TypeAdapter

from questree.common.errors import QuestreeError
from questree.lm.guard import complete_demonstrations
from questree.lm.spent import Spent
from questree.metrics import stands_in
from questree.metrics.quotes import proving_sentences
from questree.optimize import Examples
from questree.optimize.demonstrations import (
    annotated,
    apart_from,
    each_verdict_once,
    handwritten,
    is_right,
    is_sound,
    read_lesson,
    shortened,
)
from questree.optimize.demonstrations.annotated_steps import demonstrate
from questree.optimize.demonstrations.handwritten import METHODS
from questree.optimize.demonstrations.lessons import states
from questree.optimize.verdicts import Verdicts
from questree.programs import build
from questree.programs.prompts import rendered_prompts
from questree.signatures import made_of, question_field
from questree.signatures.evidence import Fact, ReadEvidence
from questree.signatures.knowledge import AnswerWithKnowledge

FEW = "annotated-few-shot"
THREE = ("searchain", "tree-of-reviews", "blendfilter")
_NUMBERED = re.compile(r"\[(\d+)\] (.*?) \| (.*)")
_MARKED = re.compile(r"([^.]*?)((?:\s?\[\d+\])+)")
_NAMES = re.compile(r"\b[A-Z]\w+(?: [A-Z]\w+)*|\d{4}")


def written():
    for method in METHODS:
        text = files("questree.optimize.demonstrations").joinpath(f"{method}.json").read_text(encoding="utf-8")
        for names, rows in json.loads(text).items():
            yield from ((name, row) for name in names.split(", ") for row in rows)


WRITTEN = [(prompts()[name], row) for name, row in written()]
ROWS = pytest.mark.parametrize(
    ("signature", "row"), WRITTEN, ids=lambda one: one["kind"] if isinstance(one, dict) else one.__name__
)


@ROWS
def test_what_is_written_by_hand_holds_each_field_in_its_type(signature, row):
    for name, field in signature.fields.items():
        TypeAdapter(field.annotation).validate_python(row[name], strict=False)
    assert row["answer_style"] in ("short", "yes-no", "label") if "answer_style" in signature.fields else True


@ROWS
def test_what_is_written_by_hand_says_what_its_passages_say(signature, row):
    shown = filter(None, map(_NUMBERED.fullmatch, row.get("passages", [])))
    passages = {int(one[1]): f"{one[2]}. {one[3]}" for one in shown}
    passages |= {step["mark"]: f"{step['title']}. {step['support']}" for step in row.get("steps", [])}
    for name in {"final_content", "facts"} & signature.fields.keys():
        for told, marks in _MARKED.findall(row[name]):
            names = {*_NAMES.findall(told)} - {"She", "He", "It", "The", "Sant Eliu"}
            cited = " ".join(passages[int(mark)] for mark in re.findall(r"\d+", marks)) if passages else told
            assert any(stands_in(cited, one.split()[-1]) for one in names) or not names, (told, cited)
    if "found" in signature.fields:
        assert bool(row["passage_number"]) == bool(row["found"]) == (row["verdict"] != "silent")
        for found, *number in (re.findall(r"[^][]+", one) for one in row["found"].split("; ") if one):
            assert stands_in(passages[int(*number or [row["passage_number"]])], found)
    if "judgements" in signature.fields:
        assert [one["number"] for one in row["judgements"]] == [*passages]
        assert all(bool(one["says"]) == one["useful"] for one in row["judgements"])
    for fact in row.get("evidence", []):
        title, _, text = passages.get(fact["passage"], "").partition(". ")
        known = f"{fact['fact']} [{fact['passage']}]" in row["known_facts"]
        assert bool(fact["quote"]) == (bool(fact["passage"]) and not known)
        assert not fact["quote"] or proving_sentences(fact["fact"], fact["quote"], title, text, row["question"])
    if "kept" in signature.fields:
        assert {*row["kept"]} <= passages.keys()
        for number in passages:
            assert f"[{number}] {'helps' if number in row['kept'] else 'does not help'}" in row["reasons"]
    if "supported_answer" in signature.fields:
        assert bool(row["missing" if "missing" in row else "next_query"]) != bool(row["supported_answer"])
    if "span" in signature.fields and row["span"]:
        assert row["span"] in row["passages"][0]


@pytest.mark.parametrize("preset", [None, "paper"])
@pytest.mark.parametrize("name", THREE)
def test_without_annotated_steps_each_prompt_of_the_methods_has_what_was_written_for_it(name, preset, mini):
    bare = Examples([one.copy(annotated_steps=[]) for one in mini.train[:4]], mini.dev[:1])
    program = build(name, {"preset": preset} if preset else {}, retriever=mini.index)
    compiled = mini.compiled(FEW, program=program, examples=bare)
    assert compiled.compilation.spent == Spent()
    for predictor_name, predictor in compiled.program.named_predictors():
        assert len(predictor.demos) >= 2, predictor_name
        assert complete_demonstrations(predictor) == predictor.demos
    assert not any("ot supplied" in prompt.text for prompt in rendered_prompts(compiled.program))


def test_annotated_steps_stand_behind_the_first_that_was_written_by_hand(mini):
    for name in THREE:
        taught = mini.compiled(FEW, train=40, dev=1, program=build(name, {}, retriever=mini.index)).program
        for predictor_name, predictor in taught.named_predictors():
            written, shown = handwritten(predictor.signature), list(predictor.demos)
            assert (len(shown), dict(shown[0])) == (2, dict(written[0]))
            # annotations hold no search that missed: another that was written takes their place
            assert (shown[1] in written) == (predictor_name == "revised_chain.revise"), predictor_name


def test_a_prompt_of_which_nothing_is_written_or_annotated_is_named(mini):
    with pytest.raises(QuestreeError, match="show a prompt of react: take another optimizer"):
        mini.compiled(FEW, train=4, dev=1, program=build("react", {}, retriever=mini.index))


IBSEN, TUCSON = "Where was Henrik Ibsen born? Skien", "What is the second largest city in Arizona? Tucson"
CHILD, STARRED = "Who is a child of Ryan O'Neal? Tatum O'Neal", "Who starred in the 1994 film No Escape? Ray Liotta"
DERBY = "5 November 1887 Aston Villa 4 -- 0 23 March 1901 0 -- 0."


@pytest.mark.parametrize(
    ("asked", "title", "sentence", "stated"),
    [
        (IBSEN, "Henrik Ibsen", "He was born in Skien.", True),
        (IBSEN, "Henrik Ibsen", "He left Skien for Grimstad at fifteen.", False),
        (IBSEN, "Suzannah Ibsen", "She was born in Skien.", False),
        ("Where was Osbert Sitwell educated? Eton", "Osbert Sitwell", "His brother was educated at Eton.", False),
        ("Where was Osbert Sitwell educated? Eton", "Reresby Sitwell", "He was educated at Eton.", False),
        ("Where was Raymond Carver born? Clatskanie", "Raymond Carver", "Born in Clatskanie, the son of Ella.", True),
        ("Which state is Yuma in? Arizona", "Yuma, Colorado", "Yuma is the largest town of the county.", False),
        (TUCSON, "Tucson, Arizona", "It was the 32nd largest city.", False),
        (TUCSON, "Tucson, Arizona", "Tucson is the second largest city in Arizona.", True),
        (CHILD, "Nickelodeon (film)", "It stars Ryan O'Neal and Tatum O'Neal.", False),
        ("Who wrote Peer Gynt? Henrik Ibsen", "Peer Gynt", "Peer Gynt is a play by Henrik Ibsen.", True),
        ("Who starred in No Escape? Ray Liotta", "No Escape (1994 film)", "No Escape stars Ray Liotta.", False),
        (STARRED, "No Escape (1994 film)", "The 1994 film starred Ray Liotta.", True),
        ("Who won Second City derby? Aston Villa", "Second City derby", DERBY, False),
    ],
)
def test_a_label_stands_only_where_the_passage_states_the_answer_of_its_subject(asked, title, sentence, stated):
    query, _, answer = asked.partition("? ")
    assert states(f"{query}?", answer, title, sentence) == stated


def lesson_of(mini, number):
    lessons = [lesson for one in mini.train if (lesson := read_lesson(one, mini.index)) and len(lesson.whole) == 2]
    return lessons[number]


def test_a_lesson_shows_nothing_but_what_people_wrote(mini):
    """Its question, the queries of its steps, and sentences of passages."""
    texts = " ".join(passage.text for passage in mini.index.passages)
    for example in mini.train[:40]:
        lesson = read_lesson(example, mini.index)
        for fact in lesson.facts if lesson else ():
            assert fact.passage.text in texts
            assert stands_in(fact.passage.text, fact.answer)
        for other in lesson.distractors if lesson else ():
            assert not any(stands_in(other.shown(), answer) for answer in lesson.answers)


def test_an_annotated_answer_cites_its_sentences_and_concludes(mini):
    lesson = lesson_of(mini, 0)
    ((_, fields),) = demonstrate(AnswerWithKnowledge, lesson)
    assert len(fields["passages"]) == 4  # two that help, and two that do not
    for fact in lesson.facts:
        number = next(n for n, row in enumerate(fields["passages"], start=1) if fact.passage.text in row)
        assert f"{fact.passage.text.rstrip('.')} [{number}]." in fields["final_content"]


class OwnPlan(dspy.Signature):
    """Plan."""

    question: str = question_field()
    plan: list[str] = made_of("the plan", dspy.OutputField())


def test_a_field_of_an_own_prompt_says_what_annotations_show_of_it_and_no_prompt_or_state_holds_that(mini):
    lesson = lesson_of(mini, 0)
    shown = {"question": lesson.question, "plan": [*lesson.plan]}
    assert demonstrate(OwnPlan, lesson) == [("", shown)]
    assert demonstrate(OwnPlan.with_instructions("Plan anew."), lesson) == [("", shown)]
    assert demonstrate(OwnPlan.append("doubts", dspy.OutputField(), str), lesson) == []  # no annotation holds them
    assert demonstrate(OwnPlan.delete("plan").append("plan", dspy.OutputField(), list[str]), lesson) == []
    asked = [dspy.ChatAdapter().format(OwnPlan, [], {"question": "Why?"}), OwnPlan.dump_state()]
    assert "made_of" not in str(asked)
    assert "the plan" not in str(asked)


def test_an_annotated_reading_quotes_each_sentence_and_asks_for_nothing(mini):
    lesson = lesson_of(mini, 0)
    ((_, fields),) = demonstrate(ReadEvidence, lesson)
    for fact, read in zip(lesson.facts, fields["evidence"], strict=True):
        assert fields["passages"][read["passage"] - 1].endswith(read["quote"])
        assert read["quote"] == fact.passage.text
    assert (fields["searches"], fields["sure"]) == ([], True)


@pytest.mark.parametrize(
    "steps",
    [
        [{"question": "What is #1 the capital of?", "answer": "x"}],
        [{"question": "who did he play in true grit", "answer": "x"}],
        [{"question": "What is the largest moon?", "answer": "x"}],
        [{"question": "Who wrote Brand?", "answer": None}],
        [{"question": "Who wrote #1?", "answer": "x"}],
    ],
)
def test_what_cannot_be_said_rightly_is_not_shown(steps, mini):
    assert read_lesson(mini.train[0].copy(annotated_steps=steps), mini.index) is None


@pytest.mark.parametrize("gold", [{"answers": [], "answer": ""}, {"answers": ["x", "y"], "needed": [["x"], ["y"]]}])
def test_steps_that_lead_to_no_single_answer_are_not_shown(gold, mini):
    assert read_lesson(mini.train[2].copy(**gold), mini.index) is None
    assert read_lesson(mini.train[2], mini.index) is not None
    with pytest.raises(QuestreeError, match="None of the 1 training questions"):
        annotated([mini.train[2].copy(**gold)])


def test_a_question_that_ends_with_the_last_fact_of_one_that_is_asked_is_left_out():
    def example(question, **fields):
        return dspy.Example(question=question, **fields)

    border = {"question": "What is the seat of #1?", "answer": "Green Bay", "support_title": "Brown County"}
    asked = [example("Where?", annotated_steps=[border]), example("Both?", gold_passages=["a", "b"])]
    same, same_gold = example("Elsewhere?", annotated_steps=[{}, border]), example("Two?", gold_passages=["b", "a"])
    other = example("Else?", annotated_steps=[border | {"answer": "De Pere"}], gold_passages=["a"])
    assert apart_from([same, same_gold, other], asked) == [other]
    with pytest.raises(QuestreeError, match="would tell that answer"):
        apart_from([same], asked)


def test_annotations_teach_an_optimizer_that_bootstraps_and_no_lm_is_asked(mini):
    compiled = mini.compiled("bootstrap-few-shot", train=30, dev=1, teacher="annotations")
    assert compiled.compilation.spent == Spent()
    for name in ("chain_of_query.plan", "step_check.check", "tracing.trace"):
        assert dict(compiled.program.named_predictors())[name].demos, name
    assert not any("ot supplied" in prompt.text for prompt in rendered_prompts(compiled.program))


def test_without_annotated_steps_annotations_teach_nothing(mini, tmp_path):
    bare = [one.copy(annotated_steps=[]) for one in mini.train[:2]]
    given = {"examples": Examples(bare, mini.dev[:1]), "teacher": "annotations", "out": tmp_path}
    with pytest.raises(QuestreeError, match="None of the 2 training questions has `steps`"):
        mini.compiled("bootstrap-few-shot", **given)
    assert not (tmp_path / "before").exists()  # nothing was paid for yet
    assert annotated([*bare, mini.train[2]]) == [mini.train[2]]


def test_a_step_that_answers_the_question_wrongly_teaches_nothing(mini):
    example, tells = mini.train[0], dspy.Predict("question -> answer")
    for answer, teaches in ((example.answers[0], True), ("something else", False)):
        step = tells, {"question": example.question}, dspy.Prediction(answer=answer)
        assert Verdicts(mini.metric)._answers_right(step, example) == teaches


PRAGUE = [
    "[1] Kafka | Kafka wrote The Trial. He was born in Prague. He died in 1924.",
    "[2] Prague | Prague lies on the Vltava.",
]
BORN = dspy.Example(annotated_steps=[{"question": "Where was Kafka born?", "answer": "Prague"}])


@pytest.mark.parametrize(
    ("inputs", "reply", "sound"),
    [
        ({"query": "Where was Kafka born?"}, {"passage_number": 1, "found": "Prague", "verdict": "supports"}, True),
        ({"query": "Where was Kafka born?"}, {"passage_number": 1, "found": "Prague; Brno [2]", "verdict": "x"}, True),
        ({"query": "Where was Kafka born?"}, {"passage_number": 2, "found": "Prague", "verdict": "supports"}, False),
        ({"query": "Where was Kafka born?"}, {"passage_number": 0, "found": "", "verdict": "silent"}, False),
        ({"query": "Where is Kafka buried?"}, {"passage_number": 0, "found": "", "verdict": "silent"}, True),
        ({"failed_query": "Where was Kafka born?"}, {"rest": []}, False),
        ({"failed_query": "Where is Kafka buried?"}, {"rest": []}, True),
        ({}, {"final_content": "British general: Sunday."}, False),
        ({}, {"final_content": "Kafka was born in Prague [1]. So the answer is: Prague."}, True),
        ({}, {"guess": "Where was Kafka born: Prague."}, False),
        ({}, {"judgements": [{"number": 1, "says": "Where was Kafka born: Prague.", "useful": True}]}, False),
        ({}, {"facts": "Kafka wrote The Trial. He was born in Prague [1]."}, False),  # a sentence without its mark
        ({}, {"facts": "Kafka wrote The Trial [1]."}, True),
    ],
)
def test_steps_of_an_lm_are_held_to_the_rules_of_annotated_ones(inputs, reply, sound):
    step = (dspy.Predict("question -> answer"), {"passages": PRAGUE, **inputs}, dspy.Prediction(**reply))
    assert is_sound(step, BORN) == sound


def test_the_passages_of_an_lm_s_step_are_cut_and_numbered_anew():
    others = [f"[{n}] Other {n} | Something else. And more." for n in range(2, 6)]
    rows = [PRAGUE[0], *others, "[6] Prague | Prague lies on the Vltava. It is large."]
    reply = dspy.Prediction(final_content="He was born in Prague [1], on the Vltava [6].", kept=[1, 6])
    _, inputs, told = shortened((dspy.Predict("q -> a"), {"passages": rows}, reply))
    assert inputs["passages"] == [
        "[1] Kafka | He was born in Prague.",
        "[2] Other 2 | Something else.",
        "[3] Other 3 | Something else.",
        "[4] Prague | Prague lies on the Vltava.",
    ]
    assert (told.final_content, told.kept) == ("He was born in Prague [1], on the Vltava [4].", [1, 4])


PRAGUE_AND_RIVER = [
    "[2] Kafka | He was born in Prague. He had three sisters. He wrote The Trial.",
    "[3] Other 3 | Something else. And more.",
    "[4] Other 4 | Something else.",
    "[5] Prague | Prague is large. It lies on the Vltava.",
]


def test_quotes_stay_in_a_shortened_reading_and_facts_keep_their_passages():
    rows = ["[1] Other | Else.", *PRAGUE_AND_RIVER]
    facts = [
        Fact(fact="Kafka was born in Prague.", passage=2, quote="He was born in Prague"),
        Fact(fact="Kafka wrote The Trial.", passage=2, quote="wrote The Trial"),
        Fact(fact="Prague lies on the Vltava.", passage=5, quote="lies on the Vltava"),
        Fact(fact="The Vltava is a river."),
    ]
    inputs = {"passages": rows, "known_facts": ["Prague lies on the Vltava. [5]"]}
    _, given, told = shortened((dspy.Predict("q -> a"), inputs, dspy.Prediction(evidence=facts, answer="Vltava")))
    assert given["passages"] == [
        "[1] Other | Else.",
        "[2] Kafka | He was born in Prague. He wrote The Trial.",
        "[3] Other 3 | Something else.",
        "[4] Prague | It lies on the Vltava.",
    ]
    assert [fact.passage for fact in told.evidence] == [2, 2, 4, 0]
    assert given["known_facts"] == ["Prague lies on the Vltava. [4]"]


def test_every_passage_of_a_review_stays():
    reply = dspy.Prediction(facts="Kafka was born in Prague [1].", last_adds=False)
    _, inputs, _ = shortened((dspy.Predict("q -> a"), {"passages": PRAGUE}, reply))
    assert inputs["passages"] == ["[1] Kafka | He was born in Prague.", PRAGUE[1]]


@pytest.mark.parametrize(
    ("answer", "golds", "right"),
    [
        ("1825", ["1825"], True),
        ("October 25, 1825", ["1825"], False),
        ("Rooster Cogburn", ["U.S. Marshal Rooster Cogburn", "Cogburn"], True),
        ("the Vltava", ["Vltava"], True),
    ],
)
def test_a_longer_answer_than_was_asked_for_is_no_demonstration(answer, golds, right):
    assert is_right(answer, golds) == right


def test_a_predictor_that_judges_shows_each_verdict_once_and_one_that_plans_shows_all():
    def review(title: str, adds: bool, answer: str = "") -> dspy.Example:
        told = {"passages": [title], "facts": "", "last_adds": adds, "next_query": "" if answer else "Who?"}
        return dspy.Example(question="q", answer_style="s", tried=[], guess="", supported_answer=answer, **told)

    reviews = build("tree-of-reviews", {}).paragraph_review.review
    fusion = build("tree-of-reviews", {"preset": "paper"}).evidence_fusion.fuse
    reviews.demos = [review("A", True), review("B", False), review("C", True), review("D", True, "x")]
    assert [demo.passages for demo in each_verdict_once(reviews)] == [["A"], ["B"], ["D"]]
    told = {"question": "q", "answer_style": "s", "assertions": [], "passages": [], "final_content": "f", "answer": "a"}
    fusion.demos = [dspy.Example(**told), dspy.Example(**told)]
    assert len(each_verdict_once(fusion)) == 2
