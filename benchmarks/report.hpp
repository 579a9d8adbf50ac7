// How a benchmark shows its figures: comment lines, a size column and value columns as OSU prints them, each
// row as soon as it is measured; and the same figures as JSON at the end. Only the rank that prints makes
// one.
#pragma once

#include "options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct column {
  std::string key;      ///< name in JSON, unit last: "latency_us"
  std::string heading;  ///< name in the table: "Latency (us)"
  int digits = 2;       ///< behind the point
};

class report {
 public:
  /// `library` names what is measured: "verbena 0.1.0".
  report(const options& with, std::string library, int ranks, std::vector<column> columns);
  void row(std::uint64_t size, const std::vector<double>& values);
  /// Writes the JSON if it was asked for. Throws std::runtime_error if it cannot be written.
  void finish() const;

 private:
  struct line {
    std::uint64_t size;
    std::vector<double> values;
  };
  std::string json() const;

  options with_;
  std::string library_;
  int ranks_;
  std::vector<column> columns_;
  std::vector<line> lines_;
};

}  // namespace bench
