from __future__ import annotations

from roledrift.records import Sample
from roledrift.report.texts.episodes import episodes


def names(*samples: Sample) -> list[list[str]]:
    return [[one.text for one in group] for group in episodes(samples).values()]


def test_the_episode_is_what_roles_with_prompts_of_their_own_share() -> None:
    generator = Sample(0, "generator", "g", prompt="question", episode="e")
    aggregator = Sample(0, "aggregator", "a", prompt="question and candidates", episode="e")
    assert names(aggregator, generator) == [["g", "a"]]


def test_episodes_that_are_numbered_within_a_prompt_stay_apart() -> None:
    samples = [
        Sample(0, role, f"{role[0]}{prompt}", prompt=prompt, episode="0")
        for prompt in ("p", "q")
        for role in ("generator", "aggregator")
    ]
    assert names(*samples) == [["gp", "ap"], ["gq", "aq"]]


def test_without_episodes_prompt_and_step_hold_together() -> None:
    a, b = (Sample(0, "generator", f"slot {slot}", slot=slot, prompt="p") for slot in range(2))
    later = Sample(1, "generator", "later", prompt="p")
    assert names(later, b, a, Sample(0, "generator", "alone")) == [["slot 0", "slot 1"], ["later"]]
