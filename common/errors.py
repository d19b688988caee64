"""The one family of errors that a user is meant to read."""


class QuestreeError(Exception):
    """Something that the user can put right. The message says what is wrong, where, and what to do."""


class CorpusError(QuestreeError):
    """A corpus file that cannot be read, or a line of one: the message names the file and the line."""


class CheckpointError(QuestreeError):
    """A model checkpoint that is absent, incomplete, or of a kind that cannot be loaded safely."""


class IndexRefused(QuestreeError):
    """An index folder that must not be searched: incomplete, foreign, stale or damaged."""


class QueryError(QuestreeError):
    """A search that makes no sense: an empty query, or fewer than one passage asked for."""
