"""Attacks on what is retrieved: planted passages and injected instructions, and how often they win."""

from .attack import attack as attack
from .plants import INJECTIONS as INJECTIONS
from .plants import KINDS as KINDS
from .plants import Attack as Attack
from .plants import Plant as Plant
from .plants import plants_for as plants_for
from .rows import AttackRun as AttackRun
from .seeded_retriever import seeded as seeded
