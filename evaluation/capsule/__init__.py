"""Capsules: runs in one file, with all that the LM and the index said, so that anyone can replay them."""

from .live import AskedAgain as AskedAgain
from .live import Drift as Drift
from .live import replay_live as replay_live
from .pack import pack as pack
from .replay import Replay as Replay
from .replay import ReplayedRun as ReplayedRun
from .replay import replay as replay
