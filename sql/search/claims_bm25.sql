-- Claims by BM25 in plain SQL (k1 1.2, b 0.75, idf = ln(1 + (N − df + 0.5)/(df + 0.5)); Robertson & Zaragoza 2009), over those of a status. No vector is read.
--   schema      text     kb_<name>
--   language    text     text search configuration
--   question    text     the question
--   statuses    text[]   what counts, as verified
--   kinds       text[]   only these kinds; null: all
--   confidence  float8   at least
--   authority   int      of the document, at least
--   limit       int      rows wanted
--   gives       claim_id, statement, subject, kind, confidence, status, authority, source, n, start, "end", quote, extractor, chunk_key, score
\if :{?limit} \else \set limit 10 \endif
with wanted as materialized (
    select lexeme, cardinality(positions) as asked from unnest(to_tsvector(:'language'::regconfig, left(:'question'::text, 200000)))
),
corpus as materialized (
    select count(*)::float8 as claims, greatest(avg(words), 1)::float8 as usual from :"schema".claims where status = any(:'statuses'::text[])
),
found as materialized (
    select c.claim_id, c.words, t.lexeme, cardinality(t.positions)::float8 as tf
    from :"schema".claims c cross join lateral unnest(c.tsv) as t
    where c.status = any(:'statuses'::text[]) and c.tsv @@ (select string_agg(quote_literal(lexeme), ' | ')::tsquery from wanted)
      and t.lexeme in (select lexeme from wanted)
),
weights as materialized (
    select lexeme, max(w.asked) * ln(1 + ((select claims from corpus) - count(*) + 0.5) / (count(*) + 0.5)) as idf
    from found join wanted w using (lexeme) group by lexeme
),
scored as materialized (
    select f.claim_id, sum(w.idf * f.tf * 2.2 / (f.tf + 1.2 * (0.25 + 0.75 * f.words / (select usual from corpus)))) as score
    from found f join weights w using (lexeme) group by f.claim_id
)
select c.claim_id, c.statement, c.subject, c.kind, c.confidence, c.status, f.authority, c.source_id, c.n, c.start, c."end", c.quote, c.extractor, c.chunk_key, s.score::float8
from scored s join :"schema".claims c using (claim_id) join :"schema".files f on f.source = c.source_id
where (:'kinds'::text[] is null or c.kind = any(:'kinds'::text[])) and c.confidence >= :'confidence'::float8::real and f.authority >= :'authority'::int
order by s.score desc, c.confidence desc, c.claim_id
limit :limit;
