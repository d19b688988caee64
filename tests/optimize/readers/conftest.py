"""Questions of one form, each answered in a passage of its own; and an encoder that can learn them."""

from pathlib import Path

import pytest
from reliability.tiny_encoders import save_encoder

from questree.optimize.readers import ReadingExample
from questree.retrieval import Passage

PLACES = {
    "amber": "basin",
    "cedar": "delta",
    "ember": "fjord",
    "grove": "harbor",
    "island": "jetty",
    "kelp": "lagoon",
    "stone": "water",
    "tree": "hill",
}


@pytest.fixture(scope="session")
def examples() -> list[ReadingExample]:
    """Eight questions: where is the amber? The amber lies by the basin."""
    found = []
    for thing, place in PLACES.items():
        lies = Passage(id=thing, title=thing, text=f"the {thing} lies by the {place}, at the sand of the wood.")
        found.append(ReadingExample(thing, f"where is the {thing}?", (place,), lies))
    return found


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("encoder"))
