-- Dense arm through the HNSW index. The operator stands alone in the inner ORDER BY, with the vector as a parameter: anything else and
-- the planner leaves the index. Ties are broken outside, by (distance, source, n).
--   schema  text     kb_<name>
--   vector  halfvec  the question's vector
--   limit   int      rows wanted
\if :{?limit} \else \set limit 20 \endif
with nearest as materialized (
    select key, source, n, start, "end", class_id, embedding <=> :'vector'::halfvec as distance
    from :"schema".chunks
    where embedding is not null
    order by embedding <=> :'vector'::halfvec
    limit :limit
)
select c.key, c.source, c.n, c.start, c."end", c.class_id, (select f.authority from :"schema".files f where f.source = c.source) as authority,
       1 - c.distance as score,
       exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key) as has_twins
from nearest c
order by c.distance, c.source, c.n;
