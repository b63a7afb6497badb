//! The driver, stage by stage, between the scripted API server and a scripted table, in virtual time.
mod conditions;
mod life;
mod simulation;
mod stale;
mod trouble;
mod world;
