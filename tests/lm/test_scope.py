"""The scope of a question goes wherever its LM goes, and no further."""

from math import inf

import dspy
import pytest
from tiny_world import QUESTIONS

from questree.lm.episode import episode
from questree.lm.failure import counting_failures
from questree.lm.limits import Limits, deadline, limited, limits, time_left
from questree.lm.parallel import run_parallel
from questree.lm.progress import listener, telling
from questree.lm.scope import scope
from questree.programs import build
from questree.simulate import Mind, SimulatedEngine, Traits, World


def on_threads_of_dspy(look):
    return dspy.Parallel(num_threads=2, disable_progress_bar=True)([(lambda: look(), dspy.Example().with_inputs())] * 2)


def in_parallel(look):
    return run_parallel([look] * 2)


@pytest.mark.parametrize("go", [on_threads_of_dspy, in_parallel])
def test_all_of_a_scope_goes_onto_other_threads(go):
    def look():
        return scope().episode, limits(), time_left(), listener(), scope().counts_failures

    follower, outside = object(), look()
    with episode() as kept, limited(Limits(window=9)), deadline(60), telling(follower), counting_failures():
        for seen, limited_to, left, told, counts in go(look):
            assert (seen, limited_to.window, 0 < left <= 60, told, counts) == (kept, 9, True, follower, True)
    assert look() == outside == (None, Limits(), inf, None, False)


def test_an_lm_is_asked_under_the_usage_tracker_of_the_user():
    seen = []

    class Watching(SimulatedEngine):
        def complete(self, request):
            seen.append(dspy.settings.usage_tracker)
            return super().complete(request)

    lm = dspy.LM("simulated/watched", engine=Watching(Mind(World(QUESTIONS), Traits())), cache=False)
    with dspy.context(lm=lm, adapter=None), dspy.track_usage() as tracker:
        spent = build("direct", {})(question=QUESTIONS[0].question).spent
    assert seen == [tracker]
    assert spent.calls == 1
    assert [one["total_tokens"] for one in tracker.usage_data["simulated/watched"]] == [
        spent.tokens_in + spent.tokens_out
    ]
