-- What may change in a component's table is said in its migrations now, and the host keeps to it: the triggers
-- that kept three logs of built-in packs from changes are not needed any more. Their first steps have another
-- text, and make the same tables.

-- Which version of the reader of migrations has checked a step; 0 is none, and the step is read when its
-- component is loaded next.
ALTER TABLE core_migrations ADD COLUMN reader BIGINT NOT NULL DEFAULT 0;

UPDATE core_migrations SET hash = 'fea29bb8eda6279bebb501c19a3bb25d4464600b30bc1cb40061b4725919f78d'
WHERE pack = 'gsd' AND name = '0001_init'
  AND hash = '3e97a403e453b223cf79dd4676e189ad6454274271aa20cf622dcdb7715c5148';
DROP TRIGGER IF EXISTS gsd_events_never_updated;
DROP TRIGGER IF EXISTS gsd_events_never_deleted;
DROP TRIGGER IF EXISTS gsd_events_never_replaced;
DROP TRIGGER IF EXISTS gsd_audit_never_updated;
DROP TRIGGER IF EXISTS gsd_audit_never_deleted;
DROP TRIGGER IF EXISTS gsd_audit_never_replaced;

UPDATE core_migrations SET hash = '7dc46757fc0eee635bb2ccc1abbc6c16412960b8b6c482d15af175aadb209e4e'
WHERE pack = 'tasks' AND name = '0001_init'
  AND hash = 'e82b863b915f651914f3f83ac5a98c0297da487abf2c988988fa964e7e501e3b';
DROP TRIGGER IF EXISTS tasks_events_never_updated;
DROP TRIGGER IF EXISTS tasks_events_never_deleted;
DROP TRIGGER IF EXISTS tasks_events_never_replaced;

UPDATE core_migrations SET hash = '491141ef0d05a6137f18acebcf49a84dc0aa6978cd39f409761a376e485e7a50'
WHERE pack = 'task-store' AND name = '0001_init'
  AND hash = 'e946278c6ba8286733b25fa8eb4a11b78808df8f1c7674b2eaef0d951dada0bc';
DROP TRIGGER IF EXISTS task_store_events_never_updated;
DROP TRIGGER IF EXISTS task_store_events_never_deleted;
DROP TRIGGER IF EXISTS task_store_events_never_replaced;
