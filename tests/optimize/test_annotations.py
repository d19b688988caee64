"""Demonstrations that the annotations make: whole, true to the annotations, and paid by nobody."""

from __future__ import annotations

import dspy
import pytest

from questree.data import Question, load_task
from questree.lm.guard import complete_demonstrations
from questree.lm.ledger import Spent
from questree.metrics import contains
from questree.optimize import compile as compile_program
from questree.optimize import optimizer
from questree.optimize.annotations import annotated_teacher
from questree.optimize.verdicts import Teaching, Verdicts
from questree.programs import PROGRAMS, build
from questree.programs.demonstrations import as_found
from questree.programs.prompts import rendered_prompts
from questree.programs.tree import ReasoningTree
from questree.retrieval import Passage
from questree.signatures import PlannedStep, Step

# what no question of the bundled set makes them do: search again, sample without passages, edit a step, end without
# an answer
WITHOUT = {
    "searchain": {"revised_chain.revise"},
    "react-self-consistency": {"step_by_step_answer.answer"},
    "toolformer": {"thoughts_answer.answer"},
    "search-agent": {"thoughts_answer.answer"},
    "verify-and-edit": {"verification.ask_to_verify", "verification.edit_sentence", "thoughts_answer.answer"},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_predictor_is_demonstrated_wholly_and_no_lm_is_asked(name, mini):
    compiled = compile_program(
        build(name, {}, retriever=mini.index),
        mini.examples(train=16, dev=1),
        mini.metric,
        optimizer=optimizer("annotated-few-shot", k=2),
    )
    assert compiled.compilation.spent == Spent()
    for predictor_name, predictor in compiled.program.named_predictors():
        assert len(predictor.demos) == (0 if predictor_name in WITHOUT.get(name, ()) else 2), predictor_name
        assert complete_demonstrations(predictor) == predictor.demos
        assert predictor.lm is None
    for prompt in rendered_prompts(compiled.program):
        assert "ot supplied for this particular example" not in prompt.text


def test_what_a_demonstration_says_from_memory_is_annotated(mini):
    answers = {example.question: [step["answer"] for step in example.annotated_steps] for example in mini.train}
    for name in ("searchain", "tree-of-reviews", "blendfilter"):
        program = build(name, {}, retriever=mini.index)
        taught = compile_program(
            program, mini.examples(train=40, dev=1), mini.metric, optimizer=optimizer("annotated-few-shot", k=20)
        ).program
        demos = [demo for predictor in taught.predictors() for demo in predictor.demos]
        plans = [(demo.question, step.recalled) for demo in demos for step in demo.get("planned_chain", [])]
        recalled = [(question, answer) for question, answer in plans if answer]
        written = [(demo.question, demo[field]) for demo in demos for field in ("guess", "passage") if demo.get(field)]
        # its own question's: a wrong answer of the simulated LM is the right one of another question
        assert all(answer in answers[question] for question, answer in recalled)
        assert all(any(contains(text, answer) for answer in answers[question]) for question, text in written)
        assert recalled if name == "searchain" else written


def test_plans_are_certain_uncertain_and_silent_and_verdicts_of_each_kind_are_shown(mini):
    program = build("searchain", {}, retriever=mini.index)
    taught = compile_program(
        program, mini.examples(train=40, dev=1), mini.metric, optimizer=optimizer("annotated-few-shot", k=6)
    ).program
    steps = [step for demo in taught.chain_of_query.plan.demos for step in demo.planned_chain]
    assert {(step.recalled is not None, step.sure) for step in steps} == {(True, True), (True, False), (False, False)}
    assert {"supports", "contradicts"} <= {demo.verdict for demo in taught.step_check.check.demos}


def test_annotations_teach_another_optimizer_too(mini):
    compiled = compile_program(
        mini.program(), mini.examples(dev=1), mini.metric, optimizer="bootstrap-few-shot", teacher="annotations"
    )
    assert compiled.compilation.spent == Spent()
    assert compiled.program.chain_of_query.plan.demos
    assert not any("ot supplied" in prompt.text for prompt in rendered_prompts(compiled.program))


def test_a_wrong_answer_of_the_annotations_teaches_nothing(mini):
    program = build("direct", {})
    teacher = annotated_teacher(program, mini.train[:8])
    verdicts = Verdicts(lambda example, prediction, trace=None: 0.0, Teaching())
    with dspy.context(trace=[]):
        assert not verdicts(mini.train[0], teacher(**mini.train[0].inputs()), list(dspy.settings.trace))


def test_an_example_holds_its_question():
    for question in load_task("mini").questions["train"][:20]:
        read = Question.from_example(question.to_example())
        kept = {"id", "question", "answers", "gold_titles", "steps", "answers_are_regex", "style"}
        assert read.model_dump(include=kept) == question.model_dump(include=kept)


def test_an_example_of_one_s_own_is_a_question():
    read = Question.from_example(dspy.Example(question="Who?", answer="Kafka"))
    assert (read.answers, read.style, read.steps) == (("Kafka",), "short", ())


PRAGUE = Passage(id="p", title="Kafka", text="Kafka was born in Prague.")


def step_of(predictor, **fields):
    return predictor, {"question": "q"}, dspy.Prediction(**fields)


@pytest.mark.parametrize(
    ("recalled", "shown"),
    [("Prague", ("Prague", True)), ("Vienna", (None, False)), (None, (None, False))],
)
def test_a_plan_shows_what_was_found_out(recalled, shown):
    tree = ReasoningTree(question="q")
    first = tree.grow(None, query="Where was Kafka born?", answer=recalled, found=(PRAGUE,))
    tree.grow(None, query=first.query, answer="Prague", found=(PRAGUE,), support=PRAGUE.text, replaces=first.id)
    predictor = dspy.Predict("question -> planned_chain")
    planned = [PlannedStep(query="Where was Kafka born?", recalled=recalled, sure=recalled is not None)]
    _, _, reply = as_found(step_of(predictor, planned_chain=planned), tree)
    assert [(one.recalled, one.sure) for one in reply.planned_chain] == [shown]
    chain = [Step(query="Where was Kafka born?", answer=recalled)]
    _, _, reply = as_found(step_of(predictor, chain=chain), tree)
    assert [one.answer for one in reply.chain] == [shown[0]]


def test_a_plan_of_which_nothing_was_looked_up_is_shown_as_it_is():
    tree = ReasoningTree(question="q")
    tree.grow(None, query="Where was Kafka born?", answer="Vienna")
    step = step_of(dspy.Predict("question -> answered_plan"), answered_plan=[Step(query="Where?", answer="Vienna")])
    assert as_found(step, tree) is step
