"""What an optimizer asks an LM itself, such as for instructions, asked with the same care as a program's steps."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dspy

from ...common.errors import QuestreeError
from ...lm.call import call
from ...lm.episode import is_open
from ...lm.failure import CallFailedError, Failure
from .dspy_changes import replaced

logger = logging.getLogger(__name__)

_BY_CALL = {"lm", "demos"}  # what `call` itself gives a predictor


class _NoKeyError(KeyboardInterrupt):
    """Ends an optimizer as Ctrl-C does: some take any other failure for one proposal less, and go on."""


@contextmanager
def proposals_with_care(optimizer: str) -> Iterator[None]:
    """Let what an optimizer asks an LM itself be asked by `call`, and say what failed.

    DSPy would end, and lose everything, at a reply that it cannot read; after that, the cache would give the same
    reply again. It would take a reply for an instruction that was cut in the middle of a sentence. And some optimizers
    go on without any proposal to the end of their budget, and say nothing.
    """
    forward, outcomes = dspy.Predict.forward, list[Failure | None]()

    def with_care(predict: dspy.Predict, **inputs: Any) -> dspy.Prediction:
        if is_open() or inputs.keys() >= _BY_CALL:  # a program's step, or what `call` makes of a proposal
            return forward(predict, **inputs)
        try:
            reply = call(predict, **inputs)
        except CallFailedError as error:
            outcomes.append(error.failure)
            if error.failure.cause == "auth":
                raise _NoKeyError from error
            raise
        outcomes.append(None)
        return reply

    try:
        with replaced(dspy.Predict, "forward", with_care):
            yield
    except (CallFailedError, _NoKeyError) as error:
        raise _ended(optimizer, outcomes) from error
    if outcomes and all(outcomes):
        raise _ended(optimizer, outcomes)
    if failed := [failure for failure in outcomes if failure]:
        said = "%d of the %d questions that %s asked an LM itself failed; the last: %s"
        logger.warning(said, len(failed), len(outcomes), optimizer, failed[-1])


def _ended(optimizer: str, outcomes: Sequence[Failure | None]) -> QuestreeError:
    failed = [failure for failure in outcomes if failure]
    return QuestreeError(
        f"{optimizer} asked an LM itself {len(outcomes)} times, and {len(failed)} failed. Run the same again, perhaps "
        f"with another LM for instructions (prompt_lm): what was answered is kept. The last failed as {failed[-1]}"
    )
