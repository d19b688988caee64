"""A recorded model: its plans, memories and readings, and what is done where it said nothing."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from tiny_world import PASSAGES, RIVER, TitleRetriever

from questree.common.errors import QuestreeError
from questree.metrics import passage_fingerprint
from questree.programs import SearChain, SearChainSettings
from questree.signatures.answers import Answer, AnswerStepByStep
from questree.signatures.chain_of_query import PlanChain, PlanSureChain, Step
from questree.signatures.reviews import ReviewParagraphs
from questree.signatures.subquestions import SplitQuestion
from questree.simulate import RecordedMind, lm_of, read_recordings, recorded_lm
from questree.simulate.phrases import write_fact
from questree.simulate.recordings import Recording, measure_traits


def node(index: int, template: str, query: str, closed: tuple[str, float], read: tuple[str, float]) -> dict[str, Any]:
    return {
        "index": index,
        "query_template": template,
        "query": query,
        "children": [0, 1, 2] if index == 3 else [],
        "parent": None if index == 3 else 3,
        "closed_book": {"answer": closed[0], "logprob": closed[1]},
        "open_book": {"answer": read[0], "logprob": read[1]},
    }


AUTHOR, BIRTH = "Who is the author of The Metamorphosis?", "Which city is Kafka's birthplace?"
RIVER_OF_BRNO = "What river runs through Brno?"
OUTLINE = [AUTHOR, "Which city is #1's birthplace?", "What river runs through #2?"]
ROW: dict[str, Any] = {
    **RIVER.model_dump(mode="json", exclude={"style", "split", "kind", "hops", "paragraphs"}),
    "recording": {
        "model": "some-model",
        "prediction": "Elbe",
        "nodes": [
            node(0, AUTHOR, AUTHOR, ("Kafka", -0.05), ("Franz Kafka", -0.02)),
            node(1, OUTLINE[1], BIRTH, ("Brno", -0.1), ("Prague", -0.1)),
            node(2, OUTLINE[2], RIVER_OF_BRNO, ("Svratka", -0.4), ("Unknown. Not said.", -0.1)),
            node(3, RIVER.question, RIVER.question, ("Elbe", -0.3), ("Unknown", -100)),
        ],
    },
}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "recorded.jsonl"
    path.write_text(json.dumps(ROW), encoding="utf-8")
    return path


@pytest.fixture
def mind(recorded: Path) -> Any:
    return recorded_lm(recorded).engine.mind


def asked(mind: RecordedMind, signature: Any, **given: Any) -> Any:
    """The reply to a signature's prompt about the question."""
    with dspy.context(lm=lm_of(mind, cache=False)):
        return dspy.Predict(signature)(question=RIVER.question, answer_style="short", **given)


def test_the_plan_and_the_memories_are_the_model_s_own(mind: RecordedMind) -> None:
    assert asked(mind, PlanSureChain).chain == [
        Step(query=AUTHOR, answer="Kafka"),
        Step(query=BIRTH, answer="Brno"),
        Step(query=RIVER_OF_BRNO, answer=None),  # under the threshold
    ]
    planned = [(step.query, step.recalled, step.sure) for step in asked(mind, PlanChain).planned_chain]
    assert planned == list(zip(OUTLINE, ["Kafka", "Brno", "Svratka"], [True, True, False], strict=True))


def test_readings_are_recorded_ones_of_supporting_passages(mind: RecordedMind) -> None:
    right = mind.reads(BIRTH, PASSAGES["Franz Kafka"].shown())
    assert (right.span, right.confidence) == ("Prague", pytest.approx(0.905, abs=1e-3))
    assert mind.reads(BIRTH, PASSAGES["Lübeck"].shown()).span == ""
    assert mind.reads(RIVER_OF_BRNO, PASSAGES["Prague"].shown()).span == ""  # it said "Unknown"


def test_a_recorded_reading_is_of_the_gold_passage_alone(mind: RecordedMind) -> None:
    gold = passage_fingerprint("Franz Kafka", PASSAGES["Franz Kafka"].text)
    by_passage = RecordedMind([RIVER.model_copy(update={"gold_passages": (gold,)})], mind.recordings)
    other = "Franz Kafka | Another passage, in which Prague is named."
    assert by_passage.reads(BIRTH, PASSAGES["Franz Kafka"].shown()).span == "Prague"
    assert by_passage.reads(BIRTH, other).span == ""
    assert by_passage.takes(by_passage.world.questions[0], 1, BIRTH, other).span == ""
    assert not by_passage.useful(RIVER.question, other)
    assert mind.reads(BIRTH, other).span == "Prague"  # only its title is known to be gold


