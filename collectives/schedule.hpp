// What a collective does at one rank, as data: a list of steps over chunks of symbolic buffers. An algorithm
// is a pure function (rank, size, shape) -> schedule. The executor runs schedules (blocking, non-blocking and
// persistent alike), the checker proves them for every size, the simulator prices them. This header knows no
// engine, no pointer, no element type and no byte count. Why it looks like this:
// docs/decisions/0010-schedules.md
//
// Time. Steps start in list order, each after the steps it names in `after` have ended. Sends, receives and
// puts go on after they started ("started" steps); every other action has ended before the next step starts.
// So `after` is needed only to wait for started steps, and a list that never waits for one may reuse nothing
// that it reads or writes. Whatever is still going on at the end of the list is waited for.
//
// Space. A vector of any length is worked off in segments of equal size (the last one shorter), the whole
// list being repeated for each; the executor picks the segment so that scratch and node scratch stay bounded.
// A segment is divided into `chunks` nearly equal chunks. A step works on the data chunks [first, first +
// chunks), of which a chunk may be empty (its messages are sent nevertheless: the number of messages depends
// on size and segments only). A zero-chunk step carries no data.
//
// Messages between two members match in the order in which their steps stand in the lists.
//
// Blocks (`schedule::blocks`). Gather, scatter, allgather and alltoall move blocks of equal size, one for
// each member. There the vector that is segmented is one block; a chunk is one block's part in the segment,
// so all chunks are equally long; `at` says which block (input, output) or cell (scratch, node), and `first`
// is unused. The parts of several blocks lie apart in the caller's memory (but together in scratch and node),
// so a message of several chunks goes from and to scratch; a copy may go between any two places.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace verbena::collectives {

/// Symbolic buffers. `input` and `output` may be the same memory (in place): a schedule must be right either
/// way.
enum class place : std::uint8_t {
  none,
  input,    ///< the caller's operand; never written
  output,   ///< the caller's result
  scratch,  ///< private to the rank: schedule::scratch_chunks cells, each holding any one chunk
  node,  ///< shared scratch of one member (`member`), as large as a segment, or as many blocks' parts as the
         ///< schedule uses; all members of the node see it
};

/// A buffer and the chunk position in it where the step's range starts. In input, output and node the cell
/// `at` lies where chunk `at` of the segment lies; in scratch cells are all as large as the largest chunk.
struct piece {
  place where = place::none;
  std::int32_t member = -1;  ///< node: whose scratch. put: `to` is at the peer, whatever the place
  std::uint32_t at = 0;
  friend bool operator==(const piece&, const piece&) = default;
};

enum class action : std::uint8_t {
  send,           ///< left -> peer                                               (started)
  receive,        ///< peer -> to                                                 (started)
  put_with_flag,  ///< left -> `to` in the peer's memory, then one flag from us   (started)
  wait_flag,      ///< until the peer's next flag for us has come
  copy,           ///< left -> to
  reduce,         ///< left (op) right -> to; `to` may be exactly left or right
  publish,  ///< this member's progress on the node grows by one; what stood before is visible to those who
            ///< see it
  await,  ///< until the progress of `peer` in this repetition is at least `count`; 0: until it has published
          ///< all of the repetitions before
  arrive,          ///< this member has come to the node's gathering; the last one to come releases all
  arrive_combine,  ///< like arrive, but the last one first reduces node scratch of all members, in rank
                   ///< order, into member 0's
  wait_release,    ///< until the gathering this member arrived at last is released
};

inline constexpr std::uint32_t no_step = std::numeric_limits<std::uint32_t>::max();

struct step {
  action what = action::copy;
  std::uint8_t channel = 0;  ///< lane the message travels on; 0 today. Order holds per pair and channel
  std::uint16_t count = 0;   ///< await
  std::int32_t peer = -1;    ///< send, receive, put_with_flag, wait_flag, await
  std::uint32_t first = 0;   ///< data range
  std::uint32_t chunks = 0;
  piece left{};
  piece right{};
  piece to{};
  std::array<std::uint32_t, 3> after{no_step, no_step, no_step};  ///< earlier steps that must have ended
};

/// Node scratch rotates: repetition t (counted over the life of the communicator's node block, all schedules
/// alike) uses slot t % node_slots. A repetition on the node must make each member learn that every other one
/// has begun the one before it (most learn that it has begun this one); then five slots are enough for
/// starting one repetition ahead (the checker proves it).
inline constexpr std::uint32_t node_slots = 5;

struct schedule {
  std::vector<step> steps;
  std::uint32_t chunks = 1;          ///< per segment
  std::uint32_t scratch_chunks = 0;  ///< cells of private scratch
  /// This many leading steps may run before the rest of the previous repetition. They start nothing, and hold
  /// all `publish` steps of the repetition (progress counts them in the order they happen).
  std::uint32_t ahead = 0;
  std::uint32_t publishes = 0;  ///< `publish` steps per repetition; the same at every member
  bool rank_order = true;       ///< operands are combined in rank order; false: commutative operators only
  bool on_node = false;         ///< needs the node block
  bool blocks = false;          ///< chunks are members' blocks of equal size
};

/// What an algorithm is asked for besides rank and size.
struct shape {
  std::int32_t root = 0;  ///< of rooted collectives
};

/// The signature of every algorithm. Pure.
using algorithm = schedule (*)(int self, int size, const shape& wanted);

constexpr bool is_started(action what) noexcept {
  return what == action::send || what == action::receive || what == action::put_with_flag;
}

/// First element of chunk `index` of a segment of `elements`: nearly equal parts that begin at multiples of
/// `grain` elements (a cache line's worth), so that no line belongs to two chunks.
constexpr std::uint64_t chunk_begin(std::uint64_t elements, std::uint32_t chunks, std::uint32_t index,
                                    std::uint64_t grain) noexcept {
  if (index >= chunks) return elements;
  const std::uint64_t grains = (elements + grain - 1) / grain;
  const std::uint64_t begin = (grains / chunks * index + grains % chunks * index / chunks) * grain;
  return begin < elements ? begin : elements;
}

/// Elements of the largest chunk: what a scratch cell must hold.
constexpr std::uint64_t largest_chunk(std::uint64_t elements, std::uint32_t chunks,
                                      std::uint64_t grain) noexcept {
  const std::uint64_t grains = (elements + grain - 1) / grain;
  return (grains + chunks - 1) / chunks * grain;
}

}  // namespace verbena::collectives
