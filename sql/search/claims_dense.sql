-- Claims near a vector, over those of a status. Small tables are compared whole; the filters starve no list.
--   schema      text     kb_<name>
--   vector      halfvec  the question's vector
--   floor       float8   the least similarity
--   statuses    text[]   what counts, as verified
--   kinds       text[]   only these kinds; null: all
--   confidence  float8   at least
--   authority   int      of the document, at least
--   limit       int      rows wanted
--   gives       claim_id, statement, subject, kind, confidence, status, authority, source, n, start, "end", quote, extractor, chunk_key, similarity
\if :{?limit} \else \set limit 10 \endif
select c.claim_id, c.statement, c.subject, c.kind, c.confidence, c.status, f.authority, c.source_id, c.n, c.start, c."end", c.quote, c.extractor, c.chunk_key,
       (1 - (c.embedding <=> :'vector'::halfvec))::float8 as similarity
from :"schema".claims c join :"schema".files f on f.source = c.source_id
where c.embedding is not null and 1 - (c.embedding <=> :'vector'::halfvec) >= :'floor'::float8 and c.status = any(:'statuses'::text[])
  and (:'kinds'::text[] is null or c.kind = any(:'kinds'::text[])) and c.confidence >= :'confidence'::float8::real and f.authority >= :'authority'::int
order by c.embedding <=> :'vector'::halfvec, c.claim_id
limit :limit;
