"""Attacks on what is retrieved: planted passages and injected instructions, and how often they win."""

from .attack import AttackRun, attack
from .plants import INJECTIONS, KINDS, Attack, Plant, plants_for
from .seeding import seeded

__all__ = ["INJECTIONS", "KINDS", "Attack", "AttackRun", "Plant", "attack", "plants_for", "seeded"]
