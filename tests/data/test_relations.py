import pytest

from questree.data.relations import relation_question


@pytest.mark.parametrize(
    ("relation", "question"),
    [
        ("author", "Who wrote X?"),
        ("place of birth", "Where was X born?"),
        ("sibling", "Who is a sibling of X?"),
        ("cast member", "Who starred in X?"),
        ("spouse", "Who is the spouse of X?"),
        ("record label", "What is the record label of X?"),
        ("instance of", "What is X an instance of?"),
        ("owned by", "Who owns X?"),
        ("located in the administrative territorial entity", "In which administrative region is X located?"),
        ("located on terrain feature", "Which terrain feature is X located on?"),
        ("named after", "What is X named after?"),
        ("country of citizenship", "Of which country is X a citizen?"),
    ],
)
def test_a_relation_becomes_a_question(relation: str, question: str) -> None:
    assert relation_question("X", relation) == question
