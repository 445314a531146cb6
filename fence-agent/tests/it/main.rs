//! Runs the real agent.
