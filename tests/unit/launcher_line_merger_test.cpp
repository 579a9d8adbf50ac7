#include "launcher/line_merger.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using verbena::launcher::line_merger;

TEST_CASE("lines of two streams are never mixed, whatever the pieces") {
  std::mt19937 random{1};
  line_merger merger;
  std::vector<std::string> sent(4);
  std::vector<std::size_t> at(4);
  for (std::size_t s = 0; s < 4; ++s) {
    merger.add_stream(fmt::format("[{}] ", s));
    for (int i = 0; i < 500; ++i) sent[s] += fmt::format("{}:{}{}\n", s, i, std::string(random() % 200, 'x'));
  }
  std::string out;
  for (bool more = true; more;) {
    more = false;
    for (std::size_t s = 0; s < 4; ++s) {
      const std::size_t piece = std::min<std::size_t>(random() % 300, sent[s].size() - at[s]);
      merger.feed(s, std::string_view{sent[s]}.substr(at[s], piece), out);
      at[s] += piece;
      more = more || at[s] < sent[s].size();
    }
  }
  std::vector<std::string> got(4);
  std::istringstream lines{out};
  for (std::string line; std::getline(lines, line);) {
    REQUIRE(line[0] == '[');
    const auto s = static_cast<std::size_t>(line[1] - '0');
    got.at(s) += line.substr(4) + "\n";
  }
  CHECK(got == sent);
}

TEST_CASE("one stream without tag passes byte for byte") {
  std::mt19937 random{2};
  std::string bytes;
  for (int i = 0; i < 300'000; ++i) bytes += static_cast<char>(random() % 256);
  bytes += std::string(200'000, 'a');  // longer than a line that is held back
  line_merger merger;
  const auto s = merger.add_stream("");
  std::string out;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t piece = random() % 5000;
    merger.feed(s, std::string_view{bytes}.substr(at, piece), out);
    at += piece;
  }
  merger.flush(s, out);
  CHECK(out == bytes);
}

TEST_CASE("an unfinished line is let go once and continued without a second tag") {
  line_merger merger;
  const auto s = merger.add_stream("[0] ");
  std::string out;
  merger.feed(s, "name? ", out);
  CHECK(out.empty());
  CHECK(merger.holding() == 1);
  merger.flush(s, out);
  CHECK(out == "[0] name? ");
  CHECK(merger.holding() == 0);
  merger.feed(s, "yes\nnext\n", out);
  CHECK(out == "[0] name? yes\n[0] next\n");
}

TEST_CASE("another stream's line after a piece without end begins on a line of its own") {
  line_merger merger;
  const auto a = merger.add_stream("[0] ");
  const auto b = merger.add_stream("[1] ");
  std::string out;
  merger.feed(a, "name? ", out);
  merger.flush(a, out);
  merger.feed(b, "hello\n", out);
  merger.feed(a, "go on\n", out);
  CHECK(out == "[0] name? \n[1] hello\n[0] go on\n");
}

TEST_CASE("the launcher's own line does not break into a line") {
  line_merger merger;
  const auto a = merger.add_stream("");
  std::string out;
  merger.feed(a, "half", out);
  merger.insert("rdmarun: word", out);
  merger.feed(a, " line\n", out);
  CHECK(out == "rdmarun: word\nhalf line\n");
}

TEST_CASE("empty lines are tagged too") {
  line_merger merger;
  const auto a = merger.add_stream("[0] ");
  std::string out;
  merger.feed(a, "\n\nx\n", out);
  CHECK(out == "[0] \n[0] \n[0] x\n");
}

TEST_CASE("a line without end does not grow in memory") {
  line_merger merger;
  const auto a = merger.add_stream("");
  std::string out;
  const std::string piece(10'000, 'z');
  for (int i = 0; i < 100; ++i) merger.feed(a, piece, out);
  CHECK(out.size() >= 100 * piece.size() - line_merger::longest_held - piece.size());
}
