//! The sentences that no case covers, each with the reason. A test holds that there is a case or a reason for every rule.

/// Rules, and why they have no case.
pub const UNCOVERED: &[(&[&str], &str)] = &[
    (
        &[
            "SOCK-6", "SOCK-11", "SOCK-12", "SOCK-13", "HS-1", "LEAD-1", "LEAD-5", "LIM-2", "LIM-5", "LIM-6", "LIM-7", "LIM-8",
            "LIM-9", "LIM-10", "LIM-16", "ERR-8", "ERR-9", "HS-5", "HS-6", "HS-7", "HS-8", "HS-10", "HS-17", "HS-18", "HS-19",
            "LEAD-16", "INST-31", "INST-32", "LB-24", "LB-38", "LB-50", "LB-51", "LB-60", "RT-45", "RT-54", "RT-59", "ERR-17",
        ],
        "says what the core or another client does",
    ),
    (&["SOCK-7", "SOCK-8"], "needs a second user on the machine, or root"),
    (&["HLT-4"], "the suite does not know how the subcommand of this provider is called"),
    (&["ID-2", "ERR-4", "ERR-5"], "a person has to read the text"),
    (&["ID-3", "LIM-17", "LB-6", "LB-11", "LIM-14"], "shows only in the cloud or in the provider's log"),
    (&["RT-9"], "shows only in the cloud's tags; the cases about routes of others show what follows from it"),
    (
        &["REP-4", "REP-8", "REP-9", "LEAD-13"],
        "no case yet: needs a fault that holds one mutation while the suite sees which work is begun anew",
    ),
    (&["VER-1", "VER-2", "VER-3", "VER-5"], "is about two versions of the contract, and not about one provider"),
    (&["INST-11", "INST-12", "INST-37"], "allows an answer without an id; what follows is the core's"),
    (&["INST-2", "ERR-2", "ERR-6", "ERR-18", "LB-37", "RT-44"], "needs a defect of the provider, which no hook can cause"),
    (&["INST-21", "LB-25", "LB-29", "LB-41", "LB-42", "LB-57", "RT-47", "RT-52", "LB-44"], "not every cloud can come to this"),
    (&["INST-30", "HS-4", "LB-35", "LB-56"], "lasts too short a time to be met, or is about memory"),
    (&["INST-33", "INST-34", "INST-35"], "no case: the call gives a login on every machine of a real cloud"),
    (&["INST-36"], "no case yet"),
    (&["LB-27", "RT-36"], "needs a second writer in the cloud at the same moment"),
    (
        &["ERR-12", "LB-33", "RT-37", "RT-38", "RT-39", "RT-40", "RT-41", "RT-42", "RT-43", "RT-27", "RT-55"],
        "no case yet: needs a fault that is not among the hooks",
    ),
    (&["LB-39"], "LEAD-10 says the same, and has cases"),
    (&["RT-1"], "RT-6, RT-10, RT-13 and RT-26 say what follows, and have cases"),
    (&["RT-12"], "a destination that is without a route for a moment does not show over the socket"),
    (&["RT-18", "RT-23", "RT-24"], "depends on how the cloud's routes lead to nodes"),
    (&["RT-20", "RT-21", "RT-22", "RT-25"], "no case yet: needs a hook that changes the routing table"),
    (&["RT-31"], "not every cloud takes time; the cases repeat an item that is in progress"),
];
