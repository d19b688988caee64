"""The pages that people look at, as functions from data to HTML: no server, no files read but the templates here."""

from ..evaluation.html import STATIC as STATIC
from ..evaluation.html import as_html as as_html
from .question_page import answer_page as answer_page
from .trees import DrawnStep as DrawnStep
from .trees import Reasoning as Reasoning
from .trees import passage_marked as passage_marked
from .trees import reasoning as reasoning
