-- The server gives a row of the ledger its place and its hashes, so that hosts prepare their calls side by side and stand
-- in line for the end of the chain alone, from the row to the commit.

-- A row that comes without a place (0) brings the bytes that its hash covers after the place, as hex digits in `hash`. One
-- that comes with a place must fit the end.
CREATE OR REPLACE FUNCTION core_append() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    last record;
    place bytea;
    reversed bytea := '';
BEGIN
    SELECT s.place, s.hash INTO STRICT last FROM core_streams AS s WHERE s.id = 0 FOR UPDATE;
    IF NEW.seq = 0 THEN
        NEW.seq := last.place + 1;
        NEW.prev_hash := last.hash;
        place := int8send(NEW.seq);
        FOR at IN REVERSE 8..1 LOOP
            reversed := reversed || substr(place, at, 1);
        END LOOP;
        NEW.hash := encode(sha256('\x034000000000000000'::bytea || convert_to(last.hash, 'UTF8')
            || '\x010800000000000000'::bytea || reversed || decode(NEW.hash, 'hex')), 'hex');
    ELSIF NEW.seq <> last.place + 1 OR NEW.prev_hash <> last.hash THEN
        RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'TG001';
    END IF;
    UPDATE core_streams AS s SET place = NEW.seq, hash = NEW.hash WHERE s.id = 0;
    RETURN NEW;
END $$;

-- Holds an envelope and those around it until the end of the transaction, from the inside to the outside.
CREATE FUNCTION core_hold(envelope text) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    held text := envelope;
BEGIN
    FOR depth IN 1..64 LOOP
        SELECT e.parent INTO held FROM core_envelopes AS e WHERE e.id = held FOR UPDATE;
        EXIT WHEN NOT FOUND OR held IS NULL;
    END LOOP;
END $$;
