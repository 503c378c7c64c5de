/// The reason why a layer cannot be built; caught where its place in the file is known.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace plimsoll {

class LayerError : public std::runtime_error {
 public:
  explicit LayerError(const std::string& message, std::string hint = {})
      : std::runtime_error(message), hint_(std::move(hint)) {}
  [[nodiscard]] const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

}  // namespace plimsoll
