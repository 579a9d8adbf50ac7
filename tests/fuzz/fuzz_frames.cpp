// Any bytes on the connection between rdmarun and an agent: they are cut into frames or the stream is called broken, and each
// message is read or refused. What is read is written again to the same bytes.
#include "launcher/hosts/call_back.hpp"
#include "launcher/hosts/messages.hpp"

#include "base/check.hpp"

#include <cstdint>
#include <string_view>

using namespace verbena;
using namespace verbena::launcher;

namespace {

template <class Message>
void read(std::string_view payload) {
  Message message;
  if (!read_fields(payload, message)) return;
  Message again;
  const std::string bytes = write_fields(message);
  base::check(read_fields(bytes, again) && write_fields(again) == bytes, "what was read can be written and read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  static_cast<void>(read_order(bytes));
  frame_cutter cutter;
  frame_kind kind{};
  std::string payload;
  for (std::size_t at = 0; at < size; at += 61) {
    cutter.add(bytes.substr(at, 61));
    while (cutter.next(kind, payload)) {
      switch (kind) {
        case frame_kind::hello: read<hello_message>(payload); break;
        case frame_kind::ready: read<ready_message>(payload); break;
        case frame_kind::output: read<output_message>(payload); break;
        case frame_kind::report: read<report_message>(payload); break;
        case frame_kind::event: read<event_message>(payload); break;
        case frame_kind::gone: read<gone_message>(payload); break;
        case frame_kind::input: read<input_message>(payload); break;
        case frame_kind::input_taken: read<input_taken_message>(payload); break;
        case frame_kind::credit: read<credit_message>(payload); break;
        case frame_kind::plan: read<plan_message>(payload); break;
        case frame_kind::announce: read<announce_message>(payload); break;
        case frame_kind::fence: read<fence_message>(payload); break;
        case frame_kind::modex_done: read<modex_done_message>(payload); break;
        default: read<modex_wanted_message>(payload); break;
      }
    }
  }
  return 0;
}
