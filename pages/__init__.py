"""The pages that people look at, as functions from data to HTML: no server, no files read but the templates here."""

from .answer_pages import answer_page as answer_page
from .html import STATIC as STATIC
from .html import as_html as as_html
from .trees import Card as Card
from .trees import Marked as Marked
from .trees import card as card
from .trees import cards as cards
from .trees import marked as marked
