-- All members of the exact classes named, for those classes that have more than one.
--   schema   text     kb_<name>
--   classes  bytea[]  class ids
--   gives    key bigint, source text, n int, start int, "end" int, class_id bytea, authority int, score float8, has_twins boolean
select c.key, c.source, c.n, c.start, c."end", c.class_id, f.authority, 0::float8 as score, true as has_twins
from :"schema".chunks c join :"schema".files f using (source)
where c.class_id = any(:'classes'::bytea[])
  and exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key)
order by c.class_id, f.authority desc, c.source, c.n;
