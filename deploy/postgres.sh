#!/bin/sh
# Creates the role and the database of the hosts in deploy/compose.yaml, as docs/postgresql.md does by hand.
# PostgreSQL's image runs this script once, as its superuser, who has no password afterwards and can log in only within
# the container.
set -eu
psql --username "$POSTGRES_USER" --dbname postgres --set ON_ERROR_STOP=1 --set "password=$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE tollgate LOGIN CREATEROLE PASSWORD :'password';
CREATE DATABASE tollgate OWNER tollgate TEMPLATE template0 ENCODING 'UTF8';
REVOKE ALL ON DATABASE tollgate FROM PUBLIC;
ALTER ROLE CURRENT_USER PASSWORD NULL;
SQL
