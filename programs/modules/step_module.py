"""What the steps of programs share."""

from __future__ import annotations

from typing import Any

import dspy

from ...lm.spent import other_callbacks


class StepModule(dspy.Module):
    """A step of a program, of which DSPy's callbacks hear, such as MLflow's, if there are any but the account.

    The account counts LM calls alone, and DSPy takes a tenth of a millisecond to tell it of a module.
    """

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Take the step."""
        if self.callbacks or other_callbacks():
            return super().__call__(*given, **named)
        return self.forward(*given, **named)
