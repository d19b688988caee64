"""Modules: steps that ask an LM, composed by the programs. The signatures stand in files of the same names."""

from __future__ import annotations

from typing import Any

import dspy

from ...lm.spent import other_callbacks


class StepModule(dspy.Module):
    """A step of a program that asks the LM, such as planning a chain.

    DSPy's callbacks, such as MLflow's, are called for it. If the only callback is the account's, which only counts LM
    calls, DSPy's own call is skipped: it takes a tenth of a millisecond.
    """

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Take the step."""
        if self.callbacks or other_callbacks():
            return super().__call__(*given, **named)
        return self.forward(*given, **named)
