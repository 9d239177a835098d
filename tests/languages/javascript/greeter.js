// A pack with one tool.

const input = {
  type: "object",
  properties: { name: { type: "string", description: "Who to greet." } },
  required: ["name"],
  additionalProperties: false,
};
const output = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };

export const pack = {
  describe() {
    return {
      name: "greeter-javascript",
      version: "0.1.0",
      summary: "Greetings from JavaScript.",
      instructions: "",
      wants: [],
      migrations: [],
      prompts: [],
      configSchema: undefined,
      renderTool: undefined,
      tools: [
        {
          name: "javascript_greet",
          title: "Greet",
          description: "Greet somebody by name.",
          effect: "read",
          tier: "core",
          destructive: false,
          idempotent: true,
          openWorld: false,
          members: undefined,
          inputSchema: JSON.stringify(input),
          outputSchema: JSON.stringify(output),
          aliases: [],
        },
      ],
    };
  },

  call(context, tool, args) {
    const { name } = JSON.parse(args);
    if (name.trim() === "") {
      throw {
        code: "NAMELESS",
        message: "the name is empty",
        remediation: "Say who to greet.",
        blockers: [],
        context: "{}",
        nextCall: undefined,
        keepRows: false,
        asking: undefined,
      };
    }
    return { structured: JSON.stringify({ text: `Hello, ${name}` }), text: undefined, content: [] };
  },
};
