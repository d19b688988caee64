"""What an optimizer asks an LM itself: instructions, and reflections on what went wrong."""

import dspy
import pytest
from dspy.utils.exceptions import LMAuthError, LMInvalidRequestError, LMTransportError
from fakes import ScriptedEngine

from questree.common.errors import QuestreeError
from questree.optimize import optimizer
from questree.optimize.optimizers import instructions
from questree.programs import build
from questree.signatures.chain_of_query import PlannedStep

INFER_RULES = optimizer("infer-rules", candidates=1)
PROPOSAL = {"reasoning": "They are names.", "natural_language_rules": "Answer with a name."}
CUT = ({"reasoning": "They are", "natural_language_rules": "Answer with"}, "length")


def proposer(engine, **limits):
    return dspy.LM("scripted/proposer", engine=engine, cache=False, num_retries=0, **limits)


def proposed(mini, *replies, **limits):
    """The instructions that InferRules tries where the LM that makes rules replies so, and what that LM was asked."""
    engine = ScriptedEngine(list(replies))
    compiled = mini.compiled(INFER_RULES, program=build("direct", {}), train=16, prompt_lm=proposer(engine, **limits))
    tried = [
        part["signature"]["instructions"] for one in compiled.compilation.candidates for part in one.state.values()
    ]
    return " ".join(tried), engine.requests


def test_an_unreadable_proposal_is_asked_for_again_past_the_cache(mini):
    tried, asked = proposed(mini, "I would rather not.", PROPOSAL)
    assert PROPOSAL["natural_language_rules"] in tried
    assert len(asked) == 2
    assert asked[0].config.temperature != asked[1].config.temperature


def test_a_proposal_that_was_cut_is_no_instruction(mini):
    tried, asked = proposed(mini, CUT, PROPOSAL, max_tokens=500)
    assert PROPOSAL["natural_language_rules"] in tried
    assert "They are" not in tried
    assert "Answer with\n" not in f"{tried}\n"
    assert [one.config.max_tokens for one in asked] == [500, 1000]


def test_an_optimizer_without_a_usable_proposal_says_what_it_asked_and_how_to_go_on(mini):
    with pytest.raises(QuestreeError, match=r"infer-rules .*1 times, and 1 failed.*prompt_lm.*unparsable"):
        proposed(mini, *["I would rather not."] * 3)
    with pytest.raises(QuestreeError, match=r"infer-rules .*1 times, and 1 failed.*unreachable.*gone"):
        proposed(mini, LMTransportError("gone"))


class Refusing(ScriptedEngine):
    """Gives the same reply, whatever it is asked."""

    def __init__(self, *first, then):
        super().__init__([*first])
        self.then = then

    def complete(self, request):
        self.replies = self.replies or [self.then]
        return super().complete(request)


def reflected(mini, engine):
    """What GEPA makes where this engine reflects."""
    gepa = optimizer("gepa", max_metric_calls=40)
    return mini.compiled(gepa, train=16, dev=2, program=build("direct", {}), prompt_lm=proposer(engine))


def test_gepa_without_any_proposal_is_no_result(mini):
    with pytest.raises(QuestreeError, match=r"gepa asked an LM itself \d+ times, and \d+ failed.*unparsable"):
        reflected(mini, Refusing(then="I would rather not."))


def test_gepa_ends_at_once_where_the_lm_takes_no_key(mini):
    engine = Refusing(then=LMAuthError("bad key"))
    with pytest.raises(QuestreeError, match=r"gepa asked an LM itself 1 times, and 1 failed.*auth.*bad key"):
        reflected(mini, engine)
    assert len(engine.requests) == 1


def test_proposals_that_failed_are_told(mini, caplog):
    reflected(mini, Refusing('{"new_instruction": "Answer with a name."}', then="I would rather not."))
    assert "questions that gepa asked an LM itself failed; the last: unparsable" in caplog.text


def test_rules_are_asked_for_with_fewer_demonstrations_where_the_lm_s_window_is_full(mini, bootstrapped):
    rules = {"reasoning": "They are short.", "natural_language_rules": "Be brief."}
    engine = ScriptedEngine([LMInvalidRequestError("maximum context length is 8192 tokens"), *[rules] * 20])
    ruled = {"train": 16, "dev": 2, "prompt_lm": proposer(engine), "teacher": "annotations"}
    compiled = mini.compiled(optimizer("infer-rules", candidates=1), **ruled)
    assert len(engine.prompts[1]) < len(engine.prompts[0])
    assert any("Be brief." in one.signature.instructions for one in compiled.program.predictors())


def test_rules_are_made_of_a_task_and_examples_as_its_prompt_shows_them(mini):
    signature = mini.program().predictors()[0].signature
    planned = [PlannedStep(query="Who wrote Emma?", recalled="Jane Austen", sure=True)]
    plan = dspy.Example(question="Who?", answer_style="a name", planned_chain=planned)
    shown = instructions._as_examples(signature, [plan])
    assert shown.startswith(f"The task:\n{signature.instructions}")
    assert '{"query": "Who wrote Emma?", "recalled": "Jane Austen", "sure": true}' in shown
    assert "PlannedStep(" not in shown
