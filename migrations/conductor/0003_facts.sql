-- What is written in files is kept in another form. Facts can be read anew at any time: the next
-- update of a map does so.
DELETE FROM conductor_parts WHERE kind = 'facts';
