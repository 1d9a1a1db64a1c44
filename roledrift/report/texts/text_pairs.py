"""The five ways in which a report puts two texts side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from roledrift.measure.shape import boxed, boxes, hedging
from roledrift.measure.wording import jaccard
from roledrift.records import Sample
from roledrift.report.judged_run import JudgedRun, ReportedFinding
from roledrift.report.numbers import number, percent
from roledrift.report.texts.diffing import containment, trigrams_of, word_diff
from roledrift.report.texts.episodes import Episode, episodes, order
from roledrift.report.texts.excerpts import excerpt, of_role
from roledrift.report.texts.role_classifier import RoleClassifier
from roledrift.report.texts.text_blocks import Diff, Pairing

LIMIT = 12
"""Pairs per pairing: sixty word-level comparisons are what a report affords."""

PAIR_LIMIT = 4_000
"""Characters of a text that are compared: about seven hundred words."""

TITLES: Mapping[int, str] = {
    1: "before the onset | after it",
    2: "sibling slots",
    3: "selecting role | candidate it took",
    4: "imposter | first text of that role",
    5: "run A | run B",
}
_REFERENCES = 100


def compare(
    anchor: str,
    pair: tuple[Sample, Sample],
    runs: tuple[str, str],
    *,
    when: tuple[str, str] = ("", ""),
    remark: str = "",
) -> Diff:
    """Compare two stored texts word by word.

    Args:
        anchor: Begins the key.
        pair: What stands left and right.
        runs: Links to the runs that the two come from.
        when: Why each is shown.
        remark: How far the two are comparable.
    """
    left, right = pair
    a, b = (excerpt(text, PAIR_LIMIT, when=why) for text, why in zip(pair, when, strict=True))
    a_grams, b_grams = trigrams_of(a.text), trigrams_of(b.text)
    rows = [
        ("tokens", str(left.tokens or "–"), str(right.tokens or "–")),
        ("finish", left.finish, right.finish),
        ("reward", a.reward.text, b.reward.text),
        ("hedging", _yes(hedging(a.text)), _yes(hedging(b.text))),
        ("boxed", _yes(boxed(a.text)), _yes(boxed(b.text))),
        (
            "3-grams also on the other side",
            percent(containment(a_grams, b_grams)),
            percent(containment(b_grams, a_grams)),
        ),
    ]
    return Diff(
        f"{anchor}-{a.key}-{b.key}",
        replace(a, text="", run=runs[0]),
        replace(b, text="", run=runs[1]),
        word_diff(a.text, b.text),
        tuple(rows),
        remark,
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _own(run: JudgedRun) -> tuple[str, str]:
    return (f"#{run.key}", f"#{run.key}")


def pairs_around_onset(
    run: JudgedRun, finding: ReportedFinding, anchor: str, limit: int = 3
) -> tuple[Diff, ...]:
    """Compare the texts of :func:`samples_around_onset` word by word."""
    return tuple(
        compare(
            anchor,
            (a, b),
            _own(run),
            when=("before onset", "after onset"),
            remark=remark,
        )
        for a, b, remark in samples_around_onset(run, finding, limit)
    )


def pairs_of_alert(run: JudgedRun, finding: ReportedFinding, anchor: str) -> tuple[Diff, ...]:
    """Compare the texts stored with the live alert, for runs that kept no other texts."""
    alert = finding.alert
    live = next((live for live in run.live_alerts if live.id == alert.id and live.pairs), alert)
    return tuple(
        compare(
            f"{anchor}-{index}",
            (
                Sample(pair.before_step, alert.role, pair.before, prompt=pair.prompt),
                Sample(pair.after_step, alert.role, pair.after, prompt=pair.prompt),
            ),
            # The browser does not hold them, so nothing leads there.
            ("", ""),
            when=("before onset", "after onset"),
            remark="Same prompt." if pair.prompt else "Different prompts.",
        )
        for index, pair in enumerate(live.pairs)
    )


def samples_around_onset(
    run: JudgedRun, finding: ReportedFinding, limit: int = 3
) -> list[tuple[Sample, Sample, str]]:
    """Pair texts of the alerted role from before and after the onset.

    Both answer the same prompt where one was kept on both sides.

    The text before is the last before the onset; the text after is the first at or after the alert
    (the finding is established there), else the last after the onset. The third is a remark on how
    far the two are comparable.
    """
    texts = of_role(run, finding.alert.role)
    before = [sample for sample in texts if sample.step < finding.alert.onset]
    after = [sample for sample in texts if sample.step >= finding.alert.onset]
    pairs: list[tuple[Sample, Sample, str]] = []
    common = {sample.prompt for sample in before} & {sample.prompt for sample in after} - {""}
    for prompt in sorted(common)[:limit]:
        later = [sample for sample in after if sample.prompt == prompt]
        late = [sample for sample in later if sample.step >= finding.raised]
        b = late[0] if late else later[-1]
        earlier = [sample for sample in before if sample.prompt == prompt]
        a = ([sample for sample in earlier if sample.slot == b.slot] or earlier)[-1]
        pairs.append((a, b, "Same prompt."))
    used = {id(sample) for pair in pairs for sample in pair[:2]}
    rest_before = [sample for sample in before if id(sample) not in used][::-1]
    rest_after = [sample for sample in after if id(sample) not in used]
    late = [sample for sample in rest_after if sample.step >= finding.raised] or rest_after[::-1]
    other = "Different prompts: these were not seen on both sides of the onset."
    pairs += [(a, b, other) for a, b in zip(rest_before, late, strict=False)][: limit - len(pairs)]
    return pairs


def pairings_of_run(run: JudgedRun, classifier: RoleClassifier | None) -> tuple[Pairing, ...]:
    """Make the pairings of one run; the fifth compares two, see :func:`pairing_of_runs`."""
    onset = run.findings[0].alert.onset if run.findings else None
    groups = episodes(run.samples)
    return (
        _before_after(run),
        _siblings(run, groups, onset),
        _chosen(run, groups, onset),
        _imposters(run, classifier),
    )


def _before_after(run: JudgedRun) -> Pairing:
    if not run.findings:
        return Pairing(1, TITLES[1], absent="No alert, so there is no onset to compare across.")
    each = max(3, LIMIT // len(run.findings))
    diffs: dict[str, Diff] = {}
    for finding in run.findings:
        if len(diffs) >= LIMIT:
            break
        for diff in pairs_around_onset(run, finding, f"{run.key}-diff-1", each):
            diffs.setdefault(diff.key, diff)
    absent = "" if diffs else "No texts of an alerted role from both sides of its onset were kept."
    return Pairing(1, TITLES[1], tuple(diffs.values())[:LIMIT], absent)


def _spread(names: Sequence[Episode], onset: int | None) -> list[Episode]:
    """A third each from the start, around the onset (else the middle) and the end."""
    if len(names) <= LIMIT:
        return list(names)
    each = LIMIT // 3
    if onset is None:
        middle = len(names) // 2
    else:
        middle = next((i for i, name in enumerate(names) if name[0] >= onset), len(names) - each)
    middle = min(max(middle, each), len(names) - 2 * each)
    return [*names[:each], *names[middle : middle + each], *names[-each:]]


def _siblings(run: JudgedRun, groups: Mapping[Episode, list[Sample]], onset: int | None) -> Pairing:
    siblings = _two_slots(groups)
    if not siblings:
        # Some hosts sample every slot in an episode of its own.
        prompts: dict[Episode, list[Sample]] = defaultdict(list)
        for sample in sorted(run.samples, key=order):
            if sample.prompt:
                prompts[sample.step, sample.prompt, ""].append(sample)
        siblings = _two_slots(prompts)
    diffs = [
        compare(
            f"{run.key}-diff-2",
            siblings[name],
            _own(run),
            remark=f"3-gram overlap {number(_overlap(*siblings[name]))}.",
        )
        for name in _spread(list(siblings), onset)
    ]
    absent = "" if diffs else "No prompt with texts of two slots of one role was kept."
    return Pairing(2, TITLES[2], tuple(diffs), absent)


def _two_slots(groups: Mapping[Episode, list[Sample]]) -> dict[Episode, tuple[Sample, Sample]]:
    """From each group, what the first two slots of a role wrote in the same turn."""
    siblings: dict[Episode, tuple[Sample, Sample]] = {}
    for name, members in groups.items():
        slots: dict[tuple[str, int], dict[int, Sample]] = {}
        for sample in members:
            slots.setdefault((sample.role, sample.turn), {}).setdefault(sample.slot, sample)
        for by_slot in slots.values():
            if len(by_slot) > 1 and name not in siblings:
                a, b = sorted(by_slot)[:2]
                siblings[name] = (by_slot[a], by_slot[b])
    return siblings


def _overlap(a: Sample, b: Sample) -> float:
    return jaccard(trigrams_of(a.text[:4000]), trigrams_of(b.text[:4000]))


def _chosen(run: JudgedRun, groups: Mapping[Episode, list[Sample]], onset: int | None) -> Pairing:
    roles = run.header.workflow.roles
    takers = {role.name: role.duty for role in roles if role.duty in ("select", "synthesize")}
    sources = {role.name for role in roles if role.duty == "solve"}
    chosen: dict[Episode, tuple[Sample, list[Sample]]] = {}
    for name, members in groups.items():
        takes = [sample for sample in members if sample.role in takers]
        if not takes:
            continue
        taker = max(takes, key=lambda sample: sample.turn)
        candidates = [
            sample for sample in members if sample.role in sources and sample.turn <= taker.turn
        ]
        if candidates:
            # A candidate that was revised stands there once, as the taker saw it.
            last = sorted(candidates, key=lambda sample: sample.turn)
            latest = {(sample.role, sample.slot): sample for sample in last}
            chosen[name] = (taker, [latest[place] for place in sorted(latest)])
    diffs = []
    own = _own(run)
    for name in _spread(list(chosen), onset):
        taker, candidates = chosen[name]
        selects = takers[taker.role] == "select"
        candidate, how = _took(taker, candidates, selects=selects)
        share = containment(trigrams_of(taker.text[:4000]), trigrams_of(candidate.text[:4000]))
        remark = f"{how}; {percent(share)} of the {taker.role}'s 3-grams are the candidate's."
        when = ("selecting role" if selects else "synthesizing role", "candidate")
        diffs.append(
            compare(f"{run.key}-diff-3", (taker, candidate), own, when=when, remark=remark)
        )
    absent = "No role selects or synthesizes in this workflow." if not takers else ""
    if takers and not diffs:
        absent = "No episode with texts of both a selecting role and its candidates was kept."
    return Pairing(3, TITLES[3], tuple(diffs), absent)


def _took(taker: Sample, candidates: Sequence[Sample], *, selects: bool) -> tuple[Sample, str]:
    """The candidate that was taken.

    Of a role that selects, the one that its stamp names; else one with the same boxed answer; of
    several, and without either, the one that was copied most.
    """
    inside = _last_box(taker)
    if selects and inside.isdecimal():
        named = [sample for sample in candidates if sample.slot == int(inside) - 1]
        if named:
            return named[0], f"Its stamp names candidate {inside}"
    same = [sample for sample in candidates if inside and _last_box(sample) == inside]
    own = trigrams_of(taker.text[:4000])
    among = same or candidates
    shares = [containment(own, trigrams_of(sample.text[:4000])) for sample in among]
    best = max(range(len(among)), key=lambda index: (shares[index], -index))
    why = (
        "The candidate with the same answer" if same else "The candidate with most words in common"
    )
    if len(same) > 1:
        why = "Of the candidates with the same answer, the one with most words in common"
    return among[best], why


def _last_box(sample: Sample) -> str:
    """What the last box of a text holds; a long text ends in its answer."""
    inside = boxes(sample.text[-4000:])
    return "".join(inside[-1].split()) if inside else ""


def _imposters(run: JudgedRun, classifier: RoleClassifier | None) -> Pairing:
    if classifier is None:
        text = "Needs at least three first texts of two roles."
        return Pairing(4, TITLES[4], absent=text)
    scored: list[tuple[float, Sample, str]] = []
    for sample in run.samples:
        if sample.step > classifier.until:
            near, away = classifier.nearest(sample.text[:4000], sample.role)
            if near and near != sample.role and away > 0:
                scored.append((away, sample, near))
    if not scored:
        text = "No later text reads more like the first texts of another role than of its own."
        return Pairing(4, TITLES[4], absent=text)
    scored.sort(key=lambda item: (-item[0], order(item[1]), item[1].role))
    first: dict[str, list[tuple[Sample, frozenset[tuple[str, ...]]]]] = {}
    for role in classifier.roles:
        samples = [sample for sample in of_role(run, role) if sample.step <= classifier.until][
            :_REFERENCES
        ]
        first[role] = [(sample, trigrams_of(sample.text[:4000])) for sample in samples]
    diffs = []
    runs = _own(run)
    for away, sample, near in scored[:LIMIT]:
        own = trigrams_of(sample.text[:4000])
        nearest = max(first[near], key=lambda pair: jaccard(own, pair[1]))[0]
        remark = f"Reads like {near} by {number(away)} nats per word more than like {sample.role}."
        when = (f"{sample.role} now", f"{near} at the start")
        diffs.append(
            compare(f"{run.key}-diff-4", (sample, nearest), runs, when=when, remark=remark)
        )
    return Pairing(4, TITLES[4], tuple(diffs))


def pairing_of_runs(a: JudgedRun, b: JudgedRun, links: tuple[str, str]) -> Pairing:
    """Pair texts of two runs with the same prompt, role, slot and step, latest steps first.

    Args:
        a: One run.
        b: Another.
        links: Where each of them is.
    """
    if not (a.samples and b.samples):
        return Pairing(5, TITLES[5], absent="Both runs need kept texts.")

    def placed(run: JudgedRun) -> dict[tuple[int, str, str, int, int], Sample]:
        named = [sample for sample in sorted(run.samples, key=order) if sample.prompt]
        return {
            (sample.step, sample.role, sample.prompt, sample.slot, sample.turn): sample
            for sample in named
        }

    left, right = placed(a), placed(b)
    common = sorted(left.keys() & right.keys(), key=lambda name: (-name[0], name[1:]))
    if not common:
        text = "No prompt was kept for the same role and step in both runs."
        return Pairing(5, TITLES[5], absent=text)
    picked = common[:: max(1, len(common) // LIMIT)][:LIMIT]
    diffs = [
        compare(
            "overview-diff-5",
            (left[name], right[name]),
            links,
            when=(a.name, b.name),
            remark="Same prompt.",
        )
        for name in picked
    ]
    return Pairing(5, TITLES[5], tuple(diffs))
