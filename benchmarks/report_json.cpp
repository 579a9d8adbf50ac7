#include "report.hpp"

#include <nlohmann/json.hpp>

namespace bench {

std::string report::json() const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const line& l : lines_) {
    nlohmann::ordered_json row = {{"size", l.size}};
    for (std::size_t i = 0; i < columns_.size(); ++i) row[columns_[i].key] = l.values[i];
    rows.push_back(std::move(row));
  }
  const nlohmann::ordered_json all = {{"benchmark", with_.program},
                                      {"library", library_},
                                      {"ranks", ranks_},
                                      {"checked", with_.check},
                                      {"rows", std::move(rows)}};
  return all.dump(2);
}

}  // namespace bench
