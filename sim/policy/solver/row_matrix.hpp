/// The matrix of a linear program, written row by row: CoinPackedMatrix::appendRow() copies what is
/// there each time it runs out of space.
#pragma once

#include <CoinPackedMatrix.hpp>
#include <cstddef>
#include <vector>

namespace plimsoll {

class RowMatrix {
 public:
  void add(std::size_t column, double value) {
    columns_.push_back(static_cast<int>(column));
    values_.push_back(value);
  }
  void end_row() { starts_.push_back(static_cast<CoinBigIndex>(columns_.size())); }

  [[nodiscard]] CoinPackedMatrix packed(std::size_t columns) const {
    return {false,
            static_cast<int>(columns),
            static_cast<int>(starts_.size()) - 1,
            starts_.back(),
            values_.data(),
            columns_.data(),
            starts_.data(),
            nullptr};
  }

 private:
  std::vector<CoinBigIndex> starts_{0};
  std::vector<int> columns_;
  std::vector<double> values_;
};

}  // namespace plimsoll
