"""A tiny Qwen3 that vLLM's CPU kernels can serve, and what they need from the environment."""

import os

# Before anything imports vllm, which reads them once.
os.environ.update(
    {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TORCHDYNAMO_DISABLE": "1",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
)
