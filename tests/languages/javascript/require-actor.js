// The policy `require-actor`: denies changes without an actor.

const denial = {
  code: "ACTOR_REQUIRED",
  reason: "the call has no actor",
  remediation: "Pass your name in the argument `actor`.",
};

export const judge = {
  describe() {
    return {
      name: "require-actor-javascript",
      version: "0.1.0",
      summary: "Denies changes without an actor.",
      phase: "request",
      wants: [],
      migrations: [],
      configSchema: undefined,
    };
  },

  configure(settings) {
    const unknown = Object.keys(JSON.parse(settings || "{}"));
    if (unknown.length > 0) {
      throw unknown.map((key) => ({ key, message: "there is no such setting" }));
    }
  },

  beforeCall(request) {
    const actor = request.identity ?? JSON.parse(request.arguments).actor;
    const isNamed = typeof actor === "string" && actor.trim() !== "";
    const passes = request.effect === "read" || isNamed;
    return [passes ? { tag: "pass" } : { tag: "deny", val: denial }, []];
  },

  afterCall() {
    return [{ tag: "pass" }, []];
  },
};
