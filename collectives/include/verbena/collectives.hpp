// Collective operations over a communicator (MPI 4.0, chapter 6): barrier, broadcast, reduce, allreduce,
// gather, scatter, allgather, alltoall.
//
// Rules for all of them. Every rank of the communicator makes the same calls in the same order, with sizes,
// roots, types and operators that agree; blocking, non-blocking and persistent calls do not match each other.
// Where ranks are seen to disagree, error{mismatch} says which rank did what.
//
// Each has three forms: `name` returns when this rank's part is done; `iname` starts it and returns a
// request; `name_init` returns a persistent_request, which starts the same call on the same buffers as often
// as wanted, without allocating anything after the first time. Several may be under way on one communicator,
// and be waited for in any order; any wait or test of the context moves them all. Buffers belong to the
// library until the call has returned or its request has ended; destroying a request that has not ended waits
// for it.
//
// Errors. invalid_argument for what can be seen at one rank, before anything is sent; mismatch; peer_failed
// naming the rank that died, peer_left for one that has gone. After these the communicator's further
// collectives fail alike. A member that lives may go on reading and writing the buffers of a call that has failed, for it
// may not know of it yet: keep them until the communicator, or the job, has ended.
//
// Buffers may lie at any address, except that those of reductions are aligned for their elements. Sizes are
// 64 bits wide; scratch stays below 64 MiB whatever the size. One thread at a time per context (thread level
// `single`).
#pragma once

#include <verbena/gather.hpp>
#include <verbena/reduce.hpp>
#include <verbena/reduction.hpp>
#include <verbena/synchronise.hpp>
