import logging
import threading
from unittest.mock import Mock

import dspy
import pytest
from library_parts import parts_of_libraries, replaced
from run_files import rows

from questree.common.errors import QuestreeError
from questree.evaluation.tracking import TrackedRun
from questree.lm.failure import CallFailedError
from questree.lm.guard import shown_demonstrations
from questree.optimize import OPTIMIZERS, load, optimizer
from questree.optimize.optimizers.auto_cot import clusters
from questree.optimize.optimizers.base import Job
from questree.optimize.optimizers.few_shot import BootstrapRandomSearch
from questree.optimize.optimizers.gepa import reflecting
from questree.optimize.optimizers.scores import only_errors
from questree.optimize.verdicts import Verdicts
from questree.programs import build
from questree.programs.composed import Lesson, Majority, NearestDemonstrations
from questree.programs.prompts import rendered_prompts
from questree.signatures.chain_of_query import PlannedStep

SMALL = {
    "labeled-few-shot": {"k": 4},
    "annotated-few-shot": {"k": 2, "questions": 8},
    "bootstrap-few-shot": {},
    "bootstrap-random-search": {"candidates": 1},
    "mipro": {"auto": None, "candidates": 2, "trials": 2},
    "gepa": {"auto": None, "max_metric_calls": 24},
    "infer-rules": {"candidates": 2, "rules": 3},
    "auto-cot": {"demonstrations": 2},
    "knn-few-shot": {"k": 2},
    "ensemble": {"candidates": 1, "size": 2},
}


def small(name):
    return optimizer(name, **SMALL[name])


def asked(program, examples):
    """What the program answers, and how long its prompts are: the same of two programs that are the same."""
    predictions = [program(**example.inputs()) for example in examples]
    return [(p.answer, p.final_content, p.tree.model_dump(), p.spent.words_in) for p in predictions]


def test_every_optimizer_is_tried_here():
    assert SMALL.keys() == OPTIMIZERS.keys() == {kind.name for kind in OPTIMIZERS.values()}


@pytest.mark.parametrize("name", SMALL)
def test_every_optimizer_keeps_candidates_and_gives_a_program_that_answers_the_same_when_loaded(name, mini, tmp_path):
    def told(progress):
        if progress.candidate:
            on_disk.append(len(rows(tmp_path, "SELECT 1 FROM candidates")))

    on_disk = []
    compiled = mini.compiled(small(name), train=8, dev=3, out=tmp_path, on_progress=told)
    assert on_disk == [*range(1, len(on_disk) + 1)]  # each the moment it was scored
    assert len(on_disk) == len(compiled.compilation.candidates)
    compares_none = {"labeled-few-shot", "annotated-few-shot", "bootstrap-few-shot", "auto-cot", "knn-few-shot"}
    assert (len(on_disk) > 1) == (name not in compares_none)
    assert compiled.compilation.spent.calls > 0 or name in {"labeled-few-shot", "annotated-few-shot"}
    assert {file.suffix for file in (tmp_path / "program").iterdir()} == {".json"}
    loaded = load(tmp_path / "program", retriever=mini.index)
    assert loaded.name == "searchain"
    assert asked(loaded, mini.dev[:2]) == asked(compiled.program, mini.dev[:2])


def test_rules_stand_in_the_instructions_of_the_copy_alone(mini):
    student = mini.program()
    before = [predictor.signature.instructions for predictor in student.predictors()]
    taught = mini.compiled(optimizer("infer-rules", candidates=2), dev=1, program=student)
    assert [predictor.signature.instructions for predictor in student.predictors()] == before
    assert [predictor.signature.instructions for predictor in mini.program().predictors()] == before
    for predictor, instructions in zip(taught.program.predictors(), before, strict=True):
        ruled = "Follow these rules:" in predictor.signature.instructions
        assert predictor.signature.instructions.startswith(instructions)
        assert ruled == bool(predictor.demos)
    assert any(predictor.demos for predictor in taught.program.predictors())


