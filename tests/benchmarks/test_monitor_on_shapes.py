from benchmarks.monitor_on_shapes import gradient_shares, probe_operations


def test_role_gradients_take_one_product_per_weight() -> None:
    """The formula behind the table, against what the real probe does."""
    counted, expected = probe_operations(rank=4, tokens=24)
    assert counted == expected


def test_their_share_falls_as_rows_get_longer() -> None:
    shares = list(gradient_shares("0.6B").values())
    assert 0.02 > shares[0] > shares[1] > shares[2] > 0
