#include <verbena/error.hpp>

namespace verbena {
namespace {

const char* words(errc e) noexcept {
  switch (e) {
    case errc::success:
      return "success";
    case errc::truncated:
      return "message longer than the receive";
    case errc::peer_failed:
      return "peer failed";
    case errc::invalid_argument:
      return "invalid argument";
    case errc::not_in_job:
      return "not part of a job";
    case errc::not_supported:
      return "not supported here";
    case errc::timed_out:
      return "timed out";
    case errc::cancelled:
      return "cancelled";
    case errc::out_of_memory:
      return "out of memory";
    case errc::malformed:
      return "malformed data";
    case errc::outcome_unknown:
      return "outcome unknown";
    case errc::access_denied:
      return "remote access denied";
    case errc::link_down:
      return "link down";
    case errc::aborted:
      return "job is being ended";
    case errc::mismatch:
      return "ranks disagree about a collective";
    case errc::peer_left: return "peer has left the job";
    case errc::system:
      return "system call failed";
  }
  return "unknown error";
}

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "verbena"; }
  std::string message(int value) const override { return words(static_cast<errc>(value)); }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const category instance;
  return instance;
}

error::error(errc code, const std::string& text) : std::system_error(make_error_code(code)), text_(text) {}
error::~error() = default;

}  // namespace verbena
