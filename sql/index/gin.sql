-- The word index for ts_rank, ts_rank_cd and the query modes all and websearch.
--   schema  text  kb_<name>
create index chunks_tsv on :"schema".chunks using gin (tsv);
