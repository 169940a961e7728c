-- Lexical arm by ts_rank_cd, as most published recipes have it. Every matching row is ranked, so a common word makes it slow.
--   schema   text     kb_<name>
--   tsquery  tsquery  what must match
--   limit    int      rows wanted
--   gives    key bigint, source text, n int, start int, "end" int, class_id bytea, authority int, score float8, has_twins boolean
\if :{?limit} \else \set limit 20 \endif
select c.key, c.source, c.n, c.start, c."end", c.class_id, (select f.authority from :"schema".files f where f.source = c.source) as authority,
       ts_rank_cd(c.tsv, :'tsquery'::tsquery)::float8 as score,
       exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key) as has_twins
from :"schema".chunks c
where c.tsv @@ :'tsquery'::tsquery
order by score desc, c.source, c.n
limit :limit;
