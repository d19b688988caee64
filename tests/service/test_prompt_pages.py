"""Prompts at a server: of each program, and what compilation changed."""

import dspy

from questree.programs import build


def test_a_compiled_program_shows_its_prompts_before_and_after(make_service, visit):
    service = make_service()
    plain, compiled = build("direct", {}), build("direct", {})
    compiled.predictors()[0].demos = [dspy.Example(question="<b id=x>who", answer_style="short", answer="me")]
    service.programs |= {"plain": plain, "first/compiled": compiled}
    client = visit(service)
    assert "The prompts of" in client.get("/prompts").text
    assert "<ins>" not in client.get("/prompts/plain").text
    page = client.get("/prompts/first/compiled").text
    assert "1 of 1 prompts changed: 1 demonstrations in 1." in page
    assert "equal lines</summary>" in page
    assert "&lt;b id=x&gt;who" in page[page.index("1 demonstration added") :]
    assert client.get("/prompts/nobody").status_code == 404
