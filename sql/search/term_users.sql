-- How many chunks use a term, counted no further than the cap.
--   schema    text  kb_<name>
--   language  text  text search configuration
--   term      text  the term as written
--   cap       int   where counting stops
--   gives     users bigint
select count(*) from (
    select from :"schema".chunks where tsv @@ phraseto_tsquery(:'language'::regconfig, :'term'::text) limit :cap
) as used;
