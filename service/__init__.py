"""Programs served to people and to other programs: a queue of questions, pages, and an API."""

from .application import create_app as create_app
from .kept_questions import KeptQuestions as KeptQuestions
from .questions import Service as Service
from .questions import ServiceLimits as ServiceLimits
