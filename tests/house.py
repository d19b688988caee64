"""The package's files, as they stand in the checkout: for tests that hold the house together."""

from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

import dspy

ROOT = Path(__file__).resolve().parents[1]

SETUP = ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")

FOLDERS = dict(line.split(" = ") for line in SETUP["options"]["package_dir"].strip().splitlines())
PACKAGES = SETUP["options"]["packages"].split()
ROOMS = sorted({folder.split("/")[0] for folder in FOLDERS.values()})


def package_files(room: str | None = None) -> list[Path]:
    """Return the package's modules, of all rooms or of one, by their paths in the checkout."""
    folders = [folder for folder in FOLDERS.values() if room in (None, folder.split("/")[0])]
    return [path.relative_to(ROOT) for folder in folders for path in sorted((ROOT / folder).glob("*.py"))]


def prompts() -> dict[str, type[dspy.Signature]]:
    """Return every signature of the package, by its name."""
    modules = [import_module(f"questree.signatures.{path.stem}") for path in package_files("signatures")]
    found = [one for module in modules for one in vars(module).values() if isinstance(one, type)]
    return {one.__name__: one for one in found if issubclass(one, dspy.Signature) and one.output_fields}
