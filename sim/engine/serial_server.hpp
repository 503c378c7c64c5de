/// A resource that serves one activity at a time, in the order of request: a compute stream, one
/// direction of a `fifo` link.
///
/// The server keeps the queue, the busy flag and the busy time. When the activity at the front may
/// start is the caller's affair (it may wait for memory, or for data), and so is the event of its
/// end:
///
///   server.enqueue(activity);
///   if (server.ready() && can_start(server.front())) {
///     queue.push(now + duration, server.start(now));
///   }
///   ...                                        // when that event comes
///   server.finish(now);
///
/// All operations O(1); no allocation once as many activities have waited before.
#pragma once

#include "base/quantity.hpp"
#include "engine/ring.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace plimsoll {

class SerialServer {
 public:
  void reserve(std::size_t waiting) { waiting_.reserve(waiting); }

  void enqueue(std::uint32_t activity) { waiting_.push(activity); }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  /// The activity that is next. Precondition: waiting() > 0.
  [[nodiscard]] std::uint32_t front() const { return waiting_.front(); }
  /// Idle, with an activity waiting.
  [[nodiscard]] bool ready() const { return !busy_ && !waiting_.empty(); }

  /// Takes the front out of the queue into service and returns it. Precondition: ready().
  std::uint32_t start(Time now) {
    assert(ready());
    serving_ = waiting_.pop();
    busy_ = true;
    since_ = now;
    return serving_;
  }
  /// Ends the service begun last and returns its activity.
  /// Precondition: busy(), now is not before its start.
  std::uint32_t finish(Time now) {
    assert(busy_ && since_ <= now);
    busy_ = false;
    busy_time_ += now - since_;
    return serving_;
  }

  [[nodiscard]] bool busy() const { return busy_; }
  /// Precondition: busy().
  [[nodiscard]] std::uint32_t serving() const {
    assert(busy_);
    return serving_;
  }
  /// Total time in service up to `now`, which is not before the last start or finish.
  [[nodiscard]] Time busy_time(Time now) const {
    return busy_ ? busy_time_ + (now - since_) : busy_time_;
  }

 private:
  Ring<std::uint32_t> waiting_;
  Time busy_time_;
  Time since_;  ///< start of the present service
  std::uint32_t serving_ = 0;
  bool busy_ = false;
};

}  // namespace plimsoll
