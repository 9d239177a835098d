import type { z } from "zod";
import type { Schema } from "./index.js";

/** The schema of a type of zod: `of(z.object({ … }))`. */
export function of<T extends z.ZodType>(type: T): Schema<z.output<T>>;
