"""The simulated LM: for tests, rehearsals and load, never for claims."""

from .annotating import FLAGS_BELOW
from .engine import AsyncSimulatedEngine, SimulatedEngine, is_simulated, lm_of, simulated_lm
from .mind import Mind, Reading
from .recorded import RecordedMind, recorded_lm
from .recordings import Recording, read_recordings
from .server import create_app, running, serve
from .traits import Traits
from .world import Fact, World

__all__ = [
    "FLAGS_BELOW",
    "AsyncSimulatedEngine",
    "Fact",
    "Mind",
    "Reading",
    "RecordedMind",
    "Recording",
    "SimulatedEngine",
    "Traits",
    "World",
    "create_app",
    "is_simulated",
    "lm_of",
    "read_recordings",
    "recorded_lm",
    "running",
    "serve",
    "simulated_lm",
]
