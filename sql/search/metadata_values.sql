-- What the metadata of the documents knows: every key with its values, of keys that have at most 200 different ones.
--   schema  text  kb_<name>
--   gives   key text, value text
with told as (
    select kv.key, v.value
    from :"schema".files f
    cross join lateral jsonb_each(f.metadata || f.given) as kv
    cross join lateral (
        select kv.value #>> '{}' as value where jsonb_typeof(kv.value) in ('string', 'number', 'boolean')
        union all
        select m.value from jsonb_array_elements_text(case when jsonb_typeof(kv.value) = 'array' then kv.value else '[]' end) as m (value)
    ) v
    where f.status in ('indexed', 'missing')
)
select key, value from told where value <> '' group by key, value
having (select count(distinct t.value) from told t where t.key = told.key) <= 200
order by key, value;
