-- Who reads the copy of a tenant: the login of this tenant and no other.
--   schema  text  the schema of the copy
--   role    text  the tenant's login
grant usage on schema :"schema" to :"role";
grant select on :"schema".files, :"schema".chunks, :"schema".links, :"schema".postings, :"schema".word_counts to :"role";
