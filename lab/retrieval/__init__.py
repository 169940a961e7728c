"""One question through search: arms → fuse → authority → dedup → links → rerank → mmr → cut. The core; it ships without the harness."""
