"""An optimizer's own LM requests, such as for instructions, sent with the same care as a program's steps."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import dspy

from ...common.errors import QuestreeError
from ...lm.call import call
from ...lm.failure import CallFailedError, Failure

logger = logging.getLogger(__name__)


class _NoKeyError(KeyboardInterrupt):
    """Ends an optimizer as Ctrl-C does: after any other error, some go on with one proposal less."""


class Proposals:
    """The requests that an optimizer makes for itself, which `call` sends, and how each of them ended.

    DSPy would end, and lose everything, at a reply that it cannot read; after that, the cache would give the same
    reply again. It would take a reply for an instruction that was cut in the middle of a sentence, and wait as long as
    a server says, which may be a day.

    Args:
        optimizer: its name, for messages.
    """

    def __init__(self, optimizer: str = "the optimizer"):
        self.optimizer, self.outcomes = optimizer, list[Failure | None]()

    def asked(self, lm: dspy.BaseLM | None = None) -> AbstractContextManager[Any]:
        """Send the LM requests of DSPy's parts inside the block by `call`; to the configured LM where ``lm`` is None.

        No program is asked inside: its steps are no proposals.
        """
        block: AbstractContextManager[Any] = dspy.context(adapter=self.adapter(), lm=lm or dspy.settings.lm)
        return block

    def adapter(self, form: dspy.Adapter | None = None) -> dspy.Adapter:
        """Return an adapter that sends by `call`, in the form of another adapter; of the configured one where None."""
        return _CarefulAdapter(self, form or dspy.settings.adapter)

    def ask(self, predict: dspy.Predict, inputs: dict[str, Any]) -> dspy.Prediction:
        """Return the reply to one proposal.

        Raises:
            CallFailedError: if there is none that can be used.
        """
        try:
            reply = call(predict, **inputs)
        except CallFailedError as error:
            self.outcomes.append(error.failure)
            if error.failure.cause == "auth":
                raise _NoKeyError from error
            raise
        self.outcomes.append(None)
        return reply

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Log which proposals failed: some optimizers go on without any, and say nothing.

        Raises:
            QuestreeError: if all of them failed, or one ended the optimizer.
        """
        try:
            yield
        except (CallFailedError, _NoKeyError) as error:
            raise self._ended() from error
        if self.outcomes and all(self.outcomes):
            raise self._ended()
        if failed := [failure for failure in self.outcomes if failure]:
            said = "%d of the %d questions that %s asked an LM itself failed; the last: %s"
            logger.warning(said, len(failed), len(self.outcomes), self.optimizer, failed[-1])

    def _ended(self) -> QuestreeError:
        failed = [failure for failure in self.outcomes if failure]
        return QuestreeError(
            f"{self.optimizer} asked an LM itself {len(self.outcomes)} times, and {len(failed)} failed. Run the same "
            "again, perhaps with another LM for instructions (prompt_lm): what was answered is kept. The last failed "
            f"as {failed[-1]}"
        )


class _CarefulAdapter(dspy.Adapter):
    """Asks by `call`. DSPy's parts make their predictors themselves, but take the adapter that the settings name."""

    def __init__(self, proposals: Proposals, form: dspy.Adapter | None):
        super().__init__()
        self._proposals, self._form = proposals, form

    def __call__(
        self,
        lm: dspy.BaseLM,
        lm_kwargs: dict[str, Any],
        signature: type[dspy.Signature],
        demos: list[Any],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """Return the fields of each reply."""
        predict = dspy.Predict(signature, **lm_kwargs)
        predict.lm, predict.demos = lm, demos
        with dspy.context(adapter=self._form, trace=None):
            reply = self._proposals.ask(predict, inputs)
        return [dict(reply), *(dict(reply.completions[n]) for n in range(1, len(reply.completions)))]
