"""The bundled task, for the tests of this room."""

from mini_task import _index as _index
from mini_task import _task as _task
from mini_task import bootstrapped as bootstrapped
from mini_task import mini as mini
