-- What there is: files, chunks and links.
--   schema  text  kb_<name>
--   gives   files bigint, chunks bigint, cites bigint, defines bigint
select (select count(*) from :"schema".files where status = 'indexed') as files, (select count(*) from :"schema".chunks) as chunks,
       (select count(*) from :"schema".links where relation = 'cites') as cites, (select count(*) from :"schema".links where relation = 'defines') as defines;
