"""The simulated LM: for tests, rehearsals and load, never for claims."""

from .engine import AsyncSimulatedEngine, SimulatedEngine, is_simulated, lm_of, simulated_lm
from .mind import Mind, Reading
from .traits import Traits
from .world import Fact, World

__all__ = [
    "AsyncSimulatedEngine",
    "Fact",
    "Mind",
    "Reading",
    "SimulatedEngine",
    "Traits",
    "World",
    "is_simulated",
    "lm_of",
    "simulated_lm",
]
