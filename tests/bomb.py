"""A pickle that leaves a trace if anything unpickles it."""

import os
from pathlib import Path


class Bomb:
    """Unpickled, it makes a folder."""

    def __init__(self, at: Path):
        self.at = str(at)

    def __reduce__(self):
        return os.mkdir, (self.at,)
