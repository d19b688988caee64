"""Scores of an answer against the gold answers, and the normal form in which both are compared."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from .values import same_spelling

YesNo = Literal["yes", "no"]
Label = Literal["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]

_ARTICLES = re.compile(r"[at](?:(?<=\ba)n?|(?<=\bt)he)\b")  # \b(a|an|the)\b; twice as fast, as it says where to look
# with the other ASCII characters in it as well: plain text is translated five times as fast then
_PUNCTUATION = str.maketrans({chr(code): chr(code) for code in range(128)} | dict.fromkeys(string.punctuation))
_UNSPACED = re.compile(  # Thai and Lao, Myanmar, Khmer, kana, and Han
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_NUMBERS = (  # of four digits it is a range of years
    r"(?:(?:passages?|sources?)\s+|[#^])?\d+(?:(?<!\d{4})\s*[–-]\s*\d{1,3}(?!\d))?(?:†[^\]】]{0,20})?"
)
MARKS = re.compile(rf"\s?[\[【]\s*({_NUMBERS}(?:\s*(?:[,;&]|\band\b)\s*{_NUMBERS})*)\s*[\]】]", re.IGNORECASE)
"""Reference marks as LMs write them: [1], [1, 2], [1-3], [Passage 1 and 2], 【1】, 【1†source】, [^1]."""
_CLOSED = {"yes", "no", "noanswer"}

_WORD = r"(yes|no|true|false)\b(?!-\w)"
# "no" is most often a determiner, so it counts only where it stands by itself: as the first word, before a pause, or
# after "answer is"
_YES_OR_NO = re.compile(rf"(?:^\W*|\banswer(?:\s+is|\s+would\s+be)?\W+){_WORD}|\b{_WORD}(?=\s*(?:[.,;:!?)\]\"'*\n]|$))")

_NEGATED_TRUTH = re.compile(r"(?:\bnot|\bnever|\bcannot be|n't)(?: be)? (true|false)\b")
_OPPOSITE = {"true": "false", "false": "true"}

_NOT_ENOUGH = re.compile(
    r"(?:not enough|n't enough|insufficient|lack of) (?:info(?:rmation)?|evidence)\b(?: to [^.,;:(]*)?"
    r"|neither (?:supports?|supported) nor (?:refutes?|refuted)|\bnei\b|\bunverifiable\b"
)
# says so only where no label stands beside it: "SUPPORTS: there is no evidence against it"
_NO_EVIDENCE = re.compile(
    r"\bno (?:info(?:rmation)?|evidence)\b[^.,;:(]*|\b(?:can ?not|can't) be (?:verified|determined|judged)\b[^.,;:(]*"
    r"|\b(?:info(?:rmation)?|evidence) is (?:insufficient|not sufficient|not enough)\b[^.,;:(]*"
)
_NEGATED = re.compile(
    r"(?:\bnot|\bnever|\bcannot|n't|\bnothing|\bno passages?|\bnone of [^.,;:(]{0,200})(?: be)? "
    r"(?:support|refute|contradict|true|false)\w*"
)
_HALF = re.compile(
    r"(?:(?:\bnot|\bnever|n't)(?: be)? (?:entirely|completely|fully|wholly|totally|quite|strictly|exactly|necessarily)"
    r"|\b(?:partially|partly|half|somewhat|mostly))[ -](?:true|false|support\w*|refute\w*|contradict\w*)\b"
)
_SUPPORTS = re.compile(r"\bsupport(?:s|ed)?\b|\btrue\b")
_REFUTES = re.compile(r"\brefute[sd]?\b|\bcontradict(?:s|ed)?\b|\bfalse\b")


@lru_cache(maxsize=4096)  # one text is compared with many, by many threads
def normalise(text: str) -> str:
    """Return the text in lower case, without ASCII punctuation, English articles and extra white space.

    The answer normalisation of SQuAD's evaluation script (Rajpurkar et al., EMNLP 2016), which HotpotQA,
    2WikiMultiHopQA and MuSiQue share. Beyond the script, letters with accents are composed first (Unicode NFC),
    so that the two spellings of ``é`` are one. They are not decomposed, as DPR's are: the script would take the last
    letter of ``García`` for an article.
    """
    return " ".join(_ARTICLES.sub(" ", _plain(text)).split())


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower().translate(_PUNCTUATION)


def compared(text: str) -> str:
    """Return the normal form. If that is empty, return the text's articles, or else its signs.

    So the blood group A and the band The The are answers; the public scripts make empty texts of them.
    """
    return normalise(text) or " ".join(_plain(text).split()) or text.strip()


def contains(text: str, phrase: str) -> bool:
    """Return whether the phrase stands in the text as whole words, both normalised; an empty phrase never does.

    Dashes and apostrophes of other forms count as those of a typewriter, which the public scripts delete.
    """
    return contains_words(normalise(same_spelling(text)), normalise(same_spelling(phrase)))


def contains_words(text: str, phrase: str) -> bool:
    """Return whether the words of a phrase stand side by side in a text, both with one space between words.

    Where its first or last character is of a script that parts words by no spaces, no space is asked for there.
    """
    before, after = ("" if _UNSPACED.match(end) else " " for end in (phrase[:1], phrase[-1:]))
    return bool(phrase) and f"{before}{phrase}{after}" in f" {text} "


def without_marks(text: str) -> str:
    """Return the text without its reference marks, in every form of `MARKS`."""
    return MARKS.sub("", text)


def exact_match(answer: str, golds: Sequence[str]) -> bool:
    """Return whether the answer equals a gold answer, both normalised (SQuAD's exact match).

    Articles and signs alone are compared as they are (`compared`): for SQuAD's script "A" is the same as "the".
    """
    return compared(answer) in {compared(gold) for gold in golds}


def f1(answer: str, golds: Sequence[str]) -> float:
    """Return the overlap of the answer's words with those of the nearest gold answer, between 0 and 1.

    SQuAD's F1 with the rule of HotpotQA's and 2WikiMultiHopQA's scripts: where one side is exactly ``yes``,
    ``no`` or ``noanswer`` and the other is not the same, the score is 0 ("no" shares a word with "no one").
    Articles and signs alone are compared as they are (`compared`): by the scripts no answer shares a word with "A".
    """
    return max((_f1(compared(answer), compared(gold)) for gold in golds), default=0.0)


def _f1(answer: str, gold: str) -> float:
    if answer != gold and (answer in _CLOSED or gold in _CLOSED):
        return 0.0
    words, gold_words = answer.split(), gold.split()
    shared = sum((Counter(words) & Counter(gold_words)).values())
    return 2 * shared / (len(words) + len(gold_words)) if shared else 0.0


def cover_exact_match(answer: str, golds: Sequence[str], *, whole_words: bool = True) -> bool:
    """Return whether the answer contains a gold answer, both normalised: cover-EM (Rosset et al., 2020).

    Args:
        answer: the generated answer.
        golds: the gold answers. Those that normalise to nothing ("A", "*") are left out, as SQuAD 2.0's script does;
            if no others are left, one must stand in the answer as it is written, with its capitals.
        whole_words: count only whole words, as DPR's ``has_answer`` does, so that "45" does not stand in
            "3,845 miles" nor "no" in "unknown". The papers say only "contained"; False is that plain reading
            of characters, for comparison with their figures.
    """
    text = normalise(same_spelling(answer))
    needles = [needle for gold in golds if (needle := normalise(same_spelling(gold)))]
    if not needles:
        return any(_is_written(gold.strip(), answer) for gold in golds)
    return any(contains(answer, gold) for gold in golds) if whole_words else any(needle in text for needle in needles)


def _is_written(phrase: str, text: str) -> bool:
    """Return whether the text is a phrase without a normal form, or holds it with its capitals."""
    found = compared(text) == compared(phrase) or re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text)
    return bool(phrase and found)


def pattern_in(answer: str, patterns: Sequence[str]) -> bool:
    """Return whether a regular expression is found anywhere in the answer, in any case: DPR's match for TREC.

    Raises:
        ValueError: if a pattern is no regular expression.
        EndlessPatternError: if a match takes too long.
    """
    from ..common.patterns import occurs  # only now: few questions have any

    return any(occurs(_pattern(pattern), _decomposed(answer)) for pattern in patterns)


def pattern_match(answer: str, patterns: Sequence[str]) -> bool:
    """Return whether a regular expression matches the answer from its first character: DrQA's exact match for TREC.

    It raises what `pattern_in` raises.
    """
    from ..common.patterns import match

    return any(match(_pattern(pattern), _decomposed(answer)) for pattern in patterns)


def _pattern(pattern: str) -> str:
    return f"(?im){_decomposed(pattern)}"


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def rouge_l(answer: str, golds: Sequence[str]) -> float:
    """Return ROUGE-L (Lin, 2004) as an F-measure between 0 and 1, best over the gold answers.

    Computed by rouge-score with its Porter stemmer, over the longest common subsequence of the whole texts
    (``rougeL``, not the sentence-wise ``rougeLsum``). Reference marks are left out of the answer first.
    """
    text = without_marks(answer)
    return max((float(_scorer().score(gold, text)["rougeL"].fmeasure) for gold in golds), default=0.0)


@lru_cache(maxsize=1)
def _scorer() -> Any:
    # imports nltk: two seconds that a task of short answers should not pay
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=True)


def read_yes_no(text: str) -> YesNo | None:
    """Return the yes or no (true or false) that stands in the text; None for neither, or for both.

    "Not true" is false, and "not false" is true; "not entirely true" and "partly true" are neither.
    """
    whole = _HALF.sub(" ", text.lower().replace("’", "'"))
    plain = _NEGATED_TRUTH.sub(lambda found: f" {_OPPOSITE[found[1]]}", whole)
    words = {match.group(1) or match.group(2) for match in _YES_OR_NO.finditer(plain)}
    verdicts = {"yes" if word in {"yes", "true"} else "no" for word in words}
    if len(verdicts) != 1:
        return None
    return "yes" if "yes" in verdicts else "no"


def yes_no_accuracy(answer: str, golds: Sequence[str]) -> bool:
    """Return whether the answer gives the same yes or no as a gold answer; an ambiguous answer is wrong."""
    verdict = read_yes_no(answer)
    return verdict is not None and verdict in {read_yes_no(gold) for gold in golds}


def read_label(text: str) -> Label | None:
    """Return FEVER's label in the text, in its common spellings; None for no label, several, or a negated one.

    Common are: supports, supported, true; refutes, refuted, contradicts, false; not enough info(rmation) or
    evidence, insufficient information, neither supported nor refuted, NEI, unverifiable; and, where no other label
    stands beside them, no evidence and cannot be verified.
    """
    plain = " ".join(text.lower().replace("_", " ").replace("’", "'").split())
    rest = _NOT_ENOUGH.sub(" ", plain)
    found: list[Label] = ["NOT ENOUGH INFO"] if rest != plain else []
    rest = _NO_EVIDENCE.sub(" ", _HALF.sub(" ", rest))
    rest = _NEGATED.sub(" ", rest)  # "not supported" may be either of the other two
    if _SUPPORTS.search(rest):
        found.append("SUPPORTS")
    if _REFUTES.search(rest):
        found.append("REFUTES")
    if not found and _NO_EVIDENCE.search(plain):
        return "NOT ENOUGH INFO"
    return found[0] if len(found) == 1 else None


def label_accuracy(answer: str, golds: Sequence[str]) -> bool:
    """Return whether the answer names the same label as a gold answer (FEVER: Thorne et al., NAACL 2018)."""
    label = read_label(answer)
    return label is not None and label in {read_label(gold) for gold in golds}
