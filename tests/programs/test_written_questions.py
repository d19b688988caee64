"""A question is written from linked passages, and each fault of it is found: by a rule or by a call."""

from typing import Any

import pytest
from answering import TableRetriever

from questree.lm.failure import CallFailedError
from questree.programs.written_questions import Chain, QuestionWriting
from questree.retrieval import Passage

CRANE = Passage(
    id="1", title="Port Elin", text="The crane of Port Elin lifts forty tonnes. It was designed by Marta Holm."
)
HOLM = Passage(id="2", title="Marta Holm", text="Marta Holm is a Swiss engineer. She was born in Lindau in 1961.")
ABB = Passage(id="3", title="Ada Brun", text="Ada Brun was born in 1958. She sails with Marta Holm and Jo Ek.")

DESIGNER = {
    "question": "Who designed the crane?",
    "answer": "Marta Holm",
    "passage": 1,
    "quote": "designed by Marta Holm",
}
BORN = {"question": "Where was #1 born?", "answer": "Lindau", "passage": 2, "quote": "She was born in Lindau"}
WORDS = "Where was the designer of the crane of Port Elin born?"
NOT_KNOWN = {"asker": "a visitor", "odd": "", "well_asked": "True", "remembered": ""}
UNPROVEN = "a quote is not in its passage, or does not tell the answer"


def wrote(*steps: dict[str, Any], question: str = WORDS, answers: tuple[str, ...] = ("Lindau",)) -> dict[str, Any]:
    return {"steps": list(steps), "written_question": question, "answers": list(answers)}


def read(answer: str) -> dict[str, Any]:
    """Make what a reader replies who does not see the answer; without one, a fact is missing."""
    return {"facts": "", "missing": "" if answer else "Who designed it?", "recalled": "", "supported_answer": answer}


TOLD, NOT_ALONE = read("Lindau"), read("")


def found(answer: str) -> dict[str, Any]:
    return {"evidence": [], "comparison": [], "searches": [], "answer": answer, "sure": "True"}


@pytest.fixture
def written(scripted):
    """Write from a chain with an LM that gives these replies, no fewer and no more; return line and fault."""

    def write(
        *replies: Any,
        kind: Any = "bridge",
        passages: tuple[Passage, ...] = (CRANE, HOLM),
        near: tuple[Passage, ...] = (),
    ) -> tuple[Any, str]:
        engine, chain = scripted(*replies), Chain(passages, kind, "train", near)
        writing = QuestionWriting(TableRetriever({}))
        writing.chains = {chain.title: chain}
        prediction = writing(question=chain.title)
        assert (prediction.failure, engine.replies) == (None, [])
        return prediction.written, prediction.fault

    return write


def test_a_question_that_passes_every_check_is_a_line_of_a_task(written) -> None:
    row, fault = written(wrote(DESIGNER, BORN), NOT_KNOWN, TOLD, NOT_ALONE, found("Lindau"))
    assert fault == ""
    assert row == {
        **{"question": WORDS, "answers": ["Lindau"], "type": "bridge", "style": "short", "hops": 2},
        **{"gold_passages": ["1", "2"], "gold_titles": ["Port Elin", "Marta Holm"]},
        "steps": [
            {"question": "Who designed the crane?", "answer": "Marta Holm", "support_title": "Port Elin"},
            {"question": "Where was #1 born?", "answer": "Lindau", "support_title": "Marta Holm"},
        ],
        **{"quotes": ["It was designed by Marta Holm.", "She was born in Lindau in 1961."]},
        "quoted_from": [CRANE.text, HOLM.text],
        **{"written_by": "scripted/test", "checked_by": "scripted/test"},
    }


@pytest.mark.parametrize(("passages", "near"), [((CRANE, HOLM, ABB), ()), ((CRANE,), (HOLM, ABB))])
def test_a_passage_that_no_step_needs_is_no_gold_passage(written, passages: Any, near: Any) -> None:
    replies = wrote(DESIGNER, BORN), NOT_KNOWN, TOLD, NOT_ALONE, found("Lindau")
    row, fault = written(*replies, passages=passages, near=near)
    assert (fault, row["hops"], row["gold_passages"]) == ("", 2, ["1", "2"])


def test_what_the_corpus_does_not_tell_may_be_asked_of_one_of_several_passages(written) -> None:
    step = {"question": "Where did Marta Holm study?", "passage": 2}
    reply = wrote(step, question=step["question"], answers=())
    assert written(reply, NOT_KNOWN, found(""), kind="absent")[1] == ""


