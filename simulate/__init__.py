"""The simulated LM: for tests, rehearsals and load, never for claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazily

if TYPE_CHECKING:
    from ..lm.models import is_simulated as is_simulated
    from .engine import SimulatedEngine as SimulatedEngine
    from .engine import credulous_lm as credulous_lm
    from .engine import lm_of as lm_of
    from .engine import simulated_lm as simulated_lm
    from .mind import Mind as Mind
    from .mind import Traits as Traits
    from .recorded import RecordedMind as RecordedMind
    from .recorded import recorded_lm as recorded_lm
    from .recordings import read_recordings as read_recordings
    from .server import create_app as create_app
    from .server import running_lm as running_lm
    from .world import World as World

__getattr__ = lazily(__name__)
