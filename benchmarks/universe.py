"""How the share of a chain that one search finds depends on the size of the world and the number of hops.

    python benchmarks/universe.py --out FOLDER [--people 1000 10000] [--kinds bm25 linked] [--picture universe.png]

A world like PhantomWiki's (arXiv 2502.20377) is invented: families of nine over three generations, friends, jobs,
hobbies. Each person is a passage. A question leads from a named person through so many relations of one value each, and
asks for the last one's hobby; its chain are the passages on the way. The same people, names and questions come from the
same seed. Calls and tokens are those of the simulated LM, which is a rehearsal.
"""

import random
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import dspy
import matplotlib.pyplot as plt
from frame import begin, options, took

import questree
from questree.data import Question
from questree.evaluation.run import evaluate
from questree.evaluation.tables import markdown_of
from questree.lm.limits import RunPolicy
from questree.metrics import mean_interval, metric
from questree.retrieval import Passage, Retriever, build_index, load_index
from questree.retrieval.indexes.contents import held_version
from questree.simulate import simulated_lm

HOPS, PER_HOP, FOUND, SEED = (1, 2, 3, 4), 100, 10, 51
ASKED = 10  # of each number of hops, by the simulated LM
BEGIN, MIDDLE = list("BDFGHKLMNPRSTVW"), ["an", "el", "ir", "om", "ul", "ar", "en", "is", "ov", "ut"]
ENDS = ("ley", "son", "wick", "dale", "ford", "mere", "ton", "by")
JOBS = [f"{where} {who}" for where in ("bridge", "harbour", "forest", "sound") for who in ("keeper", "engineer")]
HOBBIES = [
    f"{what} {how}" for what in ("kite", "stamp", "fern", "lamp", "button") for how in ("collecting", "painting")
]


class Person(NamedTuple):
    """Somebody of the world, with whom each relation leads to."""

    name: str
    related: dict[str, str]
    friends: tuple[str, ...]
    job: str
    hobby: str

    def passage(self) -> Passage:
        """The article on the person, as PhantomWiki's generator writes it."""
        told = [f"The {relation} of {self.name} is {other}." for relation, other in self.related.items()]
        friends = f"Friends: The friends of {self.name} are {', '.join(self.friends)}."
        rest = f"Attributes: The occupation of {self.name} is {self.job}. The hobby of {self.name} is {self.hobby}."
        return Passage(id=self.name, title=self.name, text=" ".join(["Family:", *told, friends, rest]))


def names(count: int, chance: random.Random) -> list[str]:
    """So many different names, one family of nine after the other: the mother's parents have a surname of their own."""
    parts = [first + a + b for first, a, b in product(BEGIN, MIDDLE, MIDDLE)]  # 1,500
    surnames = [f"{one}{end}" for one, end in product(parts[::20], ENDS)]  # 600, which larger worlds share among more
    called: dict[str, None] = {}
    while len(called) < count:
        family = [chance.choice(surnames)] * 9
        family[0:2] = [chance.choice(surnames)] * 2
        told = [f"{first} {surname}" for first, surname in zip(chance.sample(parts, 9), family, strict=True)]
        if not called.keys() & set(told):
            called |= dict.fromkeys(told)
    return list(called)[:count]


def world(count: int) -> list[Person]:
    """The people: two pairs of grandparents, a pair of parents, three children in each family."""
    chance = random.Random(SEED)
    called, people = names(count, chance), []
    ties: list[dict[str, str]] = [{} for _ in called]
    for first in range(0, count - 8, 9):
        for wife, husband in ((0, 1), (2, 3), (4, 5)):
            ties[first + wife]["husband"] = called[first + husband]
            ties[first + husband]["wife"] = called[first + wife]
        for child, mother in ((4, 0), (5, 2), (6, 4), (7, 4), (8, 4)):
            ties[first + child] |= {"mother": called[first + mother], "father": called[first + mother + 1]}
    for name, related in zip(called, ties, strict=True):
        friends = tuple(chance.sample(called, chance.randint(2, 6)))
        people.append(Person(name, related, friends, chance.choice(JOBS), chance.choice(HOBBIES)))
    return people


def questions(people: Sequence[Person]) -> Iterator[Question]:
    """So many questions of each number of hops, with their steps and the titles of their chain."""
    chance, by_name = random.Random(SEED + 1), {person.name: person for person in people}
    for hops in HOPS:
        made: dict[str, Question] = {}
        while len(made) < PER_HOP:
            chain, ways = [chance.choice(people)], list[str]()
            while len(chain) < hops and chain[-1].related:
                ways.append(chance.choice(list(chain[-1].related)))
                chain.append(by_name[chain[-1].related[ways[-1]]])
            if len({person.name for person in chain}) == hops:
                asked = question(chain, ways, f"{hops}-{len(made)}")
                made[asked.question] = asked
        yield from made.values()


