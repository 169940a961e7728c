-- The vector index of a collection: cosine, m 16, ef_construction 64.
--   schema  text  kb_<name>
create index chunks_hnsw on :"schema".chunks using hnsw (embedding halfvec_cosine_ops) with (m = 16, ef_construction = 64);
