"""Papers, issues and measurements that several findings rest on, each written one way.

A source says where a threshold or a remedy comes from: an arXiv number, an issue
(``owner/repository#number``), or a page of this project's documentation (``docs/page.md``), which
holds a measurement of our own or a derivation. What matters about it follows after a colon.
"""

from __future__ import annotations

BENCHMARK = "measured on recorded runs: docs/detection_benchmark.md"
PUBLIC_LOGS = "read against the curves of public runs: docs/public_logs.md"
WORKFLOWS = "When Does Multi-Agent RL Improve LLM Workflows? (2026), arXiv 2605.24202"

ANDRYCHOWICZ = "Andrychowicz et al. (2020), What Matters In On-Policy RL?, arXiv 2006.05990"
CUI = "Cui et al. (2025), The Entropy Mechanism of RL for Reasoning LMs, arXiv 2505.22617"
DAPO = "Yu et al. (2025), DAPO, arXiv 2503.14476"
DR_GRPO = "Liu et al. (2025), Understanding R1-Zero-Like Training (Dr. GRPO), arXiv 2503.20783"
DR_MAS = "Feng et al. (2026), Dr. MAS, arXiv 2602.08847: advantages per agent"
E_DETECTORS = "Shin, Ramdas and Rinaldo (2022), E-detectors, arXiv 2203.03532"
GAO = "Gao et al. (2022), Scaling Laws for Reward Model Overoptimization, arXiv 2210.10760"
GRPO = "Shao et al. (2024), DeepSeekMath, arXiv 2402.03300: advantages within groups"
KIRK = "Kirk et al. (2023), Effects of RLHF on Generalisation and Diversity, arXiv 2310.06452"
LAZY_AGENTS = "Zhang et al. (2025), From Lazy Agents to Deliberation, arXiv 2511.02303"
PPO = "Schulman et al. (2017), Proximal Policy Optimization, arXiv 1707.06347"
RAGEN = "Wang et al. (2025), RAGEN, arXiv 2504.20073: the echo trap"
SINGHAL = "Singhal et al. (2023), A Long Way to Go, arXiv 2310.03716: length in RLHF"
SKALSE = "Skalse et al. (2022), Defining and Characterizing Reward Hacking, arXiv 2209.13085"
SPURIOUS = "Shao et al. (2025), Spurious Rewards, arXiv 2506.10947: what noisy rewards do"
TRPO = "Schulman et al. (2015), Trust Region Policy Optimization, arXiv 1502.05477"