@pytest.mark.parametrize(("temperature", "reflects_at"), [(0.0, 1.0), (0.5, 0.5), (None, None)])
def test_gepa_reflects_above_temperature_0(temperature, reflects_at):
    assert reflecting(dspy.LM("openai/m", temperature=temperature)).kwargs["temperature"] == reflects_at


def test_the_seed_decides(mini):
    def states(seed):
        return mini.compiled("bootstrap-few-shot", dev=1, seed=seed).program.dump_state()

    assert states(1) == states(1) != states(2)


def test_auto_cot_demonstrates_one_answered_question_of_each_cluster_whatever_the_metric_says(mini):
    program = build("auto-cot", {})
    compiled = mini.compiled(None, dev=1, program=program, metric=lambda example, prediction, trace=None: False)
    (predictor,) = compiled.program.predictors()
    assert len({demo.question for demo in predictor.demos}) == 4
    assert {demo.question for demo in predictor.demos} <= {example.question for example in mini.train[:12]}
    assert all(demo.final_content and demo.answer for demo in predictor.demos)
    assert compiled.compilation.spent.calls == 4
    assert program.predictors()[0].demos == []


def test_auto_cot_passes_over_what_is_not_simple(mini):
    with pytest.raises(QuestreeError, match="simply enough"):
        mini.compiled(optimizer("auto-cot", max_question_words=2), program=build("cot", {}))


@pytest.mark.parametrize("cause", ["rate-limit", "deadline", "server"])
def test_auto_cot_takes_no_other_question_for_one_that_could_not_be_asked(mini, monkeypatch, cause):
    program, chosen = build("cot", {}), optimizer("auto-cot")
    monkeypatch.setattr(type(program), "reason", Mock(side_effect=CallFailedError(cause, "not now")))
    with pytest.raises(QuestreeError, match=f"could not be asked: {cause}: not now.*Run the same again"):
        chosen.make(program, Job(Verdicts(mini.metric), mini.train[:6], []))


def test_clusters_hold_questions_of_a_kind():
    texts = ["Who wrote Ulysses?", "How high is K2?", "Who wrote Emma?", "How high is Elbrus?"]
    assert sorted(map(sorted, clusters(texts, 2, seed=0))) == [[0, 2], [1, 3]]
    assert clusters(["same", "same"], 4, seed=0) == [[0, 1]]


def test_the_members_of_an_ensemble_differ_in_what_their_prompts_show(mini, monkeypatch):
    bare, rows, shows = programs = [mini.program() for _ in range(3)]
    rows.predictors()[0].demos = [dspy.Example(question="Who?")]  # no prompt shows it: a field is missing
    shows.predictors()[0].demos = [dspy.Example(question="Who?", answer_style="a name", planned_chain=[])]
    found = [(100.0, program) for program in programs]
    monkeypatch.setattr(BootstrapRandomSearch, "search", lambda *given: found)
    assert optimizer("ensemble").make(mini.program(), Mock()).members == [bare, shows]


def test_nearest_demonstrations_are_those_of_the_nearest_question(mini):
    program = mini.compiled(optimizer("knn-few-shot", k=1), dev=1).program
    assert isinstance(program, NearestDemonstrations)
    wanted = program.lessons[1].inputs["question"]
    assert program.neighbours(wanted.upper()) == [1]
    assert program.members[0].predictors()[0].demos == []  # none of a question stays with the program


def test_minibatches_of_mipro_are_no_larger_than_the_sample_that_it_draws(mini, monkeypatch):
    monkeypatch.setattr(dspy.teleprompt.mipro_optimizer_v2, "MIN_MINIBATCH_SIZE", 2)
    monkeypatch.setitem(dspy.teleprompt.mipro_optimizer_v2.AUTO_RUN_SETTINGS, "light", {"n": 2, "val_size": 4})
    compiled = mini.compiled(optimizer("mipro", minibatch_size=6), train=16, dev=2)
    assert {one.questions for one in compiled.compilation.candidates} == {4}


