"""The LMs of these tests."""

from lms import answering as answering
from lms import scripted as scripted
