from roledrift.ingest.ledger import Ledger


def test_it_counts_and_names_the_first_place() -> None:
    ledger = Ledger()
    ledger.skip("half line", "a.jsonl:3")
    ledger.skip("half line", "b.jsonl:1", n=2)
    ledger.skip("no role", "c", step=4)
    assert ledger.counts == {"half line": 3, "no role": 1}
    assert ledger.notes()["odd: half line"] == "3 times, first at a.jsonl:3"
    assert ledger.of_step(4) == {"no role": 1}
    assert ledger.of_step(4) == {}


def test_many_kinds_of_trouble_are_summed_up() -> None:
    ledger = Ledger()
    for n in range(20):
        ledger.skip(f"trouble {n}")
    assert len(ledger.notes()) == 13
    assert ledger.notes()["odd: other"] == "8 more kinds of trouble"
