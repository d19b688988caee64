"""MuSiQue (Trivedi et al., TACL 2022): two to four hops, annotated step by step.

Published as ``musique_ans_v1.0_train.jsonl`` and ``…_dev.jsonl`` (twenty paragraphs a question); the ``full`` files
hold the same and unanswerable ones, which are passed over. Answers of the test split are hidden: papers score on
dev. The hub repository is a copy of the authors' files by another user; the authors publish none.

MuSiQue-Full has each question twice under one id: with paragraphs that tell the answer, and with some that do not. Here
the second has an id of its own, and no answers. That is true of its own paragraphs: a corpus of all of them has what
its twin holds. `questree audit` counts of how many such questions a step is missing in a corpus, too.
"""

from __future__ import annotations

from dataclasses import replace

from .base import OWN_PARAGRAPHS, SEARCHAIN_WHOLE, TREE_OF_REVIEWS, BadRow, Fields, Hub, KnownTask, Row, distinct_texts


def _read(row: Row) -> Fields | None:
    return None if row.data.get("answerable") is False else _read_full(row)


def _read_full(row: Row) -> Fields:
    answerable = row.data.get("answerable") is not False
    paragraphs = row.records("paragraphs")
    decomposition = row.records("question_decomposition")
    try:
        shown = {p["idx"]: (p["title"], p["paragraph_text"], bool(p.get("is_supporting"))) for p in paragraphs}
        steps = [(s["question"], s["answer"], shown.get(s.get("paragraph_support_idx"))) for s in decomposition]
    except (KeyError, TypeError, AttributeError) as error:
        raise BadRow(f"{row.place}: a paragraph or a step lacks {error}.") from None
    aliases = names if isinstance(names := row.data.get("answer_aliases"), list) else []
    return {
        "id": row.text("id") if answerable else f"{row.text('id')}-untold",
        "question": row.text("question"),
        "answers": distinct_texts([row.text("answer"), *aliases] if answerable else []),
        "type": row.text("id").partition("__")[0],
        "hops": len(steps) or None,
        "gold_titles": distinct_texts(title for title, _, supporting in shown.values() if supporting),
        "steps": [
            {"question": question, "answer": answer, "support_title": support[0] if support else None}
            for question, answer, support in steps
        ],
        "paragraphs": [{"title": t, "text": text, "is_supporting": s} for t, text, s in shown.values()],
    }


MUSIQUE = KnownTask(
    name="musique",
    licence="CC BY 4.0",
    citation="Trivedi et al., TACL 2022",
    source="https://github.com/StonyBrookNLP/musique",
    sizes={"train": 19_938, "dev": 2_417},
    corpus=OWN_PARAGRAPHS,
    hub=Hub(
        id="dgslibisey/MuSiQue",
        revision="c8f4f8c9465fb69d31a8eae894c3fd509c4ca321",
        files={"train": "musique_ans_v1.0_train.jsonl", "validation": "musique_ans_v1.0_dev.jsonl"},
        columns=("id", "paragraphs", "question", "question_decomposition", "answer", "answer_aliases"),
    ),
    files="musique_ans_v1.0_train.jsonl, musique_ans_v1.0_dev.jsonl",
    read=_read,
    samples={"searchain": SEARCHAIN_WHOLE, "tree-of-reviews": TREE_OF_REVIEWS},
)
MUSIQUE_FULL = replace(
    MUSIQUE,
    name="musique-full",
    metric="by-style",
    sizes={"train": 39_876, "dev": 4_834},
    hub=None,  # none of which a revision is known
    files="musique_full_v1.0_train.jsonl, musique_full_v1.0_dev.jsonl",
    read=_read_full,
    samples={},
)
