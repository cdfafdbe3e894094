use super::rig::*;
