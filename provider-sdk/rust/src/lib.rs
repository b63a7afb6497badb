//! SDK.
