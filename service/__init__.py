"""Programs served to people and to other programs: a queue of questions, pages, and an API."""

from typing import TYPE_CHECKING

from ..common.lazy import lazily

if TYPE_CHECKING:
    from .application import create_app as create_app
    from .kept_questions import KeptQuestions as KeptQuestions
    from .questions import Service as Service
    from .service_limits import ServiceLimits as ServiceLimits

__getattr__ = lazily(__name__)
