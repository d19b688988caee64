"""A world of four questions, its passages, and the shortest way to ask a simulated LM."""

from typing import Any

import dspy
from dspy.lm15 import Config, Message, Request

from questree.data import Question
from questree.metrics import normalise
from questree.retrieval import Passage, Retriever
from questree.simulate import Traits, simulated_lm

SURE = Traits(knows=1, reads=1, misreads=0, plans=1, plans_shown=1, cites=1, cites_shown=1, trusts=1, malformed=0)
BLANK = SURE.model_copy(update={"knows": 0.0, "invents": 0.0})


def question(number: int, words: str, answer: str, steps: list[tuple[str, str, str]], **more: Any) -> Question:
    return Question(
        id=f"q{number}",
        task="tiny",
        question=words,
        answers=(answer,),
        steps=[{"question": q, "answer": a, "support_title": title} for q, a, title in steps],
        gold_titles=[title for *_, title in steps],
        **{"style": "short", "split": "train", **more},
    )


RIVER = question(
    1,
    "Which river flows through the birthplace of the author of The Metamorphosis?",
    "Vltava",
    [
        ("Who wrote The Metamorphosis?", "Franz Kafka", "The Metamorphosis"),
        ("Where was #1 born?", "Prague", "Franz Kafka"),
        ("Which river flows through #2?", "Vltava", "Prague"),
    ],
)
SEA = question(
    2,
    "Which river flows through the birthplace of the author of Buddenbrooks?",
    "Trave",
    [
        ("Who wrote Buddenbrooks?", "Thomas Mann", "Buddenbrooks"),
        ("Where was #1 born?", "Lübeck", "Thomas Mann"),
        ("Which river flows through #2?", "Trave", "Lübeck"),
    ],
)
OLDER = question(
    3,
    "Was Thomas Mann born before Franz Kafka?",
    "yes",
    [
        ("In what year was Thomas Mann born?", "1875", "Thomas Mann"),
        ("In what year was Franz Kafka born?", "1883", "Franz Kafka"),
    ],
    style="yes-no",
)
FIRST = question(
    4,
    "Which appeared first, Buddenbrooks or The Metamorphosis?",
    "Buddenbrooks",
    [
        ("In what year did Buddenbrooks appear?", "1901", "Buddenbrooks"),
        ("In what year did The Metamorphosis appear?", "1915", "The Metamorphosis"),
    ],
    type="comparison",
)
QUESTIONS = [RIVER, SEA, OLDER, FIRST]

TEXTS = {
    "The Metamorphosis": "The Metamorphosis is a story by Franz Kafka that appeared in Leipzig in 1915.",
    "Franz Kafka": "Franz Kafka, born in Prague in 1883, worked for an insurance company.",
    "Prague": "Prague lies on the Vltava and has more than a million inhabitants.",
    "Buddenbrooks": "Buddenbrooks, of 1901, is the first novel of Thomas Mann.",
    "Thomas Mann": "Thomas Mann was born in Lübeck in 1875 and died near Zürich.",
    "Lübeck": "Lübeck, once the queen of the Hanse, stands on the Trave.",
}
PASSAGES = {title: Passage(id=f"p{n}", title=title, text=text) for n, (title, text) in enumerate(TEXTS.items())}


class TitleRetriever(Retriever):
    """Finds the passage with the most of the query's words, the title's counting twice."""

    name = "title"
    fingerprint = "title"

    def __call__(self, query: str, k: int = 1) -> list[Passage]:
        words = set(normalise(query).split())

        def overlap(passage: Passage) -> int:
            return sum(word in words for word in normalise(f"{passage.title} {passage.title} {passage.text}").split())

        return sorted(PASSAGES.values(), key=overlap, reverse=True)[:k]

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        return [self(query, k) for query in queries]


def request(
    signature: Any,
    inputs: dict[str, Any],
    demos: list[Any] | None = None,
    adapter: dspy.Adapter | None = None,
    model: str = "simulated",
    **config: Any,
) -> Request:
    """What an adapter would send for the signature; ``config`` is the request's."""
    rows = (adapter or dspy.ChatAdapter()).format(signature, demos or [], inputs)
    make = {"user": Message.user, "assistant": Message.assistant}
    turns = tuple(make[row["role"]](row["content"]) for row in rows if row["role"] != "system")
    return Request(model=model, messages=turns, system=rows[0]["content"], config=Config(**config))


def ask(
    signature: Any,
    traits: Traits = SURE,
    *,
    adapter: dspy.Adapter | None = None,
    demos: list[Any] | None = None,
    config: dict[str, Any] | None = None,
    **inputs: Any,
) -> dspy.Prediction:
    """One call of the signature, through a real adapter, to a model with these traits."""
    predict = dspy.Predict(signature)
    predict.demos = demos or []
    adapter = adapter or dspy.ChatAdapter(use_json_adapter_fallback=False)
    with dspy.context(lm=simulated_lm(QUESTIONS, traits, cache=False), adapter=adapter):
        return predict(config=config or {}, **inputs)
