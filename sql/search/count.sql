-- How many chunks there are, and how many have no vector.
--   schema  text  kb_<name>
--   gives   chunks bigint, without_vector bigint
select count(*) as chunks, count(*) filter (where embedding is null) as without_vector from :"schema".chunks;
