"""A question on its way: followed by many, stopped by any, ended when nobody follows it any more, and kept."""

import asyncio
import threading
from datetime import datetime, timezone

import pytest
from run_files import rows
from tiny_world import RIVER

from questree.common.errors import QuestreeError
from questree.evaluation.run_file import WritableFile
from questree.lm.spent import Spent
from questree.pages.asked_question import AskedQuestion
from questree.programs import ReasoningTree
from questree.retrieval import Passage
from questree.service.kept_questions import KeptQuestions
from questree.service.pending_question import Ended, PendingQuestion
from questree.service.questions import Service


async def asked(tap, number: int) -> None:
    await asyncio.to_thread(tap.wait_for, number)


async def test_followers_hear_the_same_however_late_they_come(make_service, tap):
    question = make_service().ask(RIVER.question, client="a")
    early = asyncio.create_task(heard(question))
    tap.let(2)
    await asked(tap, 3)
    late = asyncio.create_task(heard(question))
    tap.let(99)
    first, second = await early, await late
    assert first == second == await heard(question)
    *_, (_, ended) = first
    assert isinstance(ended, Ended)
    assert ended.asked.answer == "Vltava"
    assert [number for number, _ in first] == list(range(len(first)))
    assert [told async for told in question.follow()] == [first]  # what is there is told together


async def heard(question: PendingQuestion, after: int = 0) -> list[object]:
    return [one async for told in question.follow(after) for one in told]


@pytest.mark.parametrize("program", ["searchain", "tree-of-reviews"])
async def test_stop_means_that_no_call_follows(make_service, tap, program):
    service: Service = make_service()
    question = service.ask(RIVER.question, client="a", program=program)
    tap.let(1)
    await asked(tap, 2)
    await question.stopped()
    tap.let(99)
    assert tap.asked == 2
    kept = service.find(question.asked.id)
    assert isinstance(kept, AskedQuestion)
    assert (kept.state, kept.failure) == ("stopped", None)
    assert kept.tree.nodes == question.asked.tree.nodes


async def test_when_the_last_follower_leaves_the_question_ends(make_service, tap):
    question = make_service().ask(RIVER.question, client="a")
    followers = [asyncio.create_task(heard(question)) for _ in range(2)]
    await asked(tap, 1)
    followers[0].cancel()
    await asyncio.sleep(0)
    assert not question.asked.finished
    followers[1].cancel()
    await asyncio.wait([question.task])
    assert question.asked.state == "stopped"
    assert tap.asked == 1


async def test_a_question_that_is_stopped_before_it_begins_has_ended(make_service, tap):
    service = make_service(per_client=1)
    question = service.ask(RIVER.question, client="a")
    await question.stopped()
    await asyncio.sleep(0)
    assert question.asked.state == "stopped"
    assert [type(event) for _, event in await heard(question)] == [Ended]
    service.ask(RIVER.question, client="a")
    assert tap.asked == 0


async def test_a_page_s_question_waits_for_its_follower_to_come_back(make_service, tap):
    loop, later, stops = asyncio.get_running_loop(), [], []
    question = make_service().ask(RIVER.question, client="a", patience=15)
    await asked(tap, 1)
    loop.call_later = lambda seconds, call, *given: later.append((seconds, call))  # type: ignore[method-assign]
    question.stop = lambda: stops.append("stop")  # type: ignore[method-assign]
    with question.following():
        pass
    ((seconds, too_soon),) = later
    with question.following():
        too_soon()
    too_soon()
    assert (seconds, stops) == (15, [])
    later[-1][1]()
    assert stops == ["stop"]
    question.task.cancel()


async def test_those_who_wait_are_told_their_place_and_fail_if_no_turn_comes(make_service, tap):
    service = make_service(max_running=1)
    first, second = (service.ask(RIVER.question, client="a") for _ in range(2))
    third = service.ask(RIVER.question, client="a", seconds=0.01)
    *_, (_, ended) = await heard(third)
    assert ended.asked.failure.cause == "deadline"
    await asked(tap, 1)
    assert [event.place for event in second.events] == [1]
    tap.let(99)
    await heard(first)
    assert (await heard(second))[-1][1].asked.state == "answered"


async def test_a_question_gets_no_more_time_than_is_asked_for(make_service, tap):
    question = make_service(seconds=0.05).ask(RIVER.question, client="a", seconds=100)
    *_, (_, ended) = await heard(question)
    assert ended.asked.state == "failed"
    assert ended.asked.failure.cause in ("deadline", "timeout")


async def test_a_question_that_is_cut_off_counts_the_request_that_it_waited_for(make_service, tap):
    question = make_service().ask(RIVER.question, client="a")
    tap.let(1)
    await asked(tap, 2)
    await question.stopped()
    spent = question.asked.spent
    assert (spent.calls, spent.failed, tap.asked) == (1, 1, 2)


