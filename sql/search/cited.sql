-- The passages cited by some chunks, in the order in which they are cited, with the number of chunks that cite each.
--   schema   text      kb_<name>
--   parents  bigint[]  keys of the citing chunks
--   gives    parent bigint, key bigint, source text, n int, start int, "end" int, class_id bytea, authority int, score float8, has_twins boolean, citing bigint
select l.from_id as parent, c.key, c.source, c.n, c.start, c."end", c.class_id, f.authority, 0::float8 as score, exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key) as has_twins,
       (select count(distinct o.from_id) from :"schema".links o where o.relation = 'cites' and o.to_id = l.to_id) as citing
from :"schema".links l
join :"schema".chunks c on c.key = l.to_id
join :"schema".files f using (source)
where l.relation = 'cites' and l.from_id = any(:'parents'::bigint[]) and l.to_id <> l.from_id
order by array_position(:'parents'::bigint[], l.from_id), l.start, c.source, c.n;
