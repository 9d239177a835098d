// Gives a component of a policy its host.
import * as storage from "tollgate:host/storage@0.1.0";
import * as clock from "tollgate:host/clock-and-ids@0.1.0";
import * as logs from "tollgate:host/log@0.1.0";
import * as memory from "tollgate:host/memory@0.1.0";
import * as judged from "tollgate:host/judged-call@0.1.0";
import { host } from "./host.js";
import { common, ofPolicy } from "./wit-host.js";

host.current = { ...common(storage, clock, logs), ...ofPolicy(memory, judged) };
