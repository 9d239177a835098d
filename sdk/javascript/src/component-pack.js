// Gives a component of a pack its host.
import * as storage from "tollgate:host/storage@0.1.0";
import * as clock from "tollgate:host/clock-and-ids@0.1.0";
import * as logs from "tollgate:host/log@0.1.0";
import { host } from "./host.js";
import { common } from "./wit-host.js";

host.current = common(storage, clock, logs);
