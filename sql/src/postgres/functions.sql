-- What SQLite's functions do, where PostgreSQL has none that does the same.
CREATE SCHEMA IF NOT EXISTS tollgate;
GRANT USAGE ON SCHEMA tollgate TO PUBLIC;

-- No value is longer than SQLite lets one be.
CREATE OR REPLACE FUNCTION tollgate.fits(bytes bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog AS $$
BEGIN
  IF bytes > 1000000 THEN
    RAISE EXCEPTION 'string or blob too big' USING ERRCODE = '54000';
  END IF;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION tollgate.cat(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN tollgate.fits(octet_length($1)::bigint + octet_length($2)) THEN $1 || $2 END;

-- How long it gets is known before it is made. Nothing is looked for without a pattern, not even by NULL.
CREATE OR REPLACE FUNCTION tollgate.replace(text, text, text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN $2 = '' THEN $1
  WHEN $1 IS NULL OR $2 IS NULL OR $3 IS NULL THEN NULL
  WHEN strpos($1, $2) = 0 THEN $1
  WHEN tollgate.fits(octet_length($1) + (octet_length($3)::bigint - octet_length($2))
    * ((octet_length($1) - octet_length(pg_catalog.replace($1, $2, ''))) / octet_length($2)))
  THEN pg_catalog.replace($1, $2, $3)
END;

CREATE OR REPLACE FUNCTION tollgate.string_agg_step(text, text, text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN $2 IS NULL THEN $1
  WHEN $1 IS NULL THEN $2
  ELSE tollgate.cat($1, coalesce($3, '') || $2)
END;
CREATE OR REPLACE AGGREGATE tollgate.string_agg(text, text) (sfunc = tollgate.string_agg_step, stype = text);

-- The part of a value of `len` letters that begins at place `y` and has `z` letters: before it if `z` is negative.
CREATE OR REPLACE FUNCTION tollgate.part(len bigint, y bigint, z bigint, OUT first integer, OUT count integer)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog AS $$
DECLARE
  back boolean := z < 0;
  start bigint := greatest(least(y, 4000000), -4000000);
  letters bigint := least(abs(greatest(z, -4000000)), 4000000);
BEGIN
  IF start < 0 THEN
    start := start + len;
    IF start < 0 THEN
      letters := greatest(letters + start, 0);
      start := 0;
    END IF;
  ELSIF start > 0 THEN
    start := start - 1;
  ELSIF letters > 0 THEN
    letters := letters - 1;
  END IF;
  IF back THEN
    start := start - letters;
    IF start < 0 THEN
      letters := letters + start;
      start := 0;
    END IF;
  END IF;
  first := start + 1;
  count := greatest(letters, 0);
END $$;

CREATE OR REPLACE FUNCTION tollgate.substr(text, bigint, bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN $2 >= 1 AND $3 >= 0
  THEN pg_catalog.substr($1, least($2, 4000000)::integer, least($3, 4000000)::integer)
  ELSE (SELECT pg_catalog.substr($1, p.first, p.count) FROM tollgate.part(char_length($1), $2, $3) p)
END;
CREATE OR REPLACE FUNCTION tollgate.substr(text, bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN tollgate.substr($1, $2, 4000000);
-- An empty blob has no part at all, for SQLite.
CREATE OR REPLACE FUNCTION tollgate.substr(bytea, bigint, bigint) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN octet_length($1) > 0 THEN
  (SELECT pg_catalog.substr($1, p.first, p.count) FROM tollgate.part(octet_length($1), $2, $3) p)
END;
CREATE OR REPLACE FUNCTION tollgate.substr(bytea, bigint) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN tollgate.substr($1, $2, 4000000);

CREATE OR REPLACE FUNCTION tollgate.instr(text, text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN strpos($1, $2)::bigint;
CREATE OR REPLACE FUNCTION tollgate.instr(bytea, bytea) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN position($2 IN $1)::bigint;

-- Half goes away from zero. Above 2^52 there are no fractions.
CREATE OR REPLACE FUNCTION tollgate.round(double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN abs($1) > 4503599627370496 THEN $1
  WHEN $1 < 0 THEN trunc($1 - 0.5)
  ELSE trunc($1 + 0.5)
END;

-- What is before the point, and the last number there is beyond it.
CREATE OR REPLACE FUNCTION tollgate.whole(double precision) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN $1 >= 9223372036854775807 THEN 9223372036854775807
  WHEN $1 <= -9223372036854775808 THEN (-9223372036854775808)::bigint
  ELSE trunc($1)::bigint
END;
-- The number that a text begins with. More than 20 digits are beyond the last number, and numbers of PostgreSQL's have an end, too.
CREATE OR REPLACE FUNCTION tollgate.whole(text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN greatest(least((
  substring($1 FROM '^[ \t\n\v\f\r]*([+-]?)')
  || '0' || coalesce(substring($1 FROM '^[ \t\n\v\f\r]*[+-]?0*([0-9]{1,20})'), '')
  )::numeric, 9223372036854775807), -9223372036854775808)::bigint;

-- The greatest and the least of some values; NULL if one is.
CREATE OR REPLACE FUNCTION tollgate.most(VARIADIC bigint[]) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT CASE WHEN count(v) = count(*) THEN max(v) END FROM unnest($1) v);
CREATE OR REPLACE FUNCTION tollgate.most(VARIADIC double precision[]) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT CASE WHEN count(v) = count(*) THEN max(v) END FROM unnest($1) v);
CREATE OR REPLACE FUNCTION tollgate.most(VARIADIC text[]) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT CASE WHEN count(v) = count(*) THEN max(v COLLATE "C") END FROM unnest($1) v);
CREATE OR REPLACE FUNCTION tollgate.most(VARIADIC bytea[]) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT v FROM unnest($1) v ORDER BY v DESC NULLS FIRST LIMIT 1);
CREATE OR REPLACE FUNCTION tollgate.least(VARIADIC bigint[]) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT CASE WHEN count(v) = count(*) THEN min(v) END FROM unnest($1) v);
CREATE OR REPLACE FUNCTION tollgate.least(VARIADIC double precision[]) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT CASE WHEN count(v) = count(*) THEN min(v) END FROM unnest($1) v);
CREATE OR REPLACE FUNCTION tollgate.least(VARIADIC text[]) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT CASE WHEN count(v) = count(*) THEN min(v COLLATE "C") END FROM unnest($1) v);
CREATE OR REPLACE FUNCTION tollgate.least(VARIADIC bytea[]) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT v FROM unnest($1) v ORDER BY v NULLS FIRST LIMIT 1);

-- Rows of an append-only table stay as they are, whoever asks.
CREATE OR REPLACE FUNCTION tollgate.append_only() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'the table % is append-only', TG_TABLE_NAME USING ERRCODE = '23000';
END $$;
