"""Capsules: copies of runs in one file, which anyone can replay without an LM or an index."""

from .live import AskedAgain as AskedAgain
from .live import Drift as Drift
from .live import replay_live as replay_live
from .pack import pack as pack
from .replay import ReplayedRun as ReplayedRun
from .replay import replay as replay
