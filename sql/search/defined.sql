-- The passages that define one of the terms, nearest the front of the collection first.
--   schema  text    kb_<name>
--   terms   text[]  normalised terms
--   gives   term text, label text, key bigint, source text, n int, start int, "end" int, class_id bytea, authority int, score float8, has_twins boolean
select l.term, l.label, c.key, c.source, c.n, c.start, c."end", c.class_id, f.authority, 0::float8 as score, exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key) as has_twins
from :"schema".links l
join :"schema".chunks c on c.key = l.to_id
join :"schema".files f using (source)
where l.relation = 'defines' and l.term = any(:'terms'::text[])
order by l.term, f.authority desc, c.source, c.n, l.start;
