//! The log from outside: what a caller may rely on, also after kills, damage and a full disk.

mod blocks;
mod changed;
mod common;
mod disk_full;
mod fuzz;
mod holder;
mod jsonl;
mod kill;
mod round_trip;
mod segments;
