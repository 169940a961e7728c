-- The passages whose document meets every condition (lab/filters.py).
--   schema  text    kb_<name>
--   paths   text[]  jsonpath predicates on what is known of a document
--   gives   key bigint
with known as materialized (
    select f.source, f.metadata || f.given || jsonb_build_object('source', f.source, 'format', f.format, 'title', f.title, 'version', f.document_version,
           'updated', f.last_updated, 'url', f.source_url, 'authority', f.authority) as document
    from :"schema".files f
    where f.status in ('indexed', 'missing')
)
select c.key
from known k join :"schema".chunks c using (source)
where not exists (select from unnest(:'paths'::text[]) as p (path) where not coalesce(jsonb_path_match(k.document, p.path::jsonpath), false))
order by c.key;
