"""What other libraries hold under which names, to see that nothing of it is replaced."""

import inspect
import sys
from typing import Any

LIBRARIES = ("dspy", "gepa", "httpx", "litellm", "mlflow", "optuna", "qdrant_client", "tqdm")


def parts_of_libraries() -> dict[tuple[int, str], Any]:
    """Return what modules and classes of other libraries hold under which names."""
    modules = [one for name, one in [*sys.modules.items()] if one and name.split(".")[0] in LIBRARIES]
    classes = {part for one in modules for part in [*vars(one).values()] if inspect.isclass(part)}
    holders = [*modules, *(one for one in classes if str(one.__module__).split(".")[0] in LIBRARIES)]
    return {
        (id(holder), name): part
        for holder in holders
        for name, part in [*vars(holder).items()]
        if callable(part) or isinstance(part, (classmethod, staticmethod, property)) or inspect.ismodule(part)
    }


def replaced(before: dict[tuple[int, str], Any]) -> set[str]:
    """Return the names of what is no longer what it was."""
    now = parts_of_libraries()
    return {f"{name}: {part}" for (holder, name), part in before.items() if now.get((holder, name), part) is not part}
