// A freeze: denies changes, except by listed actors. The settings are the keys of `[policies.my-policy.config]`, and `before`
// evaluates a call before it runs.
import { definePolicy, deny, pass } from "@tollgate/sdk";
import { of } from "@tollgate/sdk/zod";
import { z } from "zod";

const settings = z
  .object({
    reason: z.string().min(1).describe('Reason for the freeze, shown to callers, for example "release day".'),
    allowed: z
      .array(z.string())
      .default([])
      .describe("Actors that may make changes nevertheless: proven identities, or names that calls give as `actor`. Default none."),
  })
  .describe("Denies changes, except by listed actors.");

export const judge = definePolicy({
  name: "my-policy",
  summary: "Denies changes during a freeze, except by listed actors.",
  settings: of(settings),
  problems: ({ reason }) => (reason.trim() === "" ? [{ key: "reason", message: "must give a reason for callers" }] : []),
  before({ effect, actor }, { reason, allowed }) {
    if (effect === "read" || allowed.includes(actor ?? "")) return pass();
    return deny(
      "FROZEN",
      `changes are frozen: ${reason}`,
      "Wait until the freeze is over, or ask an actor who may make changes.",
    );
  },
});
