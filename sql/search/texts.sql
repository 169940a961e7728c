-- What is shown, reranked or compared of some chunks, with what is known of where it stands; the window around a sentence, where there is one.
--   schema  text      kb_<name>
--   keys    bigint[]  chunk keys
--   gives   key bigint, text text, context text, page int, title text, source_url text, document_version text, last_updated date, metadata jsonb, window_start int, window_end int, reading text
select c.key, c.text, c.context, c.page, f.title, f.source_url, f.document_version, f.last_updated, f.metadata || f.given as metadata,
       c.window_start, c.window_end, substr(f.text, c.window_start + 1, c.window_end - c.window_start) as reading
from :"schema".chunks c join :"schema".files f using (source)
where c.key = any(:'keys'::bigint[]);
