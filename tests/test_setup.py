"""What `make setup` makes: only with a Python that fits, and with links that the clone's own folder cannot hide."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_clone_is_no_empty_package_in_the_folder_above_it(tmp_path: Path) -> None:
    (tmp_path / "questree").mkdir()
    code = "import questree; assert 'load' in dir(questree)"
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
    assert found.returncode == 0, f"{found.stderr.decode()}\nIf this environment is an old one: make setup"


def test_the_python_that_is_named_is_looked_at(tmp_path: Path) -> None:
    other = tmp_path / "python3.9"
    other.write_text(f"#!/bin/sh\necho $* >> {tmp_path}/asked\nexit 1\n")
    other.chmod(0o755)
    made = subprocess.run(
        ["make", "setup", f"PYTHON={other}", f"VENV={tmp_path}/venv"], cwd=ROOT, capture_output=True, text=True
    )
    assert made.returncode == 2
    assert f"Questree needs Python 3.10 or later, which {other} is not" in made.stdout
    assert "venv" not in (tmp_path / "asked").read_text()
