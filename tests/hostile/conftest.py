"""The LMs of these tests."""

from lms import scripted as scripted
