//! ccm-core.
