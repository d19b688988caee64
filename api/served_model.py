"""The script that MLflow runs to make a served model (models from code). Not imported by anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dspy
import mlflow
from mlflow.pyfunc.model import PythonModel
from pandas import DataFrame

from questree.experiment import Experiment
from questree.lm.guard import adapter_named
from questree.lm.limits import limited
from questree.optimize import answer_all
from questree.settings import run_settings


class ServedProgram(PythonModel):
    """A saved program behind MLflow's scoring protocol; LM, index and reader come from whoever runs it."""

    def load_context(self, context: Any) -> None:
        """Load the program, once a process. Requests come on many threads, so DSPy is not configured globally."""
        parts = Experiment(run_settings(**(context.model_config or {})))
        self.lm, self.concurrency = parts.lm, parts.settings.concurrency
        self.adapter, self.limits = adapter_named(parts.settings.adapter), parts.settings.limits
        self.program = parts.program(str(Path(context.artifacts["program"])))

    def predict(self, context: Any, model_input: DataFrame, params: Any = None) -> list[dict[str, Any]]:
        """Return one answer for each row, in order."""
        with dspy.context(lm=self.lm, adapter=self.adapter), limited(self.limits):
            return answer_all(self.program, model_input.to_dict("records"), self.concurrency)


mlflow.models.set_model(ServedProgram())
