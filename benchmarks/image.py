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
from pathlib import Path
from string import Template

ROOT = Path(__file__).parents[1]
TOKEN = "a token of this run"
SERVED = "evidence-chain --lm simulated --retriever /index/mini"
QUESTION = "Which river flows by the native city of the composer of The Magic Flute?"
DESCRIBE = {"USER", "WORKDIR", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT"}
"""Instructions that change nothing while the image is made."""


def run(*words: object, env: dict[str, str] | None = None) -> None:
    """Run a command, which must succeed."""
    subprocess.run([str(word) for word in words], env=env, check=True)


class Stage:
    """One ``FROM``: a root over this machine's, and what the steps before set."""

    def __init__(self, folder: Path):
        self.written, self.root = folder / "written", folder / "root"
        self.settings = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LD_LIBRARY_PATH": "/usr/local/lib"}
        self.settings |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        for made in (self.root, folder / "work"):
            made.mkdir(parents=True)
        copy_python(self.written / "usr" / "local")
        layers = f"lowerdir=/,upperdir={self.written},workdir={folder / 'work'}"
        run("mount", "-t", "overlay", "overlay", "-o", layers, self.root)
        for name in ("proc", "dev"):
            run("mount", "--rbind", f"/{name}", self.root / name)
        run("mount", "-t", "tmpfs", "tmpfs", self.root / "tmp")

    def do(self, word: str, rest: str, stages: dict[str, "Stage"]) -> None:
        """Carry out one instruction."""
        print(f"{word} {rest[:100]}", flush=True)
        if word == "RUN":
            run("chroot", self.root, "/bin/sh", "-c", rest, env=self.settings)
        elif word == "ARG":
            name, _, value = rest.partition("=")
            self.settings[name] = os.environ.get(name, shlex.split(value)[0])
        elif word == "ENV":
            for name, _, value in (one.partition("=") for one in shlex.split(rest)):
                self.settings[name] = Template(value).substitute(self.settings)
        elif word == "COPY":
            *options, source, target = rest.split()
            if options:
                run("cp", "-a", stages[options[0].removeprefix("--from=")].root / source[1:], self.root / target[1:])
            else:
                (self.root / target[1:]).mkdir()
                sent = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
                run("cp", "-r", *(ROOT / name for name in sent), self.root / target[1:])
        elif word not in DESCRIBE:
            raise SystemExit(f"{word}: this script does not know the instruction.")


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
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    stages: dict[str, Stage] = {}
    said: dict[str, str] = {}
    for line in filter(None, re.sub(r"\s*\\\n\s*", " ", text).splitlines()):
        word, rest = line.split(maxsplit=1)
        if word == "FROM":
            stages[rest.partition(" AS ")[2] or "image"] = stage = Stage(folder / f"stage{len(stages)}")
        else:
            stage.do(word, rest, stages)
            said[word] = rest
    return stages["image"], said


def look(image: Stage, said: dict[str, str], folder: Path) -> None:
    """Serve from the image as its user, run its health check, ask a question, and try to write to its root."""
    root, env = image.root, image.settings | {"QUESTREE_TOKEN": TOKEN}
    (root / "index").mkdir()
    run("chroot", root, "questree", "index", "mini", "--out", "/index/mini", "--kind", "bm25", env=env)
    run("install", "-d", "-o", "10001", folder / "volume")
    run("mount", "-o", "remount,ro", root)
    run("mount", "--bind", folder / "volume", root / "var" / "questree")
    rights = ["--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    within = ["chroot", str(root), "env", f"--chdir={said['WORKDIR']}"]
    within += ["setpriv", f"--reuid={said['USER']}", f"--regid={said['USER']}", *rights]
    command = [*within, *json.loads(said["ENTRYPOINT"]), *SERVED.split()]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            print(next(line for line in server.stdout if " at http" in line), end="")
            run(*within, *json.loads(said["HEALTHCHECK"].partition("CMD ")[2]), env=env)
            headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
            asked = json.dumps({"question": QUESTION}).encode()
            request = urllib.request.Request("http://127.0.0.1:8080/ask", asked, headers)
            with urllib.request.urlopen(request, timeout=120) as reply:
                print(f"answer: {json.load(reply)['answer']}")
            for path in ("/written", "/opt/questree/written", "/index/written"):
                wrote = subprocess.run(["chroot", root, "touch", path], capture_output=True, text=True, check=False)
                assert "Read-only file system" in wrote.stderr, path
            assert Path(f"/proc/{server.pid}").stat().st_uid == 10001
        finally:
            server.terminate()


def main() -> None:
    """Build in a new folder, in a view of the files of its own, whose mounts end with it; look at what was built."""
    if len(sys.argv) == 1:
        with tempfile.TemporaryDirectory(prefix="image.", dir="/var/tmp") as made:
            ran = subprocess.run(["unshare", "--mount", sys.executable, __file__, made], check=False)
        sys.exit(ran.returncode)
    folder = Path(sys.argv[1])
    image, said = build(folder)
    print("over the base image: ", end="", flush=True)
    run("du", "--summarize", "--si", "--apparent-size", "--exclude=usr/local", image.written)
    look(image, said, folder)


if __name__ == "__main__":
    main()
