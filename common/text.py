"""Other people's text made harmless, in prompts (where it could write fields) and on screens; amounts of money."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from html import escape
from itertools import pairwise
from operator import is_
from typing import Any

import regex
from pydantic import BaseModel

from .sentences import without_item_mark

_TWINS = str.maketrans(
    {"⟦": "[[", "⟧": "]]", "〚": "[[", "〛": "]]"}
    | dict.fromkeys("［﹇【〔〖〘❲⟬⁅⦋⦍⦏", "[")
    | dict.fromkeys("］﹈】〕〗〙❳⟭⁆⦌⦎⦐", "]")
    | dict.fromkeys("＃﹟", "#")
)
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff"
_INVISIBLE += "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNSPACED = (  # letters of the scripts in which no spaces part words, or (Hangul) parts of a sentence
    r"[〇[[\p{L}\p{M}]&&[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]]"
)
_RUN = regex.compile(_UNSPACED, regex.V1)
_WORD = regex.compile(rf"[a-zA-Z0-9_[[\p{{L}}\p{{N}}\p{{M}}]--{_UNSPACED}]]+|(?:{_UNSPACED}\p{{M}}*)+", regex.V1)
"""Accents and vowel signs (M) belong to words."""
_ACCENTS = regex.compile(r"(?<=[\p{Latin}\p{Greek}])[\u0300-\u036f]+")
_STROKES = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})
_ASCII_WORD = re.compile("[a-z0-9_]+")
_CHARACTER = regex.compile(r"\X")  # with its signs
_UNSEEN = re.compile(f"[{_CONTROLS}{_BIDI}{_INVISIBLE}]")
_UNDRAWN = re.compile(f"[{_CONTROLS}{_BIDI}\r\u2028\u2029]")
_GAP = r"((?:[^\w\[\]<＜﹤|｜￨>＞﹥]|[ﾞﾟ])*)"  # no letter: the two of Japanese are marks in another form
_PAIRS = re.compile(  # the class before the lookbehinds says where to look: it is ten times as fast
    r"[\[\]<＜﹤|｜￨]"
    rf"(?:(?<=\[){_GAP}(?=\[)|(?<=\]){_GAP}(?=\])|(?<=[<＜﹤]){_GAP}(?=[|｜￨])|(?<=[|｜￨]){_GAP}(?=[>＞﹥]))"
)
_HASHES = re.compile(r"[#♯⌗⋕]((?:[^\w\s#♯⌗⋕]|[\rﾞﾟ])*)(?=[#♯⌗⋕])")
_TEMPLATE = re.compile(  # what opens a token that divides turns, by its shape: each family of models has its names
    r"<(?!/?(?:search|answer|information)>)(?=/?[^\W\d][\w:.-]{0,63}>)"  # <s>; those three are a program's
    r"|\[(?=/?[a-z]?[A-Z][A-Z_]{2,31}\d{0,4}\])"  # [INST], [gMASK]
    r"|\[(?=\|[^\s|\[\]]{1,64}\|\])"  # [|user|]
    r"|◁(?=/?\w{1,64}▷)"  # ◁/think▷
    r"|[\[\]](?=~[^\s\[\]]{0,15}[\[\]]|[^\s\[\]~]{1,15}~[\[\]])"  # ]~b], [e~[
)

_TEXTS = r"(?:(?:given|provided|retrieved) )?(?:passages?|paragraphs?|texts?|articles?|notes|context)"
_REMARK = (  # why there is no answer, such as "Unknown. No passage tells."; but no guess, and no "Unknown (2011 film)"
    r"(?: (?:in|by|from) (?:the|these|this|any)\b[^.;:,]{0,80})?"
    r"(?:(?:[.;:,]\s|\s[-–—]\s|[–—]|\s\((?!\d))"
    r"(?!\s*but\b)(?!.*\b(?:perhaps|maybe|may be|might|probabl[ey]|possibl[ey]|likely|guess)\b).*)?"
)
_NO_ANSWER = re.compile(
    r"(?=(\W*))\1"  # all of it at once: else a long run of signs is gone through again and again
    r"(?:empty(?: string)?|leave empty|blank|nil|undefined|uncertain|unclear|not sure"
    r"|(?:.{0,300}\bthe answer is:? )?"
    r"(?:null|none|n/a|n\.a|(?-i:NA|na)|(?:it is )?unknown"
    r"|unsolved(?: query)?|unanswer(?:ed|able)|undetermined|unspecified"
    r"|(?:it is |answer )?not (?:known|certain|available|applicable|stated|specified|given|mentioned|found|provided"
    rf"|answerable|in (?:the|these|any of the) {_TEXTS})"
    r"|no(?: such| relevant)? (?:answer|information|passage|idea)(?: (?:is |was )?(?:found|given|available|provided))?"
    r"|(?:cannot|could not) be (?:determined|answered|known|found)|can't say"
    r"|(?:unable to|cannot) (?:determine|answer|tell|say|find)(?: (?:it|that|this|the answer))?"
    r"|(?:(?:i'm |i am )?sorry,? (?:but )?)?(?:i am not sure|i'm not sure|i (?:do not|don't|cannot|can't) "
    r"(?:know|tell|say|answer|determine|(?:help|assist) with)(?: (?:it|that|this|the (?:answer|question)))?)"
    r"|(?:none|nothing|no (?:more |other |further )?(?:facts?|information|search(?:es)?|quer(?:y|ies)"
    r"|(?:follow[- ]?up )?questions?|follow[- ]?ups?))(?: (?:is|are))? (?:missing|needed|required|necessary)"
    rf"|(?:(?:the|this|these) {_TEXTS} (?:do(?:es)? not|don't|doesn't)|(?:no|none of the) {_TEXTS})"
    rf" (?:say|tell|mention|state|specify|give|provide|contain|help)s?\b[^.;:,]{{0,120}}){_REMARK}"
    r"|(?:this|the) (?:question|query) (?:(?:is not|is too|does not|cannot)\b.{0,200}|(?:is|does|can't)\b.{0,80}))?\W*",
    re.IGNORECASE | re.DOTALL,
)

_QUOTED = re.compile(  # as a whole: "Heroes" or "Low" keeps its marks
    r"\"([^\"]+)\"|“([^“”]+)”|«([^«»]+)»|「([^「」]+)」|`+([^`]+)`+|\*\*([^*]+)\*\*|'((?:[^']|\b'\b)+)'|‘((?:[^‘’]|\b’\b)+)’"
)


@lru_cache(maxsize=512)  # demonstrations, questions and passages enter one prompt after the other
def neutralise(text: str) -> str:
    """Return the text without anything that could end or begin a section of a prompt, in any spelling.

    Otherwise the author of a passage could write an output field: the adapter takes the first field marker
    (``[[ ## name ## ]]``) that it sees in a reply, and a model may copy its input. Look-alikes become the characters
    that they look like, invisible characters are removed, double brackets are parted and runs of ``#`` cut to one.
    The tokens by which chat templates divide turns (``<|im_end|>``, ``</s>``, ``[INST]``) are parted too, by a space
    after their first character: servers take them for their own inside a text. They are known by their shape, which a
    tag of HTML without attributes has as well. So are the marks between which DSPy looks for an image or a file to
    send: its address would be the author's choice. Idempotent; linear in the length of the text.
    """
    plain = text.isascii() and text.isprintable()  # then there is nothing unseen in it
    seen = text if plain else _UNSEEN.sub("", without_surrogates(text)).translate(_TWINS)
    parted = _PAIRS.sub(_parted, seen)
    single = _HASHES.sub(lambda found: "" if _is_unseen(found[1]) else found[0], parted)
    return _TEMPLATE.sub(r"\g<0> ", single)


def _parted(pair: re.Match[str]) -> str:
    """Return the first of two brackets with what stands between them; a space, if a copyist may leave that out."""
    return f"{pair[0][0]} " if _is_unseen(pair[pair.lastindex or 0]) else pair[0]


def _is_unseen(text: str) -> bool:
    """Return whether a copyist may leave all of the text out: spaces, combining marks, and what has no shape."""
    plain = unicodedata.normalize("NFKC", text)
    return all(c.isspace() or not c.isprintable() or unicodedata.category(c).startswith("M") for c in plain)


def changed_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return the value with every text in it changed, in lists, tuples, dicts (keys too) and pydantic models.

    A model or tuple in which nothing changes is itself returned: to copy one takes longer than to look through it.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [changed_texts(item, change) for item in value]
    if isinstance(value, tuple):
        parts = tuple(changed_texts(item, change) for item in value)
        return value if all(map(is_, parts, value)) else parts
    if isinstance(value, dict):
        return {changed_texts(key, change): changed_texts(item, change) for key, item in value.items()}
    if isinstance(value, BaseModel):
        changes = {name: new for name, item in value if (new := changed_texts(item, change)) is not item}
        return value.model_copy(update=changes) if changes else value
    return value


def printable(text: str) -> str:
    """Return the text for a screen or a page: it moves no cursor, sets no colour and turns no writing around.

    Line breaks and tabs stay.
    """
    return _UNDRAWN.sub("", without_surrogates(text))


def printable_json(text: str) -> str:
    """Return JSON for a screen: what `printable` removes is escaped here, so nothing is lost."""
    return _UNDRAWN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def in_page(text: str) -> str:
    """Return the text for an HTML page, or for an attribute's quotes: it opens no element and turns no writing."""
    return escape(printable(text))


def without_surrogates(text: Any) -> Any:
    """Return text that UTF-8 can hold: each half of a surrogate pair becomes ``?``."""
    return text if not isinstance(text, str) or text.isascii() else _SURROGATES.sub("?", text)


def words_in(text: str) -> list[str]:
    """Return the words of a text, so that those which look alike are the same, in any case and spelling of Unicode.

    Where no spaces part words, every two characters side by side are one, as for Lucene's CJKAnalyzer.
    """
    if text.isascii():  # most are: it is three times as fast
        return _ASCII_WORD.findall(text.lower())
    words = (unicodedata.normalize("NFKC", word).casefold() for word in _WORD.findall(text))
    return [part for word in words for part in parts_of(word)]


def parts_of(word: str) -> list[str]:
    """Return what counts as a word: each pair of neighbours in a run of characters without spaces, else the word."""
    if word.isascii() or not _RUN.match(word):
        return [word]
    characters = _CHARACTER.findall(word)
    return [one + other for one, other in pairwise(characters)] or characters


def without_accents(word: str) -> str:
    """Return a word of `words_in` in the letters that a keyboard has: ``cafe`` for ``café``, ``soren`` for ``søren``.

    Only Latin and Greek letters lose their accents: elsewhere a mark may be a vowel, or make another letter.
    """
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word.translate(_STROKES))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", parts))


def dollars(amount: float) -> str:
    """Return an amount to show; a dash for nothing: then no price is known, or nothing was paid for."""
    return f"${amount:,.2f}" if amount >= 0.1 else f"${amount:.2g}" if amount > 0 else "–"


def text_or_none(text: str | None) -> str | None:
    """Return the text without outer space; None if it says nothing, or says that there is no answer.

    An LM that has no answer writes null as a word, or says in other words that it does not know.
    """
    return None if text is None or _NO_ANSWER.fullmatch(text.replace("’", "'")) else text.strip()


def query_or_none(text: str | None) -> str | None:
    """Return what an LM wrote to be searched for, `unquoted`; None where `text_or_none` says that it is nothing."""
    said = text_or_none(text)
    return said and unquoted(said)


def unquoted(text: str) -> str:
    """Return a text without quotation marks, backticks or asterisks around the whole of it."""
    quoted = _QUOTED.fullmatch(text.strip())
    return (quoted[quoted.lastindex or 0].strip() if quoted else "") or text


def stated(texts: Iterable[str]) -> list[str]:
    """Return the texts that say something, each without outer space."""
    return [text for text in map(text_or_none, texts) if text]


def queries_in(texts: Iterable[str]) -> list[str]:
    """Return the queries among texts of an LM, each as `query_or_none` leaves it, and without a list's own numbers."""
    listed = list(texts)
    bare = [without_item_mark(text) for text in listed]
    numbered = len(listed) > 1 and all(text != other for text, other in zip(listed, bare, strict=True))
    return [query for query in map(query_or_none, bare if numbered else listed) if query]
