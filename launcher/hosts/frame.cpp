#include "launcher/hosts/frame.hpp"

namespace verbena::launcher {

bool frame_cutter::next(frame_kind& kind, std::string& payload) {
  if (at_ > 0 && (at_ == held_.size() || at_ >= (1U << 16))) {
    held_.erase(0, at_);
    at_ = 0;
  }
  const std::string_view rest = std::string_view(held_).substr(at_);
  if (broken_ || rest.size() < frame_head_bytes) return false;
  std::uint32_t length = 0;
  field_reader{rest.substr(0, 4)}(length);
  if (length > largest_frame) {
    broken_ = true;
    return false;
  }
  if (rest.size() - frame_head_bytes < length) return false;
  kind = static_cast<frame_kind>(rest[4]);
  payload.assign(rest.substr(frame_head_bytes, length));
  at_ += frame_head_bytes + length;
  return true;
}

std::string frame_head(frame_kind kind, std::size_t payload_bytes) {
  field_writer writer;
  writer(static_cast<std::uint32_t>(payload_bytes), kind);
  return writer.take();
}

}  // namespace verbena::launcher
