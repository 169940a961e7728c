-- Passages that share side tokens with the question (lab/codes.py): codes, section numbers, parts of compounds. Score = Σ idf of the tokens shared,
-- idf = ln(1 + (N − df + 0.5)/(df + 0.5)), tf 1, no length term. A word inside a compound (w:) is as rare as the word is, compound or not.
--   schema  text    kb_<name>
--   tokens  text[]  what the question looks for
--   keys    bigint[] only these chunks; null: all
--   chunks  bigint  N, the passages of the collection
--   limit   int     rows wanted
--   gives   key bigint, source text, n int, start int, "end" int, class_id bytea, authority int, score float8, has_twins boolean
\if :{?limit} \else \set limit 1000 \endif
with wanted as materialized (
    select t.token, h.here
    from unnest(:'tokens'::text[]) as t (token)
    cross join lateral (select count(*) as here from :"schema".chunks where codes @> array[t.token]) h
    where h.here > 0
),
weights as materialized (
    select d.token, ln(1 + (greatest(:chunks, d.df) - d.df + 0.5) / (d.df + 0.5))::float8 as idf
    from (
        select w.token, w.here + case when w.token like 'w:%' then
                   (select count(*) from (select from :"schema".chunks where tsv @@ quote_literal(substr(w.token, 3))::tsquery limit 20000) as plain)
               else 0 end as df
        from wanted w
    ) d
),
found as materialized (
    select h.key, sum(w.idf order by w.token) as score
    from weights w cross join lateral (select key, source, n from :"schema".chunks where codes @> array[w.token]) h
    where :'keys'::bigint[] is null or h.key = any(:'keys'::bigint[])
    group by h.key, h.source, h.n
    order by score desc, h.source, h.n
    limit :limit
)
select c.key, c.source, c.n, c.start, c."end", c.class_id, (select f.authority from :"schema".files f where f.source = c.source) as authority, s.score,
       exists (select from :"schema".chunks d where d.class_id = c.class_id and d.key <> c.key) as has_twins
from found s join :"schema".chunks c using (key)
order by s.score desc, c.source, c.n;
