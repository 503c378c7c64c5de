/// What many scenarios of one document have in common, so that a sweep reads and builds it once:
/// documents, platforms, workloads, networks, training steps, and the makespans that overheads are related to.
///
/// Each is a pure function of its key, so what a memo forgets is made again and is the same: results
/// do not depend on it, nor on the number of threads that share it.
#pragma once

#include "execution/metrics.hpp"
#include "scenario/document/scenario.hpp"

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace plimsoll {

/// Values by key, up to a total weight; the oldest are forgotten first. Safe for several threads;
/// two of them may make the same value at once, the first one is kept.
template <class T>
class BoundedCache {
 public:
  explicit BoundedCache(std::size_t capacity) : capacity_(capacity) {}

  /// nullptr where nothing is known under the key.
  [[nodiscard]] std::shared_ptr<const T> find(const std::string& key) const {
    const std::scoped_lock lock(mutex_);
    const auto known = values_.find(key);
    return known != values_.end() ? known->second.first : nullptr;
  }

  /// A value heavier than the capacity is not kept.
  void keep(const std::string& key, std::shared_ptr<const T> value, std::size_t weight = 1) {
    const std::scoped_lock lock(mutex_);
    if (weight > capacity_ || values_.contains(key)) return;
    for (; weight_ + weight > capacity_; by_age_.pop_front()) {
      const auto oldest = values_.find(by_age_.front());
      weight_ -= oldest->second.second;
      values_.erase(oldest);
    }
    values_.emplace(key, std::pair{std::move(value), weight});
    by_age_.push_back(key);
    weight_ += weight;
  }

  /// What is known under the key, else what `make` makes, which is kept unless it is nullptr.
  template <class Make>
  std::shared_ptr<const T> recall(const std::string& key, Make make) {
    if (auto known = find(key)) return known;
    std::shared_ptr<const T> made = make();
    if (made) keep(key, made);
    return made;
  }

  /// All that is known, by key.
  [[nodiscard]] std::map<std::string, std::shared_ptr<const T>> all() const {
    const std::scoped_lock lock(mutex_);
    std::map<std::string, std::shared_ptr<const T>> all;
    for (const auto& [key, value] : values_) all.emplace(key, value.first);
    return all;
  }

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::pair<std::shared_ptr<const T>, std::size_t>> values_;
  std::deque<std::string> by_age_;
  std::size_t weight_ = 0;
};

struct LoadedPlatform {
  Platform platform;
  std::vector<Diagnostic> warnings;
};

struct LoadedWorkload {
  WorkloadSource workload;
  std::string name;
  WorkloadOptions options;
};

/// The training step that a policy plans, and the chain of its stages.
struct TrainingStep {
  Workload workload;
  ChainView chain;
  Bytes saved_bytes;  ///< of the whole mini-batch
};

/// Serves the scenarios of one document in one folder only: keys tell what is assigned, not what is
/// written. Capacities are such that a memo is full after some hundred points, and stays below some
/// hundred MB even where platforms and workloads are large.
class ScenarioMemo {
 public:
  BoundedCache<Node> documents{256};
  BoundedCache<std::optional<Node>> extended_platforms{256};
  BoundedCache<LoadedPlatform> platforms{256};
  BoundedCache<LoadedWorkload> workloads{256};
  BoundedCache<Workload> networks{kMaxOperators};  ///< as ranks of a mesh divide their layers
  BoundedCache<TrainingStep> training_steps{kMaxOperators};
  BoundedCache<Time> reference_makespans{4096};

 private:
  static constexpr std::size_t kMaxOperators = 200'000;
};

/// A text that two nodes share only if they hold the same; places are left out. O(node).
[[nodiscard]] std::string key_text(const Node& node);
[[nodiscard]] std::string key_text(std::string_view text);

}  // namespace plimsoll
