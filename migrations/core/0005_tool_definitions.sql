-- What each tool was when it was last loaded, and when the operator last accepted it.
CREATE TABLE core_tool_definitions (
    pack TEXT NOT NULL,
    tool TEXT NOT NULL,
    hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    changed_at TEXT NOT NULL,
    -- Without a value: the tool came into a pack that was known.
    accepted TEXT,
    PRIMARY KEY (pack, tool)
);
