-- The registered workspace that the call was about, whether its arguments named it or not.
ALTER TABLE core_operations ADD COLUMN workspace TEXT;
