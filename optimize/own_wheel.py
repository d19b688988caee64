"""This package as a wheel, which a served model takes along where no index offers the code that made it."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

_WHEEL = "Wheel-Version: 1.0\nGenerator: questree\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def own_wheel(folder: Path) -> Path | None:
    """Write this package into a folder as a wheel; return its path, or None if an index offers the same package.

    Beside what pip installed from a file, a folder or a repository stands a ``direct_url.json`` (PEP 610).
    """
    ours, folders = distribution("questree"), _folders()
    if ours.read_text("direct_url.json") is None and list(folders) == ["questree"]:
        return None
    about = f"questree-{ours.version}.dist-info"
    content = dict(_files(folders)) | {f"{about}/METADATA": str(ours.metadata).encode()}
    content[f"{about}/WHEEL"] = _WHEEL.encode()
    lines = [f"{name},sha256={_digest(held)},{len(held)}" for name, held in content.items()]
    content[f"{about}/RECORD"] = "\n".join([*lines, f"{about}/RECORD,,\n"]).encode()
    wheel = folder / f"questree-{ours.version}-py3-none-any.whl"
    with ZipFile(wheel, "w", ZIP_DEFLATED) as archive:
        for name, held in content.items():
            archive.writestr(name, held)
    return wheel


def _files(folders: Mapping[str, Path]) -> Iterator[tuple[str, bytes]]:
    for package, folder in folders.items():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{package}/{path.relative_to(folder).as_posix()}", path.read_bytes()


def _folders() -> dict[str, Path]:
    """Return the folder of each package: one if it is installed; in a checkout, as its ``setup.cfg`` maps them."""
    found = find_spec("questree")
    assert found is not None, "the package is incomplete"
    front = Path(str(found.origin)).parent
    if front.name == "questree":
        return {"questree": front}
    setup = ConfigParser()
    setup.read(front.parent / "setup.cfg", encoding="utf-8")
    mapped = (line.split(" = ") for line in setup["options"]["package_dir"].strip().splitlines())
    return {package.replace(".", "/"): front.parent / place for package, place in mapped}


def _digest(held: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(held).digest()).rstrip(b"=").decode()
