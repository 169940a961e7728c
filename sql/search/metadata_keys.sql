-- The names under which the metadata of some document holds a value.
--   schema  text  kb_<name>
--   gives   key text
select distinct k.key
from :"schema".files f cross join lateral jsonb_object_keys(f.metadata || f.given) as k (key)
where f.status in ('indexed', 'missing')
order by k.key;