def test_a_review_sees_what_the_model_could_read_in_the_passages_of_the_steps(mind: RecordedMind) -> None:
    mind.traits = mind.traits.model_copy(update={"misjudges": 0, "reads": 0})  # no mistakes

    def reviewed(*titles: str) -> Any:
        return asked(mind, ReviewParagraphs, passages=[PASSAGES[title].shown() for title in titles])

    assert reviewed("The Metamorphosis").relevant
    assert reviewed("The Metamorphosis").next_query == "Which city is Franz Kafka's birthplace?"
    assert not reviewed("Prague").relevant  # it said "Unknown" to the step that this passage answers
    assert not reviewed("Lübeck").relevant
    assert not reviewed("The Metamorphosis", "Franz Kafka", "Prague").supported


def test_what_is_written_from_memory_is_the_memory_sure_or_not(mind: RecordedMind) -> None:
    assert mind.believes(RIVER_OF_BRNO) is None
    assert mind.recalls(RIVER_OF_BRNO) == "Svratka"


def test_thinking_goes_by_the_leaves_and_an_answer_outright_by_the_root(mind: RecordedMind) -> None:
    thought = asked(mind, AnswerStepByStep)
    assert thought.answer == "Svratka"
    assert write_fact(BIRTH, "Brno") in thought.final_content
    assert asked(mind, Answer).answer == "Elbe"
    assert asked(mind, SplitQuestion).subquestions == OUTLINE


@pytest.mark.parametrize("preset", ["best", "paper"])
def test_a_corrected_answer_leads_to_queries_that_the_annotation_answers(mind: RecordedMind, preset: Any) -> None:
    mind.traits = mind.traits.model_copy(update={"reads": 1.0})
    with dspy.context(lm=lm_of(mind, cache=False)):
        prediction = SearChain(TitleRetriever(), settings=SearChainSettings(preset=preset))(question=RIVER.question)
    path = [n.query for n in prediction.tree.last_path()]
    assert path == [AUTHOR, "Which city is Franz Kafka's birthplace?", "What river runs through Prague?"]
    assert prediction.answer == "Vltava"


def test_rates_are_measured_from_the_recordings(recorded: Path) -> None:
    traits = measure_traits(*read_recordings(recorded))
    assert (traits.knows, traits.reads) == (0.0, pytest.approx(2 / 3))
    assert traits.invents == pytest.approx(2 / 3)
    assert (traits.malformed, traits.completes, traits.overlooks, traits.asks) == (0, 0, 0, 1)


def test_an_unsolved_end_falls_back_on_the_memory_of_the_question(mind: RecordedMind) -> None:
    question = mind.world.questions[0]
    assert mind.concludes(question, ["Kafka", None]) == "Elbe"
    assert mind.concludes(question, ["Kafka", "Prague", "Vltava"]) is None


def test_references_of_a_nested_tree_are_renumbered() -> None:
    said = ("x", 0.0)
    rows = [("A?", 2, []), ("B of #1?", 2, []), ("C?", 4, [0, 1]), ("D of #1?", 4, []), ("Root?", None, [2, 3])]
    nodes = [{**node(i, t, t, said, said), "children": c, "parent": p} for i, (t, p, c) in enumerate(rows)]
    recording = Recording.model_validate({"model": "m", "prediction": "x", "nodes": nodes})
    assert recording.outline() == ["A?", "B of #1?", "C?", "D of #3?"]


def test_a_row_without_a_recording_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    lacking = {key: value for key, value in ROW.items() if key != "recording"} | {"id": "other", "question": "Why?"}
    path.write_text(f"{json.dumps(ROW)}\n{json.dumps(lacking)}\n", encoding="utf-8")
    with pytest.raises(QuestreeError, match="line 2: no recording"):
        read_recordings(path)
    broken = {**ROW, "recording": {**ROW["recording"], "nodes": [{"index": 0}]}}
    path.write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(QuestreeError, match=r"line 1: recording\.nodes\.0"):
        read_recordings(path)


def test_the_threshold_flags_what_its_documentation_says(shared_data: Path) -> None:
    questions, recordings = read_recordings(shared_data / "recorded.jsonl")
    traits = measure_traits(questions, recordings)
    assert traits.knows == pytest.approx(0.29, abs=0.005)  # 58 % are not flagged, and half of those are right
    assert traits.knows / (traits.knows + traits.invents * (1 - traits.knows)) == pytest.approx(0.5, abs=0.01)


def test_real_recordings_plan_with_their_own_queries(shared_data: Path) -> None:
    questions, recordings = read_recordings(shared_data / "recorded.jsonl")
    mind = RecordedMind(questions, recordings)
    first = [mind.outline(question)[0] for question in mind.world.questions]
    assert first == [recordings[question.id].nodes[0].query for question in questions]
    own = sum(mind.believes(query) is None for query in first) / len(first)
    assert 0.2 < own < 0.5
