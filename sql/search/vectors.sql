-- The stored vectors of some chunks.
--   schema  text      kb_<name>
--   keys    bigint[]  chunk keys
--   gives   key bigint, embedding halfvec
select key, embedding from :"schema".chunks where key = any(:'keys'::bigint[]) and embedding is not null;