async def test_a_fault_in_a_program_is_said(make_service):
    service = make_service()
    service.programs["searchain"].forward = None
    *_, (_, ended) = await heard(service.ask(RIVER.question, client="a"))
    assert ended.asked.failure.cause == "error"


async def test_a_server_that_ends_keeps_what_was_on_its_way(make_service, tap):
    service = make_service()
    question = service.ask(RIVER.question, client="a")
    await asked(tap, 1)
    await service.close()
    assert make_service().find(question.asked.id).state == "stopped"


async def test_a_server_that_ends_waits_for_a_question_that_is_being_written(make_service, tap, monkeypatch):
    tap.let(10**6)
    service, loop = make_service(), asyncio.get_running_loop()
    begun, may_end, keep = asyncio.Event(), threading.Event(), service.kept.keep

    def keep_slowly(question: AskedQuestion, steps: object) -> None:
        loop.call_soon_threadsafe(begun.set)
        may_end.wait(30)
        keep(question, steps)

    monkeypatch.setattr(service.kept, "keep", keep_slowly)
    question = service.ask(RIVER.question, client="a")
    await begun.wait()
    closing = asyncio.create_task(service.close())
    loop.call_later(0, may_end.set)
    await closing
    assert isinstance(service.find(question.asked.id), AskedQuestion)


def full(*given: object, **how: object) -> None:
    raise QuestreeError("Cannot write: No space left on device.")


def test_an_answer_that_cannot_be_written_is_shown_and_its_page_says_so(client, monkeypatch, caplog):
    monkeypatch.setattr(WritableFile, "write", full)
    said = "This page could not be kept: it is lost when the server ends."
    page = client.post("/questions", data={"question": RIVER.question})
    live = client.get(f"{page.url.path}/events").text
    assert "Vltava" in live
    assert said in live
    assert said in client.get(page.url.path).text
    reply = client.post("/ask", json={"question": RIVER.question}).json()
    assert (reply["answer"], reply["kept"]) == ("Vltava", False)
    assert client.get(f"/questions/{reply['id']}.json").json() == reply
    assert "No space left on device" in caplog.text
    monkeypatch.undo()
    reply = client.post("/ask", json={"question": RIVER.question}).json()
    assert reply["kept"]
    assert said not in client.get(f"/questions/{reply['id']}").text


def asked_before(number: int) -> AskedQuestion:
    fields = {"program": "searchain", "answer_style": "short", "asked_at": datetime(2026, 11, 1, tzinfo=timezone.utc)}
    return AskedQuestion(id=f"{number:016}", tree=ReasoningTree(question="?"), state="answered", **fields)


def test_a_kept_question_is_read_as_it_was(tmp_path):
    kept, passage = KeptQuestions(tmp_path), Passage(id="p", title="Vltava", text="Prague lies on it.", score=2.5)
    said = {"answer": "Vltava", "rests_on": "passages", "final_content": "It is the Vltava [1].", "seconds": 1.5}
    asked = asked_before(1).model_copy(
        update={**said, "references": (passage,), "spent": Spent(calls=2), "said": "which?", "about": {"LM": "x"}}
        | {"trace": "experiments/1/traces/tr-1", "helpful": False, "note": "no", "simulated": True, "not_known": "it"}
    )
    kept.keep(asked, [])
    assert kept.find(asked.id) == asked


def test_an_id_that_is_none_is_not_found(tmp_path):
    kept = KeptQuestions(tmp_path)
    assert [kept.find(id) for id in ("../secret", "x" * 16, "", "a' OR 1=1 --")] == [None] * 4


def test_the_oldest_questions_make_room(tmp_path):
    kept = KeptQuestions(tmp_path, most=20)
    for number in range(45):
        kept.keep(asked_before(number))
        assert rows(tmp_path, "SELECT count(*) FROM questions")[0][0] <= 22
    again = KeptQuestions(tmp_path, most=2)
    assert [number for number in range(45) if again.find(f"{number:016}")] == [43, 44]


def test_two_servers_keep_their_questions_in_one_folder(tmp_path):
    first, second = KeptQuestions(tmp_path), KeptQuestions(tmp_path)
    first.keep(asked_before(1))
    second.keep(asked_before(2))
    for kept in (first, second):
        assert [kept.find(f"{number:016}") == asked_before(number) for number in (1, 2)] == [True, True]


def test_a_folder_that_cannot_be_written_is_refused_before_a_question_is_asked(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(QuestreeError, match=f"cannot be kept in {tmp_path}/file: .*--questions"):
        KeptQuestions(tmp_path / "file")
