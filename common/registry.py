"""Parts by name: ours, those that installed packages offer as entry points, and ``package:name`` of any module.

Code is named, never stored. A name that a user types may import a module (`Registry.named`). A name that stands in a
file imports none (`Registry.known`): it has to be ours, installed, or allowed before.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from .errors import QuestreeError, did_you_mean, unknown_name

T = TypeVar("T")

_CODE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class Registry(Generic[T]):
    """The parts of one kind.

    Args:
        what: one such part is called: ``program``. Packages offer theirs as entry points of ``questree.programs``.
        own: ours by name; nobody's part takes the place of one of these.
        read: makes a part of a name and what was imported; raises a TypeError that says what is wrong with it.
    """

    def __init__(self, what: str, own: Mapping[str, T], read: Callable[[str, Any], T]):
        self.what, self.group = what, f"questree.{what.replace(' ', '_')}s"
        self._own, self._read = own, read
        self._imported: dict[str, T] = {}

    def names(self) -> list[str]:
        """Return the names of our parts, and then of those that installed packages offer."""
        return [*self._own, *self._offered()]

    def named(self, name: str) -> T:
        """Return the part of a name that a user typed; ``package:name`` is imported.

        Raises:
            QuestreeError: there is none, it cannot be imported, or it is something else.
        """
        self.allow(name)
        return self.known(name)

    def known(self, name: str) -> T:
        """Return the part of a name that may come from a file: ours, of an installed package, or allowed before.

        Raises:
            QuestreeError: as `named`; or the name is code that nobody allowed.
        """
        self._check(name)
        if name in self._own:
            return self._own[name]
        if name not in self._imported:
            if (point := self._offered().get(name)) is None:
                raise QuestreeError(self._unknown(name))
            self._imported[name] = self._loaded(name, point.load)
        return self._imported[name]

    def allow(self, name: str) -> None:
        """Import a part that is named as ``package:name``, so that it is known from now on; leave other names alone.

        Raises:
            QuestreeError: it cannot be imported, or it is something else; or the name is no text.
        """
        self._check(name)
        if name not in self._own and name not in self._imported and importable(name):
            self._imported[name] = self._loaded(name, lambda: _imported(name))

    def stands_for(self, name: str) -> bool:
        """Return whether a user may mean a part by this name: it is known, or its module is here."""
        return name in self._own or name in self._imported or name in self._offered() or importable(name)

    def means(self, name: str) -> bool:
        """Return whether a user means a part by this name, and no file or folder; ours go before these."""
        return name in self._own or (not os.path.exists(name) and self.stands_for(name))

    def name_of(self, part: T) -> str | None:
        """Return the name under which a part is known, or None if it is not."""
        called = getattr(part, "name", None)  # looking at all of them would import all of them
        if isinstance(called, str) and called in self._own and self._own[called] is part:
            return called
        return next((name for name, one in self._imported.items() if one is part), None)

    def keep(self, name: str, part: T) -> None:
        """Make a part known that the user has in hand."""
        self._imported[name] = part

    def _check(self, name: Any) -> None:
        """Raise if what was given is no name at all."""
        if not isinstance(name, str):
            raise QuestreeError(f"Name the {self.what} by a text, not by {name!r:.60}.")

    def _offered(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self.group) if point.name not in self._own}

    def _loaded(self, name: str, load: Callable[[], Any]) -> T:
        try:
            return self._read(name, load())
        except QuestreeError:
            raise
        except Exception as error:  # it is someone else's code, and may fail in any way
            why = str(error) if isinstance(error, TypeError) else f"{type(error).__name__}: {error}"
            raise QuestreeError(
                f"The {self.what} {name!r} cannot be used: {why}{'' if why.endswith(('.', '?')) else '.'}"
            ) from error

    def _unknown(self, name: str) -> str:
        told = unknown_name(self.what, name, self.names())
        if not _CODE.fullmatch(name):
            return told
        if importable(name):
            return (
                f"The {self.what} {name!r} is code that no installed package offers as an entry point. If you trust "
                f"it, allow it: --allow-code {name}, or allow_code=[{name!r}] in Python."
            )
        return f"{told} And there is no module {name.partition(':')[0]!r}, installed or in this folder."


def importable(name: str) -> bool:
    """Return whether a name has the form ``package:name`` and the package is installed, or lies in this folder."""
    top = name.partition(":")[0].partition(".")[0]
    lies_here = os.path.isfile(f"{top}.py") or os.path.isdir(top)
    return bool(_CODE.fullmatch(name)) and (lies_here or top in sys.modules or find_spec(top) is not None)


def _imported(name: str) -> Any:
    """Return what ``package:name`` stands for. This folder is searched last, so that nothing in it hides a package."""
    module, _, path = name.partition(":")
    top = module.partition(".")[0]
    if top not in sys.modules and find_spec(top) is None:
        sys.path.append(os.getcwd())
    found: Any = import_module(module)
    for part in path.split("."):
        if not hasattr(found, part):
            public = [one for one in dir(found) if not one.startswith("_")]
            raise TypeError(f"{module} has no {path!r}.{did_you_mean(part, public)}")
        found = getattr(found, part)
    return found


def settings_of(what: str, kind: Any, given: Mapping[str, Any]) -> Any:
    """Return the settings of a part, such as ``searchain``, by names and values; their class is one of pydantic's.

    Raises:
        QuestreeError: if there is no such setting, or a value does not fit; names what there is.
    """
    from pydantic import TypeAdapter, ValidationError  # which the metrics do without

    fields = kind.__pydantic_fields__
    known = ", ".join(f"{name} ({field.default})" for name, field in fields.items())
    if unknown := [name for name in given if name not in fields]:
        meant = did_you_mean(unknown[0], fields)
        raise QuestreeError(f"There is no setting of {what} {unknown[0]!r}.{meant} There are: {known or 'none'}.")
    try:
        return TypeAdapter(kind).validate_python(dict(given))
    except ValidationError as error:
        fault = error.errors()[0]
        told = f"{'.'.join(map(str, fault['loc']))}={fault['input']!r} does not fit: {fault['msg']}"
        raise QuestreeError(f"{what}: {told}. Its settings are: {known}.") from None


_SOURCE = re.compile(r" ?\(([^()]*(?:\([^()]*\)[^()]*)*)\)")


def described(text: str | None) -> tuple[str, str]:
    """Return the first sentence of a docstring without its source, and the source that stands in brackets in it."""
    first = " ".join((text or "").strip().split("\n\n")[0].split())
    found = next((one for one in _SOURCE.finditer(first) if re.search(r"\d{4}|table|section|DSPy", one[1])), None)
    return (first, "") if found is None else (first.replace(found[0], "", 1), found[1])
