"""Replies: pure, told apart, cut, saved; through every adapter, synchronous and not."""

import asyncio
import inspect
import threading
from functools import partial
from importlib import import_module
from typing import Any, Literal

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError
from pydantic import BaseModel
from tiny_world import BLANK, QUESTIONS, RIVER, SURE, ask, request

from questree.lm.guard import adapter_named
from questree.lm.parallel import run_parallel
from questree.signatures.chain_of_query import PlanChain
from questree.simulate import Traits, is_simulated, simulated_lm
from questree.simulate.prompt import read_prompt
from questree.simulate.skills import SKILLS

ADAPTERS = [
    adapter_named(name) or dspy.ChatAdapter(use_json_adapter_fallback=False) for name in ("chat", "json", "baml", "xml")
]
PLAN = {"question": RIVER.question, "answer_style": "short"}
PASSAGES = ["[1] Prague | It lies on the Vltava.", "[2] Elsewhere | Nothing is told."]
WILD = Traits(plans=0.5, malformed=0.3)


def plan_text(lm: dspy.LM, question: str = RIVER.question, **config: Any) -> str:
    """The text of the LM's reply to a plan's prompt."""
    return str(lm(request(PlanChain, PLAN | {"question": question}, model=lm.model, **config)).text)


def test_the_same_prompt_gets_the_same_reply_and_another_seed_another_model() -> None:
    def replies(traits: Traits) -> list[str]:
        lm = simulated_lm(QUESTIONS, traits, cache=False)
        return [plan_text(lm, question=q.question) for q in QUESTIONS]

    assert replies(WILD) == replies(WILD)
    assert len({tuple(replies(WILD.model_copy(update={"seed": seed}))) for seed in range(6)}) > 3


def test_samples_above_temperature_0_differ_and_are_the_same_in_every_engine() -> None:
    def samples() -> list[str]:
        lm = simulated_lm(QUESTIONS, WILD, cache=False)
        return [plan_text(lm, temperature=0.7) for _ in range(12)]

    assert samples() == samples()
    assert len(set(samples())) > 1  # the second retry can differ from the first


def test_samples_drawn_at_the_same_time_are_the_same_whichever_thread_is_the_fastest() -> None:
    def samples(first: int) -> list[list[str]]:
        lm, begun = simulated_lm(QUESTIONS, WILD, cache=False), threading.Event()

        def draw(number: int) -> list[str]:
            assert number == first or begun.wait(60)
            drawn = [plan_text(lm, temperature=0.7) for _ in range(6)]
            begun.set()
            return drawn

        return run_parallel([partial(draw, number) for number in range(2)])

    drawn = samples(first=0)
    assert drawn == samples(first=1)
    assert drawn[0] != drawn[1]


def test_the_seed_of_a_request_fixes_its_sample() -> None:
    lm = simulated_lm(QUESTIONS, WILD, cache=False)
    assert len({plan_text(lm, temperature=0.7, seed=5) for _ in range(8)}) == 1


def test_malformed_replies_come_at_their_rate_and_a_retry_can_help() -> None:
    def parses(n: int, **config: Any) -> bool:
        signature = PlanChain.with_instructions(f"Variant {n}")
        try:
            ask(signature, SURE.model_copy(update={"malformed": 0.3}), config=config, **PLAN)
        except AdapterParseError:
            return False
        return True

    at_0 = [parses(n) for n in range(80)]
    assert 0.15 < at_0.count(False) / len(at_0) < 0.45
    failed = [n for n, parsed in enumerate(at_0) if not parsed]
    assert any(parses(n, temperature=0.7) for n in failed)
    assert not any(parses(n) for n in failed)


def test_a_reply_past_max_tokens_is_cut_and_says_so() -> None:
    lm = simulated_lm(QUESTIONS, SURE, cache=False)
    whole, cut = plan_text(lm), plan_text(lm, max_tokens=5)
    assert whole.startswith(cut)
    assert len(cut.split(" ")) == 5
    assert lm.history[-1]["response"].finish_reason == "length"
    assert lm.history[-1]["usage"]["completion_tokens"] == len(cut.split())


def test_awaiting_gives_the_same_reply() -> None:
    lm = simulated_lm(QUESTIONS, WILD, cache=False)
    assert asyncio.run(lm.acall(request(PlanChain, PLAN, model=lm.model))).text == plan_text(lm)


def test_names_tell_worlds_and_traits_apart_and_say_simulated() -> None:
    lms = [simulated_lm(QUESTIONS, SURE), simulated_lm(QUESTIONS, BLANK), simulated_lm(QUESTIONS[:2], SURE)]
    assert len({lm.model for lm in lms}) == 3
    assert all(is_simulated(lm) for lm in lms)


class Verdict(BaseModel):
    kind: Literal["good", "bad"]
    reasons: list[str]
    note: str | None = None


class WeighSides(dspy.Signature):
    """Weigh what speaks for and against an answer, as a method that was added today asks for it."""

    question: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    thoughts: str = dspy.OutputField()
    sides: list[Verdict] = dspy.OutputField()
    winner: Literal["for", "against"] = dspy.OutputField()
    doubts: str | None = dspy.OutputField()
    sure: bool = dspy.OutputField()
    count: int = dspy.OutputField()
    share: float = dspy.OutputField()


class AnswerAndWeigh(WeighSides):
    """Weigh, and answer."""

    answer: str = dspy.OutputField()


class WeighAll(WeighSides):
    """Weigh both together."""

    verdict: Verdict = dspy.OutputField()


WEIGHED = {"question": RIVER.question, "passages": PASSAGES}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_new_method_needs_no_skill_and_gets_values_of_the_right_types(adapter: dspy.Adapter) -> None:
    assert not any(skill.fits(read_prompt(request(WeighSides, WEIGHED))) for skill in SKILLS)
    weighed = ask(WeighSides, adapter=adapter, **WEIGHED)
    assert isinstance(weighed.sides, list)
    assert weighed.thoughts
    assert weighed.winner in {"for", "against"}
    answered = ask(AnswerAndWeigh, SURE, adapter=adapter, **WEIGHED)
    assert answered.answer == "Vltava"  # a skill for some of the fields answers those
    assert answered.winner in {"for", "against"}


@pytest.mark.parametrize("adapter", ADAPTERS[:2])  # BAML's schemas are no JSON
def test_a_model_is_filled_by_its_schema(adapter: dspy.Adapter) -> None:
    assert isinstance(ask(WeighAll, adapter=adapter, **WEIGHED).verdict, Verdict)


def test_a_plain_prompt_and_a_proposal_get_words() -> None:
    assert simulated_lm(QUESTIONS, SURE, cache=False)("Propose an instruction.")[0]
    proposal = ask("basic_instruction -> proposed_instruction", basic_instruction="Plan the queries.")
    assert proposal.proposed_instruction.startswith("Plan the queries.")
    assert len(proposal.proposed_instruction) > len("Plan the queries. ")


@pytest.mark.parametrize("function", sorted({skill.function for skill in SKILLS}))
def test_every_skill_is_where_it_is_listed(function):
    family, _, name = function.partition(".")
    assert inspect.isfunction(getattr(import_module(f"questree.simulate.skills.{family}"), name))
