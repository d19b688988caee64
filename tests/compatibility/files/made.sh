#!/bin/sh
# How the folders beside this file were made, with the `questree` of commit 8874686, the last one before the rooms were
# laid out anew. Later versions have to read them, so they are not made again.
set -e
export QUESTREE_CACHE="$(mktemp -d)" QUESTREE_TRACKING_URI=none

for kind in bm25 exact dense; do
    questree index corpus.jsonl --kind "$kind" --out "$kind"
done
questree evaluate searchain --task questions.jsonl --retriever bm25 --out run
questree compile searchain --task questions.jsonl --retriever bm25 --out compiled \
    --optimizer bootstrap-few-shot
questree compile oner-cot --task questions.jsonl --retriever bm25 --out taught \
    --optimizer bootstrap-few-shot --optimizer-set max_labeled_demos=0
questree compile oner-cot --task questions.jsonl --retriever bm25 --out searched \
    --optimizer bootstrap-random-search --optimizer-set candidates=1
questree compare searchain oner --task questions.jsonl --retriever bm25 --out compared
questree attack searchain oner --task questions.jsonl --retriever bm25 --out attacked --limit 2
questree calibrate-reader lm --task readings.jsonl --test-split none --retriever bm25 --out reader
questree calibrate-duplicates retriever pairs.tsv --retriever dense --out duplicates
rm reader/theta.png duplicates/threshold.png compared/page.html  # pictures: large, and never read again

python - <<'END' > found.json
import json
from questree.retrieval import load_index

query = "Which river flows through Prague?"
found = {kind: [(p.id, p.score) for p in load_index(kind)(query, k=3)] for kind in ("bm25", "exact", "dense")}
print(json.dumps({"query": query, **found}))
END
