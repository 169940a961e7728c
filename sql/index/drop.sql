-- Drops the derived indexes of a collection before they are built again.
--   schema  text  kb_<name>
drop index if exists :"schema".chunks_hnsw, :"schema".chunks_bm25, :"schema".chunks_tsv, :"schema".chunks_codes;
