#include "launcher/line_merger.hpp"

#include <cstring>

namespace verbena::launcher {

std::size_t line_merger::add_stream(std::string prefix) {
  streams_.push_back({std::move(prefix), {}});
  return streams_.size() - 1;
}

void line_merger::begin_line(std::size_t stream, std::string& out) {
  if (open_ == stream) return;  // its line goes on where it stopped
  if (open_ != nobody) out += '\n';
  open_ = stream;
  out += streams_[stream].prefix;
}

void line_merger::emit_lines(std::size_t stream, std::string_view lines, std::string& out) {
  begin_line(stream, out);
  const std::string& prefix = streams_[stream].prefix;
  if (prefix.empty()) {
    out += lines;
  } else {
    while (true) {
      const std::size_t end = lines.find('\n') + 1;
      out += lines.substr(0, end);
      lines.remove_prefix(end);
      if (lines.empty()) break;
      out += prefix;
    }
  }
  open_ = nobody;
}

void line_merger::hold(partial& s, std::string_view bytes) {
  if (bytes.empty()) return;
  if (s.held.empty()) ++holding_;
  s.held += bytes;
}

void line_merger::feed(std::size_t stream, std::string_view bytes, std::string& out) {
  auto& s = streams_[stream];
  const std::size_t newline = bytes.rfind('\n');
  if (newline != std::string_view::npos) {
    if (s.held.empty()) {
      emit_lines(stream, bytes.substr(0, newline + 1), out);
    } else {
      // The held piece has no newline, so the first line is held + up to the first newline.
      begin_line(stream, out);
      out += s.held;
      s.held.clear();
      --holding_;
      emit_lines(stream, bytes.substr(0, newline + 1), out);
    }
    bytes.remove_prefix(newline + 1);
  }
  hold(s, bytes);
  if (s.held.size() > longest_held) flush(stream, out);
}

void line_merger::flush(std::size_t stream, std::string& out) {
  auto& s = streams_[stream];
  if (s.held.empty()) return;
  begin_line(stream, out);
  out += s.held;
  s.held.clear();
  --holding_;
}

void line_merger::insert(std::string_view line, std::string& out) {
  if (open_ != nobody) out += '\n';
  open_ = nobody;
  out += line;
  out += '\n';
}

}  // namespace verbena::launcher
