"""Twenty novels and two hundred files indexed in one command: seconds, memory, and the share of reading.

    python benchmarks/documents.py FOLDER --kind bm25

The documents are made of the bundled passages' sentences, drawn by a seed; docs/scale.md holds the figures.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path

from frame import begin, options, run_questree

from questree.common.sentences import sentences
from questree.data import MINI_CORPUS
from questree.retrieval import read_corpus, read_manifest
from questree.retrieval.documents.folder import Documents
from questree.retrieval.index_folder import chosen_kind

NOVELS, FILES = 20, 200
CHAPTERS, PARAGRAPHS = 40, 40  # of a novel: some 100,000 words


def main() -> None:
    """Make the documents if they are not there; read them alone, index them, index them again, and one more."""
    parser = options(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", default="bm25")
    given = begin(parser)
    documents, out = given.folder / "documents", given.folder / given.kind
    if not documents.exists():
        documents.mkdir(parents=True)
        for name, content in made(random.Random(0)):
            (documents / name).write_bytes(content)
    (documents / "more.md").unlink(missing_ok=True)
    size = sum(path.stat().st_size for path in documents.iterdir())
    began = time.perf_counter()
    source = Documents(documents, strict=True)
    source.for_kind(chosen_kind(given.kind, 0), None, None)
    passages = sum(1 for _ in source)
    reading = time.perf_counter() - began
    print(f"{size / 1e6:.1f} MB, {passages:,} passages: read in {reading:.1f} s", flush=True)
    for what in ("new", "again", "one more"):
        if what == "one more":
            (documents / "more.md").write_text("# More\n\nOne more document.\n")
        taken = run_questree("index", documents, "--out", out, "--kind", given.kind)
        held = read_manifest(out).corpus.passages
        print(f"{what}: {taken.clock:.1f} s, {taken.memory:,.0f} MB, {held:,} passages", flush=True)


def made(draw: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yield the documents by name: novels as Markdown and text, files as HTML, CSV, Markdown and PDF."""
    told = [one for passage in read_corpus(MINI_CORPUS) for one in sentences(passage.text)]

    def paragraphs(count: int) -> list[str]:
        return [" ".join(draw.choices(told, k=draw.randint(2, 7))) for _ in range(count)]

    for number in range(NOVELS):
        chapters = (f"# Chapter {chapter}\n\n" + "\n\n".join(paragraphs(PARAGRAPHS)) for chapter in range(CHAPTERS))
        yield f"novel-{number:02d}.{'md' if number % 2 else 'txt'}", "\n\n".join(chapters).encode()
    for number in range(FILES):
        parts, name = paragraphs(12), f"file-{number:03d}"
        if number % 4 == 0:
            yield f"{name}.html", f"<h1>File {number}</h1>{''.join(f'<p>{one}</p>' for one in parts)}".encode()
        elif number % 4 == 1:
            yield f"{name}.csv", "".join(f'{place},"{one}"\n' for place, one in enumerate(parts)).encode()
        elif number % 4 == 2:
            yield f"{name}.md", "\n\n".join(f"## Part {place}\n\n{one}" for place, one in enumerate(parts)).encode()
        else:
            yield f"{name}.pdf", pdf([parts[place : place + 4] for place in range(0, 12, 4)])


def pdf(pages: list[list[str]]) -> bytes:
    """Return a PDF of pages of paragraphs, some 90 characters a line."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for page in pages:
        text = " ".join(page).encode("ascii", "replace").decode()
        lines = [text[at : at + 90].translate({40: "\\(", 41: "\\)", 92: "\\\\"}) for at in range(0, len(text), 90)]
        drawn = "BT /F1 9 Tf 12 TL 40 800 Td " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 840] /Contents {len(objects) + 2} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    body = "".join(f"{number} 0 obj\n{content}\nendobj\n" for number, content in enumerate(objects, 1))
    return f"%PDF-1.4\n{body}trailer\n<< /Root 1 0 R /Size {len(objects) + 1} >>\n%%EOF\n".encode()


if __name__ == "__main__":
    main()