def test_a_candidate_has_the_mean_of_its_scores(mini):
    def graded(example, prediction, trace=None):
        return 0.4 if trace is None else True

    for name in ("mipro", "gepa"):
        compiled = mini.compiled(small(name), train=8, dev=1, metric=graded)
        assert {round(one.score, 6) for one in compiled.compilation.candidates} == {0.4}


def test_it_is_said_when_the_metric_accepts_nothing(mini, caplog):
    def compile_by(name, score):
        def strict(example, prediction, trace=None):
            return score

        mini.compiled(small(name), train=6, dev=2, metric=strict)

    compile_by("gepa", 0.9)
    assert "good enough to learn from" not in caplog.text, "gepa compares scores, and these are above 0"
    for by, score in (("bootstrap-few-shot", 0.9), ("gepa", 0.0)):
        caplog.clear()
        compile_by(by, score)
        assert "searchain was good enough to learn from: of" in caplog.text
        assert "predictions the metric 'strict' accepted 0. It accepts by True or 1." in caplog.text
        assert "annotated-few-shot" not in caplog.text


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("mipr", {}, r"Did you mean 'mipro'\? There are: labeled-few-shot"),
        (
            "ensemble",
            {"candidate": 3},
            r"no setting of ensemble 'candidate'.*'candidates'\?.*max_rounds \(1\)",
        ),
        ("bootstrap-random-search", {"candidates": 0}, "candidates=0 does not fit"),
        ("ensemble", {"max_bootstrapped_demos": 0}, "max_bootstrapped_demos=0 does not fit"),
        ("ensemble", {"stop_at_score": 80}, "stop_at_score=80 does not fit"),
    ],
)
def test_wrong_names_and_values_say_what_there_is(name, settings, said):
    with pytest.raises(QuestreeError, match=said):
        optimizer(name, **settings)


def test_a_random_search_stops_at_a_share_of_the_questions(mini):
    def scores(**settings):
        search = optimizer("bootstrap-random-search", candidates=3, **settings)
        return [one.score for one in mini.compiled(search, dev=1).compilation.candidates]

    every = scores()
    best = max(every)
    assert scores(stop_at_score=best) == every[: every.index(best) + 1]
    assert scores(stop_at_score=best / 2) == every[: next(n for n, one in enumerate(every) if one >= best / 2) + 1]


@pytest.mark.parametrize("given", [None, 7, ["Who?"]])
def test_what_is_no_text_fails_among_nearest_demonstrations_as_elsewhere(given):
    lesson = Lesson(inputs={"question": "Who?"}, demonstrations={})
    prediction = NearestDemonstrations(build("direct", {}), [lesson], 1)(question=given)
    assert prediction.failure.cause == "question"


@pytest.mark.parametrize("name", ["bootstrap-few-shot", "bootstrap-random-search", "mipro", "gepa", "infer-rules"])
def test_compiling_prints_nothing(mini, capfd, name):
    chosen = small(name)
    own = {} if "prompt_lm" in chosen.unused else {"prompt_lm": dspy.settings.lm.copy()}
    mini.compiled(chosen, dev=1, **own)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.parametrize("name", SMALL)
def test_nothing_of_another_library_is_replaced_while_an_optimizer_works(name, mini):
    optimizer("mipro").check(build("direct", {}), None)  # the libraries are there
    before, found = {}, set()

    def look(example, prediction, trace=None):
        found.update(replaced(before))
        return True

    def told(progress):
        before.update({} if before else parts_of_libraries())

    mini.compiled(small(name), train=6, dev=1, metric=look, on_progress=told)
    assert before
    assert not found


