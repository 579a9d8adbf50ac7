// rdmarun on one host of a job that has several: connects back to the rdmarun that the user started, runs the ranks of its
// host as that one does on a host of its own (local_node.hpp), and passes everything on. It decides nothing, except when the
// connection is gone: then it ends its ranks at once.
#pragma once

namespace verbena::launcher {

/// `socket`: a connection that needs no proof, inherited; -1: the order stands on the standard input (call_back.hpp). Returns
/// the exit status.
int run_agent(int socket);

}  // namespace verbena::launcher