def test_a_passage_that_the_others_make_up_for_is_no_gold_passage_and_its_step_stays(written) -> None:
    sails = {
        "question": "Who sails with Ada Brun?",
        "answer": "Jo Ek",
        "passage": 1,
        "quote": "sails with Marta Holm and Jo Ek",
    }
    replies = wrote(sails, {**DESIGNER, "passage": 2}, {**BORN, "passage": 3}), NOT_KNOWN, TOLD, NOT_ALONE, TOLD
    row, fault = written(*replies, found("Lindau"), passages=(ABB, CRANE, HOLM))
    assert (fault, row["hops"], row["gold_passages"], row["gold_titles"]) == (
        "",
        2,
        ["1", "2"],
        ["Port Elin", "Marta Holm"],
    )
    assert [step["support_title"] for step in row["steps"]] == [None, "Port Elin", "Marta Holm"]
    assert row["steps"][0]["answer"] == "Jo Ek"


def test_a_step_of_a_passage_that_is_not_needed_rests_on_the_one_that_tells_it_the_other_way_round(written) -> None:
    falk = Passage(id="1", title="Lena Falk", text="The mother of Lena Falk is Rut Falk.")
    rut = Passage(id="2", title="Rut Falk", text="Her daughter is Lena Falk. Her brother is Olle Berg.")
    berg = Passage(id="3", title="Olle Berg", text="Olle Berg was born in Lindau. His sister is Rut Falk.")
    mother = {"question": "Who is the mother of Lena Falk?", "answer": "Rut Falk", "passage": 1, "quote": falk.text}
    uncle = {"question": "Who is the brother of #1?", "answer": "Olle Berg", "passage": 2, "quote": "Olle Berg"}
    steps = mother, uncle, {**BORN, "passage": 3, "quote": "was born in Lindau"}
    question = "Where was the maternal uncle of Lena Falk born?"
    replies = wrote(*steps, question=question), NOT_KNOWN, TOLD, TOLD, NOT_ALONE, found("Lindau")
    row, fault = written(*replies, passages=(falk, rut, berg))
    assert (fault, row["gold_titles"]) == ("", ["Lena Falk", "Olle Berg"])
    assert [step["support_title"] for step in row["steps"]] == ["Lena Falk", "Olle Berg", "Olle Berg"]
    assert (row["quotes"][1], row["quoted_from"][1]) == ("His sister is Rut Falk.", berg.text)


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (wrote(question=""), "no question, or none that needs two passages"),
        (wrote(DESIGNER, BORN, answers=()), "no question, or none that needs two passages"),
        (wrote({**BORN, "question": "Where was Marta Holm born?"}), "no question, or none that needs two passages"),
        (wrote(DESIGNER, {**BORN, "passage": 7}), "no question, or none that needs two passages"),
        (wrote(DESIGNER, {**BORN, "quote": "He was born in Lindau"}), UNPROVEN),
        (wrote(DESIGNER, {**BORN, "quote": "a Swiss engineer"}), UNPROVEN),
        (wrote({**DESIGNER, "answer": "Ada Brun"}, BORN), UNPROVEN),
        (wrote(DESIGNER, BORN, answers=("Bregenz",)), UNPROVEN),
        (wrote(DESIGNER, BORN, question="Where was Marta Holm of Port Elin born?"), "it names an answer"),
        (wrote(DESIGNER, BORN, question="Was the designer of the crane born in Lindau?"), "it names an answer"),
    ],
)
def test_a_rule_finds_a_fault_before_anything_more_is_asked(written, reply: Any, fault: str) -> None:
    assert written(reply)[1] == fault


@pytest.mark.parametrize(
    ("replies", "fault"),
    [
        ([{**NOT_KNOWN, "remembered": "Lindau"}], "the LM knows the answer"),
        ([{**NOT_KNOWN, "odd": "which crane", "well_asked": "False"}], "nobody would ask it so (which crane)"),
        ([NOT_KNOWN, read("")], "its passages do not tell the answer"),
        ([NOT_KNOWN, read("Bregenz")], "its passages do not tell the answer"),
        ([NOT_KNOWN, TOLD, TOLD], "one passage is enough"),
        ([NOT_KNOWN, TOLD, NOT_ALONE, found("Bregenz")], "a program finds other answers (Bregenz)"),
        ([NOT_KNOWN, TOLD, NOT_ALONE, found("Lindau; Kiel")], "a program finds other answers (Lindau; Kiel)"),
        ([NOT_KNOWN, TOLD, NOT_ALONE, {**found("Lindau"), "sure": "False"}], "no program finds the answer"),
    ],
)
def test_a_call_finds_a_fault_and_is_the_last_one(written, replies: list[Any], fault: str) -> None:
    assert written(wrote(DESIGNER, BORN), *replies)[1] == fault


def test_an_answer_of_two_words_over_and_is_one_answer(written) -> None:
    salt = Passage(id="4", title="Kitchen", text="The soup of Lindau is made with salt and pepper.")
    asked = "What is the soup of Lindau made with?"
    step = {"question": asked, "answer": "salt and pepper", "passage": 1, "quote": "made with salt and pepper"}
    reply = wrote(step, question=asked, answers=("salt and pepper",))
    replies = reply, NOT_KNOWN, read("salt and pepper"), found("salt; pepper")
    assert written(*replies, kind="single", passages=(salt,))[1] == ""


