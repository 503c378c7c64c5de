/// Random profiles, with every relation between steps that their format allows: forwards also read
/// and change what earlier ones keep for backwards, backwards change what forwards made.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace plimsoll::test {

/// A random profile, as text and as the list of its steps in the order in which they run.
class RandomProfile {
 public:
  explicit RandomProfile(std::uint64_t seed) : random_(seed) {
    text_ =
        "workload: net\nprofile:\n  version: 1\n  inputs: {x: 3 B}\n"
        "  parameters: {w: 5 B, v: 7 B}\n  buffers: {m: 2 B}\n  operators:\n";
    const std::size_t operators = 1 + up_to(9);
    for (std::size_t i = 0; i < operators; ++i) forwards_.push_back(add_step(true));
    backwards_.resize(operators);
    for (std::size_t i = operators; i-- > 0;)
      if (up_to(4) > 0) backwards_[i] = add_step(false);
    for (std::size_t i = 0; i < operators; ++i)
      text_ += fmt::format("    - {{name: o{}, forward: {}{}}}\n", i, forwards_[i],
                           backwards_[i].empty() ? "" : ", backward: " + backwards_[i]);
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::int64_t seconds() const { return seconds_; }

  /// By the rules of the format: a storage is there from its maker until its last reader ends.
  [[nodiscard]] std::int64_t peak() const {
    std::map<std::string, std::size_t> last;
    for (std::size_t s = 0; s < steps_.size(); ++s)
      for (const std::string& read : steps_[s].reads) last[read] = s;
    std::int64_t alive = 3 + 5 + 7 + 2, most = alive;
    std::map<std::string, std::int64_t> there;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      for (const auto& [name, bytes] : steps_[s].makes) alive += there[name] = bytes;
      alive += steps_[s].new_gradients;
      most = std::max(most, alive + steps_[s].workspace);
      std::erase_if(there, [&](const auto& storage) {
        const auto found = last.find(storage.first);
        if (found != last.end() && found->second > s) return false;
        alive -= storage.second;
        return true;
      });
    }
    return most;
  }

 private:
  struct Step {
    std::set<std::string> reads;
    std::map<std::string, std::int64_t> makes;
    std::int64_t new_gradients = 0, workspace = 0;
  };

  std::size_t up_to(std::size_t most) { return random_() % (most + 1); }

  std::string add_step(bool is_forward) {
    Step step;
    std::string updates, reads, makes, keeps, gradients;
    for (std::size_t i = up_to(3); i-- > 0;) {
      const std::string& name = names_[up_to(names_.size() - 1)];
      if (!step.reads.insert(name).second) continue;
      reads += name + ", ";
      if (name.front() == 's' && up_to(4) == 0) updates += name + ", ";
    }
    for (std::size_t i = up_to(2); i-- > 0;) makes += add_storage(step);
    if (is_forward)
      for (std::size_t i = up_to(2); i-- > 0;) keeps += add_storage(step);
    for (const auto& [name, bytes] : {std::pair{"w", 5}, std::pair{"v", 7}}) {
      if (is_forward || up_to(2) > 0) continue;
      gradients += std::string(name) + ", ";
      if (gradients_.insert(name).second) step.new_gradients += bytes;
    }
    step.workspace = static_cast<std::int64_t>(up_to(50));
    const std::size_t time = 1 + up_to(5);
    seconds_ += static_cast<std::int64_t>(time);
    for (const auto& [name, bytes] : step.makes) names_.push_back(name);
    steps_.push_back(step);
    return fmt::format(
        "{{time: {} s, reads: [{}], updates: [{}], makes: {{{}}}, {}, workspace: {} B}}", time,
        reads, updates, makes,
        is_forward ? "keeps: {" + keeps + "}" : "gradients: [" + gradients + "]", step.workspace);
  }

  std::string add_storage(Step& step) {
    const std::string name = fmt::format("s{}", storages_++);
    step.makes[name] = static_cast<std::int64_t>(up_to(100));
    return fmt::format("{}: {} B, ", name, step.makes[name]);
  }

  std::mt19937_64 random_;
  std::string text_;
  std::vector<std::string> names_{"x", "w", "v", "m"}, forwards_, backwards_;
  std::set<std::string> gradients_;
  std::vector<Step> steps_;
  std::size_t storages_ = 0;
  std::int64_t seconds_ = 0;
};

}  // namespace plimsoll::test
