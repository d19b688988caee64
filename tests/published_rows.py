"""Hand-made rows in the formats in which the tasks are published; every sentence is ours."""

import json
from typing import Any

CONTEXT = [["Larkhall", [" Larkhall lies on the Wend.", " It has a mill."]], ["Osmund Vale", ["Osmund built it."]]]
HOTPOT = {
    "_id": "h1",
    "question": "On which river lies the town whose mill Osmund Vale built?",
    "answer": "the Wend",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Larkhall", 0], ["Osmund Vale", 0], ["Larkhall", 1]],
    "context": [*CONTEXT, ["Other", ["Nothing of note.", ""]]],
}
HOTPOT_ON_THE_HUB = {
    **{name: value for name, value in HOTPOT.items() if name != "_id"},
    "id": "h1",
    "supporting_facts": {"title": ["Larkhall", "Osmund Vale"], "sent_id": [0, 0]},
    "context": {"title": [t for t, _ in HOTPOT["context"]], "sentences": [s for _, s in HOTPOT["context"]]},
}
MUSIQUE = {
    "id": "2hop__1_2",
    "paragraphs": [
        {"idx": 0, "title": "Other", "paragraph_text": "Nothing of note.", "is_supporting": False},
        {"idx": 1, "title": "Larkhall", "paragraph_text": "Larkhall lies on the Wend.", "is_supporting": True},
        {"idx": 2, "title": "Osmund Vale", "paragraph_text": "Osmund was of Larkhall.", "is_supporting": True},
    ],
    "question": "Which river flows by Osmund Vale's town?",
    "question_decomposition": [
        {"id": 1, "question": "Osmund Vale >> town", "answer": "Larkhall", "paragraph_support_idx": 2},
        {"id": 2, "question": "Which river flows by #1 ?", "answer": "Wend", "paragraph_support_idx": 1},
    ],
    "answer": "Wend",
    "answer_aliases": ["River Wend"],
    "answerable": True,
}
TWOWIKI = {
    "_id": "w1",
    "type": "compositional",
    "question": "Who is the mother of the director of Grey Harvest (Film)?",
    "context": [["Grey Harvest (film)", ["Osmund Vale shot it."]], ["Osmund Vale", ["His mother was Ada Vale."]]],
    "supporting_facts": [["Grey Harvest (film)", 0], ["Osmund Vale", 0]],
    "evidences": [["Grey Harvest", "director", "Osmund Vale"], ["Osmund Vale", "mother", "Ada Vale"]],
    "answer": "Ada Vale",
}
TWOWIKI_ON_THE_HUB = {
    **TWOWIKI,
    **{name: json.dumps(TWOWIKI[name]) for name in ("context", "supporting_facts", "evidences")},
}
PHANTOMWIKI = {
    "id": "pw1",
    "question": "Who is the friend of Ada Vale?",
    "answer": ["Bo Ek", "Osmund Vale"],
    "prolog": {"query": ["friend(Ada Vale, Y_1)"], "answer": "Y_1"},
    "template": ["Who is", "the friend of", "Ada Vale", "?"],
    "type": 0,
    "difficulty": 1,
}
PHANTOMWIKI_ARTICLES = [
    {
        "title": "Ada Vale",
        "article": "# Ada Vale\n\n## Friends\nThe friends of Ada Vale are Bo Ek, Osmund Vale.\n\n## Work\nShe rows.",
        "facts": ["friend(Ada Vale, Bo Ek)"],
    },
    {"title": "Bo Ek", "article": "# Bo Ek\n\n## Attributes\nThe hobby of Bo Ek is hay.\n", "facts": []},
]
STRATEGYQA = {
    "qid": "s1",
    "term": "Larkhall",
    "description": "A town",
    "question": "Could a barge reach Larkhall?",
    "answer": True,
    "facts": ["Larkhall lies on a river."],
    "decomposition": ["Where does Larkhall lie?", "Can barges be on #1?"],
    "evidence": [[[["Larkhall-1"]], ["operation"]], [[["Larkhall-1", "Low Barge-2"]], ["no_evidence"]]],
}
STRATEGYQA_PARAGRAPHS = {"Larkhall-1": {"title": "Larkhall", "content": "Larkhall lies on the Wend.", "section": ""}}
BIG_BENCH = {"examples": [{"input": "Could a barge reach Larkhall?", "target_scores": {"Yes": 1, "No": 0}}]}


