"""Names of a package that are imported when they are first used: a command loads no more than it needs."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import UserDict
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, TypeVar, cast

T = TypeVar("T")


@cache
def exported(package: str) -> dict[str, str]:
    """Return the names that a package imports ``if TYPE_CHECKING`` and exports (``X as X``), with their modules.

    These imports are written once: type checkers read them, and so does this function.
    """
    tree = ast.parse(inspect.getsource(sys.modules[package]))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    names = [(one.name, node) for node in imports for one in node.names if one.asname == one.name]
    return {name: "." * node.level + (node.module or "") for name, node in names}


def lazily(package: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package: it knows ``__all__``, and imports the rest when it is first used."""

    def imported(name: str) -> Any:
        if name == "__all__":
            return list(vars(sys.modules[package]).get("__dir__", lambda: exported(package))())
        if name.startswith("__") or name not in exported(package):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(exported(package)[name], package), name)
        setattr(sys.modules[package], name, found)
        return found

    return imported


class PartsByName(UserDict[str, T]):
    """Parts by name, each imported when it is named.

    Args:
        package: that the places are relative to.
        places: of the parts, as ``.module:Name``.
    """

    def __init__(self, package: str, places: dict[str, str]):
        super().__init__()
        self._package, self.data = package, dict[str, Any](places)

    def __getitem__(self, key: str) -> T:
        part: Any = self.data[key]
        if isinstance(part, str):
            module, _, attribute = part.partition(":")
            part = self.data[key] = getattr(import_module(module, self._package), attribute)
        return cast("T", part)
