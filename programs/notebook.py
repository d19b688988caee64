"""What a notebook shows of a prediction and of a program. Everything in it is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import dspy

from ..common.text import in_page
from .tree_views import in_notebook


def prediction_as_html(prediction: dspy.Prediction) -> str:
    """Return the question, its answer or why there is none, the text with its references, and the tree."""
    tree = prediction.tree
    said = f"no answer: {prediction.failure}" if prediction.failure else prediction.answer
    cited = "".join(f"<li>{in_page(passage.cited())}</li>" for passage in prediction.references)
    return (
        f"<p><b>{in_page(tree.question)}</b></p><p>{in_page(said)}</p>"
        f"<p>{in_page(prediction.final_content)}</p><ol>{cited}</ol>{in_notebook(tree)}"
    )


def program_as_html(name: str, settings: Any, predictors: Iterable[tuple[str, dspy.Predict]]) -> str:
    """Return a program's name, its settings that are no defaults, and how many demonstrations each predictor has."""
    defaults = {
        name: field.get_default(call_default_factory=True) for name, field in type(settings).model_fields.items()
    }
    chosen = {name: value for name, value in settings if value != defaults[name]}
    told = ", ".join(f"{field}={value!r}" for field, value in chosen.items())
    rows = "".join(
        f"<tr><td>{in_page(path)}</td><td>{in_page(one.signature.__name__)}</td><td>{len(one.demos)}</td></tr>"
        for path, one in predictors
    )
    return (
        f"<p><b>{in_page(name)}</b> {in_page(told)}</p><table><thead><tr><th>predictor</th><th>prompt</th>"
        f"<th>demonstrations</th></tr></thead><tbody>{rows}</tbody></table>"
    )
