-- Dense arm over some passages: those that pass a filter, compared one by one.
--   schema  text      kb_<name>
--   vector  halfvec   the question's vector
--   keys    bigint[]  chunk keys
--   limit   int       rows wanted
--   gives   key bigint, source text, n int, start int, "end" int, class_id bytea, authority int, score float8, has_twins boolean
\if :{?limit} \else \set limit 20 \endif
with nearest as materialized (
    select key, source, n, start, "end", class_id, (embedding <=> :'vector'::halfvec) + 0 as distance
    from :"schema".chunks
    where embedding is not null and key = any(:'keys'::bigint[])
    order by (embedding <=> :'vector'::halfvec) + 0, source, n
    limit :limit
)
select c.key, c.source, c.n, c.start, c."end", c.class_id, (select f.authority from :"schema".files f where f.source = c.source) as authority,
       1 - c.distance as score,
       exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key) as has_twins
from nearest c
order by c.distance, c.source, c.n;
