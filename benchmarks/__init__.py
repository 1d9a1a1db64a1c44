"""What watching costs: ratios measured A/B within one run, medians, on the machine at hand."""
