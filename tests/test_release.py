"""What `make release` built, installed into an empty environment and used outside the clone."""

import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

DIST = Path(__file__).parents[1] / "dist"
WHERE = "import questree; questree.program('direct'); print(questree.__file__)"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_what_is_released_works_outside_the_clone(kind: str, tmp_path: Path) -> None:
    built = sorted(DIST.glob(kind))
    if not built:
        pytest.skip("nothing is built: make release")
    uv, python = Path(sys.executable).with_name("uv"), tmp_path / "env" / "bin" / "python"
    here = tmp_path / "here.txt"  # the versions that are here, so that nothing newer is tried, and this build of torch
    here.write_text("".join(f"{one.name}=={one.version}\n" for one in distributions() if one.name != "questree"))
    links = ["--find-links", os.environ["PIP_FIND_LINKS"]] if "PIP_FIND_LINKS" in os.environ else []
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, tmp_path / "env"], check=True)
    wanted = f"questree[serve] @ {built[-1].as_uri()}"
    subprocess.run([uv, "pip", "install", "-q", "--python", python, "-c", here, *links, wanted], check=True)
    found = subprocess.run([python, "-c", WHERE], cwd=tmp_path, capture_output=True, text=True)
    assert str(tmp_path / "env") in found.stdout, found.stderr
    ran = subprocess.run([python.with_name("questree"), "demo"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "Answer: " in ran.stdout
