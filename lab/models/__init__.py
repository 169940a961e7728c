"""Whatever holds weights or calls a model server. The only package that imports torch, sentence-transformers and httpx."""
