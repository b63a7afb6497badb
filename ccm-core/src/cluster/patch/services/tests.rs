//! What is sent to the API server about Services.
