"""What a text claims by names, numbers and dates, and whether another text holds it: rules that need no LM.

| to ask | take |
|---|---|
| does this text hold this name, number, date or phrase? | `stands_in` |
| the same, where it may list several | `all_stand_in`, or `stand_among` of several texts |
| do two answers agree? | `agree` |
| does this passage support the words at a mark? | `supports_fragment` |
| which sentence tells the answer to a query? | `telling_sentence` |
| which sentences support the words at a mark? | `supporting_sentences` |

They compare values (`by_value`). Scores of answers compare as the official scripts do: see `answer_scores`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from ..common.sentences import sentences
from .answer_scores import contains_words
from .values import DATE, MONTH_OF_YEAR, NUMBER, by_value, has_number

_NAME = r"[a-z]*[A-Z][\w'’&.+#-]*"
_JOINED = r"(?:(?:of|the|de|and|von|van)\s+){0,2}"  # a list of two is one term, too: both have to be there
_TERM = re.compile(rf"{DATE}|(?<!\w){_NAME}(?:\s+{_JOINED}{_NAME})*|{NUMBER}[^\W_]*")
_OPENING = re.compile(
    r"^(?:(?:a|an|the|this|that|these|those|it|its|he|she|his|her|they|their|there|we|i|in|on|at|of|for|from|by|to|with|as|"
    r"and|or|but|so|thus|hence|then|therefore|since|because|while|when|where|who|which|what|how|according|both|one|"
    r"answer|after|before|however|no|yes|not|is|was|are|were)(?:['’]\w+)?\b\s*)+",
    re.IGNORECASE,
)
_BETWEEN_ITEMS = re.compile(
    rf"(?P<date>{DATE}|{MONTH_OF_YEAR})"
    r"|\A\s*(?:both|either)\s+|\s*[,;、](?:\s+|(?<=、))(?:(?:and|or|as well as)\s+|&\s*)?"
    r"|\s+(?:(?:and|or|as well as)\s+|[&/]\s+)|(?<=[^\W\d_])/(?=[^\W\d_])|\s\(|\)",
    re.IGNORECASE,
)
_DATED = re.compile(r"(\d+ [a-z]+) (\d{3,4})")
_CLAUSES = re.compile(r"[,;]?\s+(?:and|but)\s+")
_MOST_COUNTED = 20
SHORT = 3  # letters of a word that says little: is, the, was


def stands_in(text: str, phrase: str) -> bool:
    """Return whether a phrase stands in a text as whole words, with its numbers and dates as values (`by_value`).

    So '15 May' stands in '13–15 May', 'Puzo' in 'Puzo's', 'O'Brien' in '“O’Brien”', '45' in '45th', and '1998-03-04' in
    'March 4, 1998'; '35' does not stand in '3.5', nor 'C' in 'C++'. The year of a date may stand elsewhere.
    """
    return any(_stands_in(text, phrase, joined) for joined in (False, True))


def _stands_in(text: str, phrase: str, joined: bool) -> bool:
    needle, words = by_value(phrase, joined), by_value(text, joined)
    if contains_words(words, needle):
        return True
    dated = _DATED.fullmatch(needle)
    return bool(dated and re.search(rf"\b{dated[1]}\b(?! \d{{3}})", words) and contains_words(words, dated[2]))


@lru_cache(maxsize=4096)
def items(phrase: str) -> tuple[str, ...]:
    """Return what a phrase lists: "Ann Lee, Bo Ek and Cy" are three, "actor (Ann Lee)" two. Else it is one item.

    Names with such a word in them (Trinidad and Tobago) are parted as well: look for the whole first.
    """
    cuts = [found.span() for found in _BETWEEN_ITEMS.finditer(phrase) if found["date"] is None]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(phrase)]
    parts = (phrase[start:end].strip() for start, end in zip(starts, ends, strict=True))
    return tuple(part for part in parts if part) or (phrase,)


def all_stand_in(text: str, phrase: str) -> bool:
    """Return whether a phrase stands in a text, or each item of a list by itself."""
    parts = items(phrase)
    return stands_in(text, phrase) or (len(parts) > 1 and all(stands_in(text, part) for part in parts))


def stand_among(texts: Sequence[str], phrase: str) -> bool:
    """Return whether a phrase stands in one of several texts, or each item of a list in any of them."""
    whole = any(stands_in(text, phrase) for text in texts)  # "Trinidad and Tobago" is one name
    return whole or all(any(stands_in(text, part) for text in texts) for part in items(phrase))


def agree(answer: str, other: str) -> bool:
    """Return whether one answer stands in the other, lists in any order: 'Venice' and 'Venice, Italy' agree."""
    return all_stand_in(answer, other) or all_stand_in(other, answer)


@lru_cache(maxsize=4096)
def _terms(fragment: str) -> tuple[str, ...]:
    text = unicodedata.normalize("NFC", fragment)
    plain = text if text.isascii() else "".join(map(_letter_as_ascii, text))  # as long as the text
    runs = [text[found.start() : found.end()] for found in _TERM.finditer(plain)]
    return tuple(dict.fromkeys(term for run in runs if by_value(term := _OPENING.sub("", run).strip())))


def claim_terms(fragment: str) -> list[str]:
    """Return the names, numbers and dates of a fragment, each once: a name is a run of words with a capital letter.

    A number has its sign, and what is written on to it (``45th``, ``1990s``). Two names joined by "and" are one term:
    `all_stand_in` looks for the whole and for both. A word that only has a capital because it begins a sentence
    (``The``, ``He``, ``In`` …) is no name, nor is one of a script without capitals.
    """
    return list(_terms(fragment))


def _letter_as_ascii(letter: str) -> str:
    """Return A for each further capital letter, and a for each further letter."""
    return letter if letter.isascii() or not letter.isalpha() else "A" if letter.isupper() else "a"


@lru_cache(maxsize=512)  # precision and recall look at the same marks
def supports_fragment(fragment: str, passage: str, question: str = "") -> bool:
    """Return whether a passage holds what a fragment says, by a rule that needs no LM.

    It does if at least half of the names, numbers and dates of the fragment stand in it, and all of the numbers and
    dates, of those that are not in the question already; where there are none such, of all. A number may also count
    what the passage lists. Words without any are not judged, and count as supported; a mark without words before it
    supports nothing. ALCE (Gao et al., EMNLP 2023, section 4.2) has a model of entailment judge instead.

    Args:
        fragment: the words that end at a mark.
        passage: title and text.
        question: what the content answers.
    """
    terms = claim_terms(fragment)
    new = [term for term in terms if not all_stand_in(question, term)] or terms
    lacking = [term for term in new if not all_stand_in(passage, term) and not _is_count(term, passage)]
    return bool(fragment) and 2 * len(lacking) <= len(new) and not any(map(has_number, lacking))


def _is_count(term: str, text: str) -> bool:
    """Return whether a term is how many names a sentence of the text lists."""
    if not (term.isdecimal() and 1 < int(term[:3]) <= _MOST_COUNTED):
        return False
    lists = (items(sentence.rstrip(".")) for sentence in sentences(text))
    return any(len(one) == int(term) and all(item[0].isupper() for item in one[1:]) for one in lists)


def supporting_sentences(fragment: str, passage: str, title: str = "") -> list[str]:
    """Return the sentences of a passage that support a fragment, in their order; none if none holds anything of it.

    They are the one that holds most of it and, for each name, number or date that neither it nor the title holds, the
    best one that does: a mother and a father may stand in two sentences. A clause without any ("is female and")
    has its best sentence, too.

    Args:
        fragment: the words that end at a mark.
        passage: its text.
        title: of the passage.
    """
    told = sentences(passage)
    best = best_sentence(fragment, told)
    chosen = [] if best is None else [told[best]]
    for item in (item for term in claim_terms(fragment) for item in items(term)):
        holding = [one for one in told if stands_in(one, item)]
        if chosen and holding and not any(stands_in(text, item) for text in (title, *chosen)):
            chosen.append(holding[best_sentence(fragment, holding) or 0])
    for clause in _CLAUSES.split(fragment) if chosen else []:
        shown = {*by_value(" ".join([title, *chosen])).split()}
        new = {word for word in by_value(clause).split() if len(word) > SHORT} - shown
        if new and all(stands_in(title, name) for name in claim_terms(clause)):
            chosen += [one for one in told if new <= {*by_value(one).split()}][:1]
    return [one for one in told if one in chosen]


def best_sentence(fragment: str, told: Sequence[str]) -> int | None:
    """Return the place, from 0, of the sentence that holds most of what a fragment says; None if none holds any.

    Names and numbers count first, then the other words; of equals the first sentence is taken.
    """
    held = [_shared(fragment, one) for one in told]
    best = max(range(len(held)), key=held.__getitem__, default=None)
    return best if best is not None and any(held[best]) else None


def _shared(fragment: str, sentence: str) -> tuple[int, int]:
    """Return how many terms, and how many words, of a fragment a sentence holds."""
    terms = sum(all_stand_in(sentence, term) for term in claim_terms(fragment))
    return terms, len({*by_value(fragment).split()} & {*by_value(sentence).split()})


def telling_sentence(query: str, answer: str, title: str, text: str) -> str | None:
    """Return the sentence of a passage that tells the answer to a query; None if none holds the answer.

    Of those that hold the whole answer it is the one with most names, and then words, of the query. Beside them, one
    may call a person by the last name alone. If the title holds the answer, every sentence may tell it: a passage calls
    its subject "she" or "the river". A list that no one sentence holds has a sentence for each item.
    """
    told = sentences(text)
    if all_stand_in(title, answer):
        holding = sorted(told, key=lambda one: not all_stand_in(one, answer))
    else:
        holding = [one for one in told if all_stand_in(one, answer)]
        last = answer.split()[-1:] if holding else []
        holding += [one for one in told if one not in holding and set(last) & set(claim_terms(one))]
    if holding:
        return holding[best_sentence(query, holding) or 0]
    found = [[one for one in told if stands_in(one, item)] for item in items(answer)]
    if len(found) < 2 or not all(found):
        return None
    chosen = {some[best_sentence(query, some) or 0] for some in found}
    return " ".join(one for one in told if one in chosen)


def tells(fragment: str, answer: str) -> bool:
    """Return whether a fragment tells an answer: half of its words ('Kafka' is Franz Kafka), and all numbers."""
    words = by_value(answer).split()
    held = sum(stands_in(fragment, word) for word in words)
    numbers = [term for term in claim_terms(answer) if has_number(term)]
    return 2 * held >= len(words) > 0 and all(stands_in(fragment, number) for number in numbers)
