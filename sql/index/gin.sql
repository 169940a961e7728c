-- The word index for ts_rank, ts_rank_cd and the query modes all and websearch, and that of the side tokens.
--   schema  text  kb_<name>
create index chunks_codes on :"schema".chunks using gin (codes);
create index chunks_tsv on :"schema".chunks using gin (tsv);
