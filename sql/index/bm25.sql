-- The BM25 index of a collection (pg_textsearch) over context and text.
--   schema    text  kb_<name>
--   language  text  text search configuration
create index chunks_bm25 on :"schema".chunks using bm25 (body) with (text_config = :'language', k1 = 1.2, b = 0.75);
