"""Thoughts and actions as the simulated model takes turns with them, in DSPy's form of ReAct."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from .gathering import Shown, gather, question_of, shown_passages
from .judging import Judge
from .mind import Mind
from .prompt import Prompt, Values
from .seeking import next_query
from .tracing import conclude, told

_SECTION = re.compile(r"^\[\[ ## (\w+?)_\d+ ## \]\]\n(.*?)(?=^\[\[ ## \w+_\d+ ## \]\]$|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Trajectory:
    """What was searched for, and the passages that were observed."""

    searches: list[str]
    passages: list[Shown]

    @classmethod
    def of(cls, prompt: Prompt) -> Trajectory:
        """That of the prompt."""
        searches, rows = list[str](), list[str]()
        for name, content in _SECTION.findall(str(prompt.values.get("trajectory") or "")):
            if name == "tool_args":
                searches += _query_in(content)
            elif name == "observation":
                rows += [row for row in content.strip().splitlines() if row.startswith("[")]
        return cls(searches, list({shown.number: shown for shown in shown_passages(rows)}.values()))


def act_next(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """A search for the first fact that was not observed, until nothing is missing or everything was searched for."""
    words, _, _ = question_of(mind, prompt)
    mind, judge, so_far = mind.sampled(salt), Judge.of(mind, prompt, salt), Trajectory.of(prompt)
    steps = gather(mind, words, so_far.passages)
    query = next_query(judge, words, steps, so_far.passages, so_far.searches)
    if query is None:
        return {"next_thought": "That is enough to answer.", "next_tool_name": "finish", "next_tool_args": {}}
    thought = f"What is missing: {query}"
    return {"next_thought": thought, "next_tool_name": "search", "next_tool_args": {"query": query}}


def answer_from_trajectory(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """What was observed, what the model remembers where that is silent, and what follows."""
    words, style, _ = question_of(mind, prompt)
    mind = mind.sampled(salt)
    steps = gather(mind, words, Trajectory.of(prompt).passages, memory=mind.believes)
    return {"reasoning": told(mind, prompt, salt, steps), "answer": conclude(mind, words, style, steps)}


def _query_in(content: str) -> list[str]:
    try:
        given = json.loads(content)
    except ValueError:
        return []
    return [str(given["query"])] if isinstance(given, dict) and "query" in given else []
