"""Knowledge as the simulated model recalls it, names its topic, and filters it."""

from __future__ import annotations

from ..data import Question
from ..metrics import contains, normalise
from .gathering import gather, question_of, shown_passages
from .holding import held
from .judging import Judge
from .mind import Mind
from .prompt import Prompt, Values
from .reviewing import written
from .world import kind_of

_TOPICS = {
    **dict.fromkeys(("who", "whom", "whose"), "people"),
    **dict.fromkeys(("where", "city", "town", "country", "state", "river"), "geography"),
    **dict.fromkeys(("when", "year", "how long"), "history"),
    **dict.fromkeys(("number", "how many"), "figures"),
}


def recall_passage(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """A passage from memory that answers the question, fact by fact."""
    words, _, _ = question_of(mind, prompt)
    steps = gather(mind, words, passages=[], memory=mind.sampled(salt).recalls)
    return {"passage": " ".join(written(step["query"], step["answer"]) for step in steps)}


def name_topic(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The field that the question asks about, by its words."""
    return {"topic": _TOPICS.get(kind_of(str(prompt.values.get("question", ""))), "general knowledge")}


def filter_knowledge(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The passages that are taken for useful, but for those that the model's memory makes it doubt.

    Told to forget the topic, it doubts none.
    """
    words, _, question = question_of(mind, prompt)
    useful = Judge.of(mind, prompt, salt).useful(words, shown_passages(prompt.values.get("passages")))
    forgets = "topic" in {f.name for f in prompt.inputs}
    kept = [one.number for one in useful if forgets or question is None or not _doubts(mind, question, one.text)]
    return {"kept": kept}


def _doubts(mind: Mind, question: Question, passage: str) -> bool:
    """Whether the model remembers otherwise a step that the passage answers, and trusts itself more."""
    for step in question.resolved_steps():
        fact = mind.world.fact(step.question)
        if fact is None or not held(fact, passage):
            continue
        memory = mind.believes(fact.query)
        if memory is None or any(contains(memory, answer) for answer in fact.answers):
            continue
        if mind.traits.chance("trusts", fact.key, normalise(fact.answers[0])) >= mind.traits.trusts:
            return True
    return False
