//! Generated bindings of the protocol between ccm-core and a cloud provider, and the descriptor set for reflection.
//! Nothing else lives here: the documentation of every item is that of the proto files.

/// Version 1 of the protocol: messages, clients and servers.
pub mod v1 {
    #![allow(clippy::all, clippy::pedantic, clippy::unwrap_used, unused_qualifications)]
    #![allow(missing_docs)] // tonic documents services, not the modules around them; `tests` check the comments
    tonic::include_proto!("ccm.provider.v1");
}

/// The serialized `google.protobuf.FileDescriptorSet` of all proto files, for `grpc.reflection`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ccm_provider_v1.bin"));

/// The name of the protocol version that these bindings are of, as it crosses the wire in the handshake.
pub const PROTOCOL_VERSION: &str = "v1";
