"""Reasoning that searches on its way, as the simulated model does it: by action, by sentence, by query, in a text."""

from __future__ import annotations

import json
import re

from ..asked import Asked, Step
from ..passages import Shown, read_shown
from ..phrases import describe, find_stated, mentions, write_fact
from ..prompt import Values
from .answers import cites, conclude, tell

_SECTION = re.compile(r"^\[\[ ## (\w+?)_\d+ ## \]\]\n(.*?)(?=^\[\[ ## \w+_\d+ ## \]\]$|\Z)", re.MULTILINE | re.DOTALL)
_TAG, _END = re.compile(r"^<(\w+_\d+)>$", re.MULTILINE), re.compile(r"^</\w+_\d+>$", re.MULTILINE)  # in the XML form
_SEARCH = re.compile(r"^\[Search\((.*?)\) → (.*)\]$", re.DOTALL)
_RESULT = re.compile(r"\[(\d+)\] (.*?)(?=; \[\d+\] |$)", re.DOTALL)


def act_next(asked: Asked) -> Values:
    """Search for the first fact that was not observed, until nothing is missing or everything was searched for."""
    asked, (searches, observed) = asked.sample(), _read_trajectory(asked)
    query = asked.next_query(asked.gather(observed), observed, searches)
    if query is None:
        return {"next_thought": "That is enough to answer.", "next_tool_name": "finish", "next_tool_args": {}}
    thought = f"What is missing: {query}"
    return {"next_thought": thought, "next_tool_name": "search", "next_tool_args": {"query": query}}


def answer_from_trajectory(asked: Asked) -> Values:
    """Answer with what was observed, and with what the model remembers where that is silent."""
    asked, (_, observed) = asked.sample(), _read_trajectory(asked)
    steps = asked.gather(observed, memory=asked.mind.believes)
    return {"reasoning": tell(asked, steps), "answer": conclude(asked, steps)}


def write_next_thought(asked: Asked) -> Values:
    """Write the next fact as it is read, or else remembered; one that is neither stays open, and still searches."""
    asked = asked.sample()
    judge, passages, thoughts = asked.judge, asked.passages, asked.prompt.texts("thoughts")
    steps = asked.gather(passages, asked.remember(thoughts))
    ahead = [step for step in steps if not mentions(step.query, thoughts)]
    lacks = any(not step.answer for step in steps)
    if not ahead or (thoughts and lacks and judge.takes_for_enough(passages)):
        return {"thought": f"So the answer is: {conclude(asked, steps)}."}
    if not ahead[0].answer and not judge.asks_well(passages) and not mentions(asked.words, thoughts):
        return {"thought": write_fact(asked.words, None)}
    return {"thought": _write(asked, ahead[0])}


def write_search_query(asked: Asked) -> Values:
    """Write the query for the first fact that the passages lack, in a sample sometimes in other words."""
    asked = asked.sample()
    steps = asked.gather(asked.passages)
    lacking = asked.missing_queries(steps, asked.passages, before=[])
    query = lacking[0] if lacking and asked.judge.asks_well(asked.passages) else asked.words
    if asked.salt:
        options = [query, query, describe(query)]
        query = asked.mind.traits.choice(options, "in other words", asked.prompt.text, asked.salt)
    return {"thoughts": tell(asked, steps, marks=False), "query": query}


def write_or_search(asked: Asked) -> Values:
    """Write the facts up to the first that the model does not remember and has not looked up; search for that one.

    So it never looks up what it remembers wrong.
    """
    asked = asked.sample()
    texts, searches, results = _read_written(asked)
    steps = asked.gather(results, asked.remember(texts))
    search = asked.next_query(steps, results, searches)
    known = next((place for place, step in enumerate(steps) if not step.answer), len(steps)) if search else None
    facts = [_write(asked, step) for step in steps[:known] if not find_stated(step.query, texts)]
    if search:
        return {"continuation": " ".join([*facts, f"To be looked up: {search}"]), "search": search, "answer": None}
    answer = conclude(asked, steps)
    return {"continuation": " ".join([*facts, f"So the answer is: {answer}."]), "search": None, "answer": answer}


def _write(asked: Asked, step: Step) -> str:
    """Write a step as a sentence, with its mark if the model does not forget it."""
    reference = step.reference if step.reference and cites(asked, step.query) else None
    return write_fact(step.query, step.answer, reference)


def _read_trajectory(asked: Asked) -> tuple[list[str], list[Shown]]:
    """Return what was searched for in DSPy's form of ReAct, and the passages that were observed."""
    searches, rows = list[str](), list[str]()
    trajectory = _END.sub("", _TAG.sub(r"[[ ## \1 ## ]]", asked.prompt.given("trajectory")))
    for name, content in _SECTION.findall(trajectory):
        if name == "tool_args":
            searches += _queries_in(content)
        elif name == "observation":
            rows += [row for row in content.strip().splitlines() if row.startswith("[")]
    return searches, list({shown.number: shown for shown in read_shown(rows)}.values())


def _read_written(asked: Asked) -> tuple[list[str], list[str], list[Shown]]:
    """Return the text so far, what was searched for in it, and the passages that were found."""
    texts, searches, results = list[str](), list[str](), list[Shown]()
    for row in asked.prompt.texts("written"):
        found = _SEARCH.match(row)
        if found is None:
            texts.append(row)
            continue
        searches.append(found[1])
        told = [Shown(int(number), text) for number, text in _RESULT.findall(found[2])]
        results += told
        texts += [] if told else [found[2]]  # a finding, in the words of `write_fact`
    return texts, searches, results


def _queries_in(content: str) -> list[str]:
    """Return the query among the arguments of a tool, as a list of one or none."""
    try:
        given = json.loads(content)
    except ValueError:
        return []
    return [str(given["query"])] if isinstance(given, dict) and "query" in given else []
