-- The question as a tsquery. `any` and `all` join its lexemes as data, so no operator, quote or colon in it has a meaning; `websearch` is
-- the syntax of web search engines. An empty text means that the question holds stop words only.
--   language  text  text search configuration
--   question  text  the question
--   mode      text  any, all or websearch
select case :'mode'::text
    -- Postgres holds at most 32 open negations: several minus signs in a row are a dash, and deny nothing.
    when 'websearch' then websearch_to_tsquery(:'language'::regconfig, regexp_replace(:'question'::text, '(?:-[\s()&|!]*){2,}', ' ', 'g'))::text
    else coalesce((select string_agg(quote_literal(replace(lexeme, '\', '\\')), case :'mode'::text when 'any' then ' | ' else ' & ' end order by lexeme)
                   from unnest(to_tsvector(:'language'::regconfig, left(:'question'::text, 200000)))), '')
    end as tsquery;
