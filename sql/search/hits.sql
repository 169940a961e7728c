-- Some passages as rows of an arm, without a score.
--   schema  text      kb_<name>
--   keys    bigint[]  chunk keys
--   gives   key bigint, source text, n int, start int, "end" int, class_id bytea, authority int, score float8, has_twins boolean
select c.key, c.source, c.n, c.start, c."end", c.class_id, (select f.authority from :"schema".files f where f.source = c.source) as authority, 0::float8 as score,
       exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key) as has_twins
from :"schema".chunks c
where c.key = any(:'keys'::bigint[]);
