// Notes that are kept for later conversations. A tool is described with types of zod, and `run` does the work.
import { Refusal, db, definePack, newId, now, prompt, tool } from "@tollgate/sdk";
import { of } from "@tollgate/sdk/zod";
import { z } from "zod";

const Note = z.object({
  id: z.string().describe("Id of the note."),
  text: z.string().describe("Text of the note."),
  created_at: z.string().describe("Time of creation."),
});

const add = tool({
  name: "my_pack_add",
  title: "Keep a note",
  description: "Keep a note for later conversations. Fails if the maximum number of notes is reached.",
  effect: "write",
  input: of(
    z.object({
      text: z.string().min(1).max(2000).describe("Text of the note, in one or two sentences.").meta({ examples: ["The build needs protoc."] }),
    }),
  ),
  output: of(Note),
  run({ text }, { settings }) {
    const [kept] = db.one("SELECT count(id) FROM my_pack_notes") ?? [0];
    if (kept >= settings.max_notes) {
      throw new Refusal("NOTES_FULL", `the maximum of ${kept} notes is reached`, "Ask the operator to raise max_notes in [packs.my-pack.config].", {
        context: { max_notes: settings.max_notes },
      });
    }
    const note = { id: newId("note"), text, created_at: now() };
    db.execute("INSERT INTO my_pack_notes (id, text, created_at) VALUES (?1, ?2, ?3)", note.id, note.text, note.created_at);
    return note;
  },
});

const list = tool({
  name: "my_pack_list",
  title: "List notes",
  description: "List notes, newest first.",
  effect: "read",
  input: of(z.object({ limit: z.int().min(1).max(100).default(20).describe("Maximum number of notes, 1 to 100. Default 20.") })),
  output: of(z.object({ notes: z.array(Note).describe("Notes, newest first.") })),
  run({ limit }) {
    const rows = db.query("SELECT id, text, created_at FROM my_pack_notes ORDER BY created_at DESC, id DESC LIMIT ?1", limit);
    return { notes: rows.map(([id, text, created_at]) => ({ id, text, created_at })) };
  },
});

const recall = prompt({
  name: "my_pack_recall",
  title: "Recall",
  description: "Recall what is known about a topic.",
  input: of(z.object({ topic: z.string().describe("Topic to look for, for example the build.") })),
  say: ({ topic }) => `Read the notes with my_pack_list, and say what they say about ${topic}.`,
});

export const pack = definePack({
  name: "my-pack",
  summary: "Notes that are kept for later conversations.",
  instructions: "Keep facts for later conversations with my_pack_add; read them with my_pack_list.",
  settings: of(
    z.object({ max_notes: z.int().min(1).max(10_000).default(1000).describe("Maximum number of notes. Default 1000.") }).describe("Settings of the operator."),
  ),
  migrations: [
    { name: "0001_init", sql: "CREATE TABLE my_pack_notes (id TEXT PRIMARY KEY, text TEXT NOT NULL, created_at TEXT NOT NULL);" },
  ],
  tools: [add, list],
  prompts: [recall],
});
