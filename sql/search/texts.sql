-- What is shown, reranked or compared of some chunks.
--   schema  text      kb_<name>
--   keys    bigint[]  chunk keys
select key, text, context, body from :"schema".chunks where key = any(:'keys'::bigint[]);
