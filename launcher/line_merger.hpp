// Turns the byte streams of many ranks into one stream of whole lines: a line is never broken by another one
// and bears its tag once. Pure: it sees bytes and stream numbers, no descriptor and no clock; who holds back
// reading, and when a prompt counts as one, is decided outside. Output is byte-exact: a newline is added in
// one case only, when somebody else's line must follow a piece that was let go without its end.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace verbena::launcher {

class line_merger {
 public:
  /// A line longer than this is let go in pieces, so that memory stays bounded.
  static constexpr std::size_t longest_held = 64 * 1024;

  /// Adds a stream; `prefix` goes before each of its lines. Returns its number.
  std::size_t add_stream(std::string prefix);

  /// Takes bytes of a stream and appends to `out` the lines they complete.
  void feed(std::size_t stream, std::string_view bytes, std::string& out);

  /// Lets go of a stream's unfinished line (a prompt, or the last line at the end).
  void flush(std::size_t stream, std::string& out);

  /// A line of the launcher itself, on a line of its own.
  void insert(std::string_view line, std::string& out);

  std::size_t holding() const { return holding_; }  ///< streams with an unfinished line
  std::size_t streams() const { return streams_.size(); }

 private:
  static constexpr std::size_t nobody = SIZE_MAX;
  struct partial {
    std::string prefix;
    std::string held;
  };
  void begin_line(std::size_t stream, std::string& out);
  void emit_lines(std::size_t stream, std::string_view lines, std::string& out);
  void hold(partial& s, std::string_view bytes);

  std::vector<partial> streams_;
  std::size_t open_ = nobody;  ///< whose unfinished line the output ends with
  std::size_t holding_ = 0;
};

}  // namespace verbena::launcher
