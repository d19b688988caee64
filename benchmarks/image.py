"""Run every step of the Dockerfile where no builder is, serve from what it makes, and tell its size.

The steps are read from the Dockerfile. In the place of the base image stands this machine's root with a copy of this
Python, beneath a folder that takes what a step writes (overlayfs). It needs Linux and root: ``make image``
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from string import Template

ROOT = Path(__file__).parents[1]
TOKEN = "a token of this run"
SERVED = "evidence-chain --lm simulated --retriever /index/mini"
QUESTION = "Which river flows by the native city of the composer of The Magic Flute?"
Step = tuple[str, str]


def steps() -> list[Step]:
    """Return the instructions of the Dockerfile, each in one line."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\s*\\\n\s*", " ", text).splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines) if word]


def mount(*words: object) -> None:
    """Mount something, in this process's own view of the files."""
    subprocess.run(["mount", *map(str, words)], check=True)


class Stage:
    """One ``FROM``: a root over this machine's, and what the steps before set."""

    def __init__(self, folder: Path):
        self.written, self.root = folder / "written", folder / "root"
        self.settings = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LD_LIBRARY_PATH": "/usr/local/lib"}
        self.settings |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        for made in (self.written, self.root, folder / "work"):
            made.mkdir(parents=True)
        copy_python(self.written / "usr" / "local")
        layers = f"lowerdir=/,upperdir={self.written},workdir={folder / 'work'}"
        mount("-t", "overlay", "overlay", "-o", layers, self.root)
        for name in ("proc", "dev"):
            mount("--rbind", f"/{name}", self.root / name)
        mount("-t", "tmpfs", "tmpfs", self.root / "tmp")

    def do(self, word: str, rest: str, stages: dict[str, "Stage"]) -> None:
        """Carry out one instruction; those that only describe the image change nothing."""
        print(f"{word} {rest[:100]}", flush=True)
        if word == "RUN":
            subprocess.run(["chroot", self.root, "/bin/sh", "-c", rest], env=self.settings, check=True)
        elif word == "ARG":
            name, _, value = rest.partition("=")
            self.settings[name] = os.environ.get(name, shlex.split(value)[0])
        elif word == "ENV":
            for one in shlex.split(rest):
                name, _, value = one.partition("=")
                self.settings[name] = Template(value).substitute(self.settings)
        elif word == "COPY":
            self._copy(*rest.split()[-2:], stages.get(rest.partition("--from=")[2].partition(" ")[0]))
        elif word not in {"USER", "WORKDIR", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT"}:
            raise SystemExit(f"{word}: this script does not know the instruction.")

    def _copy(self, source: str, target: str, stage: "Stage | None") -> None:
        into = self.root / target.lstrip("/")
        if stage:
            shutil.copytree(stage.root / source.lstrip("/"), into, symlinks=True)
            return
        names = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
        into.mkdir()
        for one in (ROOT / name for name in names):
            if one.is_dir():
                shutil.copytree(one, into / one.name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(one, into / one.name)

    def size(self) -> int:
        """Return the bytes that the steps wrote, without the copy of Python."""
        files = (file for file in self.written.rglob("*") if "usr/local" not in str(file) and not file.is_dir())
        return sum(file.lstat().st_size for file in files)

    def seal(self, volume: Path) -> None:
        """Let nothing but its volume and /tmp be written."""
        mount("-o", "remount,ro", self.root)
        mount("-o", "remount,bind,ro", self.root / "index")
        mount("--bind", volume, self.root / "var" / "questree")

    def command(self, said: dict[str, str], words: list[str]) -> list[str]:
        """Return the command that runs words in it as its user, in its folder, with no right that root has."""
        user = said["USER"]
        rights = ["--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
        within = ["chroot", str(self.root), "env", f"--chdir={said['WORKDIR']}"]
        return [*within, "setpriv", f"--reuid={user}", f"--regid={user}", *rights, *words]


def copy_python(local: Path) -> None:
    """Copy this Python without its packages, as the base image has one in /usr/local."""
    home, library = Path(sys.base_prefix), f"lib/python3.{sys.version_info.minor}"
    ignored = shutil.ignore_patterns("site-packages", "__pycache__", "test")
    shutil.copytree(home / library, local / library, ignore=ignored)
    (local / library / "site-packages").mkdir()
    (local / "bin").mkdir()
    shutil.copy(Path(sys.executable).resolve(), local / "bin" / "python")
    for shared in (home / "lib").glob("libpython*"):
        shutil.copy(shared, local / "lib" / shared.name)


def build(folder: Path) -> tuple[Stage, dict[str, str]]:
    """Carry out the Dockerfile; return the last stage, and the instructions that say how it runs."""
    stages: dict[str, Stage] = {}
    said: dict[str, str] = {}
    for word, rest in steps():
        if word == "FROM":
            stages[rest.partition(" AS ")[2] or "image"] = stage = Stage(folder / f"stage{len(stages)}")
        else:
            stage.do(word, rest, stages)
            said[word] = rest
    return stages["image"], said


def look(image: Stage, said: dict[str, str], index: Path, volume: Path) -> None:
    """Serve from the image, run its health check, ask a question, and try to write to its root."""
    entry = json.loads(said["ENTRYPOINT"])
    shutil.chown(volume, 10001, 10001)
    (image.root / "index").mkdir()
    mount("--bind", index, image.root / "index")
    indexing = ["chroot", image.root, "questree", "index", "mini", "--out", "/index/mini", "--kind", "bm25"]
    subprocess.run(indexing, env=image.settings, check=True)
    image.seal(volume)
    surroundings = image.settings | {"QUESTREE_TOKEN": TOKEN}
    command = image.command(said, [*entry, *SERVED.split()])
    with subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, text=True) as server, ExitStack() as end:
        end.callback(server.terminate)
        assert server.stdout
        print(next(line for line in server.stdout if " at http" in line), end="")
        health = json.loads(said["HEALTHCHECK"].partition("CMD ")[2])
        subprocess.run(image.command(said, health), env=surroundings, check=True)
        request = urllib.request.Request("http://127.0.0.1:8080/ask", json.dumps({"question": QUESTION}).encode())
        request.add_header("Authorization", f"Bearer {TOKEN}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=120) as reply:
            print(f"answer: {json.load(reply)['answer']}")
        for path in ("/written", "/opt/questree/written", "/index/written"):
            wrote = subprocess.run(["chroot", image.root, "touch", path], capture_output=True, text=True, check=False)
            assert "Read-only file system" in wrote.stderr, path
        owner = subprocess.run(["ps", "-o", "user=", "-p", str(server.pid)], capture_output=True, text=True, check=True)
        assert owner.stdout.strip() in (said["USER"], "10001")


def main() -> None:
    """Build in a new folder, in a view of the files of its own, whose mounts end with it; look at what was built."""
    if len(sys.argv) == 1:
        with tempfile.TemporaryDirectory(prefix="image.", dir="/var/tmp") as made:
            ran = subprocess.run(["unshare", "--mount", sys.executable, __file__, made], check=False)
        sys.exit(ran.returncode)
    folder = Path(sys.argv[1])
    (index := folder / "index").mkdir()
    (volume := folder / "volume").mkdir()
    image, said = build(folder)
    print(f"{image.size() / 1e9:.2f} GB over the base image", flush=True)
    look(image, said, index, volume)


if __name__ == "__main__":
    main()