def kilt(id: str, asked: str, *answers: str, **meta: Any) -> dict[str, Any]:
    page = {"wikipedia_id": "7", "title": "Larkhall", "section": "Abstract"}
    output = [{"answer": answer, "provenance": [page]} for answer in answers]
    return {"id": id, "input": asked, "output": [*output, {"provenance": [page]}], "meta": meta}


ZSRE = kilt(
    "z1", "Larkhall [SEP] crosses", "Wend", template_questions=["Which river runs by Larkhall?", "What is near?"]
)
TREX = kilt("t1", "Larkhall [SEP] place of birth", "Wend", "River Wend")
FEVER = kilt("f1", "Larkhall is dry.", "REFUTES")
FEVER_BY_ITS_AUTHORS = {
    "id": 7,
    "label": "NOT ENOUGH INFO",
    "claim": "Larkhall is old.",
    "evidence": [[[1, 2, "Soft_Hay_-LRB-film-RRB-", 0]], [[1, None, None, None]]],
}
ELI5 = kilt("e1", "Why is water wet?", "Because it clings.", "It is a matter of taste.")
ELI5_OF_ALCE = {"question": "Why is water wet?", "answer": "Because it clings.", "claims": ["Water clings."]}
NQ = {"question": "which river is by larkhall", "answer": ["Wend", "River Wend"]}
NQ_OF_DPR = {
    "question": "which river is by larkhall",
    "answers": ["Wend"],
    "positive_ctxs": [
        {"title": "Larkhall", "text": "Larkhall lies on the Wend."},
        {"title": "Wend", "text": "A river."},
    ],
}
TRIVIAQA = {
    "Data": [
        {"QuestionId": "tc_1", "Question": "Which river?", "Answer": {"Value": "Wend", "Aliases": ["Wend", "R. Wend"]}}
    ]
}
TRIVIAQA_ON_THE_HUB = {
    "question": "Which river?",
    "question_id": "tc_1",
    "answer": {"value": "Wend", "aliases": ["R. Wend"], "type": "WikipediaEntity"},
}
WEBQUESTIONS = [
    {
        "url": "",
        "utterance": "where is larkhall?",
        "targetValue": '(list (description Vale) (description "Up \\"North\\""))',
    }
]
WEBQUESTIONS_BY_BRMSON = [{"qId": "wqr000001", "qText": "where is larkhall?", "answers": ["Vale"]}]
WEBQUESTIONS_ON_THE_HUB = {"url": "", "question": "where is larkhall?", "answers": ["Vale"]}
TREC = '1669\tfactoid\tHow deep is the "Wend"?\t\\b12\\s?feet|null\n'
SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "Larkhall_(town)",
            "paragraphs": [
                {
                    "context": "Larkhall lies on the Wend.",
                    "qas": [{"id": "q1", "question": "Where?", "answers": [{"text": "the Wend", "answer_start": 17}]}],
                }
            ],
        }
    ],
}
SQUAD_ON_THE_HUB = {
    "id": "q1",
    "title": "Larkhall_(town)",
    "context": "Larkhall lies on the Wend.",
    "question": "Where?",
    "answers": {"text": ["the Wend"], "answer_start": [17]},
}
HOVER = {
    "uid": "h1",
    "claim": "The town of Osmund lies on the Wend.",
    "supporting_facts": [["Osmund", 0], ["Larkhall", 1], ["Osmund", 2]],
    "label": "NOT_SUPPORTED",
    "num_hops": 2,
    "hpqa_id": "5a",
}
POPQA = {
    "id": 7,
    "question": "Which river is by Larkhall?",
    "possible_answers": '["Wend", "River Wend"]',
    "prop": "river",
}
FRAMES = {
    "Prompt": "Which river is by the town where Osmund was born, in the century after?",
    "Answer": "The Wend",
    "reasoning_types": "Multiple constraints | Temporal reasoning",
    "wiki_links": "['https://en.wikipedia.org/wiki/Low_Barge', 'https://en.wikipedia.org/wiki/Larkhall%2C_Wend#Town']",
}
BAMBOOGLE = 'Question,Answer\n"Which river, if any, is by Osmund\'s town?",Wend\n'
BAMBOOGLE_ON_THE_HUB = {"Question": "Which river, if any, is by Osmund's town?", "Answer": "Wend"}
