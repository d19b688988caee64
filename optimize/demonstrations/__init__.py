"""Demonstrations that ask no LM: written by hand, or made of annotated questions."""

from .annotated_steps import demonstrate as demonstrate
from .annotated_teacher import NAME as NAME
from .annotated_teacher import AnnotatedTeacher as AnnotatedTeacher
from .bootstrapped import each_verdict_once as each_verdict_once
from .bootstrapped import is_right as is_right
from .bootstrapped import is_sound as is_sound
from .bootstrapped import shortened as shortened
from .handwritten import handwritten as handwritten
from .lessons import annotated as annotated
from .lessons import apart_from as apart_from
from .lessons import read_lesson as read_lesson
