"""The one family of errors that a user is meant to read."""


class QuestreeError(Exception):
    """Something that the user can put right. The message says what is wrong, where, and what to do."""
