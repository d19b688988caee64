"""A program that asks no LM, and questions for it."""

from contextlib import AbstractContextManager

import dspy
from pydantic import BaseModel

from questree.lm.account import Account
from questree.lm.failure import CallFailedError
from questree.lm.limits import RunPolicy
from questree.lm.spent import Spent
from questree.programs import Program, ReasoningTree
from questree.programs.program import answered
from questree.retrieval import Passage


class NoSettings(BaseModel):
    pass


class Parrot(Program):
    """Answers with the last word of the question, unless the question says how to fail; counts what it is asked."""

    name = "parrot"

    def __init__(self):
        super().__init__(None, NoSettings())
        self.asked: list[str] = []

    def reason(self, tree: ReasoningTree, answer_style):
        self.asked.append(tree.question)
        if "unreachable" in tree.question:
            raise CallFailedError("unreachable", "nobody there")
        if "unparsable" in tree.question:
            raise CallFailedError("unparsable", "what?")
        if "crash" in tree.question:
            raise ZeroDivisionError("oh")
        passage = Passage(id="p1", title="Gold", text="…")
        tree.grow(None, query="q", answer="a", source="completed", passage=passage)
        return answered(tree, tree.question.split()[-1], "told [1]", [passage])


def example(id: str, words: str, answers: tuple[str, ...] = ("right",), **more) -> dspy.Example:
    fields = {"answers": list(answers), "gold_titles": ["Gold", "Other"], "kind": "bridge", "hops": 2, **more}
    return dspy.Example(id=id, question=words, answer_style="short", **fields).with_inputs("question", "answer_style")


def right(gold, prediction, trace=None) -> float:
    return float(prediction.answer in gold.answers)


def one_by_one(**bounds) -> RunPolicy:
    """A policy that asks one question after the other."""
    return RunPolicy(concurrency=1, **bounds)


def paid_before(spent: Spent) -> AbstractContextManager[Account]:
    """An open account that has paid this."""
    account = Account()
    account.add(spent)
    return account.open()


RIGHT, WRONG = example("a", "say right"), example("b", "say wrong")
LOST = example("c", "unparsable right")
