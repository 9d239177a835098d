//! Policies: enforcement, memory, faults, time limits, and tests with cases and recorded calls.

mod built_in;
mod enforcement;
mod faults;
mod memory;
mod results;
mod tests_and_backtests;
mod time_limits;