def test_libraries_log_errors_alone_until_the_last_of_two_optimizers_has_ended():
    def level():
        return logging.getLogger("dspy").level

    def work():
        with only_errors():
            entered.set()
            assert leave.wait(20)

    before, entered, leave = level(), threading.Event(), threading.Event()
    other = threading.Thread(target=work)
    with only_errors():
        other.start()
        assert entered.wait(20)
    assert level() == logging.ERROR
    leave.set()
    other.join(20)
    assert level() == before != logging.ERROR


def test_only_complete_demonstrations_are_kept_and_shown(mini, tmp_path):
    """A row of the task says nothing of a correction or a reading: no prompt pretends that it does."""
    for name, shows in (("direct", {"direct_answer"}), ("searchain", set())):
        program = build(name, {}, retriever=mini.index)
        taught = mini.compiled(optimizer("labeled-few-shot", k=4), dev=1, program=program).program
        assert {predictor for predictor, part in taught.named_predictors() if part.demos} == shows
        for predictor in program.predictors():
            predictor.demos = [example.copy() for example in mini.train[:4]]
        assert not [prompt for prompt in rendered_prompts(program) if "ot supplied" in prompt.text]


def test_a_null_in_a_demonstration_is_written_and_not_taken_for_missing():
    predictor = dspy.Predict("question -> answer, next_query")
    predictor.demos = [dspy.Example(question="Who?", answer="Kafka", next_query=None)]
    shown = shown_demonstrations(predictor, dspy.ChatAdapter())
    assert [dict(one)["next_query"] for one in shown] == ["null"]


def test_it_is_said_when_no_row_can_demonstrate_anything(mini, caplog):
    program = build("oner-cot", {}, retriever=mini.index)
    mini.compiled(optimizer("labeled-few-shot", k=2), dev=1, program=program)
    assert "of a prompt of oner-cot: it has no demonstrations. Try annotated-few-shot" in caplog.text


@pytest.mark.parametrize(
    ("name", "program"),
    [
        *((name, "searchain") for name in ("mipro", "ensemble")),
        ("bootstrap-few-shot", "tree-of-reviews"),
        ("knn-few-shot", "blendfilter"),
    ],
)
def test_no_optimizer_shows_a_step_that_is_incomplete_or_claims_what_no_passage_supports(name, program, mini):
    """The simulated LM invents, misreads and forgets; what it made of a question is shown only where it is sound."""
    asked = build(program, {}, retriever=mini.index)
    compiled = mini.compiled(small(name), train=10, dev=1, program=asked).program
    members = compiled.members if isinstance(compiled, Majority) else [compiled]
    demos = [demo for member in members for predictor in member.predictors() for demo in predictor.demos]
    if isinstance(compiled, NearestDemonstrations):
        demos = [
            dspy.Example(one) for lesson in compiled.lessons for part in lesson.demonstrations.values() for one in part
        ]
    annotated = {example.question: [step["answer"] for step in example.annotated_steps] for example in mini.train}
    for member in members:
        assert not [prompt for prompt in rendered_prompts(member) if "ot supplied" in prompt.text]
    for demo in demos:
        steps = [PlannedStep.model_validate(step) for step in demo.get("planned_chain", [])]
        assert all(step.recalled in annotated[demo["question"]] for step in steps if step.recalled)
    for demo in demos:
        kept = [one for one in demo.get("judgements", []) if dict(one)["useful"]]
        assert not kept or any(
            title in demo["passages"][dict(one)["number"] - 1] for one in kept for title in gold(mini, demo)
        )


def gold(mini, demo):
    return next(example.gold_titles for example in mini.train if example.question == demo["question"])


def test_gepa_s_looks_at_three_questions_are_no_runs_of_their_own(mini, monkeypatch):
    noted = []
    monkeypatch.setattr(TrackedRun, "candidate", lambda run, number, figures, _: noted.append(figures["questions"]))
    candidates = mini.compiled(small("gepa")).compilation.candidates
    assert 0 < len(noted) < len(candidates)
    assert {*noted} == {max(one.questions for one in candidates)}
