// The number of instructions a warm 8-byte message costs each side, counted by callgrind: exact, whatever
// else the machine does, so it can be guarded where times cannot.
#include <catch2/catch.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

/// Instructions inside `function` while `messages` messages are sent, or -1.
long count(const std::string& function, int messages) {
  const std::string command =
      "valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=" + function +
      " " MESSAGE_LOOP " " + std::to_string(messages) + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return -1;
  std::string output;
  std::array<char, 4096> part;
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe))
    output.append(part.data(), got);
  const int status = ::pclose(pipe);
  INFO(command << "\n" << output);
  CHECK(status == 0);
  const std::size_t at = output.find("Collected : ");
  return at == std::string::npos ? -1 : std::atol(output.c_str() + at + 12);
}

double per_message(const std::string& function) {
  constexpr int messages = 9'600;  // whole windows
  const long none = count(function, 0);
  const long many = count(function, messages);
  REQUIRE(none >= 0);
  REQUIRE(many > none);
  return static_cast<double>(many - none) / messages;
}

}  // namespace

TEST_CASE("a warm 8-byte send costs at most 150 instructions", "[instructions]") {
  const double cost = per_message("counted_send");
  INFO("instructions per send: " << cost);
  std::printf("instructions per warm 8-byte send: %.1f\n", cost);
  CHECK(cost > 10);
  CHECK(cost <= 150);
}

TEST_CASE("a warm 8-byte receive costs at most 200 instructions", "[instructions]") {
  const double cost = per_message("counted_receive");
  std::printf("instructions per warm 8-byte receive: %.1f\n", cost);
  CHECK(cost > 10);
  CHECK(cost <= 200);
}

TEST_CASE("a warm 8-byte message in a window of 64 started ones costs a bounded number of instructions",
          "[instructions]") {
  const double isend = per_message("counted_isends");
  const double irecv = per_message("counted_irecvs") + per_message("counted_waits");
  std::printf("instructions per warm 8-byte isend and wait: %.1f, irecv and wait: %.1f\n", isend, irecv);
  CHECK(isend > 10);
  CHECK(isend <= 280);
  CHECK(irecv > 10);
  CHECK(irecv <= 850);
}
