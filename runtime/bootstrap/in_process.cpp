#include "runtime/bootstrap/in_process.hpp"

#include "base/job_page.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <verbena/error.hpp>

#include <chrono>
#include <numeric>

namespace verbena::runtime {

class in_process_job::member_bootstrap final : public bootstrap {
 public:
  member_bootstrap(in_process_job& owner, std::uint32_t rank) : owner_(owner) {
    info_.name = "in_process";
    info_.self = rank;
    info_.size = owner.size_;
    info_.local_ranks.resize(owner.segment_ ? owner.size_ : 1, rank);
    if (owner.segment_) std::iota(info_.local_ranks.begin(), info_.local_ranks.end(), 0U);
    info_.host = "this process";
    info_.launched_by = "in_process";
  }

  const job_info& job() const override { return info_; }

  base::unique_fd segment() override { return base::unique_fd{owner_.segment_ ? ::dup(owner_.segment_.get()) : -1}; }

  void publish(std::string_view key, std::span<const std::byte> value) override {
    std::lock_guard lock(owner_.mutex_);
    owner_.values_[{info_.self, std::string(key)}] = {value.begin(), value.end()};
  }

  void fence(base::nanoseconds timeout) override {
    std::unique_lock lock(owner_.mutex_);
    const std::uint64_t round = owner_.round_;
    if (++owner_.arrived_ == owner_.size_) {
      owner_.arrived_ = 0;
      ++owner_.round_;
      owner_.met_.notify_all();
      return;
    }
    if (!owner_.met_.wait_for(lock, std::chrono::nanoseconds(timeout), [&] { return owner_.round_ != round; }))
      throw error(errc::timed_out,
                  fmt::format("rank {} waited in vain for the others to meet: {} of {} ranks came", info_.self,
                              owner_.arrived_, owner_.size_));
  }

  std::optional<std::vector<std::byte>> lookup(std::uint32_t rank, std::string_view key, base::nanoseconds) override {
    std::lock_guard lock(owner_.mutex_);
    auto at = owner_.values_.find({rank, std::string(key)});
    if (at == owner_.values_.end()) return std::nullopt;
    return at->second;
  }

  [[noreturn]] void abort(int status, std::string_view why) override {
    throw in_process_abort(fmt::format("rank {} aborts the job with status {}: {}", info_.self, status, why));
  }

  void leave() override {}

 private:
  in_process_job& owner_;
  job_info info_;
};

in_process_job::in_process_job(std::uint32_t size, bool with_segment) : size_(size) {
  if (!with_segment) return;
  std::vector<std::uint32_t> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0U);
  segment_ = base::create_segment({.job_size = size, .local_ranks = std::move(ranks)});
}

std::unique_ptr<bootstrap> in_process_job::member(std::uint32_t rank) {
  return std::make_unique<member_bootstrap>(*this, rank);
}

}  // namespace verbena::runtime
