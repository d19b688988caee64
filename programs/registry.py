"""Programs by name. To add one: its file in this folder, and its class here."""

from __future__ import annotations

from .program import Program
from .searchain import SearChain

PROGRAMS: dict[str, type[Program]] = {program.name: program for program in [SearChain]}
