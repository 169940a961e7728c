"""Statistics of paired scores: what changed, how much of it may be chance, and what these questions could have shown.

exact     two runs of a share (hit@k) without clusters: McNemar, Clopper–Pearson, Tango
flips     everything else: sign-flips of whole clusters, and their inversion
families  several effects at once: Holm, and intervals that agree with it
power     before a run: the smallest effect that these questions could show
paired    the rule that chooses among them, and the result
"""
