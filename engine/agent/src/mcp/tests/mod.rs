//! Servers as processes, from their start to their end.

mod calls;
mod life;
mod restart;
mod stage;
mod start;
