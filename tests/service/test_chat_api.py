"""The programs asked by a real client of OpenAI's."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import openai
import pytest
from tiny_world import RIVER

from questree.programs import build
from questree.programs.program import answered
from questree.retrieval import Passage

TOKEN = "a-token-that-is-long-enough"
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": RIVER.question}]


@pytest.fixture
def connect(serve) -> Iterator[Callable[..., openai.OpenAI]]:
    """Give a client of a service."""
    with ExitStack() as opened:
        yield lambda service, retries=0: opened.enter_context(
            openai.OpenAI(base_url=f"{serve(service, TOKEN)}/v1", api_key=TOKEN, max_retries=retries)
        )


@pytest.fixture
def client(make_service, connect, tap) -> openai.OpenAI:
    tap.let(10**6)
    return connect(make_service())


def test_each_program_is_a_model_by_its_name_which_may_have_a_slash(make_service, connect):
    service = make_service()
    service.programs["team/best"] = service.programs["searchain"]
    client = connect(service)
    assert [model.id for model in client.models.list()] == ["searchain", "tree-of-reviews", "team/best"]
    assert client.models.retrieve("team/best").id == "team/best"
    with pytest.raises(openai.NotFoundError, match="Did you mean 'searchain'"):
        client.models.retrieve("serchain")


def test_citations_are_annotations(client):
    whole = client.chat.completions.create(model="searchain", messages=ASKED, extra_body={"answer_style": "short"})
    message = whole.choices[0].message
    assert "Vltava" in message.content
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens > 0
    assert message.annotations
    for annotation in message.annotations:
        cited = annotation.url_citation
        assert message.content[cited.start_index : cited.end_index].startswith("[")
        assert "/questions/" in cited.url
        assert cited.title


def test_a_client_is_told_where_no_answer_was_found(make_service, connect):
    service = make_service()
    service.programs["silent"] = silent = build("direct", {})
    silent.reason = lambda tree, answer_style: answered(tree, "null", "", [])
    whole = connect(service).chat.completions.create(model="silent", messages=ASKED)
    assert whole.choices[0].message.content == "No answer found."


def test_a_client_is_told_each_item_and_what_came_nearest(make_service, connect):
    service = make_service()
    service.programs["lists"] = lists = build("direct", {"abstain": "unsupported"})
    ada = Passage(id="1", title="Ada Hale", text="Her friend is Jo Rey.")

    def reason(tree, style):
        tree.grow(None, query="q", source="query", found=(ada,))
        return answered(tree, "Jo Rey; Mo Tan" if style == "list" else "Mo Tan", "", [ada])

    lists.reason = reason
    client, how = connect(service), {"model": "lists", "messages": ASKED}
    said = client.chat.completions.create(**how, extra_body={"answer_style": "list"}).choices[0].message
    assert (said.answer, said.answers, said.content) == ("Jo Rey", ["Jo Rey"], "Not in a passage: Mo Tan.")
    *_, told, _ = client.chat.completions.create(**how, stream=True, extra_body={"answer_style": "list"})
    assert told.choices[0].delta.answers == ["Jo Rey"]
    whole = client.responses.create(model="lists", input=ASKED)
    assert (whole.answer, whole.answers) == ("", [])
    assert whole.output_text == "The passages found do not tell this. What came nearest: Mo Tan."


def test_responses_tell_the_same_as_chat_completions(client):
    said = client.chat.completions.create(model="searchain", messages=ASKED).choices[0].message
    assert said.answer == "Vltava"
    whole = client.responses.create(model="searchain", input=RIVER.question)
    assert (whole.status, whole.output_text, whole.answer) == ("completed", said.content, "Vltava")
    [text] = whole.output[0].content
    assert len(text.annotations) == len(said.annotations) > 0
    with client.responses.stream(model="searchain", input=ASKED) as stream:
        events = list(stream)
        assert stream.get_final_response().output_text == said.content
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [one.delta for one in events if one.type == "response.output_text.delta"]
    assert "".join(deltas) == said.content
    assert len(deltas) > 2, "the text comes as it is written"
    assert events[-1].response.usage.total_tokens > 0
    with pytest.raises(openai.BadRequestError, match="the user asks nothing"):
        client.responses.create(model="searchain", input=" ")


@pytest.mark.parametrize("model", ["searchain", "tree-of-reviews"])
def test_a_stream_tells_the_nodes_and_then_the_content(client, model):
    stream = client.chat.completions.create(
        model=model, messages=ASKED, stream=True, stream_options={"include_usage": True}
    )
    *chunks, last = list(stream)
    written = [text for chunk in chunks if (text := chunk.choices[0].delta.content)]
    assert (len(written) > 2) == (model == "searchain"), "an answer that no LM writes comes whole"
    deltas = [chunk.choices[0].delta for chunk in chunks]
    reasoning = [delta.reasoning_content for delta in deltas if getattr(delta, "reasoning_content", None)]
    assert len(reasoning) == len({*reasoning}) >= 2, "a node is told again only when its line has changed"
    assert "Vltava" in "".join(delta.content or "" for delta in deltas)
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert last.usage.total_tokens > 0


@pytest.mark.parametrize("options", [None, {"include_usage": None}])
def test_a_stream_tells_its_usage_only_if_asked_to(client, options):
    stream = client.chat.completions.create(model="searchain", messages=ASKED, stream=True, stream_options=options)
    assert all(chunk.choices and chunk.usage is None for chunk in stream)


def test_what_was_said_before_may_have_any_form(client):
    image = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    said = [
        {"role": "user", "content": [image, {"type": "text", "text": "What is this?"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "A river."},
    ]
    last = {"role": "user", "content": [{"type": "text", "text": RIVER.question}]}
    whole = client.chat.completions.create(model="searchain", messages=[*said, last], stream=None, stream_options=None)
    assert "Vltava" in whole.choices[0].message.content


FOLLOW_UP = [
    {"role": "user", "content": "Who wrote The Metamorphosis?"},
    {"role": "assistant", "content": "Franz Kafka [1]."},
    {"role": "user", "content": "Which river flows through his birthplace?"},
]


def test_a_follow_up_is_made_complete_in_itself_and_that_is_shown(make_service, connect, tap, restating):
    tap.let(10**6)
    service, whole = make_service(), RIVER.question
    shown = restating(whole)
    client = connect(service)
    chunks = list(client.chat.completions.create(model="searchain", messages=FOLLOW_UP, stream=True))
    lines = [getattr(chunk.choices[0].delta, "reasoning_content", None) for chunk in chunks]
    (id,) = {chunk.id.removeprefix("chatcmpl-") for chunk in chunks}
    page = httpx.get(client.base_url.join(f"/questions/{id}"), headers=client.auth_headers).text
    assert next(filter(None, lines)) == f"The question, from the conversation: {whole}\n"
    assert f"<h1>{whole}</h1>" in page
    assert FOLLOW_UP[-1]["content"] in page
    assert "user: Who wrote The Metamorphosis?" in shown[0]
    assert "assistant: Franz Kafka [1]." in shown[0]
    assert "Vltava" in page
    assert service.find(id).spent.calls == tap.asked  # the call that restated it is one of them
    whole_reply = client.chat.completions.create(model="searchain", messages=FOLLOW_UP).choices[0].message
    assert whole_reply.reasoning_content == f"The question, from the conversation: {whole}"
    alone = client.chat.completions.create(model="searchain", messages=[{"role": "user", "content": whole}])
    assert not hasattr(alone.choices[0].message, "reasoning_content")


def test_a_follow_up_is_refused_where_that_is_off(make_service, connect, tap):
    client = connect(make_service(follow_ups=False))
    with pytest.raises(openai.BadRequestError, match="one question at a time"):
        client.chat.completions.create(model="searchain", messages=FOLLOW_UP)
    assert tap.asked == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_question_that_fails_is_an_error_of_the_client_and_is_not_asked_again(make_service, connect, tap, stream):
    client = connect(make_service(seconds=0.05), retries=2)
    with pytest.raises(openai.APIError, match="there was no answer within"):
        list(client.chat.completions.create(model="searchain", messages=ASKED, stream=stream))
    assert tap.asked == 1


def test_what_cannot_be_asked_is_refused(client):
    with pytest.raises(openai.NotFoundError, match="no program"):
        client.chat.completions.create(model="gpt-5", messages=ASKED)
    with pytest.raises(openai.NotFoundError, match="no program"):
        client.chat.completions.create(model="", messages=ASKED)
    with pytest.raises(openai.BadRequestError, match="the user asks nothing"):
        client.chat.completions.create(model="searchain", messages=ASKED[:1])
    image = [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}]
    with pytest.raises(openai.BadRequestError, match="messages"):
        client.chat.completions.create(model="searchain", messages=[{"role": "user", "content": image}])
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").models.list()


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.embeddings.create(model="searchain", input="Who?"),
        lambda client: client.with_options(base_url=str(client.base_url).replace("/v1", "")).models.list(),
    ],
)
def test_an_address_that_there_is_none_of_says_where_to_ask(client, ask):
    with pytest.raises(openai.NotFoundError, match="/v1/chat/completions, with the models of /v1/models") as refused:
        ask(client)
    assert refused.value.code == "not_found"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"n": 2}, "body.n: Input should be 1"),
        ({"response_format": {"type": "json_object"}}, "body.response_format.type: Input should be 'text'"),
        ({"tool_choice": "required"}, "body.tool_choice"),
        ({"modalities": ["text", "audio"]}, "body.modalities.1: Input should be 'text'"),
        ({"logprobs": True}, "body.logprobs: Input should be False"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "Who?"}, {"type": "image_url"}]}]},
            "a program reads text, and no 'image_url'",
        ),
    ],
)
def test_a_reply_that_no_program_gives_is_refused(client, tap, wanted, said):
    with pytest.raises(openai.BadRequestError, match=said):
        client.chat.completions.create(**{"model": "searchain", "messages": ASKED} | wanted)
    assert tap.asked == 0


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"text": {"format": {"type": "json_schema", "name": "a", "schema": {}}}}, "body.text.format.type: .*'text'"),
        ({"tool_choice": "required"}, "body.tool_choice"),
        ({"tool_choice": {"type": "function", "name": "look"}}, "body.tool_choice"),
        ({"previous_response_id": "resp_1"}, "send the whole conversation as input"),
        ({"conversation": "conv_1"}, "send the whole conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "send the whole conversation"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}, *ASKED]}, "send the whole conversation"),
        ({"background": True}, "body.background: Input should be False"),
        ({"include": ["message.output_text.logprobs"]}, "include: no program knows log probabilities"),
        ({"input": []}, "body.input"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Who?"}, {"type": "input_image"}]}]},
            "a program reads text, and no 'input_image'",
        ),
    ],
)
def test_a_response_that_no_program_gives_is_refused(client, tap, wanted, said):
    with pytest.raises(openai.BadRequestError, match=said):
        client.responses.create(**{"model": "searchain", "input": RIVER.question} | wanted)
    assert tap.asked == 0


def test_the_input_of_a_response_may_hold_parts_and_what_an_agent_did(client):
    """As OpenAI's agents send a conversation: each text in parts, reasoning and calls between the messages."""
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}
    called = {"type": "function_call", "call_id": "1", "name": "look", "arguments": "{}"}
    found = {"type": "function_call_output", "call_id": "1", "output": "nothing"}
    question = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": RIVER.question}]}
    how = {"tools": [{"type": "function", "name": "look", "parameters": {}}], "tool_choice": "auto"}
    how |= {"text": {"format": {"type": "text"}, "verbosity": "low"}, "store": False, "previous_response_id": None}
    how |= {"include": ["reasoning.encrypted_content"]}
    whole = client.responses.create(model="searchain", input=[reasoning, question, reasoning, called, found], **how)
    assert whole.answer == "Vltava"


def test_a_client_may_offer_what_is_not_used(client):
    tool = {"type": "function", "function": {"name": "look", "parameters": {}}}
    offered = {"tools": [tool], "tool_choice": "auto", "response_format": {"type": "text"}, "n": 1, "stop": ["."]}
    whole = client.chat.completions.create(model="searchain", messages=ASKED, **offered)
    assert "Vltava" in whole.choices[0].message.content
