-- BM25 scores (pg_textsearch) of some passages, 0.1 ms each: what the index search did not bring, or what a filter leaves.
--   schema    text      kb_<name>
--   index     text      kb_<name>.chunks_bm25
--   question  text      the question
--   keys      bigint[]  chunk keys
--   tsquery   tsquery   what must match
--   gives     key bigint, source text, n int, start int, "end" int, class_id bytea, authority int, score float8, has_twins boolean
with matching as materialized (
    select key, source, n, start, "end", class_id, body
    from :"schema".chunks
    where key = any(:'keys'::bigint[]) and tsv @@ :'tsquery'::tsquery
)
select c.key, c.source, c.n, c.start, c."end", c.class_id, (select f.authority from :"schema".files f where f.source = c.source) as authority,
       -(c.body <@> to_bm25query(:'question'::text, :'index'::text)) as score,
       exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key) as has_twins
from matching c
order by score desc, c.source, c.n;