@pytest.mark.parametrize(("answer", "fault"), [("", ""), ("Port Elin", "a program finds other answers (Port Elin)")])
def test_what_the_corpus_does_not_tell_is_kept_if_a_program_says_so(written, answer: str, fault: str) -> None:
    open_step = {"question": "Where did #1 study?", "passage": 2}
    row, found_fault = written(wrote(DESIGNER, open_step, answers=()), NOT_KNOWN, found(answer), kind="absent")
    assert (found_fault, row["answers"], row["steps"][1]["answer"]) == (fault, [], None)


@pytest.mark.parametrize(("guess", "fault"), [("text of D", "a program finds other answers (text of D)"), ("Ulm", "")])
def test_a_guess_that_a_passage_holds_is_near_enough_to_an_answer(scripted, guess: str, fault: str) -> None:
    asked = "Where did Marta Holm study?"
    step = {"question": asked, "passage": 1}
    scripted(wrote(step, question=asked, answers=()), NOT_KNOWN, {**found(guess), "sure": "False"})
    writing, chain = QuestionWriting(TableRetriever({asked: "D"})), Chain((HOLM,), "absent", "train")
    writing.chains = {chain.title: chain}
    assert writing(question=chain.title).fault == fault


def test_a_comparison_names_both_and_is_answered_by_one(written) -> None:
    steps = (
        {"question": "When was Marta Holm born?", "answer": "1961", "passage": 1, "quote": "born in Lindau in 1961"},
        {"question": "When was Ada Brun born?", "answer": "1958", "passage": 2, "quote": "Ada Brun was born in 1958"},
    )
    reply = wrote(*steps, question="Who was born earlier, Marta Holm or Ada Brun?", answers=("Ada Brun",))
    replies = reply, NOT_KNOWN, read("Ada Brun"), NOT_ALONE, found("Ada Brun")
    assert written(*replies, kind="comparison", passages=(HOLM, ABB))[1] == ""


@pytest.mark.parametrize(
    ("answers", "told", "fault"),
    [
        (("Marta Holm", "Jo Ek"), "Jo Ek; Marta Holm", ""),
        (("Marta Holm", "Jo Ek"), "Jo Ek; Kiel; Marta Holm", "a program finds other answers (Jo Ek; Kiel; Marta Holm)"),
        (("Marta Holm", "Jo Ek"), "Jo Ek", "no program finds the answer"),
        (("Jo Ek",), "", "no question, or none that needs two passages"),
        (("Jo Ek", "Jo Ek"), "", "no question, or none that needs two passages"),
    ],
)
def test_a_list_has_several_answers(written, answers: tuple[str, ...], told: str, fault: str) -> None:
    step = {"question": "Whom does Ada Brun sail with?", "answer": "Marta Holm and Jo Ek", "passage": 1}
    reply = wrote({**step, "quote": "sails with Marta Holm and Jo Ek"}, question=step["question"], answers=answers)
    replies = (NOT_KNOWN, read("Jo Ek; Marta Holm"), found(told)) if told else ()
    row, found_fault = written(reply, *replies, kind="list", passages=(ABB,))
    assert (found_fault, row["style"]) == (fault, "list")


def test_a_check_that_gets_no_reply_fails_the_question_and_drops_nothing(scripted) -> None:
    chain, error = Chain((CRANE, HOLM), "bridge", "train"), CallFailedError("unreachable", "gone")
    scripted(wrote(DESIGNER, BORN), error)
    writing = QuestionWriting(TableRetriever({}))
    writing.chains = {chain.title: chain}
    prediction = writing(question=chain.title)
    assert prediction.failure is not None
    assert "fault" not in prediction


def test_a_question_of_one_fact_is_drawn_from_a_sentence_of_the_last_passage() -> None:
    asks = Chain((CRANE, HOLM), "bridge", "train").asks_for
    assert asks.endswith(("from this: Marta Holm is a Swiss engineer.", "from this: She was born in Lindau in 1961."))
    assert asks == Chain((CRANE, HOLM), "bridge", "dev").asks_for
    assert "from this" not in Chain((CRANE, HOLM), "list", "train").asks_for


def test_the_reader_is_not_shown_the_answer_and_the_program_is_asked_for_all_that_fit(scripted) -> None:
    chain = Chain((CRANE, HOLM), "bridge", "train")
    engine = scripted(wrote(DESIGNER, BORN), NOT_KNOWN, TOLD, NOT_ALONE, found("Lindau"))
    writing = QuestionWriting(TableRetriever({}))
    writing.chains = {chain.title: chain}
    writing(question=chain.title)
    _, heard, whole, alone, finder = engine.prompts
    assert "Lindau" not in heard
    assert "Lindau" not in whole.replace(HOLM.text, "")
    assert CRANE.text in whole
    assert CRANE.text not in alone
    assert "every answer that fits" in finder