def question(chain: Sequence[Person], ways: Sequence[str], name: str) -> Question:
    """The question for the hobby of the last person of a chain, told by the first one and the ways from there."""
    who = [chain[0].name, *(f"#{number}" for number in range(1, len(chain)))]
    steps = [(f"Who is the {way} of {one}?", after.name) for way, one, after in zip(ways, who, chain[1:], strict=False)]
    steps.append((f"What is the hobby of {who[-1]}?", chain[-1].hobby))
    told = zip(steps, chain, strict=True)
    return Question.model_validate(
        {
            "id": name,
            "task": "universe",
            "question": f"What is the hobby of {''.join(f'the {way} of ' for way in reversed(ways))}{chain[0].name}?",
            "answers": [chain[-1].hobby],
            "style": "short",
            "split": "dev",
            "hops": len(chain),
            "gold_titles": [person.name for person in chain],
            "steps": [{"question": query, "answer": to, "support_title": on.name} for (query, to), on in told],
        }
    )


def found_shares(retriever: Retriever, asked: Sequence[Question]) -> tuple[list[float], list[float]]:
    """For each question the share of its chain among the first five, and whether it is whole among the first ten."""
    shares, whole = [], []
    for one, found in zip(asked, retriever.batch([one.question for one in asked], FOUND), strict=True):
        titles = [passage.title for passage in found]
        shares.append(sum(title in titles[:5] for title in one.gold_titles) / len(one.gold_titles))
        whole.append(float(set(one.gold_titles) <= set(titles)))
    return shares, whole


def searched(retriever: Retriever, asked: Sequence[Question]) -> Iterator[tuple[str, str]]:
    """What one search finds of the chains, by hops, and how long it takes."""
    for hops in HOPS:
        of_hops = [one for one in asked if one.hops == hops]
        (shares, whole), taken = took(partial(found_shares, retriever, of_hops))
        yield f"{hops} hops: recall@5", str(mean_interval(shares))
        yield f"{hops}: whole in {FOUND}", f"{mean(whole):.2f}"
    yield "ms a query", f"{1000 * taken.processor / PER_HOP:.1f}"


def answered(retriever: Retriever, asked: Sequence[Question], program: str) -> Iterator[tuple[str, str]]:
    """What a program's answers take with the simulated LM, by hops."""
    dspy.configure(lm=simulated_lm(asked, cache=False))
    for hops in HOPS:
        examples = [one.to_example() for one in asked if one.hops == hops][:ASKED]
        made = questree.program(program, retriever=retriever)
        done = evaluate(made, examples, metric("em"), policy=RunPolicy(concurrency=4))
        tokens = (done.spent.tokens_in + done.spent.tokens_out) / len(examples)
        yield f"{hops} hops: EM", f"{done.score.mean:.2f}"
        yield f"{hops}: calls", f"{done.spent.calls / len(examples):.1f}"
        yield f"{hops}: tokens", f"{tokens:,.0f}"


def draw(rows: Sequence[dict[str, str]], file: Path) -> None:
    """Draw what one search finds against the number of people: a panel for each number of hops."""
    figure, panels = plt.subplots(1, len(HOPS), figsize=(10, 3), sharey=True, layout="constrained")
    for hops, panel in zip(HOPS, panels, strict=True):
        for kind, marker in zip(dict.fromkeys(row["index"] for row in rows), "so^D", strict=False):
            points = [(row["people"], row[f"{hops} hops: recall@5"]) for row in rows if row["index"] == kind]
            people = [int(count.replace(",", "")) for count, _ in points]
            panel.plot(people, [float(share.split()[0]) for _, share in points], marker=marker, label=kind)
        panel.set(xscale="log", ylim=(0, 1.05), title=f"{hops} hop{'s' * (hops > 1)}", xlabel="people")
    panels[0].set_ylabel("recall@5 of one search")
    panels[0].legend()
    figure.savefig(file, dpi=110)


def main() -> None:
    """Invent the worlds, make what is missing, and print the tables."""
    parser = options(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the indexes")
    parser.add_argument("--people", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--kinds", nargs="+", default=["bm25", "linked"])
    parser.add_argument("--programs", nargs="*", default=["evidence-chain", "searchain", "react"])
    parser.add_argument("--picture", type=Path, help="file of the picture, such as universe.png")
    given = begin(parser)
    found, spent = [], []
    for count in given.people:
        people = world(count)
        asked = list(questions(people))
        for kind in given.kinds:
            out = given.out / f"{count}.{kind}"
            if not held_version(out):
                build_index((person.passage() for person in people), out, kind=kind)
            retriever, place = load_index(out), {"people": f"{count:,}", "index": kind}
            found.append(place | dict(searched(retriever, asked)))
            spent += [place | {"program": one} | dict(answered(retriever, asked, one)) for one in given.programs]
    if given.picture:
        draw(found, given.picture)
    print(f"One search, {PER_HOP} questions of each number of hops:\n\n{markdown_of(found)}", flush=True)
    if spent:
        print(f"\nThe simulated LM, {ASKED} questions of each number of hops:\n\n{markdown_of(spent)}")


if __name__ == "__main__":
    main()
