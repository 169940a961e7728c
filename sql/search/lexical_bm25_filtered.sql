-- Lexical arm by BM25 over the rows that match a tsquery (modes all and websearch): the rows are found by GIN, then scored.
--   schema    text     kb_<name>
--   index     text     kb_<name>.chunks_bm25
--   question  text     the question
--   tsquery   tsquery  what must match
--   limit     int      rows wanted
\if :{?limit} \else \set limit 20 \endif
with matching as materialized (
    select key, source, n, start, "end", class_id, body
    from :"schema".chunks
    where tsv @@ :'tsquery'::tsquery
)
select c.key, c.source, c.n, c.start, c."end", c.class_id, (select f.authority from :"schema".files f where f.source = c.source) as authority,
       -(c.body <@> to_bm25query(:'question'::text, :'index'::text)) as score,
       exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key) as has_twins
from matching c
order by score desc, c.source, c.n
limit :limit;
